package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

const selfHealing = "self-healing.yaml"

// hang makes machines hang: they run, but their kubelets and etcd do not respond. It returns
// the ID of the first one.
func hang(a *awssim.AWS, machines ...string) (id string) {
	a.Edit(func(s *awssim.State) { id = enginetest.MachineOf(s, machines[0]).ID })
	for _, machine := range machines {
		name := enginetest.Leaving(a, machine)
		enginetest.Inside(a, func(c *kubesim.Cluster) { c.Hang(time.Now(), name) })
	}
	return id
}

// heal runs a plan and an apply, and returns the steps and the warnings of the apply.
func heal(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (planned []string, warnings []string, err error) {
	t.Helper()
	p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
	require.NoError(t, err)
	target := enginetest.RollingTarget(a.Process())
	target.Warn = func(text string) { warnings = append(warnings, text) }
	_, err = run.Open(m, target).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	return enginetest.Steps(p), warnings, err
}

// requireMachines requires this number of machines, of which none has this ID.
func requireMachines(t *testing.T, a *awssim.AWS, n int, gone string) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		running := 0
		for _, i := range s.EC2.Instances {
			if i.Terminating.IsZero() {
				running++
				assert.NotEqual(t, gone, i.ID)
			}
		}
		assert.Equal(t, n, running)
	})
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		assert.Len(t, c.All("Node"), n)
		assert.Len(t, c.Members, 3)
		assert.True(t, c.Whole())
	})
}

// An unhealthy machine is replaced after its timeout, not before: a worker, and a machine of
// the control plane, also that which has initialized it.
func TestUnhealthyMachineIsReplaced(t *testing.T) {
	for _, machine := range []string{"machine/self-healing-md-0/1", "machine/self-healing-control-plane/0", "machine/self-healing-control-plane/2"} {
		t.Run(machine, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, selfHealing, nil)
				a := enginetest.Alive(t, m)
				id := hang(a, machine)
				time.Sleep(299 * time.Second)
				p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
				require.NoError(t, err)
				require.NotContains(t, strings.Join(enginetest.Steps(p), "\n"), "retired/")
				time.Sleep(2 * time.Second)
				planned, warnings, err := heal(t, m, a)
				require.NoError(t, err)
				assert.Empty(t, warnings)
				group := machine[:strings.LastIndexByte(machine, '/')]
				assert.Contains(t, strings.Join(planned, "\n"), "create "+group+"/3")
				assert.Contains(t, strings.Join(planned, "\n"), "delete retired/"+machine)
				requireMachines(t, a, 6, id)
				enginetest.RequireDone(t, m, a)
			})
		})
	}
}

// The plan names the reason and the MachineHealthCheck.
func TestPlanSaysWhyAMachineIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, selfHealing, nil)
		a := enginetest.Alive(t, m)
		hang(a, "machine/self-healing-md-0/1")
		time.Sleep(6 * time.Minute)
		p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		for _, s := range p.Steps {
			if s.Resource.Kind() == "retired" {
				assert.Regexp(
					t,
					`MachineDeployment/self-healing-md-0 spec: unhealthy: the condition Ready of its Node has been Unknown for more than 5m0s \(MachineHealthCheck/self-healing-md-0\)$`,
					s.Origin,
				)
			}
		}
	})
}

// A run that waits for a Node in vain replaces its machine when its timeout has passed.
func TestMachineThatBecomesUnhealthyInARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, selfHealing, nil)
		a := enginetest.Alive(t, m)
		id := hang(a, "machine/self-healing-md-0/1")
		_, _, err := heal(t, m, a)
		require.NoError(t, err)
		requireMachines(t, a, 6, id)
		enginetest.RequireDone(t, m, a)
	})
}

// A machine that never becomes a Node is replaced after nodeStartupTimeout.
func TestMachineWithoutNodeIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, selfHealing, nil)
		a := enginetest.Alive(t, m)
		const machine = "machine/self-healing-md-0/0"
		name := enginetest.Leaving(a, machine)
		enginetest.Inside(a, func(c *kubesim.Cluster) { c.Drop(c.Get("/api/v1/nodes/" + name)) })
		time.Sleep(15 * time.Minute)
		planned, _, err := heal(t, m, a)
		require.NoError(t, err)
		assert.Contains(t, strings.Join(planned, "\n"), "delete retired/"+machine)
		requireMachines(t, a, 6, "")
		enginetest.RequireDone(t, m, a)
	})
}

