package run_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/sweep"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/require"
)

// Calls cost time, money and quota: three zones with three control planes and three
// workers may take no more than these. Those for the lock, secrets and parameters are part of them.
func TestCallBudgets(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		check := func(what string, most int, do func()) {
			before := len(a.Calls())
			do()
			n, ops := enginetest.Counted(enginetest.Since(a, before))
			t.Logf("%s: %d calls %v", what, n, ops)
			require.LessOrEqual(t, n, most, "%s: %v", what, ops)
		}
		check("create", 137, func() { enginetest.MustApply(t, m, a) }) // of which 17 ask for quotas, permissions, names in use and who can read the keys
		check("no-op", 28, func() { enginetest.MustApply(t, m, a) })
		check("plan", 22, func() { require.True(t, enginetest.MustPlan(t, m, a).Empty()) })
		check("delete", 130, func() { enginetest.MustDelete(t, m, a) }) // of which 17 look again at the end, and 13 ask whether something is protected
	})
}

// A run without changes sends as many queries for a thousand workers as for three, except
// for pages.
func TestNoOpOfAThousandWorkers(t *testing.T) {
	m := enginetest.WithWorkers(t, enginetest.ThreeZones, 1000)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.MustApply(t, m, a)
		before := len(a.Calls())
		require.True(t, enginetest.MustPlan(t, m, a).Empty())
		n, ops := enginetest.Counted(enginetest.Since(a, before))
		require.LessOrEqual(t, n-(ops["DescribeInstances"]-1), 26, "%v", ops)
	})
}

// EC2 accepts five launch requests at once and then two per second: a thousand workers
// still launch within ten seconds.
func TestAThousandWorkersLaunchAtOnce(t *testing.T) {
	m := enginetest.WithWorkers(t, enginetest.ThreeZones, 1000)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.MustApply(t, m, a)
		var first, last time.Time
		for _, c := range a.Calls() {
			if c.Operation != "RunInstances" || c.Err != "" {
				continue
			}
			if first.IsZero() {
				first = c.At
			}
			last = c.At
		}
		require.LessOrEqual(t, last.Sub(first), 10*time.Second)
		machines := 0
		for _, line := range a.Inventory() {
			if strings.HasPrefix(line, "Instance ") {
				machines++
			}
		}
		require.Equal(t, 1003, machines)
	})
}

// A run takes as long as its plan says, for creation and deletion. It may take two percent longer, or the two
// seconds between two polls. With eventual consistency it may take four percent longer, and twice the lag: AWS
// first has to show the VPC to the calls that refer to it, and at the end that nothing is left.
func TestMakespan(t *testing.T) {
	for i, file := range enginetest.Examples(t) {
		const poll = 2 * time.Second
		lags := map[time.Duration]float64{0: 0.02}
		if part, of := sweep.Part(); of > 0 && i%of == part || of == 0 && i%6 == 0 {
			lags[enginetest.Lag] = 0.04
		}
		for lag, tolerance := range lags {
			t.Run(fmt.Sprintf("%s, lag %s", enginetest.Name(file), lag), func(t *testing.T) {
				m := enginetest.LoadQuick(t, file)
				synctest.Test(t, func(t *testing.T) {
					asExpected := func(p plan.Plan, run func(*testing.T, *manifest.Cluster, *awssim.AWS) cluster.Result, a *awssim.AWS) {
						began := time.Now()
						run(t, m, a)
						took := time.Since(began)
						t.Logf("%s, expected %s", took, p.Expected)
						require.GreaterOrEqual(t, took, p.Expected)
						require.LessOrEqual(t, took, p.Expected+max(time.Duration(tolerance*float64(p.Expected)), poll)+2*lag)
					}
					a := enginetest.Account(m, lag)
					enginetest.Prepare(t, a, m)
					asExpected(enginetest.MustPlan(t, m, a), enginetest.MustApply, a)
					time.Sleep(enginetest.Booting)
					deletion, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
					require.NoError(t, err)
					asExpected(deletion, enginetest.MustDelete, a)
				})
			})
		}
	}
}

// A deletion without a manifest takes as long as its plan says, and no longer than one with it.
func TestMakespanByName(t *testing.T) {
	for i, file := range enginetest.Examples(t) {
		if part, of := sweep.Part(); of > 0 && i%of != part || of == 0 && i%6 != 1 && enginetest.Name(file) != "quickstart" {
			continue
		}
		t.Run(enginetest.Name(file), func(t *testing.T) {
			const poll = 2 * time.Second
			m := enginetest.LoadQuick(t, file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, 0)
				enginetest.Prepare(t, a, m)
				enginetest.MustApply(t, m, a)
				time.Sleep(enginetest.Booting)
				with, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				p, err := enginetest.ByName(m.Name, a).PlanDelete(t.Context(), enginetest.Everything)
				require.NoError(t, err)
				began := time.Now()
				_, err = enginetest.ByName(m.Name, a).Delete(t.Context(), enginetest.Everything)
				require.NoError(t, err)
				took := time.Since(began)
				t.Logf("%s, expected %s, %s with the manifest", took, p.Expected, with.Expected)
				tolerance := max(p.Expected/50, 2*poll) // which group refers to which, only AWS's refusals say
				require.GreaterOrEqual(t, took, p.Expected)
				require.LessOrEqual(t, took, p.Expected+tolerance)
				require.LessOrEqual(t, p.Expected, with.Expected+tolerance)
			})
		})
	}
}
