package teardown

import (
	"context"
	"maps"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// interfaces are leftovers for the network interfaces that may be left behind when their
// users are deleted. There may be none yet: each leftover deletes those that appear.
func (s *search) interfaces() (out Leftovers) {
	vpcs, created := map[string][]string{}, []string{}
	for _, l := range s.found {
		switch g, is := l.State.(ec2.SecurityGroupState); {
		case !is:
		case l.Created:
			created = append(created, g.ID)
		default:
			vpcs[g.VPC] = append(vpcs[g.VPC], g.ID)
		}
	}
	for _, vpc := range slices.Sorted(maps.Keys(vpcs)) {
		groups, cluster := vpcs[vpc], s.of.EKSName()
		l := interfacesIn(vpc, func(ctx context.Context, c *cloud.Clients) (*ec2.NetworkInterfacesState, error) {
			return ec2.InterfacesInGroups(ctx, c, vpc, groups, cluster)
		})
		l.Refers = append(slices.Clone(groups), vpc, ec2.SubnetsAlias(vpc), ec2.InternetGatewayAlias(vpc))
		l.Aliases = []string{ec2.InterfacesAlias(vpc)}
		out = append(out, l)
	}
	if len(created) > 0 {
		l := interfacesIn("of-services", func(ctx context.Context, c *cloud.Clients) (*ec2.NetworkInterfacesState, error) {
			return ec2.RemainingInterfaces(ctx, c, cloud.Filter("group-id", created...))
		})
		l.Refers, l.Created = created, true
		for _, g := range created {
			l.Aliases = append(l.Aliases, ec2.InterfacesAlias(g))
		}
		out = append(out, l)
	}
	for ids := range slices.Chunk(s.pods, 200) { // AWS takes 200 values for a filter
		l := interfacesIn("of-pods-"+ids[0], func(ctx context.Context, c *cloud.Clients) (*ec2.NetworkInterfacesState, error) {
			return ec2.RemainingInterfaces(ctx, c, cloud.Filter("network-interface-id", ids...))
		})
		l.Created = true
		out = append(out, l)
	}
	return out
}

func interfacesIn(id string, find graph.Lookup[ec2.NetworkInterfacesState]) Leftover {
	f := kind.Found{Kind: ec2.NetworkInterfacesKind(), ID: id}
	return Leftover{Origin: "found by its tag", Found: f.WithAdd(func(g *graph.Graph, id plan.ID, needs []graph.Edge, _ string) graph.Resource {
		return graph.Sweep(g, id, kind.LateLeftover(find, &ec2.NetworkInterfaces{}, needs))
	})}
}
