package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbv2types "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// insider creates the AWS resources of controllers in a cluster, with its own clients.
type insider struct {
	t       *testing.T
	a       *awssim.AWS
	m       *manifest.Cluster
	ec2     *ec2.Client
	classic *elb.Client
	elb     *elbv2.Client

	vpc, subnet, zone string
	groups            []string // of the cluster, or of an existing VPC
	machine           string   // "" if there is none
	tags              map[string]string
}

// insiderOf reads the resources of an existing cluster.
func insiderOf(t *testing.T, a *awssim.AWS, m *manifest.Cluster) *insider {
	t.Helper()
	x := &insider{
		t: t, a: a, m: m, ec2: ec2.NewFromConfig(a.Config()), classic: elb.NewFromConfig(a.Config()), elb: elbv2.NewFromConfig(a.Config()),
		tags: map[string]string{"kubernetes.io/cluster/" + m.KubernetesName(): "owned"},
	}
	owner := "sigs.k8s.io/cluster-api-provider-aws/cluster/" + m.Name
	a.Edit(func(s *awssim.State) {
		x.vpc = m.Infra.Spec.NetworkSpec.VPC.ID
		for id, v := range s.EC2.VPCs {
			if v.Tags[owner] == "owned" {
				x.vpc = id
			}
		}
		for id, n := range s.EC2.Subnets {
			if n.VPC == x.vpc && n.CIDR != "" && (x.subnet == "" || id < x.subnet) {
				x.subnet, x.zone = id, n.Zone
			}
		}
		for id, g := range s.EC2.SecurityGroups {
			if g.VPC == x.vpc && (g.Tags[owner] == "owned" || g.Tags["aws:eks:cluster-name"] == m.KubernetesName()) {
				x.groups = append(x.groups, id)
			}
		}
		for id, i := range s.EC2.Instances {
			if i.Tags[owner] == "owned" && s.EC2.Subnets[i.Subnet] != nil {
				x.machine, x.zone = id, s.EC2.Subnets[i.Subnet].Zone
			}
		}
	})
	slices.Sort(x.groups)
	return x
}

// with returns the tags of the cluster and more, for EC2.
func (x *insider) with(kind types.ResourceType, more ...string) []types.TagSpecification {
	s := types.TagSpecification{ResourceType: kind}
	for k, v := range x.tags {
		s.Tags = append(s.Tags, types.Tag{Key: &k, Value: &v})
	}
	for i := 0; i < len(more); i += 2 {
		s.Tags = append(s.Tags, types.Tag{Key: &more[i], Value: &more[i+1]})
	}
	return []types.TagSpecification{s}
}

// group creates a security group that has access to all groups of the cluster.
func (x *insider) group(name string) string {
	x.t.Helper()
	g, err := x.ec2.CreateSecurityGroup(x.t.Context(), &ec2.CreateSecurityGroupInput{
		VpcId: &x.vpc, GroupName: aws.String(name + "-" + x.m.Name), Description: aws.String("made in " + x.m.Name), TagSpecifications: x.with(types.ResourceTypeSecurityGroup),
	})
	require.NoError(x.t, err)
	for _, in := range x.groups {
		_, err := x.ec2.AuthorizeSecurityGroupIngress(x.t.Context(), &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &in, IpPermissions: []types.IpPermission{{
			IpProtocol: aws.String("tcp"), FromPort: aws.Int32(30000), ToPort: aws.Int32(32767), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: g.GroupId, Description: aws.String("kubernetes.io/rule")}},
		}}})
		require.NoError(x.t, err)
	}
	return *g.GroupId
}

