package resource

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// RetireEKS adds something that hangs on a cluster of EKS, to be removed if it
// is ours: a node group, a Fargate profile, an add-on or an access entry.
func RetireEKS(g *graph.Graph, id graph.ID, kind, name string, cluster *graph.Ref[EKSClusterState]) {
	f := partOfEKS(kind, name, func() string { s, _ := cluster.Found(); return s.Name })
	again := f.Again
	f.Again = func(ctx context.Context, c *cloud.Clients) (graph.State, error) {
		if _, ok := cluster.Found(); !ok {
			return nil, nil
		}
		s, err := again(ctx, c)
		return ifOwned(c, s, err)
	}
	f.Hangs = graph.On(cluster)
	graph.Retire(g, id, f, graph.From("no longer in the manifest"))
}

// partOfEKS is something that hangs on a cluster of EKS, whoever made it.
func partOfEKS(kind, name string, in func() string) *Found {
	switch kind {
	case "node-group":
		return found(func(ctx context.Context, c *cloud.Clients) (*EKSNodeGroupState, error) {
			return nodeGroupNamed(ctx, c, in(), name)
		}, func(ctx context.Context, c *cloud.Clients, s *EKSNodeGroupState) error {
			return deleteNodeGroup(ctx, c, in(), s)
		}, eksNodeGroupGoes, nil)
	case "fargate-profile":
		return found(func(ctx context.Context, c *cloud.Clients) (*EKSFargateProfileState, error) {
			return fargateNamed(ctx, c, in(), name)
		}, func(ctx context.Context, c *cloud.Clients, s *EKSFargateProfileState) error {
			return deleteFargate(ctx, c, in(), s)
		}, eksFargateGoes, nil)
	case "addon":
		return found(func(ctx context.Context, c *cloud.Clients) (*EKSAddonState, error) {
			return addonNamed(ctx, c, in(), name)
		}, func(ctx context.Context, c *cloud.Clients, s *EKSAddonState) error {
			return deleteAddon(ctx, c, in(), s, false)
		}, eksAddonGoes, nil)
	}
	return found(func(ctx context.Context, c *cloud.Clients) (*EKSAccessEntryState, error) {
		return accessEntry(ctx, c, in(), name)
	}, func(ctx context.Context, c *cloud.Clients, s *EKSAccessEntryState) error {
		return deleteAccessEntry(ctx, c, in(), s)
	}, 0, nil)
}
