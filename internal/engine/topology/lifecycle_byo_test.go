package topology_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Two clusters in one existing VPC share its subnets: common tags stay until the second
// cluster is deleted, and earlier tags always stay.
func TestSharedSubnets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil)), enginetest.Rewritten(t, enginetest.ByoVPC, "byo-vpc", "second")
		a := enginetest.Account(one, 0)
		enginetest.Prepare(t, a, one)
		a.Edit(func(s *awssim.State) {
			for _, x := range s.EC2.Subnets { // an existing tag has the same form as that of another Cluster API cluster
				delete(x.Tags, "kubernetes.io/cluster/"+one.Name)
			}
		})
		before := a.Detailed()
		enginetest.MustApply(t, one, a)
		enginetest.MustApply(t, two, a)
		enginetest.RequireNoChange(t, one, a)
		enginetest.MustDelete(t, one, a)
		enginetest.RequireNoChange(t, two, a)
		_, err := enginetest.ByName(two.Name, a).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.Equal(t, before, a.Detailed())
	})
}

// Route tables determine which subnets are public. The manifest needs to list only IDs, and
// isPublic has no effect.
func TestSubnetsByRoutes(t *testing.T) {
	const given = "      availabilityZone: us-east-1a\n      isPublic: true\n"
	full := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil))
	made := func(m *manifest.Cluster) (out []string) {
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, 0)
			enginetest.Prepare(t, a, full)
			before := a.Detailed()
			enginetest.MustApply(t, m, a)
			out = enginetest.Described(a)
			enginetest.MustDelete(t, m, a)
			require.Equal(t, before, a.Detailed())
		})
		return out
	}
	want := made(full)
	require.Equal(t, want, made(enginetest.Rewritten(t, enginetest.ByoVPC, given, "")))
	require.Equal(
		t,
		want,
		made(enginetest.Rewritten(t, enginetest.ByoVPC, "    - id: subnet-0000000000000002a", "    - isPublic: true\n      id: subnet-0000000000000002a")),
	)
}

// isPublic of an existing subnet has no effect, and a warning if its routes say something else: true and false alike.
func TestContradictedRoutes(t *testing.T) {
	full := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil))
	told := func(m *manifest.Cluster) (all []string) {
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, 0)
			enginetest.Prepare(t, a, full)
			_, err := run.Open(m, cluster.Target{
				Config: a.Process().Config(), Owner: "test", Warn: func(s string) { all = append(all, s) },
			}).Plan(t.Context())
			require.NoError(t, err)
		})
		return slices.DeleteFunc(all, func(s string) bool { return !strings.Contains(s, "isPublic") })
	}
	const id = "    - id: subnet-0000000000000002a"
	require.Empty(t, told(full))
	require.Empty(t, told(enginetest.Rewritten(t, enginetest.ByoVPC, "      isPublic: true\n", "")))
	said := told(enginetest.Rewritten(t, enginetest.ByoVPC, id, "    - isPublic: true\n      id: subnet-0000000000000002a"))
	require.Len(t, said, 1)
	require.Contains(t, said[0], "subnet subnet-0000000000000002a has no route to an internet gateway: it is used as a private subnet")
	said = told(enginetest.Rewritten(t, enginetest.ByoVPC, "isPublic: true", "isPublic: false"))
	require.Len(t, said, 2)
	require.Contains(
		t,
		said[0],
		"subnet subnet-0000000000000001a has a route to an internet gateway, or the role tag of public subnets: it is used as a public subnet",
	)
}

// A plan with an internet-facing load balancer is refused if there is no public subnet.
func TestNoPublicSubnet(t *testing.T) {
	m := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil))
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.Prepare(t, a, m)
		a.Edit(func(s *awssim.State) {
			for _, table := range s.EC2.RouteTables {
				table.Routes = nil
			}
			for _, x := range s.EC2.Subnets {
				delete(x.Tags, "sigs.k8s.io/cluster-api-provider-aws/role")
			}
		})
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(
			t,
			err,
			"byo-vpc.yaml:33 AWSCluster/byo-vpc spec.controlPlaneLoadBalancer: an internet-facing load balancer needs a public subnet, "+
				"and none of spec.network.subnets has a route to an internet gateway: list one that has, or set scheme: internal",
		)
	})
}