// service creates the resources of the cloud controller manager for a Service of type
// LoadBalancer.
func (x *insider) service(name string) {
	x.t.Helper()
	group := x.group("k8s-elb-" + name)
	in := &elb.CreateLoadBalancerInput{
		LoadBalancerName: &name, Subnets: []string{x.subnet}, SecurityGroups: []string{group}, Scheme: aws.String("internal"),
		Listeners: []elbtypes.Listener{{Protocol: aws.String("TCP"), LoadBalancerPort: 80, InstancePort: aws.Int32(30080), InstanceProtocol: aws.String("TCP")}},
		Tags:      []elbtypes.Tag{{Key: aws.String("kubernetes.io/service-name"), Value: aws.String("default/" + name)}},
	}
	for k, v := range x.tags {
		in.Tags = append(in.Tags, elbtypes.Tag{Key: &k, Value: &v})
	}
	_, err := x.classic.CreateLoadBalancer(x.t.Context(), in)
	require.NoError(x.t, err)
}

// balancer creates the resources of the AWS Load Balancer Controller: a load balancer
// with a group, a target group and a listener.
func (x *insider) balancer(name string) {
	x.t.Helper()
	var tags []elbv2types.Tag
	for k, v := range x.tags {
		tags = append(tags, elbv2types.Tag{Key: &k, Value: &v})
	}
	lb, err := x.elb.CreateLoadBalancer(x.t.Context(), &elbv2.CreateLoadBalancerInput{
		Name: &name, Type: elbv2types.LoadBalancerTypeEnumNetwork, Scheme: elbv2types.LoadBalancerSchemeEnumInternal,
		Subnets: []string{x.subnet}, SecurityGroups: []string{x.group("k8s-traffic-" + name)},
		Tags: append(tags, elbv2types.Tag{Key: aws.String("service.k8s.aws/stack"), Value: aws.String("default/" + name)}),
	})
	require.NoError(x.t, err)
	to, err := x.elb.CreateTargetGroup(x.t.Context(), &elbv2.CreateTargetGroupInput{
		Name: &name, Port: aws.Int32(30080), Protocol: elbv2types.ProtocolEnumTcp, TargetType: elbv2types.TargetTypeEnumInstance, VpcId: &x.vpc, Tags: tags,
	})
	require.NoError(x.t, err)
	_, err = x.elb.CreateListener(x.t.Context(), &elbv2.CreateListenerInput{
		LoadBalancerArn: lb.LoadBalancers[0].LoadBalancerArn, Port: aws.Int32(80), Protocol: elbv2types.ProtocolEnumTcp, Tags: tags,
		DefaultActions: []elbv2types.Action{{Type: elbv2types.ActionTypeEnumForward, TargetGroupArn: to.TargetGroups[0].TargetGroupArn}},
	})
	require.NoError(x.t, err)
}

// volume creates a volume as the EBS CSI driver does for a claim, attached to a machine
// or not.
func (x *insider) volume(claim string, attached bool) (id string) {
	x.t.Helper()
	v, err := x.ec2.CreateVolume(x.t.Context(), &ec2.CreateVolumeInput{
		AvailabilityZone: &x.zone, Size: aws.Int32(8), VolumeType: types.VolumeTypeGp3,
		TagSpecifications: x.with(types.ResourceTypeVolume, "Name", x.m.Name+"-dynamic-"+claim, "ebs.csi.aws.com/cluster", "true",
			"kubernetes.io/created-for/pvc/namespace", "default", "kubernetes.io/created-for/pvc/name", claim),
	})
	require.NoError(x.t, err)
	if attached && x.machine != "" {
		x.a.Edit(func(s *awssim.State) {
			v := s.EC2.Volumes[*v.VolumeId]
			v.Instance, v.Device = x.machine, "/dev/xvdaa"
			s.EC2.Instances[x.machine].Volumes = append(s.EC2.Instances[x.machine].Volumes, v.ID)
		})
	}
	return *v.VolumeId
}

// pods creates the network interface of pods that was never attached, in a group that
// does not belong to the cluster.
func (x *insider) pods() {
	x.t.Helper()
	_, err := x.ec2.CreateNetworkInterface(x.t.Context(), &ec2.CreateNetworkInterfaceInput{
		SubnetId: &x.subnet, Description: aws.String("aws-K8S-i-0123"),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{
			{Key: aws.String("cluster.k8s.amazonaws.com/name"), Value: aws.String(x.m.KubernetesName())},
		}}},
	})
	require.NoError(x.t, err)
}

