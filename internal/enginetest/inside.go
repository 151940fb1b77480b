package enginetest

import (
	"slices"
	"testing"
	"time"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbv2types "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Insider creates the AWS resources of controllers in a cluster, with its own clients.
type Insider struct {
	T       *testing.T
	A       *awssim.AWS
	M       *manifest.Cluster
	EC2     *ec2.Client
	Classic *elb.Client
	ELB     *elbv2.Client

	VPC, Subnet, Zone string
	Groups            []string // of the cluster, or of an existing VPC
	Machine           string   // "" if there is none
	Tags              map[string]string
}

// InsiderOf reads the resources of an existing cluster.
func InsiderOf(t *testing.T, a *awssim.AWS, m *manifest.Cluster) *Insider {
	t.Helper()
	x := &Insider{
		T: t, A: a, M: m, EC2: ec2.NewFromConfig(a.Config()), Classic: elb.NewFromConfig(a.Config()), ELB: elbv2.NewFromConfig(a.Config()),
		Tags: map[string]string{"kubernetes.io/cluster/" + m.KubernetesName(): "owned"},
	}
	owner := "sigs.k8s.io/cluster-api-provider-aws/cluster/" + m.Name
	a.Edit(func(s *awssim.State) {
		x.VPC = m.Infra.Spec.NetworkSpec.VPC.ID
		for id, v := range s.EC2.VPCs {
			if v.Tags[owner] == "owned" {
				x.VPC = id
			}
		}
		for id, n := range s.EC2.Subnets {
			if n.VPC == x.VPC && n.CIDR != "" && (x.Subnet == "" || id < x.Subnet) {
				x.Subnet, x.Zone = id, n.Zone
			}
		}
		for id, g := range s.EC2.SecurityGroups {
			if g.VPC == x.VPC && (g.Tags[owner] == "owned" || g.Tags["aws:eks:cluster-name"] == m.KubernetesName()) {
				x.Groups = append(x.Groups, id)
			}
		}
		for id, i := range s.EC2.Instances {
			if i.Tags[owner] == "owned" && s.EC2.Subnets[i.Subnet] != nil {
				x.Machine, x.Zone = id, s.EC2.Subnets[i.Subnet].Zone
			}
		}
	})
	slices.Sort(x.Groups)
	return x
}

// With returns the tags of the cluster and more, for EC2.
func (x *Insider) With(kind types.ResourceType, more ...string) []types.TagSpecification {
	s := types.TagSpecification{ResourceType: kind}
	for k, v := range x.Tags {
		s.Tags = append(s.Tags, types.Tag{Key: &k, Value: &v})
	}
	for i := 0; i < len(more); i += 2 {
		s.Tags = append(s.Tags, types.Tag{Key: &more[i], Value: &more[i+1]})
	}
	return []types.TagSpecification{s}
}

// Group creates a security group that has access to all groups of the cluster.
func (x *Insider) Group(name string) string {
	x.T.Helper()
	g, err := x.EC2.CreateSecurityGroup(x.T.Context(), &ec2.CreateSecurityGroupInput{
		VpcId:             &x.VPC,
		GroupName:         aws.String(name + "-" + x.M.Name),
		Description:       aws.String("made in " + x.M.Name),
		TagSpecifications: x.With(types.ResourceTypeSecurityGroup),
	})
	require.NoError(x.T, err)
	for _, in := range x.Groups {
		_, err := x.EC2.AuthorizeSecurityGroupIngress(x.T.Context(), &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &in, IpPermissions: []types.IpPermission{
			{
				IpProtocol: aws.String(
					"tcp",
				),
				FromPort:         aws.Int32(30000),
				ToPort:           aws.Int32(32767),
				UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: g.GroupId, Description: aws.String("kubernetes.io/rule")}},
			},
		}})
		require.NoError(x.T, err)
	}
	return *g.GroupId
}

// Service creates the resources of the cloud controller manager for a Service of type
// LoadBalancer.
func (x *Insider) Service(name string) {
	x.T.Helper()
	group := x.Group("k8s-elb-" + name)
	in := &elb.CreateLoadBalancerInput{
		LoadBalancerName: &name, Subnets: []string{x.Subnet}, SecurityGroups: []string{group}, Scheme: aws.String("internal"),
		Listeners: []elbtypes.Listener{{Protocol: aws.String("TCP"), LoadBalancerPort: 80, InstancePort: aws.Int32(30080), InstanceProtocol: aws.String("TCP")}},
		Tags:      []elbtypes.Tag{{Key: aws.String("kubernetes.io/service-name"), Value: aws.String("default/" + name)}},
	}
	for k, v := range x.Tags {
		in.Tags = append(in.Tags, elbtypes.Tag{Key: &k, Value: &v})
	}
	_, err := x.Classic.CreateLoadBalancer(x.T.Context(), in)
	require.NoError(x.T, err)
}

