package teardown_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// foreigners create resources of other owners in a cluster, and say what the deletion of
// the cluster tells about each.
var foreigners = map[string]struct {
	create func(*enginetest.Insider)
	told   []string
}{
	"an instance of another cluster": {
		func(x *enginetest.Insider) {
			x.Tags = map[string]string{"sigs.k8s.io/cluster-api-provider-aws/cluster/b": "owned"}
			x.Instance()
		},
		[]string{"instance i-", "(cluster b)", "aws ec2 describe-instances --instance-ids i-"},
	},
	"an instance in a security group of the cluster": {
		func(x *enginetest.Insider) {
			x.Tags = map[string]string{"Name": "jump host"}
			x.Instance(x.Groups[0])
		},
		[]string{"instance i-", "(jump host)"},
	},
	"the load balancer of a Kubernetes cluster": {
		func(x *enginetest.Insider) {
			x.Tags = map[string]string{"kubernetes.io/cluster/b": "owned"}
			x.Balancer("k8s-b")
		},
		[]string{"load-balancer arn:", "loadbalancer/net/k8s-b/", "security-group sg-", "(Kubernetes cluster b)"},
	},
	"a classic load balancer": {
		func(x *enginetest.Insider) {
			x.Tags = map[string]string{"Name": "web"}
			x.Service("a0123")
		},
		[]string{"classic-load-balancer a0123 in", "(web)", "security-group sg-"},
	},
	"a network interface that nobody uses": {
		func(x *enginetest.Insider) { x.NetworkInterface("for the next database", "Name", "database") },
		[]string{"network-interface eni-", "(database)"},
	},
	"a network interface that nobody uses, in another group": {
		func(x *enginetest.Insider) {
			x.Tags = map[string]string{"team": "data"}
			x.Groups = []string{x.Group("database")}
			x.NetworkInterface("for the next database")
		},
		[]string{"network-interface eni-", "(for the next database)", "security-group sg-"},
	},
	"a subnet": {
		func(x *enginetest.Insider) {
			_, err := x.EC2.AssociateVpcCidrBlock(x.T.Context(), &ec2.AssociateVpcCidrBlockInput{VpcId: &x.VPC, CidrBlock: aws.String("100.64.0.0/16")})
			require.NoError(x.T, err)
			time.Sleep(time.Minute)
			_, err = x.EC2.CreateSubnet(x.T.Context(), &ec2.CreateSubnetInput{VpcId: &x.VPC, CidrBlock: aws.String("100.64.1.0/24"), AvailabilityZone: &x.Zone})
			require.NoError(x.T, err)
		},
		[]string{"subnet subnet-"},
	},
	"a route table": {
		func(x *enginetest.Insider) {
			_, err := x.EC2.CreateRouteTable(x.T.Context(), &ec2.CreateRouteTableInput{VpcId: &x.VPC})
			require.NoError(x.T, err)
		},
		[]string{"route-table rtb-"},
	},
	"a subnet for the load balancers of Services": {
		func(x *enginetest.Insider) {
			x.Tags = map[string]string{"kubernetes.io/cluster/three-zones": "owned", "kubernetes.io/role/elb": "1"}
			_, err := x.EC2.AssociateVpcCidrBlock(x.T.Context(), &ec2.AssociateVpcCidrBlockInput{VpcId: &x.VPC, CidrBlock: aws.String("100.64.0.0/16")})
			require.NoError(x.T, err)
			time.Sleep(time.Minute)
			_, err = x.EC2.CreateSubnet(x.T.Context(), &ec2.CreateSubnetInput{
				VpcId: &x.VPC, CidrBlock: aws.String("100.64.1.0/24"), AvailabilityZone: &x.Zone, TagSpecifications: x.With(types.ResourceTypeSubnet),
			})
			require.NoError(x.T, err)
		},
		[]string{"subnet subnet-", "(somebody has given it the tag kubernetes.io/cluster/three-zones, for which controllers look)"},
	},
	"a route table with the tag of the cluster": {
		func(x *enginetest.Insider) {
			x.Tags = map[string]string{"kubernetes.io/cluster/three-zones": "owned"}
			_, err := x.EC2.CreateRouteTable(x.T.Context(), &ec2.CreateRouteTableInput{VpcId: &x.VPC, TagSpecifications: x.With(types.ResourceTypeRouteTable)})
			require.NoError(x.T, err)
		},
		[]string{"route-table rtb-", "(somebody has given it the tag"},
	},
	"an endpoint with the tag of the cluster": {
		func(x *enginetest.Insider) {
			x.Tags = map[string]string{"kubernetes.io/cluster/three-zones": "owned"}
			_, err := x.EC2.CreateVpcEndpoint(x.T.Context(), &ec2.CreateVpcEndpointInput{
				VpcId: &x.VPC, ServiceName: aws.String("com.amazonaws.us-east-1.s3"), VpcEndpointType: types.VpcEndpointTypeGateway,
				TagSpecifications: x.With(types.ResourceTypeVpcEndpoint),
			})
			require.NoError(x.T, err)
		},
		[]string{"vpc-endpoint vpce-", "(somebody has given it the tag"},
	},
	"a subnet of the cluster without the tag of Cluster API Provider AWS": {
		func(x *enginetest.Insider) {
			_, err := x.EC2.DeleteTags(x.T.Context(), &ec2.DeleteTagsInput{
				Resources: []string{x.Subnet}, Tags: []types.Tag{{Key: aws.String("sigs.k8s.io/cluster-api-provider-aws/cluster/three-zones")}},
			})
			require.NoError(x.T, err)
		},
		[]string{"subnet subnet-", "if it is the cluster's, restore its tags: aws ec2 create-tags --resources subnet-"},
	},
	"a NAT gateway": {
		func(x *enginetest.Insider) {
			x.Tags = map[string]string{"Name": "shared"}
			ip, err := x.EC2.AllocateAddress(x.T.Context(), &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc})
			require.NoError(x.T, err)
			_, err = x.EC2.CreateNatGateway(x.T.Context(), &ec2.CreateNatGatewayInput{
				SubnetId: &x.Subnet, AllocationId: ip.AllocationId, TagSpecifications: x.With(types.ResourceTypeNatgateway),
			})
			require.NoError(x.T, err)
		},
		[]string{"nat-gateway nat-", "(shared)"},
	},
}

