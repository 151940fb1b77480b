package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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

// held is a request that a killed run has sent, and that arrives later.
type held struct {
	example string
	op      string
	nth     int           // of these calls
	after   time.Duration // it arrives
	during  string        // the command of the killed run
	then    []string      // the commands of the runs after it
}

// play kills the run, and starts the next ones at once. It returns how long they took, and
// their warnings.
func (h held) play(t *testing.T, a *awssim.AWS, m *manifest.Cluster) (took []time.Duration, told []string) {
	t.Helper()
	if h.during == "delete" {
		enginetest.MustApply(t, m, a)
	}
	var arrived sync.WaitGroup
	arrived.Add(1)
	p := a.Process()
	seen := 0
	p.Delay, p.Arrived = h.after, func(_, _ string, err error) {
		t.Logf("the held request arrives: %v", err)
		arrived.Done()
	}
	p.Fault = func(_ int, _, op string) awssim.Fault {
		if op == h.op {
			seen++
			if seen == max(h.nth, 1) {
				return awssim.KillHeld
			}
		}
		return awssim.None
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.Killed = cancel
	_, err := do(ctx, m, p, h.during, nil)
	require.Error(t, err)
	warn := func(text string) { told = append(told, text) }
	for _, command := range h.then {
		began := time.Now()
		_, err := do(t.Context(), m, a.Process(), command, warn)
		if errors.As(err, new(*plan.LeftoverError)) { // it says that, and to repeat the command
			_, err = do(t.Context(), m, a.Process(), command, warn)
		}
		if h.during == "delete" && errors.As(err, new(*plan.RefusedError)) { // the cluster is not complete enough to go on
			enginetest.MustDelete(t, m, a)
			_, err = do(t.Context(), m, a.Process(), command, warn)
		}
		require.NoError(t, err, command)
		took = append(took, time.Since(began))
	}
	arrived.Wait()
	return took, told
}

func do(ctx context.Context, m *manifest.Cluster, p *awssim.Process, command string, warn func(string)) (cluster.Result, error) {
	c := run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Warn: warn})
	if command == "delete" {
		return c.Delete(ctx, enginetest.Everything)
	}
	return c.Apply(ctx, cluster.Options{})
}

// TestCreationsThatArriveAfterADeletion kills a create, whose last request arrives when the
// cluster is deleted. The deletion finds what the request creates, or has waited until AWS does
// not accept it any more.
func TestCreationsThatArriveAfterADeletion(t *testing.T) {
	for op, nth := range map[string]int{"CreateVpc": 1, "AllocateAddress": 1, "CreateInternetGateway": 1, "PutParameter": 3, "CreateNatGateway": 1} { // the first parameter is the lock
		for _, after := range []time.Duration{85 * time.Second, 150 * time.Second, 290 * time.Second} {
			t.Run(fmt.Sprint(op, " held for ", after), func(t *testing.T) {
				t.Parallel()
				const file = "quickstart.yaml"
				m := enginetest.Quick(enginetest.Load(t, file, nil))
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Account(m, enginetest.Lag)
					enginetest.Prepare(t, a, m)
					before := a.Inventory()
					held{example: "quickstart", op: op, nth: nth, after: after, during: "create", then: []string{"delete"}}.play(t, a, m)
					require.Equal(t, before, a.Inventory())
				})
			})
		}
	}
}

// TestRequestsThatArriveLate kills a run while a request is on its way, which arrives when
// other runs have ended: the cluster that they have left works, and nothing is left after
// its deletion.
func TestRequestsThatArriveLate(t *testing.T) {
	deletions := map[string][]string{
		"quickstart": {
			"DeleteParameters",
			"DeleteParameter",
			"DeleteLoadBalancer",
			"DeleteTargetGroup",
			"TerminateInstances",
			"DeleteSecret",
			"DeleteNatGateway",
			"ReleaseAddress",
			"DeleteSecurityGroup",
			"DeleteVpc",
		},
		"flatcar":      {"DeleteObjects", "DeleteBucket"},
		"machine-pool": {"DeleteAutoScalingGroup", "DeleteLaunchTemplate"},
		"eks":          {"DeleteCluster", "DeleteNodegroup"},
	}
	var all []held
	for example, ops := range deletions {
		for _, op := range ops {
			all = append(all, held{example: example, op: op, after: 290 * time.Second, during: "delete", then: []string{"create"}})
			all = append(all, held{example: example, op: op, after: 290 * time.Second, during: "delete", then: []string{"delete", "create"}})
		}
	}
	for _, op := range []string{"CreateVpc", "RunInstances", "PutParameter", "AllocateAddress", "CreateInternetGateway", "CreateNatGateway", "CreateRouteTable", "CreateLoadBalancer", "CreateSecurityGroup", "CreateSubnet", "CreateTargetGroup", "CreateSecret"} {
		all = append(all, held{example: "quickstart", op: op, after: 80 * time.Second, during: "create", then: []string{"create"}})
		all = append(all, held{example: "quickstart", op: op, after: 290 * time.Second, during: "create", then: []string{"create"}})
		all = append(all, held{example: "quickstart", op: op, after: 290 * time.Second, during: "create", then: []string{"delete", "create"}})
	}
	for _, h := range all {
		name := h.during + " " + h.op + " of " + h.example + " held for " + h.after.String()
		for _, command := range h.then {
			name += ", " + command
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := enginetest.Quick(enginetest.Load(t, ""+h.example+".yaml", nil))
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.Prepare(t, a, m)
				before := a.Inventory()
				took, told := h.play(t, a, m)
				t.Logf("%v %q", took, told)
				time.Sleep(time.Minute) // for the consistency of listings
				waits := strings.Contains(strings.Join(told, " "), "AWS may still carry out a request")
				if h.during == "create" {
					assert.Equal(
						t,
						h.then[0] == "delete" && h.op != "PutParameter",
						waits,
						"for a request that only creates something",
					) // the first parameter is the lock itself
					enginetest.MustApply(
						t,
						m,
						a,
					) // deletes what the request has created
				} else if h.then[0] == "create" { // a deletion may take longer than the request
					assert.True(t, waits)
				}
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}
