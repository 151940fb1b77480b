package eks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// NodeGroup is a managed node group. Its instances are launched by EKS.
type NodeGroup struct {
	Name, ARN, RoleARN, Version, Release, Kind, Capacity, Token string
	Template, TemplateVersion                                   string // launch template; "" for none
	Scaling                                                     string // name of its Auto Scaling group
	Subnets, InstanceTypes, SourceGroups                        []string
	SSHKey, Remote                                              string // key pair, and the security group that EKS created for SSH
	DiskSize, Least, Most, Desired                              int32
	MaxUnavailable, MaxUnavailablePercentage                    int32
	Repair                                                      bool
	RepairLimits                                                RepairLimits
	Strategy                                                    string // of updates; "" is DEFAULT
	Labels, Tags                                                map[string]string
	Taints                                                      []Taint
	Born, Ready, Modified                                       time.Time
	Updates                                                     []*NodeGroupUpdate
	Instances                                                   []string
	Joined                                                      bool   // its first nodes have joined
	CreateFailure                                               string // see Faults
	Deletion
}

// Taint is a taint of a node group's nodes.
type Taint struct{ Key, Value, Effect string }

// NodeGroupUpdate is an update of a node group.
type NodeGroupUpdate struct {
	Operation
	After NodeGroup // settings after the update
}

const (
	// NodeGroupTakes is how long a node group is CREATING.
	NodeGroupTakes = 3 * time.Minute
	// NodeGroupGivesUp is how long EKS waits for the first nodes ("NodeCreationFailure",
	// "Troubleshoot problems with Amazon EKS clusters and nodes"); seen by others: 21 to 27 minutes.
	NodeGroupGivesUp = 22 * time.Minute
	// NodeGroupDeletes is how long a node group is DELETING.
	NodeGroupDeletes = 3 * time.Minute
	// NodeGroupConfigTakes is how long an update of labels, taints or size takes.
	NodeGroupConfigTakes = 20 * time.Second
	// NodeTakes is how long the replacement of one node takes.
	NodeTakes = 3 * time.Minute
)

func (svc *Service) simulateNodeGroups() {
	core.On(
		svc.Account,
		svc.createNodeGroup,
		"ClusterName",
		"NodegroupName",
		"NodeRole",
		"Subnets",
		"AmiType",
		"CapacityType",
		"ClientRequestToken",
		"DiskSize",
		"InstanceTypes",
		"Labels",
		"LaunchTemplate",
		"NodeRepairConfig",
		"ReleaseVersion",
		"RemoteAccess",
		"ScalingConfig",
		"Tags",
		"Taints",
		"UpdateConfig",
		"Version",
	)
	core.On(svc.Account, svc.describeNodeGroup, "ClusterName", "NodegroupName")
	core.On(svc.Account, svc.listNodeGroups, "ClusterName", "MaxResults", "NextToken")
	core.On(
		svc.Account,
		svc.updateNodeGroupConfig,
		"ClusterName",
		"NodegroupName",
		"ClientRequestToken",
		"Labels",
		"NodeRepairConfig",
		"ScalingConfig",
		"Taints",
		"UpdateConfig",
	)
	core.On(svc.Account, svc.updateNodeGroupVersion, "ClusterName", "NodegroupName", "ClientRequestToken", "Force", "LaunchTemplate", "ReleaseVersion", "Version")
	core.On(svc.Account, svc.deleteNodeGroup, "ClusterName", "NodegroupName")
}

func (g *NodeGroup) status(now time.Time) types.NodegroupStatus {
	switch {
	case g.deletionFailed(now, NodeGroupDeletes):
		return types.NodegroupStatusDeleteFailed
	case !g.Deleted.IsZero():
		return types.NodegroupStatusDeleting
	case now.Before(g.Ready) || !g.Joined && g.CreateFailure == "":
		return types.NodegroupStatusCreating
	case g.CreateFailure != "":
		return types.NodegroupStatusCreateFailed
	case pending(g.Updates) != nil:
		return types.NodegroupStatusUpdating
	}
	return types.NodegroupStatusActive
}

