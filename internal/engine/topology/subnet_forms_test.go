package topology_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Listed subnets of an existing VPC may be named by their blocks, as in CAPA: the id is a name then.
// The cluster is the same as with their ids.
func TestExistingSubnetsByBlock(t *testing.T) {
	full := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil))
	byBlock := []string{
		"- id: subnet-0000000000000001a # public, in us-east-1a", "- id: public-a\n      cidrBlock: 10.0.0.0/24",
		"- id: subnet-0000000000000001b # public, in us-east-1b", "- id: public-b\n      cidrBlock: 10.0.1.0/24",
		"- id: subnet-0000000000000002a # private, in us-east-1a", "- id: private-a\n      cidrBlock: 10.0.2.0/24",
		"loadBalancerType: nlb", "loadBalancerType: nlb\n    subnets: [public-a, public-b]",
	}
	made := func(m *manifest.Cluster) (out []string) {
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, enginetest.Lag)
			enginetest.Prepare(t, a, full)
			before := a.Detailed()
			enginetest.MustApply(t, m, a)
			enginetest.RequireNoChange(t, m, a)
			out = enginetest.Described(a)
			enginetest.MustDelete(t, m, a)
			require.Equal(t, before, a.Detailed())
		})
		return out
	}
	require.Equal(t, made(full), made(enginetest.Rewritten(t, enginetest.ByoVPC, byBlock...)))

	wrong := enginetest.Rewritten(t, enginetest.ByoVPC, append(byBlock, "10.0.2.0/24", "10.0.99.0/24")...)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(wrong, 0)
		enginetest.Prepare(t, a, full)
		_, err := enginetest.Open(wrong, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "no subnet of VPC vpc-0123456789abcdef0 has the block 10.0.99.0/24")
	})
}

// groupSubnets returns the names of the subnets of the only Auto Scaling group.
func groupSubnets(t *testing.T, a *awssim.AWS) (names []string) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		require.Len(t, s.AutoScaling.Groups, 1)
		for _, g := range s.AutoScaling.Groups {
			for _, id := range g.Subnets {
				names = append(names, s.EC2.Subnets[id].Tags["Name"])
			}
		}
	})
	slices.Sort(names)
	return names
}

func pooled(t *testing.T, file string, filters ...infrav1.Filter) *manifest.Cluster {
	t.Helper()
	m := enginetest.Quick(enginetest.Load(t, file, nil))
	spec := &m.Pools[0].Scaling.Spec
	spec.Subnets = nil
	for _, f := range filters { // the filters of all entries count together
		spec.Subnets = append(spec.Subnets, infrav1.AWSResourceReference{Filters: []infrav1.Filter{f}})
	}
	return m
}

// Filters of a pool select all subnets that match, also those that the run will create.
func TestPoolSubnetsByFilters(t *testing.T) {
	role := infrav1.Filter{Name: "tag:sigs.k8s.io/cluster-api-provider-aws/role", Values: []string{"private"}}
	for _, tt := range []struct {
		filters []infrav1.Filter
		want    []string
	}{
		{[]infrav1.Filter{role}, []string{"machine-pool-subnet-private-us-east-1a", "machine-pool-subnet-private-us-east-1b", "machine-pool-subnet-private-us-east-1c"}},
		{[]infrav1.Filter{role, {Name: "availability-zone", Values: []string{"us-east-1b"}}}, []string{"machine-pool-subnet-private-us-east-1b"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := pooled(t, "machine-pool.yaml", tt.filters...)
			a := enginetest.Account(m, enginetest.Lag)
			enginetest.Prepare(t, a, m)
			enginetest.MustApply(t, m, a)
			enginetest.RequireNoChange(t, m, a)
			assert.Equal(t, tt.want, groupSubnets(t, a))
			enginetest.MustDelete(t, m, a)
			require.Empty(t, a.Inventory())
		})
	}
	synctest.Test(t, func(t *testing.T) {
		m := pooled(t, "machine-pool.yaml", infrav1.Filter{Name: "tag:Name", Values: []string{"other"}})
		a := enginetest.Account(m, 0)
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "machine-pool.yaml:105 AWSMachinePool/machine-pool-mp-0 spec.subnets: no subnet of the cluster's VPC matches tag:Name=other")
	})
}

