package ec2

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
)

// Inventory contains the machines of a cluster, by ID, identity tag and name.
type Inventory struct {
	List               []*InstanceState
	ByID               map[string]*InstanceState
	OfGroups           map[string]*InstanceState // machines of Auto Scaling groups, by ID
	byResource, byName map[string][]*InstanceState
	values             []InstanceState // of List, made once: a deletion by name looks at it for each machine
}

// InstanceInventory lists the machines of the cluster that are not terminated. Those of Auto
// Scaling groups are listed by themselves.
func InstanceInventory(ctx context.Context, c *cloud.Clients) (*Inventory, error) {
	return cloud.Remember(ctx, c, "instances", func(ctx context.Context) (*Inventory, error) {
		found, err := describeInstances(ctx, c, c.OwnedFilters(NotTerminated()))
		if err != nil {
			return nil, err
		}
		all := &Inventory{
			ByID:       map[string]*InstanceState{},
			OfGroups:   map[string]*InstanceState{},
			byResource: map[string][]*InstanceState{},
			byName:     map[string][]*InstanceState{},
		}
		for _, s := range found {
			if s.Tags[GroupTag] != "" {
				all.OfGroups[s.ID] = s
				continue
			}
			all.add(s)
			all.values = append(all.values, *s)
		}
		return all, nil
	})
}

// pageOfInstances is the number of machines in one answer. AWS allows 1,000, but such an answer
// takes 15 MiB of memory while it is decoded.
const pageOfInstances = 250

// describeInstances lists the machines that match filters.
func describeInstances(ctx context.Context, c *cloud.Clients, filters []types.Filter) ([]*InstanceState, error) {
	return instancesAs(ctx, c, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(pageOfInstances)}, instanceState)
}

// instancesAs lists machines, each as convert returns it.
func instancesAs[T any](ctx context.Context, c *cloud.Clients, in *ec2.DescribeInstancesInput, convert func(types.Instance) T) ([]T, error) {
	p := ec2.NewDescribeInstancesPaginator(c.EC2, in)
	return cloud.Pages(ctx, p, func(o *ec2.DescribeInstancesOutput) (out []T) {
		for _, r := range o.Reservations {
			for _, x := range r.Instances {
				out = append(out, convert(x))
			}
		}
		return out
	})
}

// AllInstances lists the machines of all clusters of the region that are not being terminated, with
// those of Auto Scaling groups.
func AllInstances(ctx context.Context, c *cloud.Clients) ([]*InstanceState, error) {
	return describeInstances(ctx, c, []types.Filter{
		cloud.Filter("tag-key", cloud.ClusterTagPrefix+"*"), NotTerminating(),
	})
}

// InstancesOfGroup lists the machines of an Auto Scaling group that are not being terminated,
// whoever owns it.
func InstancesOfGroup(ctx context.Context, c *cloud.Clients, group string) ([]*InstanceState, error) {
	return cloud.Remember(ctx, c, "instances of group "+group, func(ctx context.Context) ([]*InstanceState, error) {
		return describeInstances(ctx, c, []types.Filter{
			cloud.Filter("tag:"+GroupTag, group), NotTerminating(),
		})
	})
}

// RunningNodes counts the running machines of the managed node groups of an EKS cluster, by the name
// of the node group.
func RunningNodes(ctx context.Context, c *cloud.Clients, cluster string) (map[string]int, error) {
	in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(pageOfInstances), Filters: []types.Filter{
		cloud.Filter("tag:"+kind.NodeGroupClusterTag, cluster), cloud.Filter("instance-state-name", "running"),
	}}
	groups, err := instancesAs(ctx, c, in, func(x types.Instance) string { return cloud.FromEC2(x.Tags)["eks:nodegroup-name"] })
	n := map[string]int{}
	for _, name := range groups {
		n[name]++
	}
	return n, err
}

// NodesOf lists the machines with the tag that the nodes of a Kubernetes cluster have, whoever has launched them.
func NodesOf(ctx context.Context, c *cloud.Clients, kubernetes string) ([]*InstanceState, error) {
	return describeInstances(ctx, c, []types.Filter{cloud.Filter("tag-key", cloud.CloudProviderTagPrefix+kubernetes), NotTerminating()})
}

// TerminatedInstances lists the machines of the cluster that are being terminated, and those that were
// terminated within about an hour, which is how long AWS shows them.
func TerminatedInstances(ctx context.Context, c *cloud.Clients) ([]*InstanceState, error) {
	return describeInstances(ctx, c, c.OwnedFilters(cloud.Filter("instance-state-name", "shutting-down", "terminated")))
}

func (l *Inventory) add(s *InstanceState) {
	l.List, l.ByID[s.ID] = append(l.List, s), s
	if id := s.Tags[cloud.ResourceTag]; id != "" {
		l.byResource[id] = append(l.byResource[id], s)
	}
	l.byName[s.Tags["Name"]] = append(l.byName[s.Tags["Name"]], s)
}

// Instances lists the machines of InstanceInventory.
func Instances(ctx context.Context, c *cloud.Clients) ([]InstanceState, error) {
	all, err := InstanceInventory(ctx, c)
	if err != nil {
		return nil, err
	}
	return slices.Clone(all.values), nil
}

