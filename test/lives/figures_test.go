package lives_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// TestFigures prints what a life cycle costs, for 3, 100 and 1,000 workers:
//
//	FIGURES=1 go test ./test/lives -run TestFigures -v
//
// Times are those of the virtual clock; processor time and memory are real,
// and those of the simulated AWS are among them.
func TestFigures(t *testing.T) {
	if os.Getenv("FIGURES") == "" {
		t.Skip("FIGURES is not set")
	}
	t.Logf("%7s  %-7s %6s %6s %9s %9s %9s", "workers", "run", "calls", "writes", "makespan", "CPU", "memory")
	for _, workers := range []int32{3, 100, 1000} {
		m := enginetest.WithWorkers(t, enginetest.ThreeZones, workers)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, 0)
			figure := func(run string, do func(*run.Cluster) (cluster.Result, error)) {
				calls, began, cpu, mem := len(a.Calls()), time.Now(), processorTime(t), allocated()
				res, err := do(enginetest.Open(m, a.Process()))
				require.NoError(t, err)
				n, _ := enginetest.Counted(enginetest.Since(a, calls))
				t.Logf("%7d  %-7s %6d %6d %9s %9s %6d MiB", workers, run, n, res.Writes, time.Since(began).Round(time.Second),
					(processorTime(t) - cpu).Round(time.Millisecond), (allocated()-mem)>>20)
			}
			apply := func(c *run.Cluster) (cluster.Result, error) { return c.Apply(t.Context(), cluster.Options{}) }
			figure("create", apply)
			figure("no-op", apply)
			figure("delete", func(c *run.Cluster) (cluster.Result, error) {
				return c.Delete(t.Context(), cluster.Options{})
			})
		})
	}
}

// processorTime is the processor time of the process so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// allocated is all memory that was allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
