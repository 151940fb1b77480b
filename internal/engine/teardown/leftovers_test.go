package teardown_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// deleter deletes nothing.
type deleter struct{}

func (deleter) Delete(context.Context, *cloud.Clients, *ec2.VPCState) error { return nil }

// found returns a leftover of a kind, with references.
func found(k kind.Kind, id string, refers ...string) teardown.Leftover {
	s := ec2.VPCState{Object: identity.Object{ID: id}}
	f := kind.Found{Kind: &k, State: s, ID: id, Refers: refers}
	return teardown.Leftover{Found: f.WithAdd(func(g *graph.Graph, id plan.ID, needs []graph.Edge, origin string) graph.Resource {
		return graph.Retire(
			g,
			id,
			kind.Leftover(func(context.Context, *cloud.Clients) (*ec2.VPCState, error) { return &s, nil }, deleter{}, needs),
			graph.From(origin),
		)
	})}
}

// created returns a leftover that a controller in the cluster created.
func created(k kind.Kind, id string, refers ...string) teardown.Leftover {
	l := found(k, id, refers...)
	l.Created = true
	return l
}

// The order of deletion follows from the references of leftovers, whatever the order in
// which they are found.
func TestOrderOfDeletion(t *testing.T) {
	machine := kind.Kind{Name: "machine", RunsPods: true}
	table := found(kind.Kind{Name: "route-table"}, "rtb-1", "vpc-1")
	table.Outlives = []string{"subnet-1"}
	gateway := found(kind.Kind{Name: "internet-gateway"}, "igw-1", "vpc-1")
	gateway.Aliases = []string{ec2.InternetGatewayAlias("vpc-1")}
	left := found(kind.Kind{Name: ec2.InterfacesKind}, "vpc-1", "sg-1", "subnet-1", "vpc-1")
	left.State, left.Aliases = nil, []string{ec2.InterfacesAlias("vpc-1")}
	g := graph.New()
	teardown.Add(g, teardown.Leftovers{
		found(kind.Kind{Name: "certificates", Secret: true, Single: true}, "/clusterawsadm/demo/pki"),
		created(kind.Kind{Name: "load-balancer"}, "web", "subnet-1", "sg-web", ec2.InterfacesAlias("vpc-1"), ec2.InternetGatewayAlias("vpc-1")),
		created(kind.Kind{Name: "security-group"}, "sg-web", "vpc-1"),
		found(machine, "i-1", "subnet-1", "sg-1", ec2.InterfacesAlias("vpc-1")),
		found(kind.Kind{Name: "nat-gateway"}, "nat-1", "subnet-1", "eipalloc-1", ec2.InternetGatewayAlias("vpc-1"), ec2.InterfacesAlias("vpc-1")),
		left, table, gateway,
		found(kind.Kind{Name: "elastic-ip"}, "eipalloc-1"),
		found(kind.Kind{Name: "security-group"}, "sg-1", "vpc-1"),
		found(kind.Kind{Name: "subnet"}, "subnet-1", "vpc-1"),
		found(kind.Kind{Name: "vpc"}, "vpc-1"),
	})
	require.Len(t, g.Resources(), 12)
	for _, x := range []struct {
		first, then plan.ID
	}{
		{"machine/i-1", "load-balancer/web"},
		{"load-balancer/web", "security-group/sg-web"},
		{"load-balancer/web", "internet-gateway/igw-1"},
		{"machine/i-1", "network-interfaces/vpc-1"},
		{"load-balancer/web", "network-interfaces/vpc-1"},
		{"network-interfaces/vpc-1", "security-group/sg-1"},
		{"security-group/sg-web", "subnet/subnet-1"},
		{"nat-gateway/nat-1", "elastic-ip/eipalloc-1"},
		{"nat-gateway/nat-1", "internet-gateway/igw-1"},
		{"subnet/subnet-1", "route-table/rtb-1"},
		{"route-table/rtb-1", "vpc/vpc-1"},
		{"security-group/sg-1", "vpc/vpc-1"},
		{"vpc/vpc-1", "certificates"},
		{"elastic-ip/eipalloc-1", "certificates"},
	} {
		require.True(t, g.Before(g.Resource(x.then))[g.Resource(x.first)], "%s before %s", x.first, x.then)
		require.False(t, g.Before(g.Resource(x.first))[g.Resource(x.then)], "%s before %s", x.then, x.first)
	}
	require.Empty(t, g.Before(g.Resource("machine/i-1")))
	require.Empty(t, g.Before(g.Resource("nat-gateway/nat-1")), "a NAT gateway waits for nothing")
}

// Without anything that runs pods, resources of controllers are also deleted before those
// that identify the cluster. Leftovers with circular references are deleted too.
func TestOrderWithoutMachines(t *testing.T) {
	g := graph.New()
	teardown.Add(g, teardown.Leftovers{
		created(kind.Kind{Name: "volume"}, "vol-1"),
		found(kind.Kind{Name: "subnet"}, "subnet-1", "vpc-1"), found(kind.Kind{Name: "vpc"}, "vpc-1"),
		found(kind.Kind{Name: "odd"}, "a", "b"), found(kind.Kind{Name: "odd"}, "b", "a"),
	})
	require.True(t, g.Before(g.Resource("vpc/vpc-1"))[g.Resource("volume/vol-1")])
	require.NotEqual(t, g.Before(g.Resource("odd/a"))[g.Resource("odd/b")], g.Before(g.Resource("odd/b"))[g.Resource("odd/a")])
}
