package eks

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// customImage is the AMI type of a node group whose launch template has an image.
const customImage = string(types.AMITypesCustom)

// defaultNode is the default instance type of nodes.
const defaultNode = "t3.medium"

// nodeTemplate returns the launch template version of a node group; nil if it has none,
// or it is deleted.
func (svc *Service) nodeTemplate(g *NodeGroup) *ec2.LaunchTemplateVersion {
	if t := svc.ec2.LaunchTemplate(g.Template); t != nil {
		return t.Versions[g.TemplateVersion]
	}
	return nil
}

// checkNodeTemplate validates the launch template of a new node group, which replaces
// some settings of the group ("Customize managed nodes with launch templates", EKS user
// guide).
func (svc *Service) checkNodeTemplate(c *Cluster, g *NodeGroup, in *eks.CreateNodegroupInput) error {
	if in.LaunchTemplate == nil {
		if g.Capacity == capacityBlock {
			return invalid("Capacity type CAPACITY_BLOCK needs a launch template.")
		}
		if g.Kind == customImage {
			return invalid("AMI type CUSTOM needs a launch template that names an image")
		}
		return nil
	}
	if err := svc.takeTemplate(g, in.LaunchTemplate); err != nil {
		return err
	}
	d := svc.nodeTemplate(g).Data
	switch {
	case in.DiskSize != nil:
		return invalid("Disk size must be specified within the launch template.")
	case in.RemoteAccess != nil:
		return invalid("Remote access configuration cannot be specified with a launch template.")
	case d.InstanceType != "" && len(in.InstanceTypes) > 0:
		return &types.InvalidRequestException{Message: aws.String("Cannot specify instance types in launch template and API request"), ClusterName: in.ClusterName}
	case d.ImageId == nil && g.Kind == customImage:
		return invalid("AMI type CUSTOM needs a launch template that names an image")
	case d.ImageId == nil:
		return svc.checkTemplateOfNodes(c, g)
	case g.Kind != "" && g.Kind != customImage:
		return invalid("You cannot specify an AMI Type other than CUSTOM, when specifying an image id in your launch template.")
	case in.Version != nil:
		return invalid("You cannot specify a kubernetes version to use when specifying an image id to use within the launch template.")
	case in.ReleaseVersion != nil:
		return invalid("You cannot specify a release version when specifying an image id to use within the launch template.")
	}
	g.Kind, g.Version, g.Release = customImage, "", *d.ImageId // that there is no version then is not documented
	return svc.checkTemplateOfNodes(c, g)
}

// takeTemplate sets the launch template version from a call.
func (svc *Service) takeTemplate(g *NodeGroup, in *types.LaunchTemplateSpecification) error {
	t, err := svc.ec2.FindLaunchTemplate(in.Id, in.Name)
	if err != nil {
		return invalid("%s", core.Reason(err))
	}
	v := t.Version(aws.ToString(in.Version))
	if v == nil {
		return invalid("%s", core.Reason(t.NoVersion(aws.ToString(in.Version))))
	}
	g.Template, g.TemplateVersion = t.ID, fmt.Sprint(v.Number)
	return nil
}