// Balancer creates the resources of the AWS Load Balancer Controller: a load balancer
// with a group, a target group and a listener.
func (x *Insider) Balancer(name string) {
	x.T.Helper()
	var tags []elbv2types.Tag
	for k, v := range x.Tags {
		tags = append(tags, elbv2types.Tag{Key: &k, Value: &v})
	}
	lb, err := x.ELB.CreateLoadBalancer(x.T.Context(), &elbv2.CreateLoadBalancerInput{
		Name: &name, Type: elbv2types.LoadBalancerTypeEnumNetwork, Scheme: elbv2types.LoadBalancerSchemeEnumInternal,
		Subnets: []string{x.Subnet}, SecurityGroups: []string{x.Group("k8s-traffic-" + name)},
		Tags: append(tags, elbv2types.Tag{Key: aws.String("service.k8s.aws/stack"), Value: aws.String("default/" + name)}),
	})
	require.NoError(x.T, err)
	to, err := x.ELB.CreateTargetGroup(x.T.Context(), &elbv2.CreateTargetGroupInput{
		Name: &name, Port: aws.Int32(30080), Protocol: elbv2types.ProtocolEnumTcp, TargetType: elbv2types.TargetTypeEnumInstance, VpcId: &x.VPC, Tags: tags,
	})
	require.NoError(x.T, err)
	_, err = x.ELB.CreateListener(x.T.Context(), &elbv2.CreateListenerInput{
		LoadBalancerArn: lb.LoadBalancers[0].LoadBalancerArn, Port: aws.Int32(80), Protocol: elbv2types.ProtocolEnumTcp, Tags: tags,
		DefaultActions: []elbv2types.Action{{Type: elbv2types.ActionTypeEnumForward, TargetGroupArn: to.TargetGroups[0].TargetGroupArn}},
	})
	require.NoError(x.T, err)
}

// Volume creates a volume as the EBS CSI driver does for a claim, attached to a machine
// or not.
func (x *Insider) Volume(claim string, attached bool) (id string) {
	x.T.Helper()
	v, err := x.EC2.CreateVolume(x.T.Context(), &ec2.CreateVolumeInput{
		AvailabilityZone: &x.Zone, Size: aws.Int32(8), VolumeType: types.VolumeTypeGp3,
		TagSpecifications: x.With(types.ResourceTypeVolume, "Name", x.M.Name+"-dynamic-"+claim, "ebs.csi.aws.com/cluster", "true",
			"kubernetes.io/created-for/pvc/namespace", "default", "kubernetes.io/created-for/pvc/name", claim),
	})
	require.NoError(x.T, err)
	if attached && x.Machine != "" {
		x.A.Edit(func(s *awssim.State) {
			v := s.EC2.Volumes[*v.VolumeId]
			v.Instance, v.Device = x.Machine, "/dev/xvdaa"
			s.EC2.Instances[x.Machine].Volumes = append(s.EC2.Instances[x.Machine].Volumes, v.ID)
		})
	}
	return *v.VolumeId
}

// Pods creates the network interface of pods that was never attached, in a group that
// does not belong to the cluster.
func (x *Insider) Pods() {
	x.T.Helper()
	_, err := x.EC2.CreateNetworkInterface(x.T.Context(), &ec2.CreateNetworkInterfaceInput{
		SubnetId: &x.Subnet, Description: aws.String("aws-K8S-i-0123"),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{
			{Key: aws.String("cluster.k8s.amazonaws.com/name"), Value: aws.String(x.M.KubernetesName())},
		}}},
	})
	require.NoError(x.T, err)
}

// Lives creates one resource of each type that controllers create.
func Lives(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
	t.Helper()
	x := InsiderOf(t, a, m)
	x.Service("a" + m.Name)
	x.Balancer("k8s-api-" + m.Name)
	x.Tags = map[string]string{"elbv2.k8s.aws/cluster": m.KubernetesName()}
	x.Balancer("k8s-web-" + m.Name)
	x.Tags = map[string]string{"kubernetes.io/cluster/" + m.KubernetesName(): "owned"}
	x.Volume("data-0", true)
	x.Volume("data-1", false)
	if m.EKS != nil {
		x.Pods()
	}
	time.Sleep(Lag) // until AWS shows them
}