// lives creates one resource of each type that controllers create.
func lives(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
	t.Helper()
	x := insiderOf(t, a, m)
	x.service("a" + m.Name)
	x.balancer("k8s-api-" + m.Name)
	x.tags = map[string]string{"elbv2.k8s.aws/cluster": m.KubernetesName()}
	x.balancer("k8s-web-" + m.Name)
	x.tags = map[string]string{"kubernetes.io/cluster/" + m.KubernetesName(): "owned"}
	x.volume("data-0", true)
	x.volume("data-1", false)
	if m.EKS != nil {
		x.pods()
	}
	time.Sleep(lag) // until AWS shows them
}

// Resources that controllers have created are deleted with the cluster, for every
// example.
func TestDeletionSweepsWhatTheClusterMade(t *testing.T) {
	each(t, awssim.Options{Lag: lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		mustApply(t, m, a)
		lives(t, a, m)
		mustDeleteAll(t, m, a)
		require.Equal(t, before, a.Detailed())
	})
}

// The same with only the name of the cluster.
func TestDeletionByNameSweepsWhatTheClusterMade(t *testing.T) {
	each(t, awssim.Options{Lag: lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		before := a.Detailed()
		mustApply(t, m, a)
		lives(t, a, m)
		_, err := byName(m.Name, a).Delete(t.Context(), everything)
		require.NoError(t, err)
		require.Equal(t, before, a.Detailed())
	})
}

// insideExamples are the examples for which a deletion is killed at every call.
func insideExamples() []string {
	return []string{"../../configs/quickstart.yaml", "../../configs/byo-vpc.yaml", eksSmall}
}

// A deletion of leftovers that is killed at any call is completed by the next, by
// manifest or by name.
func TestSweepMayDie(t *testing.T) {
	for _, file := range sample(insideExamples()) {
		m := loadQuick(t, file)
		for _, fault := range []awssim.Fault{awssim.KillAfter, awssim.Denied} {
			t.Run(name(file)+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for n, over := 1, false; !over; n += stride(2) {
					synctest.Test(t, func(t *testing.T) {
						a := prepared(t, file, m)
						before := a.Detailed()
						mustApply(t, m, a)
						lives(t, a, m)
						p := a.Process()
						err := spoilt(t, p, n, fault, func(ctx context.Context) error {
							_, err := open(m, p).Delete(ctx, everything)
							return err
						})
						over = err == nil && p.Calls() < n
						if n%4 == 1 {
							mustDeleteAll(t, m, a)
						} else {
							_, err := byName(m.Name, a).Delete(t.Context(), everything)
							require.NoError(t, err)
						}
						require.Equal(t, before, a.Detailed(), "call %d", n)
					})
				}
			})
		}
	}
}

