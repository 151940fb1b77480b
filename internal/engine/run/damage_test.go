package run_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// damages are what can happen to a cluster besides changes of its resources, and what a
// run says about each.
var damages = map[string]struct {
	do   func(s *awssim.State)
	told []string
}{
	"a control plane without tags": {
		func(s *awssim.State) { untag(s, "control-plane", func(string) bool { return true }) },
		[]string{"instance i-", "does not have its tags", "aws ec2 create-tags --resources i-", "cluster/three-zones,Value=owned", "role,Value=control-plane"},
	},
	"workers without tags": {
		func(s *awssim.State) { untag(s, "node", func(string) bool { return true }) },
		[]string{"does not have its tags", "role,Value=node"},
	},
	"workers without the owned tag": {
		func(s *awssim.State) {
			untag(s, "node", func(key string) bool { return strings.HasPrefix(key, "sigs.k8s.io/cluster-api-provider-aws/cluster/") })
		},
		[]string{"does not have its tags", "role,Value=node"},
	},
	"a VPC without tags": {
		func(s *awssim.State) {
			for _, v := range s.EC2.VPCs {
				clear(v.Tags)
			}
		},
		[]string{"subnet subnet-", "its VPC, vpc-", "restore its tags", "aws ec2 create-tags --resources vpc-", "clusterawsadm/resource,Value=vpc"},
	},
	"no keys": {
		func(s *awssim.State) {
			for name := range s.SSM.Parameters {
				if strings.Contains(name, "/pki/") {
					delete(s.SSM.Parameters, name)
				}
			}
		},
		[]string{"certificates", "ca.key", "/etc/kubernetes/pki"},
	},
	"one key is missing": {
		func(s *awssim.State) {
			enginetest.EditKeys(s, "three-zones", func(keys map[string]string) { delete(keys, "sa.key") })
		},
		[]string{"certificates", "without sa.key", "/etc/kubernetes/pki"},
	},
	"a key is damaged": {
		func(s *awssim.State) {
			enginetest.EditKeys(s, "three-zones", func(keys map[string]string) { keys["ca.key"] = "damaged" })
		},
		[]string{"certificates", "cluster CA: parse the private key"},
	},
	"a parameter with keys is damaged": {
		func(s *awssim.State) { s.SSM.Parameters["/clusterawsadm/three-zones/pki/ca"].Value = "damaged" },
		[]string{"certificates", "parameter /clusterawsadm/three-zones/pki/ca: it is no JSON object with a certificate and a key"},
	},
	"two route tables with the same tags": {
		func(s *awssim.State) {
			for _, table := range s.EC2.RouteTables {
				if table.Tags["clusterawsadm/resource"] == "route-table/private/us-east-1a" {
					twin := *table
					twin.ID, twin.Associations = "rtb-0123456789abcdef0", nil
					s.EC2.RouteTables[twin.ID] = &twin
					return
				}
			}
		},
		[]string{"rtb-0123456789abcdef0 and rtb-", "clusterawsadm/resource=route-table/private/us-east-1a"},
	},
}

// untag removes tags from the machines of a role.
func untag(s *awssim.State, role string, removed func(key string) bool) {
	for _, i := range s.EC2.Instances {
		if i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] != role {
			continue
		}
		for key := range i.Tags {
			if removed(key) {
				delete(i.Tags, key)
			}
		}
	}
}

