package eks

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// NodeGroupSize is the size of a managed node group that exists. Its maximum stays: EKS requires at least 1
// (NodegroupScalingConfig, EKS API reference).
type NodeGroupSize struct {
	Cluster, Name string
	Min, Desired  int32
	Needed        []graph.Edge
}

// NodeGroupSizeState is a node group, and how many of its machines run.
type NodeGroupSizeState struct {
	NodeGroupState
	Running int
}

var (
	_ graph.Desired[NodeGroupSizeState] = (*NodeGroupSize)(nil)
	_ graph.Updater[NodeGroupSizeState] = (*NodeGroupSize)(nil)
	_ graph.Timed                       = (*NodeGroupSize)(nil)
	_ graph.TimeLimited                 = (*NodeGroupSize)(nil)
	_ cost.Desired                      = (*NodeGroupSize)(nil)
)

// Needs implements graph.Desired.
func (g *NodeGroupSize) Needs() []graph.Edge { return g.Needed }

// Takes implements graph.Timed.
func (g *NodeGroupSize) Takes() (create, remove time.Duration) { return nodeGroupResizes, 0 }

const nodeGroupResizes = 2 * time.Minute

// TimeLimit implements graph.TimeLimited. EKS drains a node for up to 15 minutes before its machine is terminated
// ("Understand each phase of node updates", EKS user guide).
func (g *NodeGroupSize) TimeLimit() time.Duration { return 30 * time.Minute }

// Find implements graph.Desired.
func (g *NodeGroupSize) Find(ctx context.Context, c *cloud.Clients) (*NodeGroupSizeState, error) {
	s, err := NodeGroupByName(ctx, c, g.Cluster, g.Name)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("the node group %s does not exist any more", g.Name)
	}
	running, err := cloud.Remember(ctx, c, "running machines of node groups", func(ctx context.Context) (map[string]int, error) {
		return ec2.RunningNodes(ctx, c, g.Cluster)
	})
	return &NodeGroupSizeState{*s, running[g.Name]}, err
}

// Diff implements graph.Desired. EKS refuses an update while one is in progress. An autoscaler may have changed the number of
// nodes since they were started.
func (g *NodeGroupSize) Diff(have *NodeGroupSizeState) (d plan.Diff) {
	if have.Status != string(types.NodegroupStatusDegraded) {
		d.Await("status", have.condition(), string(types.NodegroupStatusActive))
	}
	d.Set("scaling.minSize", have.MinSize, g.Min)
	if g.Desired == 0 || have.Desired == 0 {
		d.Set("scaling.desiredSize", have.Desired, g.Desired)
	}
	switch {
	case len(d) > 0: // the nodes follow
	case g.Desired == 0:
		d.Await("nodes", have.Running, 0)
	case have.Running < int(have.Desired):
		d.Await("nodes", have.Running, have.Desired)
	}
	return d
}

// Update implements graph.Updater.
func (g *NodeGroupSize) Update(ctx context.Context, c *cloud.Clients, have *NodeGroupSizeState, _ plan.Diff) (*NodeGroupSizeState, error) {
	if have.Status == string(types.NodegroupStatusUpdating) {
		return nil, graph.NotYet(fmt.Errorf("the update of node group %s to end", g.Name))
	}
	after := *have
	after.MinSize, after.Desired, after.Status = g.Min, g.Desired, string(types.NodegroupStatusUpdating)
	most := max(have.MaxSize, g.Desired, 1)
	_, err := c.EKS.UpdateNodegroupConfig(ctx, &eks.UpdateNodegroupConfigInput{
		ClusterName: &g.Cluster, NodegroupName: &g.Name,
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: &g.Min, MaxSize: &most, DesiredSize: &g.Desired},
	})
	return &after, err
}

// Costs implements cost.Desired.
func (g *NodeGroupSize) Costs(_ context.Context, _ *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	s, ok := have.(*NodeGroupSizeState)
	if !ok || s == nil {
		return nil, nil, nil
	}
	n := s.Desired
	if g.Desired == 0 || n == 0 {
		n = g.Desired
	}
	return s.server().All(int(s.Desired)), s.server().All(int(n)), nil
}
