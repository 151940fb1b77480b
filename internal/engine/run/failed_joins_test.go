package run_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// failing creates a cluster of three control planes and three workers in which attempts to
// join fail: a number of them for each machine. It returns the warnings of the run.
func failing(t *testing.T, m *manifest.Cluster, joins map[string]int) (a *awssim.AWS, warnings []string, err error) {
	t.Helper()
	a = enginetest.Account(m, enginetest.Lag)
	target := enginetest.RollingTarget(a.Process())
	target.Warn = func(text string) { warnings = append(warnings, text) }
	_, err = run.Open(m, target).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
		if told := enginetest.Tell(t); told != nil {
			told(e)
		}
		a.Edit(func(s *awssim.State) {
			if fails, ok := joins[string(e.Resource)]; ok && e.What == plan.Done {
				enginetest.MachineOf(s, string(e.Resource)).JoinFails = fails
				delete(joins, string(e.Resource))
			}
		})
		if e.Resource == "api-server" && e.What == plan.Done {
			enginetest.AddNetwork(a)
		}
	}})
	return a, warnings, err
}

const (
	joiningControl = "machine/three-zones-control-plane/1"
	joiningWorker  = "machine/three-zones-md-0/1"
)

// An API server that has just started refuses the first attempts to join. The machines
// repeat them.
func TestJoinThatFailsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.ThreeZones, nil)
		a, warnings, err := failing(t, m, map[string]int{joiningControl: 1, joiningWorker: 2})
		require.NoError(t, err)
		assert.Empty(t, warnings)
		a.Edit(func(s *awssim.State) {
			assert.Len(t, enginetest.MachineOf(s, joiningControl).Boot.Tries, 1)
			assert.Len(t, enginetest.MachineOf(s, joiningWorker).Boot.Tries, 2)
			assert.Len(t, s.EC2.Instances, 6)
		})
		enginetest.RequireDone(t, m, a)
	})
}

// A worker on which all attempts fail is replaced by the same run.
func TestWorkerThatNeverJoinsIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.ThreeZones, nil)
		a, warnings, err := failing(t, m, map[string]int{joiningWorker: 1000})
		require.NoError(t, err)
		require.Len(t, warnings, 1)
		assert.Regexp(t, `^i-\w+ has not joined the cluster \(kubeadm join: attempt \d+ failed with exit code 1\): this run replaces it, once$`, warnings[0])
		a.Edit(func(s *awssim.State) {
			running := 0
			for _, i := range s.EC2.Instances {
				if i.Terminating.IsZero() {
					running++
					assert.Empty(t, i.Boot.Failed+i.Tags["clusterawsadm/join-failed"])
				}
			}
			assert.Equal(t, 6, running)
		})
		enginetest.RequireDone(t, m, a)
	})
}

// A run that dies after it has marked the worker is continued by the next one.
func TestReplacementOfAWorkerMayDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.ThreeZones, nil)
		a := enginetest.Alive(t, m)
		a.Edit(func(s *awssim.State) {
			enginetest.MachineOf(s, joiningWorker).Tags["clusterawsadm/join-failed"] = "true"
		})
		p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		require.Contains(t, strings.Join(enginetest.Steps(p), "\n"), "create machine/three-zones-md-0/3")
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.RequireDone(t, m, a)
	})
}

// Workers of a group that keeps its machines, and machines of the control plane, are not
// replaced: the run says what to do.
func TestMachinesThatAreNotReplaced(t *testing.T) {
	for _, machine := range []string{joiningControl, joiningWorker} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Load(t, enginetest.ThreeZones, nil)
			m.Deployments[0].Object.Spec.Rollout.Strategy.Type = "OnDelete"
			a, warnings, err := failing(t, m, map[string]int{machine: 1000})
			end := enginetest.Diagnosed(t, err, plan.ID("node/"+strings.TrimPrefix(machine, "machine/")))
			assert.Contains(t, strings.Join(end.Findings, "\n"), "kubeadm join: attempt ")
			assert.False(t, slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "replaces it") }), "%v", warnings)
			time.Sleep(30 * time.Minute)
			_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			require.ErrorAs(t, err, &end)
			assert.Regexp(
				t,
				`^i-\w+ says on its console ".*kubeadm join: gives up after \d+ seconds.*": kubeadm join has failed again and again, .*terminate it \(aws ec2 terminate-instances`,
				end.Findings[0],
			)
		})
	}
}