// In an existing VPC, filters of a pool also select subnets that are not listed, and the tags that the
// run sets count. Subnets for pods, and those of another VPC, are left out.
func TestPoolSubnetsByFiltersInExistingVPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, enginetest.ByoVPC, nil))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		a.Edit(func(s *awssim.State) {
			for name, change := range map[string]func(*awssim.Subnet){
				"more": func(*awssim.Subnet) {}, "pods": func(x *awssim.Subnet) { x.Tags["sigs.k8s.io/cluster-api-provider-aws/association"] = "secondary" },
				"elsewhere": func(x *awssim.Subnet) { x.VPC = "vpc-0000000000000000e" },
			} {
				x := *s.EC2.Subnets["subnet-0000000000000002a"]
				x.ID, x.CIDR, x.Tags = "subnet-000000000000000"+name, "10.0.20.0/24", map[string]string{"Name": name, "use": "workers"}
				change(&x)
				s.EC2.Subnets[x.ID] = &x
				for _, table := range s.EC2.RouteTables { // that of the subnet that it is like
					for id, subnet := range maps.Clone(table.Associations) {
						if subnet == "subnet-0000000000000002a" {
							table.Associations[id+name] = x.ID
						}
					}
				}
			}
		})
		m.Infra.Spec.NetworkSpec.Subnets[3].Tags = infrav1.Tags{"use": "workers"}
		pool := pooled(t, "machine-pool.yaml", infrav1.Filter{Name: "tag:use", Values: []string{"workers"}}).Pools[0]
		pool.Scaling.Spec.MixedInstancesPolicy = nil
		m.Pools = append(m.Pools, pool)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		assert.Equal(t, []string{"company-3", "more"}, groupSubnets(t, a))
		enginetest.MustDelete(t, m, a)
	})
}

// Listed subnets in the secondary block of an EKS cluster are its subnets for pods: no others are
// created for their part of the block.
func TestListedPodSubnetsOfEKS(t *testing.T) {
	raw, err := enginetest.Read("eks.yaml")
	require.NoError(t, err)
	text := strings.Replace(string(raw), "\nkind: AWSManagedControlPlane\nmetadata:\n  name: eks\nspec:\n", `
kind: AWSManagedControlPlane
metadata:
  name: eks
spec:
  secondaryCidrBlock: 100.64.0.0/16
  network:
    vpc: {availabilityZoneUsageLimit: 2}
    subnets:
    - {id: pub-a, cidrBlock: 10.0.0.0/20, availabilityZone: us-east-1a, isPublic: true}
    - {id: pub-b, cidrBlock: 10.0.16.0/20, availabilityZone: us-east-1b, isPublic: true}
    - {id: priv-a, cidrBlock: 10.0.64.0/18, availabilityZone: us-east-1a}
    - {id: priv-b, cidrBlock: 10.0.128.0/18, availabilityZone: us-east-1b}
    - {id: pods-a, cidrBlock: 100.64.0.0/17, availabilityZone: us-east-1a, tags: {sigs.k8s.io/cluster-api-provider-aws/association: secondary}}
`, 1)
	require.NotEqual(t, string(raw), text)
	m, err := loader.Load([]input.Source{{Name: "eks.yaml", Data: []byte(text)}}, input.LoadOptions{})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		var blocks []string
		a.Edit(func(s *awssim.State) {
			for _, x := range s.EC2.Subnets {
				if strings.HasPrefix(x.CIDR, "100.64.") {
					blocks = append(blocks, x.CIDR+" "+x.Tags["Name"])
				}
			}
		})
		slices.Sort(blocks)
		assert.Equal(t, []string{"100.64.0.0/17 pods-a", "100.64.128.0/17 eks-subnet-secondary-us-east-1b"}, blocks)
		enginetest.MustDelete(t, m, a)
	})
}

// Another number of zones gives the subnets that the manifest does not list other blocks. The refusal says which field to set back.
func TestOtherNumberOfZones(t *testing.T) {
	for _, file := range []string{"machine-pool.yaml", "eks.yaml"} {
		for zones, old := range map[int]int{2: 3, 3: 2} {
			synctest.Test(t, func(t *testing.T) {
				limited := func(zones int) *manifest.Cluster {
					m := enginetest.LoadQuick(t, file)
					m.Infra.Spec.NetworkSpec.VPC.AvailabilityZoneUsageLimit = &zones
					return m
				}
				before, after := limited(old), limited(zones)
				a := enginetest.Prepared(t, before)
				enginetest.MustApply(t, before, a)
				_, err := enginetest.Open(after, a.Process()).Plan(t.Context())
				require.ErrorContains(
					t,
					err,
					fmt.Sprintf("the cluster has subnets in %d zones, and their blocks depend on that number: set spec.network.vpc.availabilityZoneUsageLimit to %[1]d", old),
				)
				enginetest.MustDelete(t, after, a)
			})
		}
	}
}
