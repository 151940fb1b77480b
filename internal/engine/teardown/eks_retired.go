package teardown

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// RetireEKS adds something that hangs on a cluster of EKS, to be removed if it
// is ours: a node group, a Fargate profile, an add-on or an access entry.
func RetireEKS(g *graph.Graph, id graph.ID, kind, name string, cluster *graph.Ref[eks.ClusterState]) {
	f := partOfCluster(kind, name, func() string { s, _ := cluster.Found(); return s.Name })
	again := f.Again
	f.Again = func(ctx context.Context, c *cloud.Clients) (graph.State, error) {
		if _, ok := cluster.Found(); !ok {
			return nil, nil
		}
		s, err := again(ctx, c)
		return identity.IfOwned(c, s, err)
	}
	f.Hangs = graph.On(cluster)
	graph.Retire(g, id, f, graph.From("no longer in the manifest"))
}

// partOfCluster is something that hangs on a cluster of EKS, whoever made it.
func partOfCluster(kind, name string, in func() string) *Found {
	switch kind {
	case "node-group":
		return found(func(ctx context.Context, c *cloud.Clients) (*eks.NodeGroupState, error) {
			return eks.NodeGroupByName(ctx, c, in(), name)
		}, func(ctx context.Context, c *cloud.Clients, s *eks.NodeGroupState) error {
			return eks.DeleteNodeGroup(ctx, c, in(), s)
		}, eks.NodeGroupGoes, nil)
	case "fargate-profile":
		return found(func(ctx context.Context, c *cloud.Clients) (*eks.FargateProfileState, error) {
			return eks.FargateProfileByName(ctx, c, in(), name)
		}, func(ctx context.Context, c *cloud.Clients, s *eks.FargateProfileState) error {
			return eks.DeleteFargateProfile(ctx, c, in(), s)
		}, eks.FargateProfileGoes, nil)
	case "addon":
		return found(func(ctx context.Context, c *cloud.Clients) (*eks.AddonState, error) {
			return eks.AddonByName(ctx, c, in(), name)
		}, func(ctx context.Context, c *cloud.Clients, s *eks.AddonState) error {
			return eks.DeleteAddon(ctx, c, in(), s, false)
		}, eks.AddonGoes, nil)
	}
	return found(func(ctx context.Context, c *cloud.Clients) (*eks.AccessEntryState, error) {
		return eks.AccessEntryOf(ctx, c, in(), name)
	}, func(ctx context.Context, c *cloud.Clients, s *eks.AccessEntryState) error {
		return eks.DeleteAccessEntry(ctx, c, in(), s)
	}, 0, nil)
}