// settleNodeGroups finishes updates, replaces nodes that are lost, and removes groups after
// their deletion.
func (svc *Service) settleNodeGroups(c *Cluster) {
	for _, g := range core.ByKey(c.NodeGroups) {
		if u := pending(g.Updates); u != nil && !svc.Now().Before(u.Done) {
			svc.applyNodeGroup(c, g, u)
		}
		svc.replaceNodes(c, g)
		svc.scaleNodes(g)
		if !g.gone(svc.Now(), NodeGroupDeletes) {
			continue
		}
		svc.autoscaling.RemoveGroup(g.Scaling)
		if remote := svc.ec2.SecurityGroup(g.Remote); remote != nil {
			svc.ec2.RemoveSecurityGroup(remote)
		}
		delete(c.NodeGroups, g.Name)
	}
}

// AwaitNodes ends the creation of node groups. The nodes join before, in another service.
func (svc *Service) AwaitNodes() {
	for _, c := range core.ByKey(svc.state.Clusters) {
		for _, g := range core.ByKey(c.NodeGroups) {
			svc.awaitNodes(c, g)
		}
	}
}

// awaitNodes ends the creation of a node group: its nodes have joined and are ready, or EKS has
// waited long enough. A group without nodes has none to wait for.
func (svc *Service) awaitNodes(c *Cluster, g *NodeGroup) {
	if g.Joined || g.CreateFailure != "" || svc.Now().Before(g.Ready) {
		return
	}
	why := ""
	switch {
	case len(g.Instances) == 0:
	case svc.withoutDriver(c, g):
		why = "NodeCreationFailure: Instances failed to join the kubernetes cluster"
	case c.LocksOut(g.RoleARN) != "", svc.HasJoined != nil && !svc.HasJoined(c, g):
		why = "NodeCreationFailure: Instances failed to join the kubernetes cluster"
	case svc.HasNetwork != nil && !svc.HasNetwork(c):
		why = "NodeCreationFailure: Unhealthy nodes in the kubernetes cluster"
	}
	switch {
	case why == "":
		g.Joined = true
	case svc.Now().Sub(g.Born) >= NodeGroupGivesUp:
		g.CreateFailure = why
	}
}

// withoutDriver reports whether nodes do not become ready on their instances: Bottlerocket's images for NVIDIA do not load their kernel
// modules without a GPU of NVIDIA (https://github.com/eksctl-io/eksctl/issues/7897), and in IPv6 clusters pods get addresses
// on instances of the Nitro System only ("Learn about IPv6 addresses to clusters, pods, and services", EKS user guide).
func (svc *Service) withoutDriver(c *Cluster, g *NodeGroup) bool {
	nvidia := strings.HasPrefix(g.Kind, "BOTTLEROCKET") && strings.Contains(g.Kind, "NVIDIA")
	return slices.ContainsFunc(g.Instances, func(id string) bool {
		i := svc.ec2.Instance(id)
		return i != nil && (nvidia && !svc.ec2.HasNVIDIA(i.Type) || c.Family == "ipv6" && !svc.ec2.IsNitro(i.Type))
	})
}

// nodeGroup returns a node group of a cluster.
func (svc *Service) nodeGroup(cluster, name *string) (*Cluster, *NodeGroup, error) {
	return part(svc.cluster, cluster, func(c *Cluster) map[string]*NodeGroup { return c.NodeGroups }, name,
		&types.ResourceNotFoundException{
			Message: aws.String("No node group found for name: " + aws.ToString(name) + "."), ClusterName: cluster, NodegroupName: name,
		})
}

