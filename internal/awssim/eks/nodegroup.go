package eks

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// NodeGroup is a managed node group. Its instances are launched by EKS.
type NodeGroup struct {
	Name, ARN, RoleARN, Version, Release, Kind, Capacity, Token string
	Template, TemplateVersion                                   string // launch template, if it has one
	Scaling                                                     string // name of the Auto Scaling group that EKS makes for it
	Subnets, InstanceTypes, SourceGroups                        []string
	SSHKey, Remote                                              string // key, and the security group that EKS made for it
	DiskSize, Least, Most, Desired                              int32
	MaxUnavailable, MaxUnavailablePercentage                    int32
	Repair                                                      bool
	Labels, Tags                                                map[string]string
	Taints                                                      []Taint
	Born, Ready, Modified                                       time.Time
	Deleted                                                     time.Time // when deletion was asked for; zero: not
	Updates                                                     []*NodeGroupUpdate
	Instances                                                   []string
}

// Taint is a taint of a node group's nodes.
type Taint struct{ Key, Value, Effect string }

// NodeGroupUpdate is a change of a node group that is under way, or was.
type NodeGroupUpdate struct {
	ID, Kind   string
	Born, Done time.Time
	Applied    bool
	After      NodeGroup // what it will be like
}

const (
	// NodeGroupTakes is how long a node group is CREATING.
	NodeGroupTakes = 3 * time.Minute
	// NodeGroupDeletes is how long it is DELETING.
	NodeGroupDeletes = 3 * time.Minute
	// NodeGroupConfigTakes is how long a change of labels, taints or size
	// takes.
	NodeGroupConfigTakes = 20 * time.Second
	// NodeTakes is how long each node takes to be replaced by one of
	// another version.
	NodeTakes = 3 * time.Minute
)

func (svc *Service) simulateNodeGroups() {
	core.On(svc.Account, svc.createNodeGroup, "ClusterName", "NodegroupName", "NodeRole", "Subnets", "AmiType", "CapacityType", "ClientRequestToken", "DiskSize", "InstanceTypes",
		"Labels", "LaunchTemplate", "NodeRepairConfig", "ReleaseVersion", "RemoteAccess", "ScalingConfig", "Tags", "Taints", "UpdateConfig", "Version")
	core.On(svc.Account, svc.describeNodeGroup, "ClusterName", "NodegroupName")
	core.On(svc.Account, svc.listNodeGroups, "ClusterName", "MaxResults", "NextToken")
	core.On(svc.Account, svc.updateNodeGroupConfig, "ClusterName", "NodegroupName", "ClientRequestToken", "Labels", "NodeRepairConfig", "ScalingConfig", "Taints", "UpdateConfig")
	core.On(svc.Account, svc.updateNodeGroupVersion, "ClusterName", "NodegroupName", "ClientRequestToken", "Force", "LaunchTemplate", "ReleaseVersion", "Version")
	core.On(svc.Account, svc.deleteNodeGroup, "ClusterName", "NodegroupName")
}

func (g *NodeGroup) status(now time.Time) types.NodegroupStatus {
	switch {
	case !g.Deleted.IsZero():
		return types.NodegroupStatusDeleting
	case now.Before(g.Ready):
		return types.NodegroupStatusCreating
	case g.updating() != nil:
		return types.NodegroupStatusUpdating
	}
	return types.NodegroupStatusActive
}

func (g *NodeGroup) updating() *NodeGroupUpdate {
	for _, u := range g.Updates {
		if !u.Applied {
			return u
		}
	}
	return nil
}

// settleNodeGroups finishes updates, launches what is missing, and buries
// groups that are gone.
func (svc *Service) settleNodeGroups(c *Cluster) {
	for _, g := range core.ByKey(c.NodeGroups) {
		if u := g.updating(); u != nil && !svc.Now().Before(u.Done) {
			svc.applyNodeGroup(c, g, u)
		}
		svc.scaleNodes(g)
		if g.Deleted.IsZero() || svc.Now().Sub(g.Deleted) < NodeGroupDeletes {
			continue
		}
		svc.autoscaling.RemoveGroup(g.Scaling)
		if remote := svc.ec2.SecurityGroup(g.Remote); remote != nil {
			svc.ec2.RemoveSecurityGroup(remote)
		}
		delete(c.NodeGroups, g.Name)
	}
}

