package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// printer formats references with names in place of IDs.
type printer struct {
	aws   *Service
	names map[string]string
}

// list formats a set of resources by name.
func (d printer) list(ids []string) string {
	return "[" + strings.Join(slices.Sorted(slices.Values(core.Each(ids, func(id string) string { return cmp.Or(d.names[id], id) }))), ", ") + "]"
}

// routes formats the routes of a table, and which are blackholes.
func (d printer) routes(t *RouteTable) string {
	all := core.Each(t.Routes, func(r Route) string {
		return fmt.Sprintf("%s to %s (%t)", r.Destination, cmp.Or(d.names[r.Target], r.Target), d.aws.leads(t, r.Target))
	})
	return "[" + strings.Join(slices.Sorted(slices.Values(all)), ", ") + "]"
}

func (d printer) rules(rules []Rule) string {
	all := core.Each(rules, func(r Rule) string {
		return fmt.Sprintf("%s %d-%d %s%s%s %q", r.Protocol, r.From, r.To, r.CIDR, r.IPv6, d.names[r.Group], r.Description)
	})
	return "[" + strings.Join(slices.Sorted(slices.Values(all)), ", ") + "]"
}

// given formats the default security group and the main route table of a VPC.
func (d printer) given(v *VPC) (text string) {
	for _, g := range d.aws.state.SecurityGroups {
		if g.VPC == v.ID && g.Name == "default" {
			text += "default group in " + d.rules(g.Ingress) + " out " + d.rules(g.Egress) + " tags " + core.Pairs(g.Tags)
		}
	}
	for _, t := range d.aws.state.RouteTables {
		if t.VPC == v.ID && t.Main != "" {
			text += " main routes " + d.routes(t) + " tags " + core.Pairs(t.Tags)
		}
	}
	return text
}

// Inventory lists the resources except for default ones.
func (svc *Service) Inventory() (all []string) {
	for _, t := range svc.own() {
		if !t.listed() {
			continue
		}
		line := t.kind().title + " " + t.name()
		if state := t.ending(svc.Now()); state != "" {
			line += " " + state
		}
		all = append(all, line)
	}
	return append(all, svc.inventoryImages()...)
}

// own returns the existing resources except for default ones, main route tables and
// default security groups, sorted by ID.
func (svc *Service) own() (all []resource) {
	for t := range svc.taggable() {
		if !t.over(svc.Now()) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(x, y resource) int { return strings.Compare(x.thing().ID, y.thing().ID) })
	return all
}

// anonymous removes IDs from a text.
func anonymous(s string) string {
	return regex.Of(`\b[a-z]+-0[0-9a-f]{16}\b|\b[0-9a-f]{16}\b`).ReplaceAllString(s, "(ID)")
}

// Detailed is Inventory with attributes, and with interfaces and volumes in use.
func (svc *Service) Detailed() (all []string) {
	d := printer{svc, map[string]string{}}
	for t := range svc.taggable() {
		d.names[t.thing().ID] = t.kind().title + "(" + t.name() + ")"
	}
	for id, i := range svc.state.Images {
		d.names[id] = i.Name
	}
	var ids []string
	for id, n := range d.names {
		ids = append(ids, id, n)
	}
	inText := strings.NewReplacer(ids...)
	for _, t := range svc.own() {
		line := t.kind().title + " " + t.name() + ": " + strings.Join(append(t.details(d), "tags "+core.Pairs(t.thing().Tags)), "; ")
		all = append(all, anonymous(inText.Replace(line)))
	}
	return append(all, svc.inventoryImages()...)
}