// What is missing of an existing network is said as such, not as a consequence such as "needs a public subnet". Another region or
// account has neither the VPC nor its subnets.
func TestMissingNetwork(t *testing.T) {
	const vpc, subnet = "vpc-0123456789abcdef0", "subnet-0000000000000001a"
	for name, c := range map[string]struct {
		flavor string
		edit   func(s *awssim.State)
		want   string
	}{
		"no VPC": {enginetest.ByoVPC, func(s *awssim.State) {
			clear(s.EC2.Subnets)
			clear(s.EC2.VPCs)
		}, `^vpc \(byo-vpc.yaml:\d+ AWSCluster/byo-vpc spec.network.vpc.id\): does not exist in this account and region`},
		"another VPC": {enginetest.ByoVPC, func(s *awssim.State) {
			for _, x := range s.EC2.Subnets {
				x.VPC = "vpc-0fffffffffffffff0"
			}
		}, subnet + ` is not in VPC ` + vpc},
		"no public subnet of the list": {enginetest.ByoVPC, func(s *awssim.State) {
			for id := range s.EC2.Subnets {
				if strings.HasPrefix(id, "subnet-0000000000000001") {
					delete(s.EC2.Subnets, id)
				}
			}
		}, subnet + ` is not in VPC ` + vpc},
		"EKS without the VPC": {"eks-byo-vpc.yaml", func(s *awssim.State) {
			clear(s.EC2.Subnets)
			clear(s.EC2.VPCs)
		}, `vpc \(eks-byo-vpc.yaml:\d+ \S+ spec.network.vpc.id\): does not exist in this account and region`},
	} {
		t.Run(name, func(t *testing.T) {
			whole := enginetest.Quick(enginetest.Load(t, c.flavor, nil))
			m := enginetest.Rewritten(t, c.flavor, "      isPublic: true\n", "", "      availabilityZone: us-east-1a\n", "", "      availabilityZone: us-east-1b\n", "")
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(whole, 0)
				enginetest.Prepare(t, a, whole)
				a.Edit(c.edit)
				_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
				require.ErrorAs(t, err, new(*plan.RefusedError))
				assert.Regexp(t, c.want, err.Error())
				assert.NotContains(t, err.Error(), "needs a public subnet")
				assert.NotContains(t, err.Error(), "private subnet")
			})
		})
	}
}

// A subnet with the tag of subnets for pods has no machine, no NAT gateway and no load
// balancer.
func TestSubnetsForPods(t *testing.T) {
	const pods = "subnet-0000000000000002a"
	m := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil))
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.Prepare(t, a, m)
		a.Edit(func(s *awssim.State) {
			s.EC2.Subnets[pods].Tags["sigs.k8s.io/cluster-api-provider-aws/association"] = "secondary"
		})
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		a.Edit(func(s *awssim.State) {
			require.NotEmpty(t, s.EC2.Instances)
			for _, i := range s.EC2.Instances {
				require.NotEqual(t, pods, i.Subnet)
			}
		})
	})
}

// Filters for additional security groups select all groups that match.
func TestSecurityGroupsByFilters(t *testing.T) {
	m := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil))
	m.Deployments[0].Template.Spec.Template.Spec.AdditionalSecurityGroups = []infrav1.AWSResourceReference{
		{Filters: []infrav1.Filter{{Name: "tag:purpose", Values: []string{"monitoring"}}}},
	}
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.Prepare(t, a, m)
		a.Edit(func(s *awssim.State) {
			second := *s.EC2.SecurityGroups["sg-0aaaaaaaaaaaaaaa2"]
			second.ID, second.Name = "sg-0aaaaaaaaaaaaaaa3", "monitoring-2"
			s.EC2.SecurityGroups[second.ID] = &second
		})
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		workers := 0
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Interfaces {
				if i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "node" {
					workers++
					require.Subset(t, i.Groups, []string{"sg-0aaaaaaaaaaaaaaa2", "sg-0aaaaaaaaaaaaaaa3"})
				}
			}
		})
		require.NotZero(t, workers)
	})
}