// checkTemplateOfNodes rejects launch templates that EKS rejects. EKS accepts the last one: half an hour later, the nodes have not joined
// (NodeCreationFailure). An image without user data is accepted, too ("Specifying an AMI" in "Customize managed nodes with launch
// templates", EKS user guide): whether its nodes join depends on the image (package kubernetes).
func (svc *Service) checkTemplateOfNodes(c *Cluster, g *NodeGroup) error {
	d := svc.nodeTemplate(g).Data
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(d.UserData))
	groups := d.SecurityGroupIds
	for _, i := range d.NetworkInterfaces {
		groups = append(groups, i.Groups...)
		if i.SubnetId != nil {
			return invalid("Subnets cannot be specified in the launch template.")
		}
	}
	mime := strings.HasPrefix(string(raw), "MIME-Version: ") || strings.HasPrefix(string(raw), "Content-Type: multipart/")
	switch {
	case d.IamInstanceProfile != nil:
		return invalid("IAM instance profile cannot be specified in the launch template.")
	case g.Capacity == capacityBlock && !isBlock(&d):
		return invalid("Capacity type CAPACITY_BLOCK needs a launch template with the market type capacity-block, a capacity reservation and an instance type.")
	case g.Capacity != capacityBlock && d.InstanceMarketOptions != nil:
		return invalid("Instance market options are not supported with the launch template.")
	case err != nil:
		return invalid("the user data is not base64: %s", err)
	case d.ImageId == nil && len(raw) > 0 && strings.HasPrefix(g.Kind, "BOTTLEROCKET"):
		return core.NotSimulated("CreateNodegroup: user data of Bottlerocket")
	case d.ImageId == nil && len(raw) > 0 && !mime:
		return &types.InvalidRequestException{Message: aws.String("Ec2LaunchTemplateInvalidConfiguration: User data was not in the MIME multipart format.")}
	case len(groups) > 0 && !slices.Contains(groups, c.Group):
		return invalid("the launch template names security groups, and not the cluster's, %s: its nodes could not join", c.Group)
	}
	return nil
}

// capacityBlock is the capacity type of node groups in a Capacity Block for ML.
const capacityBlock = string(types.CapacityTypesCapacityBlock)

// isBlock reports whether a launch template has what a node group in a Capacity Block needs ("Create a managed node group with
// Capacity Blocks for ML", EKS user guide).
func isBlock(d *ec2types.RequestLaunchTemplateData) bool {
	r := d.CapacityReservationSpecification
	return d.InstanceMarketOptions != nil && d.InstanceMarketOptions.MarketType == ec2types.MarketTypeCapacityBlock && d.InstanceType != "" &&
		r != nil && r.CapacityReservationTarget != nil && aws.ToString(r.CapacityReservationTarget.CapacityReservationId) != ""
}

// changeTemplate changes the launch template version of a node group.
func (svc *Service) changeTemplate(c *Cluster, after *NodeGroup, in *eks.UpdateNodegroupVersionInput) error {
	own := after.Kind == customImage
	if own && (in.Version != nil || in.ReleaseVersion != nil) {
		return invalid("You cannot specify a kubernetes version to use when specifying an image id to use within the launch template.")
	}
	if in.LaunchTemplate == nil {
		return nil
	}
	if after.Template == "" {
		return invalid("the node group was not made with a launch template")
	}
	before := after.Template
	if err := svc.takeTemplate(after, in.LaunchTemplate); err != nil {
		return err
	}
	d := svc.nodeTemplate(after).Data
	switch {
	case after.Template != before:
		return invalid("the launch template of a node group cannot be another")
	case (d.ImageId != nil) != own:
		return invalid("a node group cannot change between an image of its launch template and one of EKS")
	case d.InstanceType != "" && len(after.InstanceTypes) > 0:
		return &types.InvalidRequestException{Message: aws.String("Cannot specify instance types in launch template and API request")}
	case own:
		after.Release = *d.ImageId
	}
	return svc.checkTemplateOfNodes(c, after)
}

// nodes returns the RunInstances call for a node of a group.
func (svc *Service) nodes(c *Cluster, g *NodeGroup) (*awsec2.RunInstancesInput, error) {
	in := &awsec2.RunInstancesInput{}
	if g.Template != "" {
		v := svc.nodeTemplate(g)
		if v == nil {
			return nil, invalid("Ec2LaunchTemplateNotFound: %s, version %s", g.Template, g.TemplateVersion)
		}
		data := core.Recast[awsec2.RunInstancesInput](v.Data)
		in = &data
	}
	if in.ImageId == nil {
		k, _ := imageKind(g.Kind, g.Version)
		image, _ := svc.ec2.ImageNamed(k.named(g.Version, g.Release))
		in.ImageId = &image
	}
	if len(g.InstanceTypes) > 0 {
		in.InstanceType = ec2types.InstanceType(g.InstanceTypes[0])
	} else if in.InstanceType == "" {
		in.InstanceType = defaultNode
	}
	if len(in.SecurityGroupIds) == 0 && len(in.NetworkInterfaces) == 0 {
		in.SecurityGroupIds = []string{c.Group}
	}
	if g.Remote != "" {
		in.SecurityGroupIds = append(in.SecurityGroupIds, g.Remote)
	}
	in.MinCount, in.MaxCount = aws.Int32(1), aws.Int32(1)
	return in, nil
}

