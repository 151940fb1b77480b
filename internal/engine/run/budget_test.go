package run_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"

	"github.com/stretchr/testify/require"
)

// Calls cost time, money and quota: three zones with three control planes and three
// workers may take no more than these, without those for the lock and for secrets.
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
		check("create", 101, func() { enginetest.MustApply(t, m, a) }) // of which 16 ask for quotas, permissions and who can read the keys, all at once
		check("no-op", 20, func() { enginetest.MustApply(t, m, a) })
		check("plan", 20, func() { require.True(t, enginetest.MustPlan(t, m, a).Empty()) })
		check("delete", 93, func() { enginetest.MustDelete(t, m, a) }) // of which 12 look again at the end, and 13 ask whether something is protected
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
		require.LessOrEqual(t, n-(ops["DescribeInstances"]-1), 20, "%v", ops)
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

// A create takes as long as the operations in AWS. Its virtual time exceeds the critical path
// of the graph by at most five percent. On a path of less than 40 seconds, it may exceed it by
// two seconds, the interval in which the state of a machine is polled.
func TestMakespan(t *testing.T) {
	for _, file := range enginetest.Examples(t) {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, 0)
				enginetest.Prepare(t, file, a, m)
				began := time.Now()
				enginetest.MustApply(t, m, a)
				took := time.Since(began)
				g, err := enginetest.Open(m, a.Process()).Graph()
				require.NoError(t, err)
				t.Logf("%s: %s, critical path %s", enginetest.Name(file), took, g.CreateTime(nil))
				path := g.CreateTime(nil)
				require.LessOrEqual(t, took, path+max(path/20, 2*time.Second))
			})
		})
	}
}
