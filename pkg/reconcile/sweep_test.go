package reconcile_test

import (
	"os"
	"testing"
)

// A sweep is a test that makes one call after the other fail, or one field
// after the other differ. "make sweep" sets SWEEP, and every call and every
// example has its turn. "make test" goes through a sample of the same.

// sweeping reports whether this is "make sweep".
func sweeping() bool { return os.Getenv("SWEEP") != "" }

// sample returns the examples that a sweep goes through: all of them, or the
// first two.
func sample(files []string) []string {
	if sweeping() {
		return files
	}
	return files[:min(2, len(files))]
}

// sampleOfAll returns every example that there is, or two.
func sampleOfAll(t *testing.T) []string {
	t.Helper()
	if sweeping() {
		return examples(t)
	}
	return sample(sweepExamples())
}

// stride is the distance between two calls that fail: that of the full sweep,
// or ten times as much and one, so that neighbours have their turn too.
func stride(full int) int {
	if sweeping() {
		return full
	}
	return 10*full + 1
}

// first is the first call that fails of the i-th of some faults: where not
// every call has its turn, each fault hits other ones.
func first(i int) int {
	if sweeping() {
		return 1
	}
	return 1 + 2*i
}
