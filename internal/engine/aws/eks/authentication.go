package eks

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Authentication changes the authentication mode of an existing cluster to API. In this mode,
// EKS does not read the ConfigMap aws-auth, so all access entries have to exist before ("Change
// authentication mode to use access entries", EKS user guide). It has the state of the Cluster.
type Authentication struct {
	Cluster *graph.Ref[ClusterState]
	Entries []graph.Resource
}

var (
	_ graph.Desired[ClusterState]  = (*Authentication)(nil)
	_ graph.Updater[ClusterState]  = (*Authentication)(nil)
	_ graph.Follower[ClusterState] = (*Authentication)(nil)
)

// Needs implements graph.Desired.
func (a *Authentication) Needs() []graph.Edge {
	return append(graph.On(a.Cluster), graph.On(a.Entries...)...)
}

// Find implements graph.Desired.
func (a *Authentication) Find(ctx context.Context, c *cloud.Clients) (*ClusterState, error) {
	cluster, ok := a.Cluster.Found()
	if !ok {
		return nil, nil
	}
	return ClusterByName(ctx, c, cluster.Name)
}

// Follow implements graph.Follower.
func (a *Authentication) Follow(ctx context.Context, c *cloud.Clients, last *ClusterState) (*ClusterState, error) {
	s, err := a.Find(ctx, c)
	return followCluster(ctx, c, s, err, last)
}

// Diff implements graph.Desired.
func (a *Authentication) Diff(have *ClusterState) (d plan.Diff) {
	d.Await("status", have.Status, string(types.ClusterStatusActive))
	if api := string(types.AuthenticationModeApi); have.Authentication != api {
		d.Set("authenticationMode", string(types.AuthenticationModeApiAndConfigMap), api)
	}
	return d
}

// Update implements graph.Updater.
func (a *Authentication) Update(ctx context.Context, c *cloud.Clients, have *ClusterState, _ plan.Diff) (*ClusterState, error) {
	out, err := c.EKS.UpdateClusterConfig(ctx, &eks.UpdateClusterConfigInput{
		Name: &have.Name, AccessConfig: &types.UpdateAccessConfigRequest{AuthenticationMode: types.AuthenticationModeApi},
	})
	if err != nil {
		return nil, err
	}
	after := *have
	after.Status, after.lastUpdate = string(types.ClusterStatusUpdating), begun(out.Update)
	return &after, nil
}

// authenticationKind declares the step, which is deleted with the cluster.
func authenticationKind() *kind.Kind {
	return &kind.Kind{Name: "eks-authentication", Area: plan.AreaControlPlane}
}
