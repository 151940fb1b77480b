package eks

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// RepairLimits are the limits of node repair, as a number of nodes or a percentage: EKS stops repairing
// if more nodes are unhealthy, and repairs that many at a time.
type RepairLimits struct {
	MaxUnhealthy, MaxParallel Share
}

// Share is a limit on the nodes of a group: either a number of nodes or a percentage of the group. At most one of the
// fields is set. With neither, EKS uses its default.
type Share struct {
	Count, Percentage int32
}

// String returns "3", "20%", or "" for the zero value.
func (s Share) String() string {
	if s == (Share{}) {
		return ""
	}
	return unavailable(s.Count, s.Percentage)
}

func share(count, percentage *int32) Share { return Share{aws.ToInt32(count), aws.ToInt32(percentage)} }

func (s Share) set(count, percentage **int32) {
	switch {
	case s.Percentage > 0:
		*percentage = aws.Int32(s.Percentage)
	case s.Count > 0:
		*count = aws.Int32(s.Count)
	}
}

func (g *NodeGroup) diffRepairLimits(have *NodeGroupState, d *plan.Diff) {
	if g.RepairLimits != nil {
		d.Set("nodeRepair.maxUnhealthy", have.RepairLimits.MaxUnhealthy.String(), g.RepairLimits.MaxUnhealthy.String())
		d.Set("nodeRepair.maxParallel", have.RepairLimits.MaxParallel.String(), g.RepairLimits.MaxParallel.String())
	}
}

func (g *NodeGroup) repairConfig() *types.NodeRepairConfig {
	out := &types.NodeRepairConfig{Enabled: &g.Repair}
	if l := g.RepairLimits; l != nil {
		l.MaxUnhealthy.set(&out.MaxUnhealthyNodeThresholdCount, &out.MaxUnhealthyNodeThresholdPercentage)
		l.MaxParallel.set(&out.MaxParallelNodesRepairedCount, &out.MaxParallelNodesRepairedPercentage)
	}
	return out
}

func repairLimits(in *types.NodeRepairConfig) RepairLimits {
	return RepairLimits{
		MaxUnhealthy: share(in.MaxUnhealthyNodeThresholdCount, in.MaxUnhealthyNodeThresholdPercentage),
		MaxParallel:  share(in.MaxParallelNodesRepairedCount, in.MaxParallelNodesRepairedPercentage),
	}
}
