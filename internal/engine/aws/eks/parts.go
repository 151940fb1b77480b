package eks

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Parts are the names of what hangs on a cluster of EKS.
type Parts struct {
	Cluster                                    *ClusterState // nil: there is none
	NodeGroups, Addons, Fargate, AccessEntries []string
}

// PartsOf looks at a cluster of EKS and at what hangs on it. Who looks
// briefly, to delete, does without what goes with the cluster.
func PartsOf(ctx context.Context, c *cloud.Clients, name string) (p Parts, err error) {
	if p.Cluster, err = ClusterByName(ctx, c, name); err != nil || p.Cluster == nil {
		return p, err
	}
	for _, part := range []struct {
		to   *[]string
		list func(context.Context, *cloud.Clients, string) ([]string, error)
	}{
		{&p.NodeGroups, nodeGroupNames}, {&p.Addons, addonNames}, {&p.Fargate, fargateProfileNames}, {&p.AccessEntries, accessPrincipals},
	} {
		if cloud.IsBrief(ctx) && (part.to == &p.Addons || part.to == &p.AccessEntries) {
			continue
		}
		if *part.to, err = part.list(ctx, c, name); err != nil {
			return p, err
		}
		slices.Sort(*part.to)
	}
	return p, nil
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
			s, err := identity.FindOwned(ctx, c, get.in(of.Kubernetes, name))
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
		return identity.FindOwned(ctx, c, get.in(in.Name, name))
	}
	graph.Retire(g, id, kind.Leftover(find, by, graph.On(cluster)), graph.From("no longer in the manifest"))
}
