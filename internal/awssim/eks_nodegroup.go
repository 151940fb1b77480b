package awssim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EKSNodeGroup is a managed node group. Its instances are launched by EKS.
type EKSNodeGroup struct {
	Name, ARN, RoleARN, Version, Release, Kind, Capacity, Token string
	Template, TemplateVersion                                   string // launch template, if it has one
	Scaling                                                     string // name of the Auto Scaling group that EKS makes for it
	Subnets, InstanceTypes, SourceGroups                        []string
	SSHKey, Remote                                              string // key, and the security group that EKS made for it
	DiskSize, Least, Most, Desired                              int32
	MaxUnavailable, MaxUnavailablePercentage                    int32
	Repair                                                      bool
	Labels, Tags                                                map[string]string
	Taints                                                      []EKSTaint
	Born, Ready, Modified                                       time.Time
	Deleted                                                     time.Time // when deletion was asked for; zero: not
	Updates                                                     []*EKSNodeGroupUpdate
	Instances                                                   []string
}

// EKSTaint is a taint of a node group's nodes.
type EKSTaint struct{ Key, Value, Effect string }

// EKSNodeGroupUpdate is a change of a node group that is under way, or was.
type EKSNodeGroupUpdate struct {
	ID, Kind   string
	Born, Done time.Time
	Applied    bool
	After      EKSNodeGroup // what it will be like
}

const (
	// EKSNodeGroupTakes is how long a node group is CREATING.
	EKSNodeGroupTakes = 3 * time.Minute
	// EKSNodeGroupDeletes is how long it is DELETING.
	EKSNodeGroupDeletes = 3 * time.Minute
	// EKSNodeGroupConfigTakes is how long a change of labels, taints or size
	// takes.
	EKSNodeGroupConfigTakes = 20 * time.Second
	// EKSNodeTakes is how long each node takes to be replaced by one of
	// another version.
	EKSNodeTakes = 3 * time.Minute
)

func (a *AWS) simulateEKSNodeGroups() {
	on(a, a.createNodeGroup, "ClusterName", "NodegroupName", "NodeRole", "Subnets", "AmiType", "CapacityType", "ClientRequestToken", "DiskSize", "InstanceTypes",
		"Labels", "LaunchTemplate", "NodeRepairConfig", "ReleaseVersion", "RemoteAccess", "ScalingConfig", "Tags", "Taints", "UpdateConfig", "Version")
	on(a, a.describeNodeGroup, "ClusterName", "NodegroupName")
	on(a, a.listNodeGroups, "ClusterName", "MaxResults", "NextToken")
	on(a, a.updateNodeGroupConfig, "ClusterName", "NodegroupName", "ClientRequestToken", "Labels", "NodeRepairConfig", "ScalingConfig", "Taints", "UpdateConfig")
	on(a, a.updateNodeGroupVersion, "ClusterName", "NodegroupName", "ClientRequestToken", "Force", "LaunchTemplate", "ReleaseVersion", "Version")
	on(a, a.deleteNodeGroup, "ClusterName", "NodegroupName")
}

