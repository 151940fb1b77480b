package eks

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Kinds lists the kinds of this package, one line each: the cluster comes before
// its parts, since it tells the name by which they are listed.
func Kinds() []*kind.Any {
	return []*kind.Any{
		clusterKind(),
		nodeGroupKind(),
		fargateProfileKind(),
		addonKind(),
		accessEntryKind(),
		identityProviderKind(),
		oidcProviderKind(),
	}
}

// byName looks up a part of a cluster of EKS.
type byName[S graph.State] func(ctx context.Context, c *cloud.Clients, cluster, name string) (*S, error)

// partsOf lists parts of a cluster of EKS that were created for it. Without the
// cluster, there are none: AWS deletes it only when it has no more parts.
func partsOf[S graph.State](names func(context.Context, *cloud.Clients, string) ([]string, error), get byName[S]) func(context.Context, *cloud.Clients, kind.Owner) ([]S, error) {
	return func(ctx context.Context, c *cloud.Clients, of kind.Owner) (out []S, err error) {
		if !of.EKS {
			return nil, nil
		}
		if in, err := ClusterByName(ctx, c, of.Kubernetes); err != nil || in == nil {
			return nil, err
		}
		all, err := names(ctx, c, of.Kubernetes)
		for _, name := range slices.Sorted(slices.Values(all)) {
			s, err := identity.Owned(ctx, c, get.in(of.Kubernetes, name))
			if err != nil {
				return nil, err
			}
			if s != nil {
				out = append(out, *s)
			}
		}
		return out, err
	}
}

func (get byName[S]) in(cluster, name string) graph.Lookup[S] {
	return func(ctx context.Context, c *cloud.Clients) (*S, error) { return get(ctx, c, cluster, name) }
}

// RetireNodeGroup deletes a node group that is no longer wanted, if it was created
// for the cluster.
func RetireNodeGroup(g *graph.Graph, id graph.ID, name string, cluster *graph.Ref[ClusterState]) {
	retire(g, id, name, cluster, NodeGroupByName, &NodeGroup{})
}

// RetireFargateProfile does the same with a Fargate profile.
func RetireFargateProfile(g *graph.Graph, id graph.ID, name string, cluster *graph.Ref[ClusterState]) {
	retire(g, id, name, cluster, FargateProfileByName, &FargateProfile{})
}

// RetireAddon does the same with an add-on.
func RetireAddon(g *graph.Graph, id graph.ID, name string, cluster *graph.Ref[ClusterState]) {
	retire(g, id, name, cluster, AddonByName, &Addon{})
}

// RetireAccessEntry does the same with an access entry.
func RetireAccessEntry(g *graph.Graph, id graph.ID, principal string, cluster *graph.Ref[ClusterState]) {
	retire(g, id, principal, cluster, AccessEntryOf, &AccessEntry{})
}

func retire[S graph.State](g *graph.Graph, id graph.ID, name string, cluster *graph.Ref[ClusterState], get byName[S], by graph.Deleter[S]) {
	find := func(ctx context.Context, c *cloud.Clients) (*S, error) {
		in, ok := cluster.Found()
		if !ok {
			return nil, nil
		}
		return identity.Owned(ctx, c, get.in(in.Name, name))
	}
	graph.Retire(g, id, kind.Leftover(find, by, graph.On(cluster)), graph.From("no longer in the manifest"))
}
