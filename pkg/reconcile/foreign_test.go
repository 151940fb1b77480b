package reconcile_test

import (
	"context"
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
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// foreigners create resources of other owners in a cluster, and say what the deletion of
// the cluster tells about each.
var foreigners = map[string]struct {
	create func(*insider)
	told   []string
}{
	"an instance of another cluster": {
		func(x *insider) {
			x.tags = map[string]string{"sigs.k8s.io/cluster-api-provider-aws/cluster/b": "owned"}
			x.instance()
		},
		[]string{"instance i-", "(cluster b)", "aws ec2 describe-instances --instance-ids i-"},
	},
	"an instance in a security group of the cluster": {
		func(x *insider) {
			x.tags = map[string]string{"Name": "jump host"}
			x.instance(x.groups[0])
		},
		[]string{"instance i-", "(jump host)"},
	},
	"the load balancer of a Kubernetes cluster": {
		func(x *insider) {
			x.tags = map[string]string{"kubernetes.io/cluster/b": "owned"}
			x.balancer("k8s-b")
		},
		[]string{"load-balancer arn:", "loadbalancer/net/k8s-b/", "security-group sg-", "(Kubernetes cluster b)"},
	},
	"a classic load balancer": {
		func(x *insider) {
			x.tags = map[string]string{"Name": "web"}
			x.service("a0123")
		},
		[]string{"classic-load-balancer a0123 in", "(web)", "security-group sg-"},
	},
	"a network interface that nobody uses": {
		func(x *insider) { x.networkInterface("for the next database", "Name", "database") },
		[]string{"network-interface eni-", "(database)"},
	},
	"a network interface that nobody uses, in another group": {
		func(x *insider) {
			x.tags = map[string]string{"team": "data"}
			x.groups = []string{x.group("database")}
			x.networkInterface("for the next database")
		},
		[]string{"network-interface eni-", "(for the next database)", "security-group sg-"},
	},
	"a subnet": {
		func(x *insider) {
			_, err := x.ec2.AssociateVpcCidrBlock(x.t.Context(), &ec2.AssociateVpcCidrBlockInput{VpcId: &x.vpc, CidrBlock: aws.String("100.64.0.0/16")})
			require.NoError(x.t, err)
			time.Sleep(time.Minute)
			_, err = x.ec2.CreateSubnet(x.t.Context(), &ec2.CreateSubnetInput{VpcId: &x.vpc, CidrBlock: aws.String("100.64.1.0/24"), AvailabilityZone: &x.zone})
			require.NoError(x.t, err)
		},
		[]string{"subnet subnet-"},
	},
	"a route table": {
		func(x *insider) {
			_, err := x.ec2.CreateRouteTable(x.t.Context(), &ec2.CreateRouteTableInput{VpcId: &x.vpc})
			require.NoError(x.t, err)
		},
		[]string{"route-table rtb-"},
	},
	"a NAT gateway": {
		func(x *insider) {
			x.tags = map[string]string{"Name": "shared"}
			ip, err := x.ec2.AllocateAddress(x.t.Context(), &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc})
			require.NoError(x.t, err)
			_, err = x.ec2.CreateNatGateway(x.t.Context(), &ec2.CreateNatGatewayInput{
				SubnetId: &x.subnet, AllocationId: ip.AllocationId, TagSpecifications: x.with(types.ResourceTypeNatgateway),
			})
			require.NoError(x.t, err)
		},
		[]string{"nat-gateway nat-", "(shared)"},
	},
}

// instance launches an instance in the cluster's subnet.
func (x *insider) instance(groups ...string) {
	x.t.Helper()
	image := ""
	x.a.Edit(func(s *awssim.State) { image = s.EC2.Instances[x.machine].Image })
	_, err := x.ec2.RunInstances(x.t.Context(), &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceTypeT3Micro, ImageId: &image, SubnetId: &x.subnet,
		SecurityGroupIds: groups, TagSpecifications: x.with(types.ResourceTypeInstance),
	})
	require.NoError(x.t, err)
}

