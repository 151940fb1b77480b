package eks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

func (g *NodeGroup) scale(in *types.NodegroupScalingConfig) error {
	if in == nil {
		return nil
	}
	core.Set(&g.Least, in.MinSize)
	core.Set(&g.Most, in.MaxSize)
	core.Set(&g.Desired, in.DesiredSize)
	switch {
	case g.Most < 1 || g.Least < 0:
		return invalid("maxSize must be at least 1, and minSize at least 0")
	case g.Least > g.Desired:
		return invalid("Minimum capacity %d can't be greater than desired size %d", g.Least, g.Desired)
	case g.Desired > g.Most:
		return invalid("desired capacity %d can't be greater than max size %d", g.Desired, g.Most)
	}
	return nil
}

// pace takes how many nodes may be replaced at once.
func (g *NodeGroup) pace(in *types.NodegroupUpdateConfig) error {
	if in == nil {
		return nil
	}
	if err := core.Only("CreateNodegroup", in, "MaxUnavailable", "MaxUnavailablePercentage"); err != nil {
		return err
	}
	number, percentage := aws.ToInt32(in.MaxUnavailable), aws.ToInt32(in.MaxUnavailablePercentage)
	if (in.MaxUnavailable == nil) == (in.MaxUnavailablePercentage == nil) || number < 0 || number > 100 || percentage < 0 || percentage > 100 {
		return invalid("exactly one of maxUnavailable and maxUnavailablePercentage, between 1 and 100, is required")
	}
	g.MaxUnavailable, g.MaxUnavailablePercentage = number, percentage
	return nil
}

// mostTaints is how many taints a node group can have.
const mostTaints = 50

// taint adds taints or changes them, and takes others away.
func (g *NodeGroup) taint(add, remove []types.Taint) error {
	taints := slices.Clone(g.Taints)
	for _, t := range remove {
		before := len(taints)
		taints = slices.DeleteFunc(taints, func(x Taint) bool { return x.Key == aws.ToString(t.Key) && x.Effect == string(t.Effect) })
		if len(taints) == before {
			return invalid("the taint %s:%s is not there", aws.ToString(t.Key), t.Effect)
		}
	}
	for _, t := range add {
		if len(aws.ToString(t.Key)) < 1 || len(aws.ToString(t.Key)) > 63 || len(aws.ToString(t.Value)) > 63 || !slices.Contains(t.Effect.Values(), t.Effect) {
			return invalid("the taint %s=%s:%s is not valid", aws.ToString(t.Key), aws.ToString(t.Value), t.Effect)
		}
		taints = slices.DeleteFunc(taints, func(x Taint) bool { return x.Key == *t.Key && x.Effect == string(t.Effect) })
		taints = append(taints, Taint{*t.Key, aws.ToString(t.Value), string(t.Effect)})
	}
	if len(taints) > mostTaints {
		return invalid("a node group has at most %d taints", mostTaints)
	}
	g.Taints = taints
	return nil
}

