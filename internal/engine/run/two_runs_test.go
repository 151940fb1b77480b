package run_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Of two runs at the same time exactly one writes: the other one sees a heartbeat of the
// first, and names it.
func TestTwoRunsAtOnce(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	for _, delay := range []time.Duration{0, time.Millisecond, 20 * time.Second, 2 * time.Minute} {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				var both sync.WaitGroup
				errs := make([]error, 2)
				writes := make([]int64, 2)
				for i, who := range []string{"first", "second"} {
					both.Go(func() {
						time.Sleep(time.Duration(i) * delay)
						c := run.Open(m, cluster.Target{Config: a.Config(), Owner: who})
						res, err := c.Apply(t.Context(), cluster.Options{})
						errs[i], writes[i] = err, res.Writes
					})
				}
				both.Wait()
				lost := 0
				for i, err := range errs {
					if err == nil {
						continue
					}
					lost++
					var locked *plan.LockedError
					require.ErrorAs(t, err, &locked)
					require.ErrorAs(t, err, new(*plan.RefusedError))
					require.Contains(t, []string{"first", "second"}, locked.Owner)
					require.Zero(t, writes[i])
				}
				require.Equal(t, 1, lost)
				enginetest.RequireNoChange(t, m, a)
			})
		})
	}
}

// The lock of a killed run can be taken over a minute and a heartbeat interval after its
// last heartbeat, and not earlier: AWS may take that long to show what it has created.
func TestDeadRunsLockIsTakenOver(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		ctx, cancel := context.WithCancel(t.Context())
		p := a.Process()
		var died time.Time
		time.AfterFunc(40*time.Second, func() { died = time.Now(); p.Kill(); cancel() })
		_, err := enginetest.Open(m, p).Apply(ctx, cluster.Options{})
		require.Error(t, err)
		beat := 10 * time.Second // it was killed that long after its last heartbeat

		var waited []time.Duration
		next := run.Open(m, cluster.Target{Config: a.Config(), Owner: "second", Warn: func(string) { waited = append(waited, time.Since(died)) }})
		before := len(a.Calls())
		_, err = next.Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.NotEmpty(t, waited, "the second run has to say what it waits for")
		var first time.Time
		for _, c := range a.Calls()[before:] {
			if c.Service == "EC2" {
				first = c.At
				break
			}
		}
		took := first.Sub(died) + beat
		require.GreaterOrEqual(t, took, 75*time.Second)
		require.LessOrEqual(t, took, 92*time.Second)
	})
}

// A run that was suspended until another one has taken over its lock makes no more
// changes when it is resumed.
func TestRunThatLostItsLockStopsWriting(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		morning := make(chan struct{})
		p := a.Process()
		result := make(chan error, 1)
		go func() {
			_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
			result <- err
		}()
		time.Sleep(90 * time.Second) // it waits for NAT gateways; route tables are still to be created
		p.Sleep(morning)
		time.Sleep(10 * time.Minute)
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		sent := p.Calls()
		all := len(a.Calls())
		close(morning)
		require.ErrorIs(t, <-result, cloud.ErrLockLost)
		require.Positive(t, p.Calls()-sent, "it has to look at the lock")
		for _, c := range a.Calls()[all:] {
			require.True(t, cloud.Reads(c.Operation), "%s after the lock was lost", c.Operation)
		}
		enginetest.RequireNoChange(t, m, a)
	})
}