// instancesOf lists the machines of InstanceInventory, and those that a controller in the
// cluster, such as Karpenter, has launched.
func instancesOf(ctx context.Context, c *cloud.Clients, of kind.Owner) ([]InstanceState, error) {
	all, err := InstanceInventory(ctx, c)
	if err != nil {
		return nil, err
	}
	if of.Kubernetes == "" {
		return all.values, nil
	}
	launched, err := cloud.Remember(ctx, c, "instances launched in "+of.Kubernetes, func(ctx context.Context) (out []InstanceState, err error) {
		found, err := describeInstances(ctx, c, []types.Filter{
			cloud.Filter("tag:"+of.Tag(), cloud.Owned), NotTerminated(),
		})
		for _, s := range found {
			if of.Created(s.Tags) && !s.Managed && s.Tags[GroupTag] == "" && s.Tags[kind.NodeGroupClusterTag] == "" {
				out = append(out, *s)
			}
		}
		return out, err
	})
	return append(slices.Clip(all.values), launched...), err
}

// GroupTag is the tag that EC2 Auto Scaling sets on instances; the value is the name of
// the group.
const GroupTag = "aws:autoscaling:groupName"

// instanceState returns a machine as DescribeInstances returns it.
func instanceState(x types.Instance) *InstanceState {
	s := &InstanceState{
		Object: identity.Object{ID: aws.ToString(x.InstanceId), Tags: cloud.FromEC2(x.Tags)},
		Type:   string(x.InstanceType),
		Image:  aws.ToString(x.ImageId),
		Subnet: aws.ToString(
			x.SubnetId,
		),
		VPC:       aws.ToString(x.VpcId),
		Key:       aws.ToString(x.KeyName),
		PrivateIP: aws.ToString(x.PrivateIpAddress),
		PublicIP:  aws.ToString(x.PublicIpAddress),
		PrivateDNS: aws.ToString(
			x.PrivateDnsName,
		),
		IPv6:       aws.ToString(x.Ipv6Address),
		LaunchedAt: launchedAt(x),
		Spot:       x.InstanceLifecycle == types.InstanceLifecycleTypeSpot,
		Block:      x.InstanceLifecycle == types.InstanceLifecycleTypeCapacityBlock,
		Managed:    x.Operator != nil && aws.ToBool(x.Operator.Managed),
	}
	s.InstanceStore = x.RootDeviceType == types.DeviceTypeInstanceStore
	if x.State != nil {
		s.Status = string(x.State.Name)
		s.Stopped = x.State.Name == types.InstanceStateNameStopped || x.State.Name == types.InstanceStateNameStopping
	}
	if x.Placement != nil {
		s.Zone, s.Tenancy = aws.ToString(x.Placement.AvailabilityZone), string(x.Placement.Tenancy)
	}
	if x.IamInstanceProfile != nil {
		s.Profile = cloud.LastPart(aws.ToString(x.IamInstanceProfile.Arn))
	}
	slices.SortStableFunc(x.NetworkInterfaces, func(a, b types.InstanceNetworkInterface) int { return int(deviceIndex(a) - deviceIndex(b)) })
	groups := x.SecurityGroups
	if len(x.NetworkInterfaces) > 0 {
		groups = x.NetworkInterfaces[0].Groups // SecurityGroups of the instance are those of its first interface
	}
	for _, g := range groups {
		s.Groups = append(s.Groups, aws.ToString(g.GroupId))
	}
	for _, n := range x.NetworkInterfaces {
		s.Interfaces = append(s.Interfaces, aws.ToString(n.NetworkInterfaceId))
	}
	for _, d := range x.BlockDeviceMappings {
		if d.Ebs != nil {
			s.Volumes = append(s.Volumes, aws.ToString(d.Ebs.VolumeId))
			if aws.ToBool(d.Ebs.DeleteOnTermination) {
				s.OwnVolumes = append(s.OwnVolumes, aws.ToString(d.Ebs.VolumeId))
			}
		}
	}
	if m := x.MetadataOptions; m != nil {
		s.Metadata = Metadata{
			string(m.HttpEndpoint),
			cmp.Or(string(m.HttpProtocolIpv6), "disabled"),
			string(m.HttpTokens),
			cmp.Or(string(m.InstanceMetadataTags), "disabled"),
			aws.ToInt32(m.HttpPutResponseHopLimit),
		}
	}
	return s
}

// launchedAt returns when a machine was launched. LaunchTime changes when a stopped
// instance starts again; the attach time of its first network interface does not.
func launchedAt(x types.Instance) time.Time {
	at := aws.ToTime(x.LaunchTime)
	for _, n := range x.NetworkInterfaces {
		if n.Attachment != nil && n.Attachment.AttachTime != nil && n.Attachment.AttachTime.Before(at) {
			at = *n.Attachment.AttachTime
		}
	}
	return at
}

func deviceIndex(n types.InstanceNetworkInterface) int32 {
	if n.Attachment == nil {
		return 0
	}
	return aws.ToInt32(n.Attachment.DeviceIndex)
}

func existingInstances(ctx context.Context, c *cloud.Clients, tagged types.Filter) ([]string, error) {
	in := &ec2.DescribeInstancesInput{Filters: []types.Filter{
		tagged, NotTerminated(),
	}}
	return instancesAs(ctx, c, in, func(x types.Instance) string { return aws.ToString(x.InstanceId) })
}