func (g *NodeGroup) label(add map[string]string, remove []string) error {
	labels := maps.Clone(g.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, k := range remove {
		if _, ok := labels[k]; !ok {
			return invalid("the label %s is not there", k)
		}
		delete(labels, k)
	}
	for k, v := range add {
		if strings.HasPrefix(k, "eks.amazonaws.com/") || !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,316}$`).MatchString(k) || len(v) > 63 {
			return invalid("the label %s=%s is not valid", k, v)
		}
		labels[k] = v
	}
	g.Labels = labels
	return nil
}

// change begins an update of a node group, if none is under way.
func (svc *Service) changeNodeGroup(c *Cluster, g *NodeGroup, kind types.UpdateType, takes time.Duration, after NodeGroup) (*types.Update, error) {
	if s := g.status(svc.Now()); s != types.NodegroupStatusActive {
		return nil, &types.ResourceInUseException{
			Message: aws.String(fmt.Sprintf("Nodegroup cannot be updated as it is currently not in Active State (%s)", s)), ClusterName: &c.Name, NodegroupName: &g.Name,
		}
	}
	after.Updates, after.Instances = nil, nil
	u := &NodeGroupUpdate{ID: svc.Hash(), Kind: string(kind), Born: svc.Now(), Done: svc.Now().Add(takes), After: after}
	g.Updates = append(g.Updates, u)
	return &types.Update{Id: aws.String(u.ID), Type: kind, Status: types.UpdateStatusInProgress, CreatedAt: aws.Time(svc.Now())}, nil
}

// applyNodeGroup brings about what an update was asked for: other nodes, or
// another number of them.
func (svc *Service) applyNodeGroup(c *Cluster, g *NodeGroup, u *NodeGroupUpdate) {
	u.Applied = true
	after := u.After
	after.Updates, after.Instances, after.Deleted, after.Tags, after.Modified = g.Updates, g.Instances, g.Deleted, g.Tags, svc.Now()
	replaced := after.Release != g.Release || after.TemplateVersion != g.TemplateVersion
	*g = after
	if !g.Deleted.IsZero() {
		return
	}
	if replaced {
		svc.endNodes(g, len(g.Instances))
	}
	if missing := int(g.Desired) - len(g.Instances); missing > 0 {
		_ = svc.launchNodes(c, g, missing) // AWS tries again, and shows a health issue
	} else {
		svc.endNodes(g, -missing)
	}
}

func (svc *Service) updateNodeGroupConfig(in *eks.UpdateNodegroupConfigInput) (*eks.UpdateNodegroupConfigOutput, error) {
	c, g, err := svc.nodeGroup(in.ClusterName, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	after := *g
	changes := 0
	if l := in.Labels; l != nil {
		changes++
		if err := after.label(l.AddOrUpdateLabels, l.RemoveLabels); err != nil {
			return nil, err
		}
	}
	if t := in.Taints; t != nil {
		changes++
		if err := after.taint(t.AddOrUpdateTaints, t.RemoveTaints); err != nil {
			return nil, err
		}
	}
	if r := in.NodeRepairConfig; r != nil {
		changes++
		after.Repair = aws.ToBool(r.Enabled)
	}
	if in.ScalingConfig != nil {
		changes++
		if err := after.scale(in.ScalingConfig); err != nil {
			return nil, err
		}
	}
	if in.UpdateConfig != nil {
		changes++
		if err := after.pace(in.UpdateConfig); err != nil {
			return nil, err
		}
	}
	if changes == 0 {
		return nil, invalid("there is nothing to update")
	}
	u, err := svc.changeNodeGroup(c, g, types.UpdateTypeConfigUpdate, NodeGroupConfigTakes, after)
	return &eks.UpdateNodegroupConfigOutput{Update: u}, err
}

func (svc *Service) updateNodeGroupVersion(in *eks.UpdateNodegroupVersionInput) (*eks.UpdateNodegroupVersionOutput, error) {
	c, g, err := svc.nodeGroup(in.ClusterName, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	after := *g
	if err := svc.changeTemplate(c, &after, in); err != nil {
		return nil, err
	}
	version := aws.ToString(in.Version)
	if version == "" && in.LaunchTemplate == nil && g.Kind != customImage {
		version = c.Version
	}
	if version != "" {
		k, ok := imageKind(g.Kind, version)
		switch {
		case !slices.Contains(SupportedVersions(), version) || !ok:
			return nil, invalid("Requested AMI for this version %s is not supported (%s)", version, g.Kind)
		case minor(version) < minor(g.Version):
			return nil, invalid("Nodegroup cannot be downgraded from %s to %s", g.Version, version)
		case minor(version) > minor(c.Version):
			return nil, invalid("Requested Nodegroup version %s is newer than cluster version %s", version, c.Version)
		case minor(version) > minor(g.Version)+1:
			return nil, invalid("Nodegroup version cannot skip minor versions: %s to %s", g.Version, version) // AWS may let it
		}
		after.Version, after.Release = version, k.release(version)
	}
	if in.ReleaseVersion != nil && *in.ReleaseVersion != after.Release {
		return nil, invalid("Requested release version %s is not valid for kubernetes version %s.", *in.ReleaseVersion, after.Version)
	}
	if after.TemplateVersion == g.TemplateVersion && after.Version == g.Version && after.Release == g.Release && !in.Force {
		return nil, invalid("Nodegroup %s is already at the requested version", g.Name) // AWS may let it
	}
	rounds := max(1, (g.Desired+max(1, g.MaxUnavailable)-1)/max(1, g.MaxUnavailable))
	u, err := svc.changeNodeGroup(c, g, types.UpdateTypeVersionUpdate, time.Duration(rounds)*NodeTakes, after)
	return &eks.UpdateNodegroupVersionOutput{Update: u}, err
}

func (svc *Service) nodeGroupOut(c *Cluster, g *NodeGroup) *types.Nodegroup {
	out := &types.Nodegroup{
		NodegroupName: aws.String(g.Name), NodegroupArn: aws.String(g.ARN), ClusterName: aws.String(c.Name), NodeRole: aws.String(g.RoleARN),
		Version: core.Text(g.Version), ReleaseVersion: aws.String(g.Release), Status: g.status(svc.Now()), AmiType: types.AMITypes(g.Kind),
		CapacityType: types.CapacityTypes(g.Capacity), Subnets: slices.Clone(g.Subnets), InstanceTypes: slices.Clone(g.InstanceTypes),
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(g.Least), MaxSize: aws.Int32(g.Most), DesiredSize: aws.Int32(g.Desired)},
		UpdateConfig:  &types.NodegroupUpdateConfig{}, NodeRepairConfig: &types.NodeRepairConfig{Enabled: aws.Bool(g.Repair)},
		Labels: maps.Clone(g.Labels), Tags: maps.Clone(g.Tags), CreatedAt: aws.Time(g.Born), ModifiedAt: aws.Time(g.Modified),
		Health: &types.NodegroupHealth{Issues: []types.Issue{}}, Resources: &types.NodegroupResources{RemoteAccessSecurityGroup: core.Text(g.Remote)},
	}
	if !svc.Now().Before(g.Ready) {
		out.Resources.AutoScalingGroups = []types.AutoScalingGroup{{Name: aws.String(g.Scaling)}}
	}
	if g.MaxUnavailablePercentage > 0 {
		out.UpdateConfig.MaxUnavailablePercentage = aws.Int32(g.MaxUnavailablePercentage)
	} else {
		out.UpdateConfig.MaxUnavailable = aws.Int32(g.MaxUnavailable)
	}
	if g.DiskSize > 0 {
		out.DiskSize = aws.Int32(g.DiskSize)
	}
	if g.Template != "" {
		out.LaunchTemplate = &types.LaunchTemplateSpecification{Id: aws.String(g.Template), Version: core.Text(g.TemplateVersion)}
		if t := svc.ec2.LaunchTemplate(g.Template); t != nil {
			out.LaunchTemplate.Name = aws.String(t.Name)
		}
	}
	if g.SSHKey != "" {
		out.RemoteAccess = &types.RemoteAccessConfig{Ec2SshKey: aws.String(g.SSHKey), SourceSecurityGroups: slices.Clone(g.SourceGroups)}
	}
	for _, t := range g.Taints {
		out.Taints = append(out.Taints, types.Taint{Key: aws.String(t.Key), Value: core.Text(t.Value), Effect: types.TaintEffect(t.Effect)})
	}
	return out
}
