package enginetest

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

// Fixture is a graph of existing resources with given states.
type Fixture struct {
	t *testing.T
	g *graph.Graph
}

// NewFixture returns an empty graph.
func NewFixture(t *testing.T) *Fixture {
	t.Helper()
	return &Fixture{t, graph.New()}
}

// Existing adds an existing resource with a state.
func Existing[S graph.State](k *Fixture, id plan.ID, s S) *graph.Ref[S] {
	return graph.Use(k.g, id, func(context.Context, *cloud.Clients) (*S, error) { return &s, nil })
}

// Observe makes the states known to the graph.
func (k *Fixture) Observe() {
	k.t.Helper()
	a := awssim.New(awssim.Options{})
	_, err := (&graph.Executor{Cloud: cloud.New(a.Config(), "demo", cloud.Options{})}).Plan(k.t.Context(), k.g)
	require.NoError(k.t, err)
}

// Object is the identity of a resource without tags.
func Object(id string) identity.Object { return identity.Object{ID: id, Tags: cloud.Tags{}} }

// VPC adds an existing VPC.
func (k *Fixture) VPC() *graph.Ref[ec2.VPCState] {
	return Existing(k, "vpc", ec2.VPCState{Object: Object("vpc-1"), CIDR: "10.0.0.0/16", IPv6CIDR: "2600:1f14:2:4a00::/56"})
}

// Group adds an existing security group.
func (k *Fixture) Group(name string) *graph.Ref[ec2.SecurityGroupState] {
	return Existing(k, plan.ID("security-group/"+name), ec2.SecurityGroupState{Object: Object("sg-" + name), VPC: "vpc-1", Name: name})
}

// Lines returns differences as text: "+" is changed in place, "!" needs a replacement,
// "…" is waited for.
func Lines(d plan.Diff) (out []string) {
	for _, c := range d {
		out = append(out, map[plan.Remedy]string{plan.InPlace: "+ ", plan.Replace: "! ", plan.ByItself: "… "}[c.Remedy]+c.String())
	}
	return out
}
