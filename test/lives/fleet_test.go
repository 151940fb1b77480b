package lives_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// TestFleet creates clusters of one account at once, each in its own process, as a CI matrix
// does: they share its rate limits. Then it deletes all of them. SWEEP=1 creates 50 of them.
func TestFleet(t *testing.T) {
	text, err := enginetest.Read("quickstart.yaml")
	require.NoError(t, err)
	fleet := 10
	if enginetest.Sweeping() {
		fleet = 50
	}
	var all []*manifest.Cluster
	for i := range fleet {
		name := fmt.Sprintf("fleet-%02d", i)
		m, err := loader.Load([]input.Source{{Name: name, Data: bytes.ReplaceAll(text, []byte("quickstart"), []byte(name))}}, input.LoadOptions{})
		require.NoError(t, err)
		all = append(all, m)
	}
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(all[0], enginetest.Lag)
		before := a.Inventory()
		a.Edit(func(s *awssim.State) {
			s.EC2.Limits.VPCs, s.EC2.Limits.Addresses, s.EC2.Limits.NATGatewaysPerZone = fleet+1, 3*fleet, fleet
		})
		each := func(verb string, do func(*run.Cluster) (cluster.Result, error)) {
			calls, began := len(a.Calls()), time.Now()
			var runs sync.WaitGroup
			var mu sync.Mutex
			var slowest time.Duration
			var failed []error
			for _, m := range all {
				runs.Go(func() {
					res, err := do(enginetest.Open(m, a.Process()))
					mu.Lock()
					defer mu.Unlock()
					failed, slowest = append(failed, err), max(slowest, res.Took)
				})
			}
			runs.Wait()
			require.NoError(t, errors.Join(failed...))
			made := enginetest.Since(a, calls)
			throttled := 0
			for _, c := range made {
				if c.Err == "RequestLimitExceeded" || c.Err == "Throttling" || c.Err == "ThrottlingException" {
					throttled++
				}
			}
			t.Logf(
				"%s of %d clusters: %s, the slowest %s; %d calls, %d of them refused",
				verb,
				fleet,
				time.Since(began).Round(time.Second),
				slowest.Round(time.Second),
				len(made),
				throttled,
			)
			require.Less(t, slowest, 10*time.Minute)
		}
		each("create", func(c *run.Cluster) (cluster.Result, error) {
			return c.Apply(t.Context(), cluster.Options{})
		})
		each("delete", func(c *run.Cluster) (cluster.Result, error) {
			return c.Delete(t.Context(), cluster.Options{})
		})
		require.Equal(t, before, a.Inventory())
	})
}