// networkInterface creates a network interface in a security group of the cluster.
func (x *insider) networkInterface(description string, tags ...string) (id string) {
	x.t.Helper()
	in := &ec2.CreateNetworkInterfaceInput{SubnetId: &x.subnet, Groups: x.groups[:1], Description: &description}
	if len(tags) > 0 {
		x.tags = nil
		in.TagSpecifications = x.with(types.ResourceTypeNetworkInterface, tags...)
	}
	out, err := x.ec2.CreateNetworkInterface(x.t.Context(), in)
	require.NoError(x.t, err)
	return *out.NetworkInterface.NetworkInterfaceId
}

// withoutLock lists the resources of the account, except for the record of the lock, which
// counts the runs.
func withoutLock(a *awssim.AWS) []string {
	return slices.DeleteFunc(a.Detailed(), func(line string) bool { return strings.Contains(line, "/lock/") })
}

// A deletion that cannot be completed because of somebody else's resource is refused
// before its first write, and says whose it is.
func TestForeignResourcesRefuseADeletion(t *testing.T) {
	for what, f := range foreigners {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := quick(load(t, threeZones, nil))
				a := account(m, lag)
				mustApply(t, m, a)
				f.create(insiderOf(t, a, m))
				time.Sleep(time.Minute)
				before := withoutLock(a)
				for _, refuse := range []func() error{
					func() error { _, err := open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{}); return err },
					func() error { _, err := open(m, a.Process()).Delete(t.Context(), cluster.Options{}); return err },
					func() error { _, err := byName(m.Name, a).Delete(t.Context(), cluster.Options{}); return err },
				} {
					err := refuse()
					require.ErrorAs(t, err, new(*plan.RefusedError))
					require.ErrorAs(t, err, new(*plan.ForeignError))
					for _, text := range f.told {
						require.ErrorContains(t, err, text)
					}
				}
				require.Equal(t, before, withoutLock(a))
			})
		})
	}
}

// In an existing VPC, only what uses the security groups of the cluster prevents its
// deletion.
func TestForeignResourcesInAnExistingVPC(t *testing.T) {
	file := "../../configs/byo-vpc.yaml"
	m := loadQuick(t, file)
	synctest.Test(t, func(t *testing.T) {
		a := prepared(t, file, m)
		mustApply(t, m, a)
		x := insiderOf(t, a, m)
		x.tags, x.groups = map[string]string{"Name": "database"}, x.groups[:1]
		x.instance(x.groups...)
		x.group("refers")
		time.Sleep(lag)
		_, err := open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "(database)")
		var foreign *plan.ForeignError
		require.ErrorAs(t, err, &foreign)
		require.Len(t, foreign.Resources, 1, "%v", foreign)
	})
}

// A resource that appears during a deletion blocks it. The deletion ends with what is
// left, and whose it is.
func TestForeignResourceAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, threeZones, nil))
		a := account(m, lag)
		mustApply(t, m, a)
		x := insiderOf(t, a, m)
		x.groups, x.tags = nil, map[string]string{"Name": "late"}
		p, made := a.Process(), false
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "TerminateInstances" && !made {
				made = true
				x.instance()
			}
			return awssim.None
		}
		_, err := open(m, p).Delete(context.Background(), cluster.Options{})
		var left *plan.LeftoverError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Left, 1)
		require.Contains(t, left.Left[0], "i-")
		require.ErrorContains(t, err, "aws ec2 describe-instances --instance-ids "+left.Left[0])
	})
}

// A free network interface in a group of the cluster is not deleted if its tags name another
// owner.
func TestForeignInterfaceStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, threeZones, nil))
		a := account(m, lag)
		mustApply(t, m, a)
		x := insiderOf(t, a, m)
		p := a.Process()
		var eni string
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "TerminateInstances" && eni == "" {
				eni = x.networkInterface("for the next database", "Name", "database")
			}
			return awssim.None
		}
		_, err := open(m, p).Delete(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.LeftoverError))
		a.Edit(func(s *awssim.State) { require.NotNil(t, s.EC2.Interfaces[eni]) })
	})
}

