package render_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// TestWarningsOfOneSort: three and more problems of one sort are one line, with their number and the first names; fewer, and others, stay
// as they are and where they are.
func TestWarningsOfOneSort(t *testing.T) {
	at := func(line int, object, path, what, several, fix string) input.Problem {
		return input.Problem{Position: input.Position{File: "a.yaml", Line: line}, Object: object, Path: path, What: what, Several: several, Fix: fix}
	}
	var all []input.Problem
	for i := range 5 {
		all = append(all, at(10+i, fmt.Sprintf("App/a%d", i), "kind", "App in giantswarm.io/v1 is ignored", "are ignored", ""))
	}
	all = append(all,
		at(20, "AWSCluster/x", "spec.region", "is odd", "", "change it"),
		at(21, "HelmRelease/h", "kind", "HelmRelease in fluxcd.io/v2 is ignored", "are ignored", ""),
		at(30, "AWSCluster/x", "spec.network.vpc.tags", "has no effect", "", "set additionalTags"))
	for i := range 6 {
		all = append(all, at(40+i, "AWSCluster/x", fmt.Sprintf("spec.network.subnets[%d].routeTableId", i), "has no effect", "", ""))
	}
	all = append(all,
		at(50, "AWSCluster/x", "spec.network.subnets[0].natGatewayId", "has no effect", "", ""),
		at(60, "Secret/a", "", "nothing refers to it", "", "remove it"),
		at(61, "Secret/b", "", "nothing refers to it", "", "remove it"))
	assert.Equal(t, []string{
		"a.yaml:10: 5 × App (a0, a1, a2, …), HelmRelease/h: are ignored",
		"a.yaml:20: AWSCluster/x spec.region: is odd — change it",
		"a.yaml:30: AWSCluster/x spec.network.vpc.tags: has no effect — set additionalTags",
		"a.yaml:40: 6 × AWSCluster/x spec.network.subnets[].routeTableId, AWSCluster/x spec.network.subnets[].natGatewayId: has no effect",
		"a.yaml:60: Secret/a: nothing refers to it — remove it",
		"a.yaml:61: Secret/b: nothing refers to it — remove it",
	}, render.Warnings(all))

	other := at(3, "Secret/c", "", "nothing refers to it", "", "remove it")
	other.File = "b.yaml"
	assert.Len(t, render.Warnings(append(all[len(all)-2:], other)), 3, "files stay apart")
	assert.Equal(t, []string{"3 times: is odd"}, render.Warnings([]input.Problem{{What: "is odd"}, {What: "is odd"}, {What: "is odd"}}))
	for i, kind := range []string{"B", "C", "D"} {
		all = append(all, at(70+i, kind+"/x", "kind", kind+" is ignored", "are ignored", ""))
	}
	assert.Equal(t, "a.yaml:10: 5 × App, HelmRelease/h, B/x, C/x, D/x: are ignored", render.Warnings(all)[0], "many kinds, without names")
	assert.Empty(t, render.Warnings(nil))
}
