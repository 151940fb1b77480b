package simulated

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

func TestParseFaults(t *testing.T) {
	f, err := ParseFaults("7:slow")
	require.NoError(t, err)
	assert.Equal(t, &Faults{7, "slow"}, f)
	f, err = ParseFaults("7")
	require.NoError(t, err)
	assert.Equal(t, "mixed", f.Profile)
	for _, bad := range []string{"", "x", "-1", "1:", "1:nonsense", ":slow"} {
		_, err := ParseFaults(bad)
		assert.Error(t, err, bad)
	}
}

// The same seed has the same faults, and another has others.
func TestFaultsOfASeed(t *testing.T) {
	of := func(seed uint64, profile string) (all []awssim.Fault) {
		f := &Faults{seed, profile}
		for n := range 300 {
			all = append(all, f.fault("EC2", []string{"DescribeVpcs", "CreateVpc", "RunInstances"}[n%3], n/3))
		}
		return all
	}
	for _, profile := range []string{"throttled", "network", "lost", "mixed", "stale"} {
		first, again := of(1, profile), of(1, profile)
		assert.Equal(t, first, again)
		assert.NotEqual(t, first, of(2, profile))
		failed := 0
		for _, fault := range of(1, profile) {
			if fault != awssim.None {
				failed++
			}
		}
		assert.InDelta(t, 40, failed, 35, profile)
	}
}

// Faults that pass leave the same cluster as an AWS without faults. One run is enough, unless
// the program is killed or its credentials expire.
func TestRunsWithFaults(t *testing.T) {
	want := disturbed(t, nil)
	for _, profile := range []string{"throttled", "network", "lost", "mixed", "slow", "capacity", "stale", "silent", "unsettled", "killed", "expired"} {
		assert.Equal(t, want, disturbed(t, &Faults{1, profile}), profile)
	}
}

// Faults that stay end the run, and the error has AWS's reason.
func TestRunsThatFail(t *testing.T) {
	for profile, reason := range map[string]string{
		"launch": "The KMS key provided is in an incorrect state", "nat": "ran into an internal error", "denied": "not authorized to perform this operation", "expired": "token included in the request is expired",
	} {
		synctest.Test(t, func(t *testing.T) {
			f, o := &Faults{1, profile}, awssim.Options{}
			f.slow(&o)
			a := awssim.New(o)
			p := a.Process()
			f.disturb(p, a.Serial(), nil)
			_, err := reconcile.Open(quickstart(t), cluster.Target{Config: p.Config(), Owner: "a test"}).Apply(t.Context(), cluster.Options{})
			assert.ErrorContains(t, err, reason, profile)
		})
	}
}

func quickstart(t *testing.T) *reconcile.Manifest {
	t.Helper()
	text, err := os.ReadFile("../../../configs/quickstart.yaml")
	require.NoError(t, err)
	m, err := reconcile.Load([]input.Source{{Name: "demo.yaml", Data: text}}, input.LoadOptions{})
	require.NoError(t, err)
	return m
}

// disturbed creates the cluster of the quick start, and returns what exists then.
func disturbed(t *testing.T, f *Faults) (left []string) {
	t.Helper()
	m := quickstart(t)
	synctest.Test(t, func(t *testing.T) {
		var err error
		o := awssim.Options{}
		f.slow(&o)
		a := awssim.New(o)
		for run := range 60 {
			ctx, kill := context.WithCancel(t.Context())
			p := a.Process()
			f.disturb(p, run, kill)
			_, err = reconcile.Open(m, cluster.Target{Config: p.Config(), Owner: "a test"}).Apply(ctx, cluster.Options{})
			kill()
			if err == nil || f == nil || f.Profile != "killed" && f.Profile != "expired" {
				break
			}
		}
		require.NoError(t, err, "%+v", f)
		time.Sleep(booting)                                                                                         // then machines have deleted their boot data
		left = slices.DeleteFunc(a.Inventory(), func(line string) bool { return strings.Contains(line, "/lock/") }) // each run has one
	})
	return left
}