func (svc *Service) createNodeGroup(in *eks.CreateNodegroupInput) (*eks.CreateNodegroupOutput, error) {
	c, err := svc.activeCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	name := aws.ToString(in.NodegroupName)
	if old, ok := c.NodeGroups[name]; ok {
		if old.Token == aws.ToString(in.ClientRequestToken) && old.Deleted.IsZero() {
			return &eks.CreateNodegroupOutput{Nodegroup: svc.nodeGroupOut(c, old)}, nil
		}
		return nil, &types.ResourceInUseException{
			Message:       aws.String("NodeGroup already exists with name " + name + " and cluster name " + c.Name),
			ClusterName:   in.ClusterName,
			NodegroupName: in.NodegroupName,
		}
	}
	if len(c.NodeGroups) >= svc.Quotas().NodeGroups {
		return nil, &types.ResourceLimitExceededException{
			Message:       aws.String("You have reached your quota of node groups in this cluster"),
			ClusterName:   in.ClusterName,
			NodegroupName: in.NodegroupName,
		}
	}
	g := &NodeGroup{
		Name: name, RoleARN: aws.ToString(in.NodeRole), Version: cmp.Or(aws.ToString(in.Version), c.Version), Kind: string(in.AmiType),
		Capacity: cmp.Or(string(in.CapacityType), "ON_DEMAND"), Token: aws.ToString(in.ClientRequestToken), Subnets: slices.Clone(in.Subnets),
		InstanceTypes: slices.Clone(in.InstanceTypes), DiskSize: aws.ToInt32(in.DiskSize), Least: 1, Most: 2, Desired: 2, MaxUnavailable: 1,
		CreateFailure: svc.state.Faults.CreateNodeGroup,
		Labels:        maps.Clone(in.Labels), Born: svc.Now(), Modified: svc.Now(), Ready: svc.Now().Add(NodeGroupTakes),
	}
	for _, check := range []func(*Cluster, *NodeGroup, *eks.CreateNodegroupInput) error{
		svc.checkNodeGroup, svc.checkNodeTemplate, svc.checkNodeImage, svc.checkNodeSubnets, svc.checkNodeAccess,
	} {
		if err := check(c, g, in); err != nil {
			return nil, err
		}
	}
	if g.Tags, err = checkTags(in.Tags); err != nil {
		return nil, err
	}
	h := svc.Hash()
	g.CreateFailure = cmp.Or(g.CreateFailure, svc.withoutAddress(g))
	g.ARN = svc.RegionalARN("eks", fmt.Sprintf("nodegroup/%s/%s/%s-%s-4000-8000-000000000000", c.Name, name, h[:8], h[8:12]))
	g.Scaling = "eks-" + name + "-" + g.ARN[len(g.ARN)-36:]
	if err := svc.launchNodes(c, g, int(g.Desired)); err != nil {
		return nil, err
	}
	c.NodeGroups[name] = g
	svc.scaleGroup(c, g)
	svc.letIn(c, g.RoleARN, g.entryType())
	return &eks.CreateNodegroupOutput{Nodegroup: svc.nodeGroupOut(c, g)}, nil
}

func (svc *Service) checkNodeGroup(c *Cluster, g *NodeGroup, in *eks.CreateNodegroupInput) error {
	switch {
	case !regex.Of(`^[0-9A-Za-z][A-Za-z0-9_-]{0,62}$`).MatchString(g.Name):
		return invalid("The node group name %q is not valid", g.Name)
	case !svc.iam.Assumable(g.RoleARN):
		return invalid("The role with name %s cannot be found.", g.RoleARN)
	case !svc.iam.Trusts(g.RoleARN, "ec2.amazonaws.com"): // eksctl, issue 3290
		return invalid("Following required service principals [ec2.amazonaws.com] were not found in the trust relationships of nodeRole %s", g.RoleARN)
	case minor(g.Version) > minor(c.Version) || minor(c.Version)-minor(g.Version) > kubeletSkew:
		return invalid("Requested Nodegroup version %s is not compatible with cluster version %s", g.Version, c.Version)
	case !slices.Contains(SupportedVersions(), g.Version):
		return invalid("unsupported Kubernetes version %s", g.Version)
	case !slices.Contains(types.CapacityTypes("").Values(), types.CapacityTypes(g.Capacity)):
		return invalid("unsupported capacity type %s", g.Capacity)
	}
	if in.NodeRepairConfig != nil {
		if err := g.repair(in.NodeRepairConfig); err != nil {
			return err
		}
	}
	if err := g.scale(in.ScalingConfig); err != nil {
		return err
	}
	if err := g.pace(in.UpdateConfig); err != nil {
		return err
	}
	return g.taint(in.Taints, nil)
}

