package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

func (r *reader) nodeGroups(ctx context.Context, c *eks.Client, own *sim.Cluster) error {
	var names []string
	err := pages(
		ctx,
		eks.NewListNodegroupsPaginator(c, &eks.ListNodegroupsInput{ClusterName: &own.Name}),
		func(p *eks.ListNodegroupsOutput) { names = append(names, p.Nodegroups...) },
	)
	if err != nil {
		return err
	}
	for _, name := range names {
		out, err := c.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &own.Name, NodegroupName: &name})
		if err != nil {
			return err
		}
		g := r.nodeGroupOf(out.Nodegroup)
		for id, i := range r.to.EC2.Instances {
			if i.Tags["eks:cluster-name"] == own.Name && i.Tags["eks:nodegroup-name"] == name {
				g.Instances = append(g.Instances, id)
			}
		}
		own.NodeGroups[name] = g
	}
	return nil
}

func (r *reader) nodeGroupOf(x *types.Nodegroup) *sim.NodeGroup {
	g := &sim.NodeGroup{
		Name: aws.ToString(
			x.NodegroupName,
		),
		ARN:           aws.ToString(x.NodegroupArn),
		RoleARN:       aws.ToString(x.NodeRole),
		Version:       aws.ToString(x.Version),
		Release:       aws.ToString(x.ReleaseVersion),
		Kind:          string(x.AmiType),
		Capacity:      string(x.CapacityType),
		Subnets:       x.Subnets,
		InstanceTypes: x.InstanceTypes,
		DiskSize:      aws.ToInt32(x.DiskSize),
		Labels:        x.Labels,
		Tags:          x.Tags,
		Born:          r.since(x.CreatedAt),
		Modified:      r.since(x.ModifiedAt),
	}
	g.Ready = r.until(x.Status == types.NodegroupStatusCreating, g.Born)
	g.Joined = x.Status != types.NodegroupStatusCreating
	if x.Status == types.NodegroupStatusDeleting {
		g.Deleted = r.Now
	}
	if s := x.ScalingConfig; s != nil {
		g.Least, g.Most, g.Desired = aws.ToInt32(s.MinSize), aws.ToInt32(s.MaxSize), aws.ToInt32(s.DesiredSize)
	}
	if u := x.UpdateConfig; u != nil {
		g.MaxUnavailable, g.MaxUnavailablePercentage = aws.ToInt32(u.MaxUnavailable), aws.ToInt32(u.MaxUnavailablePercentage)
		g.Strategy = string(u.UpdateStrategy)
	}
	if r := x.NodeRepairConfig; r != nil {
		g.Repair, g.RepairLimits = aws.ToBool(r.Enabled), sim.RepairLimits{
			UnhealthyCount: aws.ToInt32(r.MaxUnhealthyNodeThresholdCount), UnhealthyPercentage: aws.ToInt32(r.MaxUnhealthyNodeThresholdPercentage),
			ParallelCount: aws.ToInt32(r.MaxParallelNodesRepairedCount), ParallelPercentage: aws.ToInt32(r.MaxParallelNodesRepairedPercentage),
		}
	}
	if t := x.LaunchTemplate; t != nil {
		g.Template, g.TemplateVersion = aws.ToString(t.Id), aws.ToString(t.Version)
	}
	if a := x.RemoteAccess; a != nil {
		g.SSHKey, g.SourceGroups = aws.ToString(a.Ec2SshKey), a.SourceSecurityGroups
	}
	if n := x.Resources; n != nil {
		g.Remote = aws.ToString(n.RemoteAccessSecurityGroup)
		for _, s := range n.AutoScalingGroups {
			g.Scaling = aws.ToString(s.Name)
		}
	}
	for _, t := range x.Taints {
		g.Taints = append(g.Taints, sim.Taint{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value), Effect: string(t.Effect)})
	}
	return g
}
