package topology_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// renamed returns the example with three zones, whose control plane has some machines, and texts that are replaced.
func renamed(t *testing.T, replicas int32, oldnew ...string) *manifest.Cluster {
	t.Helper()
	m := enginetest.Rewritten(t, enginetest.ThreeZones, oldnew...)
	m.ControlPlane.Object.Spec.Replicas = &replicas
	return m
}

// name and other are two names of the control plane.
const name, other = "name: three-zones-control-plane\n", "name: renamed\n"

// With another name, a control plane has new machines: each joins while the API server still answers on the old ones, which leave after
// that. Nothing in the cluster is lost.
func TestRenamedControlPlane(t *testing.T) {
	for what, x := range map[string]struct {
		before, after func(t *testing.T) *manifest.Cluster
		members       int
	}{
		"one of one": {
			func(t *testing.T) *manifest.Cluster { t.Helper(); return renamed(t, 1) },
			func(t *testing.T) *manifest.Cluster { t.Helper(); return renamed(t, 1, name, other) }, 1,
		},
		"all of three": {
			func(t *testing.T) *manifest.Cluster { t.Helper(); return renamed(t, 3) },
			func(t *testing.T) *manifest.Cluster { t.Helper(); return renamed(t, 3, name, other) }, 3,
		},
		"three for one": {
			func(t *testing.T) *manifest.Cluster { t.Helper(); return renamed(t, 1) },
			func(t *testing.T) *manifest.Cluster { t.Helper(); return renamed(t, 3, name, other) }, 3,
		},
		"all single Machines": {
			func(t *testing.T) *manifest.Cluster {
				t.Helper()
				return enginetest.Rewritten(t, "single-machines.yaml")
			},
			func(t *testing.T) *manifest.Cluster {
				t.Helper()
				return enginetest.Rewritten(t, "single-machines.yaml", "name: control-plane-", "name: renamed-")
			}, 3,
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := x.before(t)
				a := enginetest.Alive(t, m)
				m = x.after(t)
				_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: func(plan.Event) {
					control, _ := serving(a)
					assert.Positive(t, control)
				}})
				require.NoError(t, err)
				enginetest.RequireDone(t, m, a)
				enginetest.Inside(a, func(c *kubesim.Cluster) { require.Len(t, c.Members, x.members) })
				a.Edit(func(s *awssim.State) {
					for _, i := range s.EC2.Instances {
						if i.Terminating.IsZero() && i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "control-plane" {
							require.True(t, strings.HasPrefix(i.Tags["Name"], "renamed"), i.Tags["Name"])
						}
					}
				})
			})
		})
	}
}

// A run that gives the control plane another name may be killed anywhere: the next one ends it.
func TestRenamedControlPlaneKilled(t *testing.T) {
	stride := 23
	if enginetest.Sweeping() {
		stride = 3
	}
	for n, killed := 1, true; killed; n += stride {
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Alive(t, renamed(t, 1))
			m, p := renamed(t, 1, name, other), a.Process()
			killed = enginetest.Faulty(t, p, enginetest.Only(n, awssim.KillAfter), func(ctx context.Context) error {
				_, err := enginetest.Rolling(m, p).Apply(ctx, cluster.Options{})
				return err
			}) != nil
			_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
			require.NoError(t, err, "killed after call %d", n)
			enginetest.RequireDone(t, m, a)
		})
	}
}

// A control plane gets another name only in a run that removes the old machines from etcd, and waits for the new ones: without it, etcd would
// lose its quorum, and the load balancer would let go of the old machines too early.
func TestControlPlaneLeavesWithEtcd(t *testing.T) {
	for what, after := range map[string]func(t *testing.T) *manifest.Cluster{
		"another name": func(t *testing.T) *manifest.Cluster { t.Helper(); return renamed(t, 3, name, other) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Alive(t, renamed(t, 3))
				m, calls := after(t), len(a.Calls())
				for _, change := range []func(*cluster.Target){
					func(x *cluster.Target) { x.Drain = false }, func(x *cluster.Target) { x.Wait = plan.Infrastructure },
				} {
					target := enginetest.RollingTarget(a.Process())
					change(&target)
					_, err := run.Open(m, target).Apply(t.Context(), cluster.Options{})
					require.ErrorAs(t, err, new(*plan.RefusedError))
					require.ErrorContains(t, err, "a machine of the control plane leaves in a run that removes it from etcd and waits for the others")
				}
				require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
				_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				enginetest.RequireDone(t, m, a)
			})
		})
	}
}

// The secondary load balancer gets another name only in two steps: its target groups belong to one load balancer.
func TestRenamedSecondaryLoadBalancer(t *testing.T) {
	const spec = "  secondaryControlPlaneLoadBalancer:\n    name: bastion-internal-api\n    loadBalancerType: nlb\n    scheme: internal\n"
	load := func(oldnew ...string) *manifest.Cluster {
		return enginetest.Quick(enginetest.Rewritten(t, "bastion.yaml", oldnew...))
	}
	synctest.Test(t, func(t *testing.T) {
		m := load("bastion-internal-api", "other")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, load(), a)
		calls := len(a.Calls())
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "(bastion.yaml:61 AWSCluster/bastion spec.secondaryControlPlaneLoadBalancer.name): its target group ")
		require.ErrorContains(t, err, " belongs to the load balancer bastion-internal-api, and cannot belong to another: set the name of the load balancer back")
		require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))

		enginetest.MustApply(t, load(spec, ""), a)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
	})
}