// checkNodeImage validates AMI type and version, unless the launch template has an image.
func (svc *Service) checkNodeImage(_ *Cluster, g *NodeGroup, in *eks.CreateNodegroupInput) error {
	if g.Kind == customImage {
		return nil
	}
	g.Kind = cmp.Or(g.Kind, "AL2023_x86_64_STANDARD")
	k, ok := imageKind(g.Kind, g.Version)
	if strings.HasPrefix(g.Kind, "WINDOWS") {
		return core.NotSimulated("CreateNodegroup: nodes with Windows (%s)", g.Kind)
	}
	if !ok {
		return invalid("Requested AMI for this version %s is not supported (%s)", g.Version, g.Kind)
	}
	if len(g.InstanceTypes) > 20 { // instanceTypes of CreateNodegroup, API reference; the message is not verified
		return invalid("instanceTypes has at most 20 items")
	}
	var err error
	if g.Release, err = k.release(g.Version, "", in.ReleaseVersion); err != nil {
		return err
	}
	if len(g.InstanceTypes) == 0 && g.Template == "" {
		g.InstanceTypes = []string{defaultNode}
	}
	if g.DiskSize == 0 && g.Template == "" {
		g.DiskSize = 20
	}
	// The response that others have seen: https://github.com/cilium/cilium/pull/43051. Of Bottlerocket, it is the size of another volume.
	if g.Template == "" && !strings.HasPrefix(g.Kind, "BOTTLEROCKET") && g.DiskSize < k.snapshot {
		return invalid("Volume of size %dGB is smaller than snapshot 'snap-00a7e1db053990bc5', expect size>= %dGB", g.DiskSize, k.snapshot)
	}
	kinds := g.InstanceTypes
	if v := svc.nodeTemplate(g); v != nil && v.Data.InstanceType != "" {
		kinds = []string{string(v.Data.InstanceType)}
	}
	for _, t := range kinds {
		if !slices.Contains(svc.ec2.Architectures(t), ec2types.ArchitectureType(k.architecture)) {
			return invalid("[%s] is not a valid instance type for requested amiType %s", t, g.Kind)
		}
	}
	return nil
}

func (svc *Service) checkNodeSubnets(c *Cluster, g *NodeGroup, _ *eks.CreateNodegroupInput) error {
	if len(g.Subnets) == 0 {
		return invalid("Subnets are required")
	}
	for _, id := range g.Subnets {
		s := svc.ec2.Subnet(id)
		if s == nil || !svc.ec2.Known(s.Thing) {
			return invalid("The subnet ID '%s' does not exist", id)
		}
		if s.VPC != c.VPC {
			return invalid("Subnets are not in the VPC of the cluster: %s", id)
		}
	}
	return nil
}

// withoutAddress says why the creation of a node group fails in a public subnet whose instances get no public address
// ("Managed node group error codes", Ec2SubnetInvalidConfiguration, EKS user guide).
func (svc *Service) withoutAddress(g *NodeGroup) string {
	for _, id := range g.Subnets {
		if s := svc.ec2.Subnet(id); g.Template == "" && s != nil && !s.MapPublicIP && svc.ec2.IsPublic(s) {
			return fmt.Sprintf("Ec2SubnetInvalidConfiguration: One or more Amazon EC2 Subnets of [%s] for node group %s does not automatically assign "+
				"public IP addresses to instances launched into it.", id, g.Name)
		}
	}
	return ""
}

func (svc *Service) checkNodeAccess(c *Cluster, g *NodeGroup, in *eks.CreateNodegroupInput) error {
	r := in.RemoteAccess
	if r == nil {
		return nil
	}
	g.SSHKey, g.SourceGroups = aws.ToString(r.Ec2SshKey), slices.Clone(r.SourceSecurityGroups)
	if g.SSHKey == "" || !svc.ec2.HasKeyPair(g.SSHKey) {
		return invalid("The key pair '%s' does not exist", g.SSHKey)
	}
	if _, err := svc.ec2.GroupsFor(c.VPC, g.SourceGroups); len(g.SourceGroups) > 0 && err != nil {
		return invalid("%s", err)
	}
	// Security groups cannot be deleted while rules refer to them.
	remote := svc.ec2.NewGroup(svc.ec2.VPC(c.VPC), "eks-remoteAccess-"+svc.Hash()[:8], "Security group for all nodes in the nodeGroup to allow SSH access",
		map[string]string{"eks": g.Name, "eks:nodegroup-name": g.Name})
	rule := ec2.Rule{Protocol: "tcp", From: 22, To: 22}
	if len(g.SourceGroups) == 0 {
		rule.ID, rule.CIDR = svc.ID("sgr"), "0.0.0.0/0"
		remote.Ingress = append(remote.Ingress, rule)
	}
	for _, source := range g.SourceGroups {
		rule.ID, rule.Group = svc.ID("sgr"), source
		remote.Ingress = append(remote.Ingress, rule)
	}
	g.Remote = remote.ID
	return nil
}