// Volumes to keep are reported, and do not count as left behind.
func TestVolumesAreKept(t *testing.T) {
	for _, file := range []string{threeZones, eksSmall} {
		t.Run(name(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := loadQuick(t, file)
				a := prepared(t, file, m)
				before := a.Inventory()
				mustApply(t, m, a)
				x := insiderOf(t, a, m)
				x.service("web")
				kept := []string{x.volume("data-0", true), x.volume("data-1", false)}
				time.Sleep(lag)
				keeps := func(p plan.Plan) (out []string) {
					for _, s := range p.Steps {
						if s.Action == plan.Keep {
							out = append(out, s.CloudID)
							require.Contains(t, s.Origin, "made in the cluster for default/data-")
						}
					}
					return out
				}
				p, err := open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{Volumes: cluster.KeepVolumes})
				require.NoError(t, err)
				require.ElementsMatch(t, kept, keeps(p))
				require.Contains(t, stepOf(t, p, "classic-load-balancer/web").Origin, "default/web")
				res, err := open(m, a.Process()).Delete(t.Context(), cluster.Options{Volumes: cluster.KeepVolumes})
				require.NoError(t, err)
				require.ElementsMatch(t, kept, keeps(res.Plan))
				require.Equal(t, append(slices.Clone(before), "Volume "+m.Name+"-dynamic-data-0", "Volume "+m.Name+"-dynamic-data-1"), a.Inventory())
				mustDeleteAll(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// Shared resources stay, and so do those of others, even with the same names.
func TestSweepLeavesWhatIsNotOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := "../../configs/byo-vpc.yaml"
		m := loadQuick(t, file)
		a := prepared(t, file, m)
		mustApply(t, m, a)
		x := insiderOf(t, a, m)
		for i, tags := range []map[string]string{
			{"kubernetes.io/cluster/" + m.Name: "shared"},
			{"kubernetes.io/cluster/" + m.Name + "-2": "owned"},
			{"kubernetes.io/cluster/" + m.Name: "owned", "sigs.k8s.io/cluster-api-provider-aws/cluster/other": "owned"},
			{"elbv2.k8s.aws/cluster": m.Name + "-2"},
			{"team": "storage"},
		} {
			x.tags = tags
			x.groups = nil // rules in the cluster's groups prevent their deletion
			x.service(fmt.Sprint("a", i))
			x.balancer(fmt.Sprint("k8s-", i))
			x.volume(fmt.Sprint("data-", i), false)
		}
		time.Sleep(lag)
		standing := func() (out []string) {
			for _, l := range a.Detailed() {
				if strings.Contains(l, "k8s-") || strings.Contains(l, "dynamic-") || strings.Contains(l, "LoadBalancer a") {
					out = append(out, l)
				}
			}
			return out
		}
		there := standing()
		require.NotEmpty(t, there)
		mustDelete(t, m, a)
		require.Equal(t, there, standing())
	})
}

// The deletion of one of two clusters in a VPC deletes no resource of the other.
func TestTwoClustersInAVPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := "../../configs/byo-vpc.yaml"
		m, other := loadQuick(t, file), rewritten(t, file, "byo-vpc", "other")
		quick(other)
		a := prepared(t, file, m)
		before := a.Inventory()
		mustApply(t, m, a)
		mustApply(t, other, a)
		lives(t, a, m)
		lives(t, a, other)
		of := func(m *manifest.Cluster) (out []string) {
			for _, l := range a.Inventory() {
				if strings.Contains(l, m.Name) {
					out = append(out, l)
				}
			}
			return out
		}
		theirs := of(other)
		require.Greater(t, len(theirs), 8)
		mustDeleteAll(t, m, a)
		require.Empty(t, of(m))
		require.Equal(t, theirs, of(other))
		_, err := byName(other.Name, a).Delete(t.Context(), everything)
		require.NoError(t, err)
		require.Equal(t, before, a.Inventory())
	})
}

// If the cluster has no resources, resources of another cluster with that name in its
// tags are not deleted.
func TestLeftoversOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := "../../configs/byo-vpc.yaml"
		m := loadQuick(t, file)
		a := prepared(t, file, m)
		x := insiderOf(t, a, m)
		x.groups = nil
		x.service("web")
		x.volume("data", false)
		_, err := x.ec2.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{x.subnet}, Tags: []types.Tag{
			{Key: aws.String("kubernetes.io/cluster/" + m.Name), Value: aws.String("owned")},
		}})
		require.NoError(t, err)
		time.Sleep(lag)
		before := a.Detailed()
		warned := ""
		for _, c := range []*reconcile.Cluster{
			reconcile.OpenModel(m, cluster.Target{Config: a.Config(), Owner: "test", Warn: func(s string) { warned = s }}), byName(m.Name, a),
		} {
			res, err := c.Delete(t.Context(), cluster.Options{})
			require.NoError(t, err)
			require.True(t, res.Plan.Empty(), "%v", res.Plan)
		}
		require.Contains(t, warned, "another cluster uses that name")
		require.Equal(t, before, a.Detailed())
	})
}
