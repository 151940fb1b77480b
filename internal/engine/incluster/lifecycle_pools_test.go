package incluster_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// poolOf returns the Auto Scaling group with a name, or nil.
func poolOf(a *awssim.AWS, name string) (g *awssim.ScalingGroup) {
	a.Edit(func(s *awssim.State) { g = s.AutoScaling.Groups[name] })
	return g
}

// A pool that is not in the manifest any more is deleted, its group before its launch
// template, and all others stay.
func TestPoolIsRetired(t *testing.T) {
	for name, spoil := range map[string]func(s *awssim.State){
		"whole":          func(*awssim.State) {},
		"scaled to zero": func(s *awssim.State) { g := s.AutoScaling.Groups["machine-pool-mp-0"]; g.Min, g.Desired = 0, 0 },
		"half gone":      func(s *awssim.State) { delete(s.AutoScaling.Groups, "machine-pool-mp-0") },
		"somebody else's": func(s *awssim.State) {
			s.AutoScaling.Groups["other"] = &awssim.ScalingGroup{Name: "other", Tags: map[string]awssim.ScalingTag{}}
		},
		"of Cluster API's": func(s *awssim.State) { // it has no identity tags
			delete(s.AutoScaling.Groups["machine-pool-mp-0"].Tags, "clusterawsadm/resource")
			for _, l := range s.EC2.LaunchTemplates {
				delete(l.Tags, "clusterawsadm/resource")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.MachinePool)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.MustApply(t, m, a)
				a.Edit(spoil)
				time.Sleep(5 * time.Minute)
				m.Pools = nil
				want := []string{
					"delete retired/auto-scaling-group/machine-pool-mp-0", "delete boot-data/machine-pool-mp-0", "delete retired/launch-template/machine-pool-mp-0",
				}
				if name == "half gone" {
					want = want[1:]
				}
				require.Equal(t, want, enginetest.Done(enginetest.MustPlan(t, m, a)))
				enginetest.MustApply(t, m, a)
				require.Nil(t, poolOf(a, "machine-pool-mp-0"))
				a.Edit(func(s *awssim.State) { require.Empty(t, s.EC2.LaunchTemplates) })
				require.NotContains(t, strings.Join(a.Inventory(), "\n"), "\nSecret ", "the boot data of the pool")
				enginetest.RequireNoChange(t, m, a)
			})
		})
	}
}

// A changed number of machines changes only the group; a changed template gets a new
// version and replaces the machines.
func TestPoolChanges(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.MachinePool)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		m.Pools[0].Object.Spec.Replicas = aws.Int32(4)
		require.Equal(t, []string{"update auto-scaling-group/machine-pool-mp-0"}, enginetest.Done(enginetest.MustPlan(t, m, a)))
		enginetest.MustApply(t, m, a)
		require.Len(t, poolOf(a, "machine-pool-mp-0").Instances, 4)
		m.Pools[0].Scaling.Spec.AWSLaunchTemplate.RootVolume.Size = 50
		require.Equal(
			t,
			[]string{"update launch-template/machine-pool-mp-0", "update auto-scaling-group/machine-pool-mp-0"},
			enginetest.Done(enginetest.MustPlan(t, m, a)),
		)
		enginetest.MustApply(t, m, a)
		for _, i := range poolOf(a, "machine-pool-mp-0").Instances {
			require.True(t, i.Template.Version == "2" || strings.HasPrefix(string(i.State), "Terminating"), "%+v", i)
		}
		time.Sleep(5 * time.Minute)
		enginetest.RequireNoChange(t, m, a)

		// An autoscaler may set the number of machines.
		m.Pools[0].Object.Annotations = map[string]string{"cluster.x-k8s.io/replicas-managed-by": "external-autoscaler"}
		a.Edit(func(s *awssim.State) { s.AutoScaling.Groups["machine-pool-mp-0"].Desired = 3 })
		time.Sleep(10 * time.Minute)
		enginetest.RequireNoChange(t, m, a)
	})
}

// A run that does not use the API server reports that nothing renews the token.
func TestPoolsAndTheToken(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.MachinePool)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		require.Empty(t, enginetest.Told(t, m, a))
		enginetest.MustApply(t, m, a)
		time.Sleep(3 * time.Hour)
		m.Pools[0].Object.Spec.Replicas = aws.Int32(4)
		require.Empty(t, enginetest.Told(t, m, a), "the control plane does")
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				delete(i.Tags, "clusterawsadm/keeps-join-token")
			}
		})
		late := enginetest.Told(t, m, a)
		require.Len(t, late, 2)
		const always = "machine-pool.yaml:84 MachinePool/machine-pool-mp-0 spec: no machine of the control plane keeps the token valid that machines join with: those that the pool adds by itself join within 2h0m0s after a run, and later boot and do not join, until one of the control plane is replaced, or a run with --wait=api makes a token that is valid for a year"
		require.Equal(t, always, late[0])
		require.Contains(t, late[1], "machines of 1 pool will be added, but the join token was created 3h")
		require.Contains(t, late[1], "--wait=api creates a new token")
		m.Pools[0].Bootstrap.Kubeadm.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = "abcdef.0123456789abcdef"
		require.NotContains(t, enginetest.Told(t, m, a), always, "a token of the user's own")
	})
}

// Status shows a pool with its machines.
func TestStatusOfPools(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.MachinePool)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.MustApply(t, m, a)
		s, err := look.Status(t.Context(), enginetest.Open(m, a.Process()))
		require.NoError(t, err)
		at := func(node plan.ID) cluster.ResourceStatus {
			return s.Resources[slices.IndexFunc(s.Resources, func(n cluster.ResourceStatus) bool { return n.Resource == node })]
		}
		require.Regexp(
			t,
			`^2 of 2 in service, i-[0-9a-f]{17} us-east-1[abc] m6i\.large, i-[0-9a-f]{17} us-east-1[abc] m[56]i?\.x?large$`,
			at("auto-scaling-group/machine-pool-mp-0").Detail,
		)
		require.Equal(t, "version 1 m6i.large", at("launch-template/machine-pool-mp-0").Detail)
	})
}

// A plan that makes a pool smaller does not wait for Nodes of machines that leave.
func TestPoolShrinks(t *testing.T) {
	for _, file := range []string{enginetest.MachinePool, "eks-addons.yaml"} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			a := enginetest.Prepared(t, m)
			m.Pools[0].Object.Spec.Replicas = aws.Int32(3)
			enginetest.MustApply(t, m, a)
			enginetest.AddNetwork(a)
			ready := func() *run.Cluster { return enginetest.Waiting(m, a.Process(), plan.NodesReady) }
			_, err := ready().Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
			a.Edit(func(s *awssim.State) { // two machines are not launched yet
				for _, g := range s.AutoScaling.Groups {
					g.Desired += 2
				}
				for _, c := range s.EKS.Clusters {
					for _, g := range c.NodeGroups {
						g.Desired += 2
					}
				}
			})
			m.Pools[0].Object.Spec.Replicas = aws.Int32(1)
			p, err := ready().Plan(t.Context())
			require.NoError(t, err)
			for _, s := range p.Steps {
				require.NotContains(t, []plan.Action{plan.Await, plan.Settle}, s.Action, "%s: %v", s.Resource, s.Diff)
			}
			_, err = ready().Apply(t.Context(), cluster.Options{})
			require.NoError(t, err)
			p, err = ready().Plan(t.Context())
			require.NoError(t, err)
			require.True(t, p.Empty())
		})
	}
}