// Machines that are not replaced are told, with the reason.
func TestUnhealthyMachinesThatStay(t *testing.T) {
	const worker, control = "machine/self-healing-md-0/", "machine/self-healing-control-plane/"
	for name, x := range map[string]struct {
		hang   []string
		change func(m *manifest.Cluster)
		want   string
	}{
		"more than maxUnhealthy": {
			[]string{worker + "0", worker + "1"},
			nil,
			`^MachineHealthCheck/self-healing-md-0: 2 of 3 machines are unhealthy, which is more than unhealthyLessThanOrEqualTo 40%: unhealthy machines are not replaced \(i-\w+, i-\w+\)$`,
		},
		"outside of unhealthyRange": {
			[]string{worker + "0"},
			func(m *manifest.Cluster) { m.HealthChecks[1].Spec.Remediation.TriggerIf.UnhealthyInRange = "[2-3]" },
			`1 of 3 machines are unhealthy, which is outside of unhealthyInRange \[2-3\]`,
		},
		"maxInFlight": {[]string{worker + "0", worker + "1"}, func(m *manifest.Cluster) {
			none := intstr.FromInt32(0)
			m.HealthChecks[1].Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = nil
			m.Deployments[0].Object.Spec.Remediation.MaxInFlight = &none
		}, `2 machines are unhealthy; by remediation.maxInFlight, this run replaces 0`},
		"skipped": {[]string{worker + "0"}, func(m *manifest.Cluster) {
			m.Deployments[0].Object.Spec.Template.Annotations = map[string]string{"cluster.x-k8s.io/skip-remediation": ""}
		}, ""},
		"the only control plane": {[]string{control + "0"}, func(m *manifest.Cluster) {
			one := int32(1)
			m.ControlPlane.Object.Spec.Replicas = &one
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, selfHealing, nil)
				if x.change != nil {
					x.change(m)
				}
				a := enginetest.Alive(t, m)
				hang(a, x.hang...)
				time.Sleep(6 * time.Minute)
				target := enginetest.RollingTarget(a.Process())
				var warnings []string
				target.Warn = func(text string) { warnings = append(warnings, text) }
				p, err := run.Open(m, target).Plan(t.Context())
				require.NoError(t, err)
				assert.NotContains(t, strings.Join(enginetest.Steps(p), "\n"), "retired/")
				if x.want != "" {
					require.Len(t, warnings, 1)
					assert.Regexp(t, x.want, warnings[0])
				}
			})
		})
	}
}

// Whichever call is the last of a process, the next one completes the replacement of a
// machine of the control plane.
func TestReplacementOfTheControlPlaneMayDie(t *testing.T) {
	const machine = "machine/self-healing-control-plane/0"
	unwell := func(t *testing.T) (m *manifest.Cluster, a *awssim.AWS, id string) {
		m = enginetest.Load(t, selfHealing, nil)
		a = enginetest.Alive(t, m)
		id = hang(a, machine)
		time.Sleep(6 * time.Minute)
		return m, a, id
	}
	var calls int
	synctest.Test(t, func(t *testing.T) {
		m, a, _ := unwell(t)
		process := a.Process()
		_, err := enginetest.Rolling(m, process).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		calls = process.Calls()
	})
	deaths := 6
	if enginetest.Sweeping() {
		deaths = 40
	}
	for n := 5; n < calls; n += 1 + calls/deaths {
		for _, fault := range []awssim.Fault{awssim.KillBefore, awssim.KillAfter} {
			t.Run(fmt.Sprint(n, " ", fault), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m, a, id := unwell(t)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					process := a.Process()
					process.Fault, process.Killed = enginetest.Only(n, fault), cancel
					_, _ = enginetest.Rolling(m, process).Apply(ctx, cluster.Options{})
					_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
					require.NoError(t, err)
					requireMachines(t, a, 6, id)
					enginetest.RequireDone(t, m, a)
				})
			})
		}
	}
}