// nodeGroup returns the node group that a call names.
func (svc *Service) nodeGroup(cluster, name *string) (*Cluster, *NodeGroup, error) {
	c, err := svc.cluster(cluster)
	if err != nil {
		return nil, nil, err
	}
	g, ok := c.NodeGroups[aws.ToString(name)]
	if !ok {
		return nil, nil, &types.ResourceNotFoundException{
			Message: aws.String("No node group found for name: " + aws.ToString(name) + "."), ClusterName: cluster, NodegroupName: name,
		}
	}
	return c, g, nil
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
		return nil, &types.ResourceInUseException{Message: aws.String("NodeGroup already exists with name " + name + " and cluster name " + c.Name), ClusterName: in.ClusterName, NodegroupName: in.NodegroupName}
	}
	g := &NodeGroup{
		Name: name, RoleARN: aws.ToString(in.NodeRole), Version: cmp.Or(aws.ToString(in.Version), c.Version), Kind: string(in.AmiType),
		Capacity: cmp.Or(string(in.CapacityType), "ON_DEMAND"), Token: aws.ToString(in.ClientRequestToken), Subnets: slices.Clone(in.Subnets),
		InstanceTypes: slices.Clone(in.InstanceTypes), DiskSize: aws.ToInt32(in.DiskSize), Least: 1, Most: 2, Desired: 2, MaxUnavailable: 1,
		Labels: maps.Clone(in.Labels), Born: svc.Now(), Modified: svc.Now(), Ready: svc.Now().Add(NodeGroupTakes),
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
	g.ARN = svc.RegionalARN("eks", fmt.Sprintf("nodegroup/%s/%s/%s-%s-4000-8000-000000000000", c.Name, name, h[:8], h[8:12]))
	g.Scaling = "eks-" + name + "-" + g.ARN[len(g.ARN)-36:]
	if err := svc.launchNodes(c, g, int(g.Desired)); err != nil {
		return nil, err
	}
	c.NodeGroups[name] = g
	svc.scaleGroup(c, g)
	svc.letIn(c, g.RoleARN, "EC2_LINUX")
	return &eks.CreateNodegroupOutput{Nodegroup: svc.nodeGroupOut(c, g)}, nil
}

func (svc *Service) checkNodeGroup(c *Cluster, g *NodeGroup, in *eks.CreateNodegroupInput) error {
	switch {
	case !regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,62}$`).MatchString(g.Name):
		return invalid("The node group name %q is not valid", g.Name)
	case !svc.iam.Assumable(g.RoleARN):
		return invalid("The role with name %s cannot be found.", g.RoleARN)
	case minor(g.Version) > minor(c.Version) || minor(c.Version)-minor(g.Version) > kubeletSkew:
		return invalid("Requested Nodegroup version %s is not compatible with cluster version %s", g.Version, c.Version)
	case !slices.Contains(SupportedVersions(), g.Version):
		return invalid("unsupported Kubernetes version %s", g.Version)
	case !slices.Contains(types.CapacityTypes("").Values(), types.CapacityTypes(g.Capacity)):
		return invalid("unsupported capacity type %s", g.Capacity)
	}
	if r := in.NodeRepairConfig; r != nil {
		if err := core.Only("CreateNodegroup", r, "Enabled"); err != nil {
			return err
		}
		g.Repair = aws.ToBool(r.Enabled)
	}
	if err := g.scale(in.ScalingConfig); err != nil {
		return err
	}
	if err := g.pace(in.UpdateConfig); err != nil {
		return err
	}
	return g.taint(in.Taints, nil)
}

// checkNodeImage looks at what the nodes are made of, unless their image is
// that of a launch template.
func (svc *Service) checkNodeImage(_ *Cluster, g *NodeGroup, in *eks.CreateNodegroupInput) error {
	if g.Kind == customImage {
		return nil
	}
	g.Kind = cmp.Or(g.Kind, "AL2023_x86_64_STANDARD")
	k, ok := imageKind(g.Kind, g.Version)
	if !ok {
		return invalid("Requested AMI for this version %s is not supported (%s)", g.Version, g.Kind)
	}
	g.Release = k.release(g.Version)
	if in.ReleaseVersion != nil && *in.ReleaseVersion != g.Release {
		return invalid("Requested release version %s is not valid for kubernetes version %s.", *in.ReleaseVersion, g.Version)
	}
	if len(g.InstanceTypes) == 0 && g.Template == "" {
		g.InstanceTypes = []string{defaultNode}
	}
	if g.DiskSize == 0 && g.Template == "" {
		g.DiskSize = 20
	}
	kinds := g.InstanceTypes
	if v := svc.nodeTemplate(g); v != nil && v.Data.InstanceType != "" {
		kinds = []string{string(v.Data.InstanceType)}
	}
	for _, t := range kinds {
		if !slices.Contains(ec2.Architectures(t), ec2types.ArchitectureType(k.architecture)) {
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
	// The groups that may log in hold on to each other by a rule.
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
	var names []string
	for _, g := range core.ByKey(c.NodeGroups) {
		if svc.Visible(g.Born) {
			names = append(names, g.Name)
		}
	}
	part, next, err := page(svc, names, in.NextToken, in.MaxResults)
	return &eks.ListNodegroupsOutput{Nodegroups: part, NextToken: next}, err
}

func (svc *Service) deleteNodeGroup(in *eks.DeleteNodegroupInput) (*eks.DeleteNodegroupOutput, error) {
	c, g, err := svc.nodeGroup(in.ClusterName, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	if s := g.status(svc.Now()); s != types.NodegroupStatusActive {
		return nil, &types.ResourceInUseException{Message: aws.String(fmt.Sprintf("Nodegroup %s cannot be deleted as it is currently in %s state", g.Name, s)), ClusterName: in.ClusterName, NodegroupName: in.NodegroupName}
	}
	g.Deleted = svc.Now()
	svc.forgetInterface(c, g)
	svc.endNodes(g, len(g.Instances))
	return &eks.DeleteNodegroupOutput{Nodegroup: svc.nodeGroupOut(c, g)}, nil
}