// A deletion that cannot be completed because of somebody else's resource is refused
// before its first write, and says whose it is.
func TestForeignResourcesRefuseADeletion(t *testing.T) {
	for what, f := range foreigners {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.MustApply(t, m, a)
				f.create(enginetest.InsiderOf(t, a, m))
				time.Sleep(time.Minute)
				before := enginetest.WithoutLock(a)
				for _, refuse := range []func() error{
					func() error {
						_, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
						return err
					},
					func() error {
						_, err := enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{})
						return err
					},
					func() error {
						_, err := enginetest.ByName(m.Name, a).Delete(t.Context(), cluster.Options{})
						return err
					},
				} {
					err := refuse()
					require.ErrorAs(t, err, new(*plan.RefusedError))
					require.ErrorAs(t, err, new(*plan.ForeignError))
					for _, text := range f.told {
						require.ErrorContains(t, err, text)
					}
				}
				require.Equal(t, before, enginetest.WithoutLock(a))
			})
		})
	}
}

// The command that restores the tags of a resource names it only if it is the one that is missing: of two subnets without tags, it is not known which
// is which.
func TestCommandThatRestoresTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.Quickstart)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		untag := func(resource string) {
			a.Edit(func(s *awssim.State) {
				for _, x := range s.EC2.Subnets {
					if x.Tags["clusterawsadm/resource"] == resource {
						clear(x.Tags)
					}
				}
			})
			time.Sleep(2 * enginetest.Lag)
		}
		const names = "Key=clusterawsadm/resource,Value=subnet/"
		untag("subnet/private/us-east-1a")
		_, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, names+"private/us-east-1a")
		untag("subnet/public/us-east-1a")
		_, err = enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "restore its tags")
		require.NotContains(t, err.Error(), names)
	})
}

// In an existing VPC, only what uses the security groups of the cluster prevents its
// deletion.
func TestForeignResourcesInAnExistingVPC(t *testing.T) {
	file := "byo-vpc.yaml"
	m := enginetest.LoadQuick(t, file)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		x := enginetest.InsiderOf(t, a, m)
		x.Tags, x.Groups = map[string]string{"Name": "database"}, x.Groups[:1]
		x.Instance(x.Groups...)
		x.Group("refers")
		time.Sleep(enginetest.Lag)
		_, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
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
		m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		x := enginetest.InsiderOf(t, a, m)
		x.Groups, x.Tags = nil, map[string]string{"Name": "late"}
		p, made := a.Process(), false
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "TerminateInstances" && !made {
				made = true
				x.Instance()
			}
			return awssim.None
		}
		_, err := enginetest.Open(m, p).Delete(context.Background(), cluster.Options{})
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
		m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		x := enginetest.InsiderOf(t, a, m)
		p := a.Process()
		var eni string
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "TerminateInstances" && eni == "" {
				eni = x.NetworkInterface("for the next database", "Name", "database")
			}
			return awssim.None
		}
		_, err := enginetest.Open(m, p).Delete(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.LeftoverError))
		a.Edit(func(s *awssim.State) { require.NotNil(t, s.EC2.Interfaces[eni]) })
	})
}