func (svc *Service) describeNodeGroup(in *eks.DescribeNodegroupInput) (*eks.DescribeNodegroupOutput, error) {
	c, g, err := svc.nodeGroup(in.ClusterName, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeNodegroupOutput{Nodegroup: svc.nodeGroupOut(c, g)}, nil
}

func (svc *Service) listNodeGroups(in *eks.ListNodegroupsInput) (*eks.ListNodegroupsOutput, error) {
	c, err := svc.cluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	part, next, err := page(svc, visible(svc, c.NodeGroups, func(g *NodeGroup) time.Time { return g.Born }), in.NextToken, in.MaxResults)
	return &eks.ListNodegroupsOutput{Nodegroups: part, NextToken: next}, err
}

func (svc *Service) deleteNodeGroup(in *eks.DeleteNodegroupInput) (*eks.DeleteNodegroupOutput, error) {
	c, g, err := svc.nodeGroup(in.ClusterName, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	if s := g.status(
		svc.Now(),
	); !slices.Contains(
		[]types.NodegroupStatus{types.NodegroupStatusActive, types.NodegroupStatusCreateFailed, types.NodegroupStatusDeleteFailed},
		s,
	) {
		return nil, &types.ResourceInUseException{
			Message:       aws.String(fmt.Sprintf("Nodegroup %s cannot be deleted as it is currently in %s state", g.Name, s)),
			ClusterName:   in.ClusterName,
			NodegroupName: in.NodegroupName,
		}
	}
	g.Deleted, g.DeleteFailure = svc.Now(), svc.state.Faults.DeleteNodeGroup
	svc.forgetInterface(c, g)
	svc.endNodes(g, len(g.Instances))
	return &eks.DeleteNodegroupOutput{Nodegroup: svc.nodeGroupOut(c, g)}, nil
}

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

// pace sets how many nodes are replaced at the same time.
func (g *NodeGroup) pace(in *types.NodegroupUpdateConfig) error {
	if in == nil {
		return nil
	}
	if err := core.Only("CreateNodegroup", in, "MaxUnavailable", "MaxUnavailablePercentage", "UpdateStrategy"); err != nil {
		return err
	}
	number, percentage := aws.ToInt32(in.MaxUnavailable), aws.ToInt32(in.MaxUnavailablePercentage)
	if (in.MaxUnavailable == nil) == (in.MaxUnavailablePercentage == nil) || number < 0 || number > 100 || percentage < 0 || percentage > 100 {
		return invalid("exactly one of maxUnavailable and maxUnavailablePercentage, between 1 and 100, is required")
	}
	if in.UpdateStrategy != "" && !slices.Contains(in.UpdateStrategy.Values(), in.UpdateStrategy) {
		return invalid("unsupported update strategy %s", in.UpdateStrategy)
	}
	g.MaxUnavailable, g.MaxUnavailablePercentage = number, percentage
	if in.UpdateStrategy != "" {
		g.Strategy = string(in.UpdateStrategy)
	}
	return nil
}

// mostTaints is the maximum number of taints of a node group.
const mostTaints = 50

// taint adds, changes and removes taints.
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
		if strings.HasPrefix(k, "eks.amazonaws.com/") || !regex.Of(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,316}$`).MatchString(k) || len(v) > 63 {
			return invalid("the label %s=%s is not valid", k, v)
		}
		labels[k] = v
	}
	g.Labels = labels
	return nil
}

// changeNodeGroup starts an update of a node group, unless one is in progress.
func (svc *Service) changeNodeGroup(c *Cluster, g *NodeGroup, kind types.UpdateType, takes time.Duration, after NodeGroup) (*types.Update, error) {
	if s := g.status(svc.Now()); s != types.NodegroupStatusActive {
		return nil, &types.ResourceInUseException{
			Message: aws.String(fmt.Sprintf("Nodegroup cannot be updated as it is currently not in Active State (%s)", s)), ClusterName: &c.Name, NodegroupName: &g.Name,
		}
	}
	after.Updates, after.Instances = nil, nil
	var changes []types.UpdateParam
	if kind == types.UpdateTypeVersionUpdate {
		changes = params(map[types.UpdateParamType]string{
			types.UpdateParamTypeVersion: after.Version, types.UpdateParamTypeReleaseVersion: after.Release,
			types.UpdateParamTypeLaunchTemplateVersion: after.TemplateVersion,
		})
	}
	u := &NodeGroupUpdate{Operation: svc.begin(kind, takes, changes...), After: after}
	g.Updates = append(g.Updates, u)
	return u.out(), nil
}

// applyNodeGroup applies an update: it replaces the nodes or changes their number.
func (svc *Service) applyNodeGroup(c *Cluster, g *NodeGroup, u *NodeGroupUpdate) {
	u.Applied = true
	if u.Failure != "" || svc.state.Faults.Reverts {
		return
	}
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
		_ = svc.launchNodes(c, g, missing) // AWS tries again, and returns a health issue
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
	if in.NodeRepairConfig != nil {
		changes++
		if err := after.repair(in.NodeRepairConfig); err != nil {
			return nil, err
		}
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
	if g.Capacity == capacityBlock && g.Desired > 0 { // AWS says so, and not what happens otherwise: the block has no room for more nodes
		return nil, invalid("Nodegroup %s uses a Capacity Block: its desired size has to be 0 for an upgrade", g.Name)
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
			return nil, invalid("Nodegroup version cannot skip minor versions: %s to %s", g.Version, version) // AWS may permit it
		}
		after.Version = version
		if after.Release, err = k.release(version, g.Release, in.ReleaseVersion); err != nil {
			return nil, err
		}
	}
	if in.ReleaseVersion != nil && *in.ReleaseVersion != after.Release {
		return nil, invalid("Requested release version %s is not valid for kubernetes version %s.", *in.ReleaseVersion, after.Version)
	}
	if after.TemplateVersion == g.TemplateVersion && after.Version == g.Version && after.Release == g.Release && !in.Force {
		return nil, invalid("Nodegroup %s is already at the requested version", g.Name) // AWS may permit it
	}
	rounds := max(1, (g.Desired+max(1, g.MaxUnavailable)-1)/max(1, g.MaxUnavailable))
	u, err := svc.changeNodeGroup(c, g, types.UpdateTypeVersionUpdate, time.Duration(rounds)*NodeTakes, after)
	if last := len(g.Updates) - 1; err == nil && in.Force && strings.HasPrefix(g.Updates[last].Failure, "PodEvictionFailure") {
		g.Updates[last].Failure = "" // with force, pods are deleted that cannot be evicted
	} else if err == nil && strings.HasPrefix(g.Updates[last].Failure, "PodEvictionFailure") {
		g.Updates[last].Of = svc.nodeNames(g)[:1] // EKS drains one after the other ("Managed node group update behavior", EKS user guide)
	}
	return &eks.UpdateNodegroupVersionOutput{Update: u}, err
}

func (svc *Service) nodeGroupOut(c *Cluster, g *NodeGroup) *types.Nodegroup {
	out := &types.Nodegroup{
		NodegroupName: aws.String(g.Name), NodegroupArn: aws.String(g.ARN), ClusterName: aws.String(c.Name), NodeRole: aws.String(g.RoleARN),
		Version: core.Text(g.Version), ReleaseVersion: aws.String(g.Release), Status: g.status(svc.Now()), AmiType: types.AMITypes(g.Kind),
		CapacityType: types.CapacityTypes(g.Capacity), Subnets: slices.Clone(g.Subnets), InstanceTypes: slices.Clone(g.InstanceTypes),
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(g.Least), MaxSize: aws.Int32(g.Most), DesiredSize: aws.Int32(g.Desired)},
		UpdateConfig:  &types.NodegroupUpdateConfig{UpdateStrategy: types.NodegroupUpdateStrategies(g.Strategy)}, NodeRepairConfig: g.repairOut(),
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
	for _, failure := range []string{g.CreateFailure, g.DeleteFailure} {
		if code, message, failed := strings.Cut(failure, ": "); failed && out.Status != types.NodegroupStatusCreating && out.Status != types.NodegroupStatusDeleting {
			out.Health.Issues = append(out.Health.Issues, types.Issue{Code: types.NodegroupIssueCode(code), Message: &message, ResourceIds: slices.Clone(g.Instances)})
		}
	}
	return out
}

// nodeNames lists the names of a group's Nodes, sorted.
func (svc *Service) nodeNames(g *NodeGroup) (names []string) {
	for _, id := range g.Instances {
		if i := svc.ec2.Instance(id); i != nil {
			names = append(names, svc.ec2.PrivateName(i))
		}
	}
	slices.Sort(names)
	return names
}
