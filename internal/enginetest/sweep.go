package enginetest

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/sweep"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// SweepExamples are the examples for which every call is made to fail.
func SweepExamples() []string {
	return []string{"quickstart.yaml", "eks-addons.yaml", "three-zones.yaml", "machine-pool.yaml", "eks-machines.yaml", "eks-templates.yaml"}
}

// LoadQuick reads an example and sets a key algorithm that is quick: a sweep creates
// thousands of keys.
func LoadQuick(t *testing.T, file string) *manifest.Cluster {
	t.Helper()
	return Quick(Load(t, file, nil))
}

// Prepared returns an account with the existing resources of the example.
func Prepared(t *testing.T, m *manifest.Cluster) *awssim.AWS {
	t.Helper()
	a := Account(m, Lag)
	Prepare(t, a, m)
	return a
}

// Described returns the details of an account without the records of the lock, after its
// machines have booted and deleted their boot data.
func Described(a *awssim.AWS) []string {
	time.Sleep(Booting)
	return slices.DeleteFunc(a.Described(), IsLock)
}

// IsLock reports whether a line of an inventory is a record of the lock.
func IsLock(line string) bool { return strings.Contains(line, "/lock/") }

// CallsOf returns the number of calls of an apply without faults, and its result.
func CallsOf(t *testing.T, m *manifest.Cluster) (calls int, detailed []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := Prepared(t, m)
		p := a.Process()
		_, err := Open(m, p).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		calls, detailed = p.Calls(), Described(a)
	})
	return calls, detailed
}

// Only injects a fault into the n-th call of a process.
func Only(n int, fault awssim.Fault) func(int, string, string) awssim.Fault {
	return func(call int, _, _ string) awssim.Fault {
		if call == n {
			return fault
		}
		return awssim.None
	}
}

// Sweeping reports whether SWEEP is set, as "make sweep" and "make proof" do.
func Sweeping() bool {
	_, of := sweep.Part()
	return of > 0
}

// Sample returns the examples of a sweep: all of them, or the first two.
func Sample(files []string) []string {
	if Sweeping() {
		return files
	}
	return files[:min(2, len(files))]
}

// SampleOfAll returns all examples, those of a part of the sweep, or two.
func SampleOfAll(t *testing.T) (some []string) {
	t.Helper()
	part, of := sweep.Part()
	if of == 0 {
		return Sample(SweepExamples())
	}
	for n, example := range Examples(t) {
		if n%of == part {
			some = append(some, example)
		}
	}
	return some
}

// Stride returns the distance between two calls with a fault: that of the full sweep times the number of
// its parts, or ten times as much plus one, so that neighbours are covered too.
func Stride(full int) int {
	if _, of := sweep.Part(); of > 0 {
		return full * of
	}
	return 10*full + 1
}

// First returns the first call for the i-th fault. Each part of a sweep with that stride begins at another
// call; in a sample, each fault is injected into other calls.
func First(full, i int) int {
	if part, of := sweep.Part(); of > 0 {
		return 1 + full*part
	}
	return 1 + 2*i
}