// Interfaces without tags that nothing uses, in the groups of the cluster, are deleted with it,
// as CAPA does: also those that a network load balancer leaves behind for an hour.
func TestDetachedInterfacesAreDeleted(t *testing.T) {
	for _, file := range []string{enginetest.ThreeZones, "byo-vpc.yaml"} {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				before := a.Inventory()
				enginetest.MustApply(t, m, a)
				a.Edit(func(s *awssim.State) { s.ELB.Detaches = true })
				x := enginetest.InsiderOf(t, a, m)
				x.NetworkInterface("left by somebody")
				time.Sleep(enginetest.Lag)
				began := time.Now()
				enginetest.MustDelete(t, m, a)
				require.Less(t, time.Since(began), 5*time.Minute)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// Somebody else's instance in the security group of an EKS cluster, in an existing VPC, is
// found before the deletion.
func TestForeignInstanceInTheGroupOfEKS(t *testing.T) {
	file := "eks-byo-vpc.yaml"
	m := enginetest.LoadQuick(t, file)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		x := enginetest.InsiderOf(t, a, m)
		a.Edit(func(s *awssim.State) { x.Groups = []string{enginetest.Plane(s).Group} })
		image := ""
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				image = i.Image
			}
		})
		x.Tags = map[string]string{"Name": "database"}
		out, err := x.EC2.RunInstances(t.Context(), &ec2.RunInstancesInput{
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceTypeT3Micro, ImageId: &image, SubnetId: &x.Subnet,
			SecurityGroupIds: x.Groups, TagSpecifications: x.With(types.ResourceTypeInstance),
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		before := enginetest.WithoutLock(a)
		for _, theCluster := range []*run.Cluster{enginetest.Open(m, a.Process()), enginetest.ByName(m.Name, a)} {
			_, err = theCluster.Delete(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, *out.Instances[0].InstanceId)
			require.ErrorContains(t, err, "(database)")
		}
		require.Equal(t, before, enginetest.WithoutLock(a))
	})
}

// A deletion that waits for something that only the user can end says so after some minutes.
func TestStuckDeletionEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		x := enginetest.InsiderOf(t, a, m)
		x.Tags = map[string]string{"Name": "late"}
		p, made := a.Process(), false
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "TerminateInstances" && !made {
				made = true
				x.Instance(x.Groups[0])
			}
			return awssim.None
		}
		began := time.Now()
		_, err := enginetest.Open(m, p).Delete(context.Background(), cluster.Options{})
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
		m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		out, err := ec2.NewFromConfig(a.Config()).
			CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.9.0.0/16"), TagSpecifications: []types.TagSpecification{{
				ResourceType: types.ResourceTypeVpc, Tags: []types.Tag{
					{
						Key:   aws.String("sigs.k8s.io/cluster-api-provider-aws/cluster/" + m.Name),
						Value: aws.String("owned"),
					},
					{Key: aws.String("Name"), Value: aws.String("prod")},
				},
			}}})
		require.NoError(t, err)
		time.Sleep(enginetest.Lag)
		for range 2 {
			res, err := enginetest.ByName(m.Name, a).Delete(t.Context(), cluster.Options{})
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(res.Plan.Steps, func(s plan.Step) bool { return s.Action == plan.Keep && s.CloudID == *out.Vpc.VpcId }))
			a.Edit(func(s *awssim.State) { require.Contains(t, s.EC2.VPCs, *out.Vpc.VpcId) })
		}
		_, err = enginetest.ByName(m.Name, a).Delete(t.Context(), cluster.Options{VPCs: []string{*out.Vpc.VpcId}})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) { require.NotContains(t, s.EC2.VPCs, *out.Vpc.VpcId) })
	})
}

// Self-managed nodes of another tool in an EKS cluster are found before the deletion: they use its security group and its subnets, and their Auto
// Scaling group replaces them.
func TestSelfManagedNodesRefuseADeletion(t *testing.T) {
	for _, file := range []string{enginetest.EKSSmall, "eks-byo-vpc.yaml"} {
		m := enginetest.LoadQuick(t, file)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Prepared(t, m)
			enginetest.MustApply(t, m, a)
			enginetest.SelfManagedNodes(t, a, "shop-nodes", 2)
			before := enginetest.WithoutLock(a)
			for _, theCluster := range []*run.Cluster{enginetest.Open(m, a.Process()), enginetest.ByName(m.Name, a)} {
				_, err := theCluster.Delete(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, "auto-scaling-group shop-nodes")
			}
			require.Equal(t, before, enginetest.WithoutLock(a))
		})
	}
}

// Node groups and Fargate profiles without the tags of the cluster are found before the deletion, also those that the manifest names: EKS does
// not delete a cluster that has them.
func TestPartsOfEKSRefuseADeletion(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.EKSAddons)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			enginetest.Plane(s).NodeGroups["default_eks-addons-batch"].Tags = nil
			enginetest.Plane(s).Fargate["default_eks-addons-serverless"].Tags = nil
		})
		before := enginetest.WithoutLock(a)
		without := *m
		without.EKS = new(*m.EKS)
		without.Pools, without.EKS.Fargate = nil, nil
		for _, theCluster := range []*run.Cluster{enginetest.Open(m, a.Process()), enginetest.Open(&without, a.Process()), enginetest.ByName(m.Name, a)} {
			_, err := theCluster.Delete(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, "default_eks-addons-batch")
			require.ErrorContains(t, err, "default_eks-addons-serverless")
		}
		require.Equal(t, before, enginetest.WithoutLock(a))
	})
}