// A run says what is damaged and how to repair it, and changes nothing. A deletion deletes
// a damaged cluster, unless machines cannot be told from those of others.
func TestDamageIsTold(t *testing.T) {
	for what, d := range damages {
		t.Run(what, func(t *testing.T) {
			m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.MustApply(t, m, a)
				time.Sleep(enginetest.Settled)
				a.Edit(d.do)
				before := enginetest.WithoutLock(a)
				for _, run := range []func() error{
					func() error { _, err := enginetest.Open(m, a.Process()).Plan(t.Context()); return err },
					func() error {
						_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
						return err
					},
				} {
					err := run()
					require.ErrorAs(t, err, new(*plan.RefusedError))
					for _, text := range d.told {
						require.ErrorContains(t, err, text)
					}
				}
				require.Equal(t, before, enginetest.WithoutLock(a))
				_, err := enginetest.Open(m, a.Process()).Delete(t.Context(), enginetest.Everything)
				if what == "a VPC without tags" {
					require.ErrorContains(t, err, "aws ec2 create-tags --resources vpc-")
					require.Equal(t, before, enginetest.WithoutLock(a))
					return
				}
				if strings.HasSuffix(what, "tags") && strings.Contains(what, "without") {
					require.ErrorAs(t, err, new(*plan.ForeignError))
					require.Equal(t, before, enginetest.WithoutLock(a))
					return
				}
				require.NoError(t, err)
				require.Empty(t, a.Inventory())
			})
		})
	}
}

// spoof creates resources with the tags of a cluster in another VPC: a VPC with the
// cluster's tag, an instance and a security group.
func spoof(t *testing.T, a *awssim.AWS, m *manifest.Cluster) (vpc string) {
	t.Helper()
	c := ec2.NewFromConfig(a.Config())
	tags := func(kind types.ResourceType) []types.TagSpecification {
		return []types.TagSpecification{{ResourceType: kind, Tags: []types.Tag{
			{Key: aws.String("sigs.k8s.io/cluster-api-provider-aws/cluster/" + m.Name), Value: aws.String("owned")},
			{Key: aws.String("sigs.k8s.io/cluster-api-provider-aws/role"), Value: aws.String("node")},
		}}}
	}
	v, err := c.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("172.16.0.0/16"), TagSpecifications: tags(types.ResourceTypeVpc)})
	require.NoError(t, err)
	s, err := c.CreateSubnet(
		t.Context(),
		&ec2.CreateSubnetInput{VpcId: v.Vpc.VpcId, CidrBlock: aws.String("172.16.1.0/24"), AvailabilityZone: aws.String("us-east-1a")},
	)
	require.NoError(t, err)
	_, err = c.CreateSecurityGroup(t.Context(), &ec2.CreateSecurityGroupInput{
		VpcId: v.Vpc.VpcId, GroupName: aws.String("web"), Description: aws.String("web"), TagSpecifications: tags(types.ResourceTypeSecurityGroup),
	})
	require.NoError(t, err)
	image := ""
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			image = i.Image
		}
	})
	_, err = c.RunInstances(t.Context(), &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceTypeT3Micro, ImageId: &image, SubnetId: s.Subnet.SubnetId,
		TagSpecifications: tags(types.ResourceTypeInstance),
	})
	require.NoError(t, err)
	time.Sleep(time.Minute)
	return *v.Vpc.VpcId
}

// The machines of a cluster may have permission to set tags. Whatever has the cluster's
// tags in another VPC stays, until the user names that VPC.
func TestTagsInAnotherVPC(t *testing.T) {
	for _, byTag := range []bool{false, true} {
		t.Run(map[bool]string{false: "by manifest", true: "by name"}[byTag], func(t *testing.T) {
			m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				c := func() *run.Cluster {
					if byTag {
						return enginetest.ByName(m.Name, a)
					}
					return enginetest.Open(m, a.Process())
				}
				enginetest.MustApply(t, m, a)
				vpc := spoof(t, a, m)
				there := len(a.Inventory())
				require.True(t, enginetest.MustPlan(t, m, a).Empty(), "the instance is no machine of the cluster")
				res, err := c().Delete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				kept := 0
				for _, s := range res.Plan.Steps {
					if s.Action == plan.Keep {
						require.Contains(t, s.Origin, "in "+vpc+", which is not the cluster's VPC")
						kept++
					}
				}
				require.Equal(t, 3, kept)
				left := a.Inventory()
				require.Less(t, len(left), there)
				require.Contains(t, strings.Join(left, "\n"), "Instance")
			})
		})
	}
}