func (g *EKSNodeGroup) status(now time.Time) types.NodegroupStatus {
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

func (g *EKSNodeGroup) updating() *EKSNodeGroupUpdate {
	for _, u := range g.Updates {
		if !u.Applied {
			return u
		}
	}
	return nil
}

// settleEKSNodeGroups finishes updates, launches what is missing, and buries
// groups that are gone.
func (a *AWS) settleEKSNodeGroups(c *EKSCluster) {
	for _, g := range byKey(c.NodeGroups) {
		if u := g.updating(); u != nil && !a.now().Before(u.Done) {
			a.applyNodeGroup(c, g, u)
		}
		a.scaleNodes(g)
		if g.Deleted.IsZero() || a.now().Sub(g.Deleted) < EKSNodeGroupDeletes {
			continue
		}
		a.RemoveScalingGroup(g.Scaling)
		if remote := a.SecurityGroup(g.Remote); remote != nil {
			a.RemoveSecurityGroup(remote)
		}
		delete(c.NodeGroups, g.Name)
	}
}

// nodeGroup returns the node group that a call names.
func (a *AWS) nodeGroup(cluster, name *string) (*EKSCluster, *EKSNodeGroup, error) {
	c, err := a.eksCluster(cluster)
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

func (a *AWS) createNodeGroup(in *eks.CreateNodegroupInput) (*eks.CreateNodegroupOutput, error) {
	c, err := a.activeEKSCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	name := aws.ToString(in.NodegroupName)
	if old, ok := c.NodeGroups[name]; ok {
		if old.Token == aws.ToString(in.ClientRequestToken) && old.Deleted.IsZero() {
			return &eks.CreateNodegroupOutput{Nodegroup: a.nodeGroupOut(c, old)}, nil
		}
		return nil, &types.ResourceInUseException{Message: aws.String("NodeGroup already exists with name " + name + " and cluster name " + c.Name), ClusterName: in.ClusterName, NodegroupName: in.NodegroupName}
	}
	g := &EKSNodeGroup{
		Name: name, RoleARN: aws.ToString(in.NodeRole), Version: first(aws.ToString(in.Version), c.Version), Kind: string(in.AmiType),
		Capacity: first(string(in.CapacityType), "ON_DEMAND"), Token: aws.ToString(in.ClientRequestToken), Subnets: slices.Clone(in.Subnets),
		InstanceTypes: slices.Clone(in.InstanceTypes), DiskSize: aws.ToInt32(in.DiskSize), Least: 1, Most: 2, Desired: 2, MaxUnavailable: 1,
		Labels: maps.Clone(in.Labels), Born: a.now(), Modified: a.now(), Ready: a.now().Add(EKSNodeGroupTakes),
	}
	for _, check := range []func(*EKSCluster, *EKSNodeGroup, *eks.CreateNodegroupInput) error{
		a.checkNodeGroup, a.checkNodeTemplate, a.checkNodeImage, a.checkNodeSubnets, a.checkNodeAccess,
	} {
		if err := check(c, g, in); err != nil {
			return nil, err
		}
	}
	if g.Tags, err = eksTags(in.Tags); err != nil {
		return nil, err
	}
	h := a.hash()
	g.ARN = a.regionalARN("eks", fmt.Sprintf("nodegroup/%s/%s/%s-%s-4000-8000-000000000000", c.Name, name, h[:8], h[8:12]))
	g.Scaling = "eks-" + name + "-" + g.ARN[len(g.ARN)-36:]
	if err := a.launchNodes(c, g, int(g.Desired)); err != nil {
		return nil, err
	}
	c.NodeGroups[name] = g
	a.scaleGroup(c, g)
	a.letIn(c, g.RoleARN, "EC2_LINUX")
	return &eks.CreateNodegroupOutput{Nodegroup: a.nodeGroupOut(c, g)}, nil
}

func (a *AWS) checkNodeGroup(c *EKSCluster, g *EKSNodeGroup, in *eks.CreateNodegroupInput) error {
	switch {
	case !regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,62}$`).MatchString(g.Name):
		return invalidEKS("The node group name %q is not valid", g.Name)
	case !a.assumable(g.RoleARN):
		return invalidEKS("The role with name %s cannot be found.", g.RoleARN)
	case minor(g.Version) > minor(c.Version) || minor(c.Version)-minor(g.Version) > kubeletSkew:
		return invalidEKS("Requested Nodegroup version %s is not compatible with cluster version %s", g.Version, c.Version)
	case !slices.Contains(eksVersions(), g.Version):
		return invalidEKS("unsupported Kubernetes version %s", g.Version)
	case !slices.Contains(types.CapacityTypes("").Values(), types.CapacityTypes(g.Capacity)):
		return invalidEKS("unsupported capacity type %s", g.Capacity)
	}
	if r := in.NodeRepairConfig; r != nil {
		if err := only("CreateNodegroup", r, "Enabled"); err != nil {
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
func (a *AWS) checkNodeImage(_ *EKSCluster, g *EKSNodeGroup, in *eks.CreateNodegroupInput) error {
	if g.Kind == customImage {
		return nil
	}
	g.Kind = first(g.Kind, "AL2023_x86_64_STANDARD")
	k, ok := eksImageKind(g.Kind, g.Version)
	if !ok {
		return invalidEKS("Requested AMI for this version %s is not supported (%s)", g.Version, g.Kind)
	}
	g.Release = k.release(g.Version)
	if in.ReleaseVersion != nil && *in.ReleaseVersion != g.Release {
		return invalidEKS("Requested release version %s is not valid for kubernetes version %s.", *in.ReleaseVersion, g.Version)
	}
	if len(g.InstanceTypes) == 0 && g.Template == "" {
		g.InstanceTypes = []string{defaultNode}
	}
	if g.DiskSize == 0 && g.Template == "" {
		g.DiskSize = 20
	}
	kinds := g.InstanceTypes
	if v := a.nodeTemplate(g); v != nil && v.Data.InstanceType != "" {
		kinds = []string{string(v.Data.InstanceType)}
	}
	for _, t := range kinds {
		if !slices.Contains(Architectures(t), ec2types.ArchitectureType(k.architecture)) {
			return invalidEKS("[%s] is not a valid instance type for requested amiType %s", t, g.Kind)
		}
	}
	return nil
}

func (a *AWS) checkNodeSubnets(c *EKSCluster, g *EKSNodeGroup, _ *eks.CreateNodegroupInput) error {
	if len(g.Subnets) == 0 {
		return invalidEKS("Subnets are required")
	}
	for _, id := range g.Subnets {
		s := a.Subnet(id)
		if s == nil || !a.known(s.Thing) {
			return invalidEKS("The subnet ID '%s' does not exist", id)
		}
		if s.VPC != c.VPC {
			return invalidEKS("Subnets are not in the VPC of the cluster: %s", id)
		}
	}
	return nil
}

func (a *AWS) checkNodeAccess(c *EKSCluster, g *EKSNodeGroup, in *eks.CreateNodegroupInput) error {
	r := in.RemoteAccess
	if r == nil {
		return nil
	}
	g.SSHKey, g.SourceGroups = aws.ToString(r.Ec2SshKey), slices.Clone(r.SourceSecurityGroups)
	if g.SSHKey == "" || !a.HasKeyPair(g.SSHKey) {
		return invalidEKS("The key pair '%s' does not exist", g.SSHKey)
	}
	if _, err := a.groupsFor(c.VPC, g.SourceGroups); len(g.SourceGroups) > 0 && err != nil {
		return invalidEKS("%s", err)
	}
	// The groups that may log in hold on to each other by a rule.
	remote := a.newGroup(a.VPC(c.VPC), "eks-remoteAccess-"+a.hash()[:8], "Security group for all nodes in the nodeGroup to allow SSH access",
		map[string]string{"eks": g.Name, "eks:nodegroup-name": g.Name})
	rule := Rule{Protocol: "tcp", From: 22, To: 22}
	if len(g.SourceGroups) == 0 {
		rule.ID, rule.CIDR = a.id("sgr"), "0.0.0.0/0"
		remote.Ingress = append(remote.Ingress, rule)
	}
	for _, source := range g.SourceGroups {
		rule.ID, rule.Group = a.id("sgr"), source
		remote.Ingress = append(remote.Ingress, rule)
	}
	g.Remote = remote.ID
	return nil
}

func (a *AWS) describeNodeGroup(in *eks.DescribeNodegroupInput) (*eks.DescribeNodegroupOutput, error) {
	c, g, err := a.nodeGroup(in.ClusterName, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeNodegroupOutput{Nodegroup: a.nodeGroupOut(c, g)}, nil
}

func (a *AWS) listNodeGroups(in *eks.ListNodegroupsInput) (*eks.ListNodegroupsOutput, error) {
	c, err := a.eksCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, g := range byKey(c.NodeGroups) {
		if a.visible(g.Born) {
			names = append(names, g.Name)
		}
	}
	part, next, err := eksPage(a, names, in.NextToken, in.MaxResults)
	return &eks.ListNodegroupsOutput{Nodegroups: part, NextToken: next}, err
}

func (a *AWS) deleteNodeGroup(in *eks.DeleteNodegroupInput) (*eks.DeleteNodegroupOutput, error) {
	c, g, err := a.nodeGroup(in.ClusterName, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	if s := g.status(a.now()); s != types.NodegroupStatusActive {
		return nil, &types.ResourceInUseException{Message: aws.String(fmt.Sprintf("Nodegroup %s cannot be deleted as it is currently in %s state", g.Name, s)), ClusterName: in.ClusterName, NodegroupName: in.NodegroupName}
	}
	g.Deleted = a.now()
	a.forgetInterface(c, g)
	a.endNodes(g, len(g.Instances))
	return &eks.DeleteNodegroupOutput{Nodegroup: a.nodeGroupOut(c, g)}, nil
}