// launchNodes launches instances, in one subnet after the other.
func (svc *Service) launchNodes(c *Cluster, g *NodeGroup, n int) error {
	for range n {
		in, err := svc.nodes(c, g)
		if err != nil {
			return err
		}
		subnet := g.Subnets[len(g.Instances)%len(g.Subnets)]
		if len(in.NetworkInterfaces) > 0 {
			in.NetworkInterfaces[0].SubnetId = &subnet
		} else {
			in.SubnetId = &subnet
		}
		out, err := svc.ec2.RunInstances(in)
		if err != nil {
			return invalid("could not launch nodes: %s", err)
		}
		id := *out.Instances[0].InstanceId
		for k, v := range map[string]string{
			"kubernetes.io/cluster/" + c.Name: "owned", "eks:cluster-name": c.Name, "eks:nodegroup-name": g.Name, "aws:autoscaling:groupName": g.Scaling,
		} {
			svc.ec2.Instance(id).Tags[k] = v
		}
		g.Instances = append(g.Instances, id)
	}
	return nil
}

// forgetInterface creates a network interface that the VPC CNI of a deleted node group
// leaves behind, as it does if a node is deleted before the CNI has cleaned up. It
// prevents the deletion of its subnet and its groups. The CNI runs on nodes that have joined.
func (svc *Service) forgetInterface(c *Cluster, g *NodeGroup) {
	at := slices.IndexFunc(g.Instances, func(id string) bool {
		i := svc.ec2.Instance(id)
		return i != nil && svc.ec2.Subnet(i.Subnet) != nil && i.Boot != nil && !i.Boot.Joined.IsZero()
	})
	if at < 0 {
		return
	}
	i := svc.ec2.Instance(g.Instances[at])
	for _, own := range svc.ec2.InterfacesOf(i.ID) {
		{
			n := svc.ec2.NewInterface(i.Subnet, "aws-K8S-"+i.ID, "interface", "", own.Groups)
			n.Managed = false
			maps.Copy(n.Tags, map[string]string{
				"cluster.k8s.amazonaws.com/name":     c.Name,
				"node.k8s.amazonaws.com/instance_id": i.ID,
				"node.k8s.amazonaws.com/createdAt":   svc.Now().UTC().Format("2006-01-02T15:04:05Z"),
			})
			return
		}
	}
}

// endNodes terminates the last n instances of a group.
func (svc *Service) endNodes(g *NodeGroup, n int) {
	ids := g.Instances[len(g.Instances)-n:]
	g.Instances = g.Instances[:len(g.Instances)-n]
	for _, id := range ids {
		if i := svc.ec2.Instance(id); i != nil && i.Terminating.IsZero() {
			_, _ = svc.ec2.TerminateInstances(&awsec2.TerminateInstancesInput{InstanceIds: []string{id}}) // it exists, and is not protected
		}
	}
}