// Machines in another VPC than the cluster's are refused before anything is created.
func TestSubnetOfAnotherVPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil))
		other := "subnet-0000000000000009a"
		m.Deployments[0].Template.Spec.Template.Spec.Subnet = &infrav1.AWSResourceReference{ID: &other}
		a := enginetest.Account(m, 0)
		enginetest.Prepare(t, a, m)
		a.Edit(func(s *awssim.State) {
			s.EC2.VPCs["vpc-00000000000000009"] = &awssim.VPC{Thing: awssim.Thing{ID: "vpc-00000000000000009"}, CIDR: "10.9.0.0/16"}
			s.EC2.Subnets[other] = &awssim.Subnet{Thing: awssim.Thing{ID: other}, VPC: "vpc-00000000000000009", CIDR: "10.9.0.0/24", Zone: "us-east-1a"}
		})
		p := a.Process()
		_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "subnet "+other+" is not in VPC vpc-0123456789abcdef0")
		require.ErrorAs(t, err, new(*plan.RefusedError))
	})
}

// Filters also select security groups that the run creates itself, in a new VPC and with
// others in an existing one.
func TestFiltersForSecurityGroupsOfTheCluster(t *testing.T) {
	for file, groups := range map[string]int{"three-zones.yaml": 3, enginetest.ByoVPC: 4} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Quick(enginetest.Load(t, file, nil))
			m.Deployments[0].Template.Spec.Template.Spec.AdditionalSecurityGroups = []infrav1.AWSResourceReference{{Filters: []infrav1.Filter{
				{Name: "tag:Name", Values: []string{m.Name + "-controlplane", "monitoring"}},
			}}}
			a := enginetest.Account(m, 0)
			enginetest.Prepare(t, a, m)
			enginetest.MustApply(t, m, a)
			enginetest.RequireNoChange(t, m, a)
			workers := 0
			a.Edit(func(s *awssim.State) {
				for _, i := range s.EC2.Interfaces {
					if i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "node" {
						workers++
						require.Len(t, i.Groups, groups, "%v", i.Groups)
					}
				}
			})
			require.NotZero(t, workers)
		})
	}
}

// A secondary block of an existing VPC stays, whether the cluster has added it or not:
// others may use it.
func TestForeignBlockStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Rewritten(
			t,
			enginetest.ByoVPC,
			"    id: vpc-0123456789abcdef0\n",
			"    id: vpc-0123456789abcdef0\n      secondaryCidrBlocks: [{ipv4CidrBlock: 100.64.0.0/16}]\n",
		)
		a := enginetest.Account(m, 0)
		enginetest.Prepare(t, a, m)
		a.Edit(func(s *awssim.State) {
			s.EC2.VPCs["vpc-0123456789abcdef0"].Secondary = []awssim.Association{{ID: "vpc-cidr-assoc-00000000000000001", CIDR: "100.64.0.0/16"}}
		})
		before := a.Detailed()
		enginetest.MustApply(t, m, a)
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Detailed())
	})
}

// An existing bucket is neither adopted nor emptied.
func TestExistingBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, "flatcar.yaml", nil))
		a := enginetest.Account(m, 0)
		name := m.Infra.Spec.S3Bucket.Name
		a.Edit(func(s *awssim.State) {
			s.S3.Buckets[name] = &awssim.Bucket{Name: name, Objects: map[string]*awssim.Object{"payroll": {Key: "payroll", Body: []byte("secret")}}}
		})
		before := a.Detailed()
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "bucket "+name)
		_, err = enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		_, err = enginetest.ByName(m.Name, a).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.Equal(t, before, a.Detailed())
	})
}

// A cluster tag that was on a subnet before and is removed by somebody is added again,
// and then deleted with the cluster.
func TestTagTakenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil))
		a := enginetest.Account(m, 0)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		key := "kubernetes.io/cluster/" + m.Name
		a.Edit(func(s *awssim.State) { delete(s.EC2.Subnets["subnet-0000000000000001b"].Tags, key) })
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
		a.Edit(func(s *awssim.State) {
			for _, x := range s.EC2.Subnets {
				require.NotContains(t, x.Tags, key)
			}
		})
	})
}
