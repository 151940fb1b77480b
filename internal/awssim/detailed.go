package awssim

import (
	"fmt"
	"slices"
	"strings"
)

// Detailed lists what Inventory lists, and the interfaces and volumes of what
// is there, each with all that was asked for: attributes, rules, routes, tags.
// Neither IDs nor addresses nor times are in it, so that two accounts compare
// equal when the same was built in them, in whatever order. Of secrets and
// user data it tells only that they exist.
func (a *AWS) Detailed() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	d := dump{a, map[string]string{}}
	for id, t := range a.taggable() {
		d.names[id] = kindName(t) + "(" + name(t) + ")"
	}
	for id, i := range a.state.EC2.Images {
		d.names[id] = i.Name
	}
	var ids []string
	for id, n := range d.names {
		ids = append(ids, id, n)
	}
	inText := strings.NewReplacer(ids...)
	var all []string
	for _, t := range a.own() {
		line := kindName(t) + " " + name(t) + ": " + strings.Join(append(d.details(t), "tags "+pairs(t.thing().Tags)), "; ")
		all = append(all, anonymous(inText.Replace(line)))
	}
	for _, p := range a.state.SSM.Parameters {
		all = append(all, fmt.Sprintf("Parameter %s: %s; tags %s", p.Name, p.Type, pairs(p.Tags)))
	}
	all = slices.Concat(
		all,
		a.inventoryImages(),
		a.detailedAutoScaling(),
		a.detailedCloudFormation(),
		a.detailedEKS(),
		a.detailedELB(),
		a.detailedIAM(),
		a.detailedS3(),
		a.detailedSecrets(),
	)
	slices.Sort(all)
	return all
}