// scaleGroup creates the Auto Scaling group of a node group, with the lifecycle hooks
// with which EKS drains nodes.
func (svc *Service) scaleGroup(c *Cluster, g *NodeGroup) {
	tags := map[string]autoscaling.Tag{}
	for k, v := range map[string]string{
		"eks:cluster-name": c.Name, "eks:nodegroup-name": g.Name, "kubernetes.io/cluster/" + c.Name: "owned", "k8s.io/cluster-autoscaler/" + c.Name: "owned",
		"k8s.io/cluster-autoscaler/enabled": "true",
	} {
		tags[k] = autoscaling.Tag{Value: v, Propagate: true}
	}
	uuid := g.ARN[len(g.ARN)-36:]
	x := &autoscaling.Group{
		Name:   g.Scaling,
		ARN:    svc.RegionalARN("autoscaling", "autoScalingGroup:"+uuid+":autoScalingGroupName/"+g.Scaling),
		Born:   svc.Now(),
		Looked: svc.Now(),
		OfEKS:  true,
		Subnets: slices.Clone(
			g.Subnets,
		),
		Template:    &autoscaling.TemplateRef{ID: "lt-0" + uuid[:8] + uuid[9:13] + "0000", Version: "1"},
		Cooldown:    300,
		Grace:       15,
		HealthCheck: "EC2",
		Policies: []string{
			"AllocationStrategy",
			"OldestLaunchTemplate",
			"OldestInstance",
		},
		Rebalance: true,
		Suspended: map[string]bool{},
		Tags:      tags,
		Hooks:     map[string]*autoscaling.Hook{},
	}
	for name, transition := range map[string]string{"Launch-LC-Hook": autoscaling.Launching, "Terminate-LC-Hook": autoscaling.Terminating} {
		x.Hooks[name] = &autoscaling.Hook{Name: name, Transition: "autoscaling:" + transition, Result: "CONTINUE", Heartbeat: 1800}
	}
	svc.autoscaling.AddGroup(x)
	svc.scaleNodes(g)
}

// replaceNodes replaces the instances that somebody has terminated or stopped, as the Auto Scaling group of a node group does: for its health
// check, an instance in any state but running is unhealthy ("Health checks for instances in an Auto Scaling group", EC2 Auto Scaling user guide;
// that each managed node group has such a group: "Simplify node lifecycle with managed node groups", EKS user guide).
func (svc *Service) replaceNodes(c *Cluster, g *NodeGroup) {
	if !g.Deleted.IsZero() || svc.Now().Before(g.Ready) {
		return
	}
	defer svc.SetPast(time.Time{})
	for _, id := range slices.Clone(g.Instances) {
		svc.SetPast(time.Time{})
		lost := svc.lostSince(id)
		at := lost.Add(autoscaling.ScalingNotices)
		if lost.IsZero() || at.After(svc.Now()) {
			continue
		}
		svc.SetPast(at)
		svc.ec2.Terminate(id)
		before := g.Instances
		g.Instances = slices.DeleteFunc(slices.Clone(before), func(x string) bool { return x == id })
		if err := svc.launchNodes(c, g, 1); err != nil {
			g.Instances = before // the group tries again
		}
	}
}

// lostSince returns the time at which an instance was terminated or stopped; the zero time if the instance is running or starting.
func (svc *Service) lostSince(id string) time.Time {
	switch i := svc.ec2.Instance(id); {
	case i == nil: // EC2 has forgotten it
		return svc.Now().Add(-autoscaling.ScalingNotices)
	case !i.Terminating.IsZero():
		return i.Terminating
	default:
		return i.Stopped
	}
}

// scaleNodes updates the instances of the Auto Scaling group. Here EKS launches and
// terminates nodes, and not the group.
func (svc *Service) scaleNodes(g *NodeGroup) {
	x := svc.autoscaling.GroupNamed(g.Scaling)
	if x == nil {
		return
	}
	x.Min, x.Max, x.Desired, x.Deleting, x.Instances = g.Least, g.Most, g.Desired, !g.Deleted.IsZero(), nil
	for _, id := range g.Instances {
		if i := svc.ec2.Instance(id); i != nil {
			x.Instances = append(x.Instances, &autoscaling.Instance{
				ID: id, Zone: i.Zone, Subnet: i.Subnet, Type: i.Type, Template: *x.Template, State: asgtypes.LifecycleStateInService, Lost: svc.lostSince(id),
			})
		}
	}
}

// UserOfTemplate returns the node group that uses a launch template; "" if there is none.
func (svc *Service) UserOfTemplate(id string) string {
	for _, c := range svc.state.Clusters {
		for _, g := range c.NodeGroups {
			if g.Template == id {
				return "node group " + g.Name
			}
		}
	}
	return ""
}
