package reconcile_test

import (
	"os"
	"testing"
)

// A sweep is a test that repeats a run, each time with a fault at another call or with
// another changed field. "make sweep" sets SWEEP, and covers every call and every
// example. "make test" covers a sample.

// sweeping reports whether this is "make sweep".
func sweeping() bool { return os.Getenv("SWEEP") != "" }

// sample returns the examples of a sweep: all of them, or the first two.
func sample(files []string) []string {
	if sweeping() {
		return files
	}
	return files[:min(2, len(files))]
}

// sampleOfAll returns all examples, or two.
func sampleOfAll(t *testing.T) []string {
	t.Helper()
	if sweeping() {
		return examples(t)
	}
	return sample(sweepExamples())
}

// stride returns the distance between two calls with a fault: that of the full sweep, or
// ten times as much plus one, so that neighbours are covered too.
func stride(full int) int {
	if sweeping() {
		return full
	}
	return 10*full + 1
}

// first returns the first call for the i-th fault: in a sample, each fault is injected
// into other calls.
func first(i int) int {
	if sweeping() {
		return 1
	}
	return 1 + 2*i
}
