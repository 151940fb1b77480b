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
)

// known makes nodes whose state is known, as if they had been looked up.
type known struct {
	t *testing.T
	g *graph.Graph
}

func newKnown(t *testing.T) *known {
	t.Helper()
	return &known{t, graph.New()}
}

// node adds a node of somebody else's in a state.
func node[S graph.State](k *known, id graph.ID, s S) *graph.Ref[S] {
	return graph.Use(k.g, id, func(context.Context, *cloud.Clients) (*S, error) { return &s, nil })
}

// look makes the states known.
func (k *known) look() {
	k.t.Helper()
	a := awssim.New(awssim.Options{})
	_, err := (&graph.Executor{Cloud: cloud.New(a.Config(), "demo", cloud.Options{})}).Plan(k.t.Context(), k.g)
	require.NoError(k.t, err)
}

func object(id string) identity.Object { return identity.Object{ID: id, Tags: cloud.Tags{}} }

func (k *known) vpc() *graph.Ref[ec2.VPCState] {
	return node(k, "vpc", ec2.VPCState{Object: object("vpc-1"), CIDR: "10.0.0.0/16", IPv6CIDR: "2600:1f14:2:4a00::/56"})
}

func (k *known) group(name string) *graph.Ref[ec2.SecurityGroupState] {
	return node(k, graph.ID("security-group/"+name), ec2.SecurityGroupState{Object: object("sg-" + name), VPC: "vpc-1", Name: name})
}

// printed writes a difference down, one line each: "+" for a remedy at hand,
// "!" for none, "…" for time.
func printed(d graph.Diff) (out []string) {
	for _, c := range d {
		out = append(out, map[graph.Remedy]string{graph.InPlace: "+ ", graph.Replace: "! ", graph.Wait: "… "}[c.Remedy]+c.String())
	}
	return out
}
