package aws_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// fixture is a graph of existing resources with given states.
type fixture struct {
	t *testing.T
	g *graph.Graph
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t, graph.New()}
}

// existing adds an existing resource with a state.
func existing[S graph.State](k *fixture, id plan.ID, s S) *graph.Ref[S] {
	return graph.Use(k.g, id, func(context.Context, *cloud.Clients) (*S, error) { return &s, nil })
}

// observe makes the states known to the graph.
func (k *fixture) observe() {
	k.t.Helper()
	a := awssim.New(awssim.Options{})
	_, err := (&graph.Executor{Cloud: cloud.New(a.Config(), "demo", cloud.Options{})}).Plan(k.t.Context(), k.g)
	require.NoError(k.t, err)
}

func object(id string) identity.Object { return identity.Object{ID: id, Tags: cloud.Tags{}} }

func (k *fixture) vpc() *graph.Ref[ec2.VPCState] {
	return existing(k, "vpc", ec2.VPCState{Object: object("vpc-1"), CIDR: "10.0.0.0/16", IPv6CIDR: "2600:1f14:2:4a00::/56"})
}

func (k *fixture) group(name string) *graph.Ref[ec2.SecurityGroupState] {
	return existing(k, plan.ID("security-group/"+name), ec2.SecurityGroupState{Object: object("sg-" + name), VPC: "vpc-1", Name: name})
}

// lines returns differences as text: "+" is changed in place, "!" needs a replacement,
// "…" is waited for.
func lines(d plan.Diff) (out []string) {
	for _, c := range d {
		out = append(out, map[plan.Remedy]string{plan.InPlace: "+ ", plan.Replace: "! ", plan.ByItself: "… "}[c.Remedy]+c.String())
	}
	return out
}
