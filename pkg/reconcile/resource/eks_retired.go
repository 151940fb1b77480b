package resource

import (
	"context"
	"time"

	"clusterawsadm/internal/cloud"
	"clusterawsadm/pkg/reconcile/graph"
)

// RetireEKS adds something that hangs on a cluster of EKS, to be removed if it
// is ours: a node group, a Fargate profile, an add-on or an access entry.
func RetireEKS(g *graph.Graph, id graph.ID, kind, name string, cluster *graph.Ref[EKSClusterState]) {
	in := func() string { s, _ := cluster.Found(); return s.Name }
	switch kind {
	case "node-group":
		retire(g, id, cluster, eksNodeGroupGoes, func(ctx context.Context, c *cloud.Clients) (*EKSNodeGroupState, error) {
			return nodeGroupNamed(ctx, c, in(), name)
		}, func(s *EKSNodeGroupState) cloud.Tags { return s.Tags }, func(ctx context.Context, c *cloud.Clients, s *EKSNodeGroupState) error {
			return deleteNodeGroup(ctx, c, in(), s)
		})
	case "fargate-profile":
		retire(g, id, cluster, eksFargateGoes, func(ctx context.Context, c *cloud.Clients) (*EKSFargateProfileState, error) {
			return fargateNamed(ctx, c, in(), name)
		}, func(s *EKSFargateProfileState) cloud.Tags { return s.Tags }, func(ctx context.Context, c *cloud.Clients, s *EKSFargateProfileState) error {
			return eksNotYet(deleteFargate(ctx, c, in(), s))
		})
	case "addon":
		retire(g, id, cluster, eksAddonGoes, func(ctx context.Context, c *cloud.Clients) (*EKSAddonState, error) {
			return addonNamed(ctx, c, in(), name)
		}, func(s *EKSAddonState) cloud.Tags { return s.Tags }, func(ctx context.Context, c *cloud.Clients, s *EKSAddonState) error {
			return deleteAddon(ctx, c, in(), s, false)
		})
	case "access-entry":
		retire(g, id, cluster, 0, func(ctx context.Context, c *cloud.Clients) (*EKSAccessEntryState, error) {
			return accessEntry(ctx, c, in(), name)
		}, func(s *EKSAccessEntryState) cloud.Tags { return s.Tags }, func(ctx context.Context, c *cloud.Clients, s *EKSAccessEntryState) error {
			return deleteAccessEntry(ctx, c, in(), s)
		})
	}
}

// retire adds a thing that is removed if it carries the tag of the cluster.
func retire[S graph.State](g *graph.Graph, id graph.ID, cluster *graph.Ref[EKSClusterState], goes time.Duration,
	find graph.Lookup[S], tags func(*S) cloud.Tags, remove func(context.Context, *cloud.Clients, *S) error,
) {
	ours := func(ctx context.Context, c *cloud.Clients) (*S, error) {
		if _, ok := cluster.Found(); !ok {
			return nil, nil //nolint:nilnil // none is Find's documented answer
		}
		s, err := find(ctx, c)
		if s == nil || err != nil || tags(s)[c.OwnerTag()] != cloud.Owned {
			return nil, err
		}
		return s, nil
	}
	graph.Retire(g, id, found(ours, remove, goes, graph.On(cluster)), graph.From("no longer in the manifest"))
}