// Interfaces without tags that nothing uses, in the groups of the cluster, are deleted with it,
// as CAPA does: also those that a network load balancer leaves behind for an hour.
func TestDetachedInterfacesAreDeleted(t *testing.T) {
	for _, file := range []string{threeZones, "../../configs/byo-vpc.yaml"} {
		t.Run(name(file), func(t *testing.T) {
			m := loadQuick(t, file)
			synctest.Test(t, func(t *testing.T) {
				a := prepared(t, file, m)
				before := a.Inventory()
				mustApply(t, m, a)
				a.Edit(func(s *awssim.State) { s.ELB.Detaches = true })
				x := insiderOf(t, a, m)
				x.networkInterface("left by somebody")
				time.Sleep(lag)
				began := time.Now()
				mustDelete(t, m, a)
				require.Less(t, time.Since(began), 5*time.Minute)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// Somebody else's instance in the security group of an EKS cluster, in an existing VPC, is
// found before the deletion.
func TestForeignInstanceInTheGroupOfEKS(t *testing.T) {
	file := "../../configs/eks-byo-vpc.yaml"
	m := loadQuick(t, file)
	synctest.Test(t, func(t *testing.T) {
		a := prepared(t, file, m)
		mustApply(t, m, a)
		x := insiderOf(t, a, m)
		a.Edit(func(s *awssim.State) { x.groups = []string{plane(s).Group} })
		image := ""
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				image = i.Image
			}
		})
		x.tags = map[string]string{"Name": "database"}
		out, err := x.ec2.RunInstances(t.Context(), &ec2.RunInstancesInput{
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceTypeT3Micro, ImageId: &image, SubnetId: &x.subnet,
			SecurityGroupIds: x.groups, TagSpecifications: x.with(types.ResourceTypeInstance),
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		before := withoutLock(a)
		for _, theCluster := range []*reconcile.Cluster{open(m, a.Process()), byName(m.Name, a)} {
			_, err = theCluster.Delete(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, *out.Instances[0].InstanceId)
			require.ErrorContains(t, err, "(database)")
		}
		require.Equal(t, before, withoutLock(a))
	})
}

// A deletion that waits for something that only the user can end says so after some minutes.
func TestStuckDeletionEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, threeZones, nil))
		a := account(m, lag)
		mustApply(t, m, a)
		x := insiderOf(t, a, m)
		x.tags = map[string]string{"Name": "late"}
		p, made := a.Process(), false
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "TerminateInstances" && !made {
				made = true
				x.instance(x.groups[0])
			}
			return awssim.None
		}
		began := time.Now()
		_, err := open(m, p).Delete(context.Background(), cluster.Options{})
		var left *plan.LeftoverError
		require.ErrorAs(t, err, &left)
		require.ErrorContains(t, err, "(late)")
		require.Less(t, time.Since(began), 6*time.Minute)
	})
}

// A VPC that has nothing of the cluster but its owned tag is kept, also when the cluster is
// gone.
func TestTaggedVPCIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, threeZones, nil))
		a := account(m, lag)
		mustApply(t, m, a)
		out, err := ec2.NewFromConfig(a.Config()).CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.9.0.0/16"), TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeVpc, Tags: []types.Tag{
				{Key: aws.String("sigs.k8s.io/cluster-api-provider-aws/cluster/" + m.Name), Value: aws.String("owned")}, {Key: aws.String("Name"), Value: aws.String("prod")},
			},
		}}})
		require.NoError(t, err)
		time.Sleep(lag)
		for range 2 {
			res, err := byName(m.Name, a).Delete(t.Context(), cluster.Options{})
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(res.Plan.Steps, func(s plan.Step) bool { return s.Action == plan.Keep && s.CloudID == *out.Vpc.VpcId }))
			a.Edit(func(s *awssim.State) { require.Contains(t, s.EC2.VPCs, *out.Vpc.VpcId) })
		}
		_, err = byName(m.Name, a).Delete(t.Context(), cluster.Options{VPCs: []string{*out.Vpc.VpcId}})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) { require.NotContains(t, s.EC2.VPCs, *out.Vpc.VpcId) })
	})
}
