package incluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// bare returns the saved state of an account with the example's control plane, and
// without add-ons.
func bare(t *testing.T, m *manifest.Cluster) []byte {
	t.Helper()
	without := *m
	without.ResourceSets = nil
	var saved bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		_, err := enginetest.Waiting(&without, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, a.Save(&saved))
	})
	return saved.Bytes()
}

// restored returns the account of a saved state, some time later.
func restored(t *testing.T, m *manifest.Cluster, saved []byte) *awssim.AWS {
	t.Helper()
	time.Sleep(time.Hour)
	a, err := awssim.Load(bytes.NewReader(saved), awssim.Options{Region: m.Region, Lag: enginetest.Lag})
	require.NoError(t, err)
	return a
}

// objects returns all objects of the only cluster of an account, without times and random
// values.
func objects(a *awssim.AWS) (out []string) {
	lot := regexp.MustCompile(`"(uid|resourceVersion|creationTimestamp|time|lastHeartbeatTime|lastTransitionTime)":"[^"]*"`)
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		for _, path := range slices.Sorted(maps.Keys(c.Objects)) {
			data, _ := json.Marshal(c.Objects[path])
			out = append(out, path+" "+lot.ReplaceAllString(string(data), "$1"))
		}
	})
	return out
}

// askedOf executes an apply whose n-th request to the API server fails. It returns the
// number of requests, and the method of the failed one.
func askedOf(t *testing.T, m *manifest.Cluster, a *awssim.AWS, n int, fault awssim.Fault) (asked int, method string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := a.Process()
	p.Killed = cancel
	p.Fault = func(_ int, service, op string) awssim.Fault {
		if service == "Kubernetes" {
			if asked++; asked == n {
				method = op
				return fault
			}
		}
		return awssim.None
	}
	_, err = enginetest.Waiting(m, p, plan.APIServer).Apply(ctx, cluster.Options{Observe: enginetest.Tell(t)})
	return asked, method, err
}

// Whichever request to the API server fails while add-ons are applied, and in whatever
// way: the next run has the same result as one without faults.
func TestAddonsEveryRequestMayFail(t *testing.T) {
	m := enginetest.LoadQuick(t, addonsExample)
	saved := bare(t, m)
	var total int
	var want []string
	synctest.Test(t, func(t *testing.T) {
		a := restored(t, m, saved)
		var err error
		total, _, err = askedOf(t, m, a, 0, awssim.None)
		require.NoError(t, err)
		want = objects(a)
	})
	t.Logf("%d requests", total)
	cured := []awssim.Fault{awssim.Throttled, awssim.Broken, awssim.LostBefore, awssim.LostAfter} // within the run
	for fault, apart := range map[awssim.Fault]int{
		awssim.KillBefore: 1, awssim.KillAfter: 1, awssim.LostAfter: 2,
		awssim.Throttled: 5, awssim.Broken: 5, awssim.LostBefore: 5, awssim.Denied: 5,
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for n := enginetest.First(apart, 0); n <= total; n += enginetest.Stride(apart) {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						a := restored(t, m, saved)
						_, method, err := askedOf(t, m, a, n, fault)
						if slices.Contains(cured, fault) && method == http.MethodPatch {
							require.NoError(t, err)
						}
						p := enginetest.Waiting(m, a.Process(), plan.APIServer)
						_, err = p.Apply(t.Context(), cluster.Options{})
						require.NoError(t, err)
						plan, err := p.Plan(t.Context())
						require.NoError(t, err)
						require.True(t, plan.Empty(), plan.Steps)
						require.Equal(t, want, objects(a))
					})
				})
			}
		})
	}
}
