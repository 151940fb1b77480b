package lives_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
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

// TestFleet creates many clusters in one account at the same time, each in its own process, as the jobs of a
// CI matrix do. They share the rate limits of the account. Then it deletes all of them. Two limits hold:
//
//   - The slowest creation takes at most 1.2 × (a + b). a is how long one creation alone takes, and b is how
//     long the rate limits need to let all calls through. The same holds for the slowest deletion.
//   - The slowest creation takes at most 1.5 times as long as the median.
//
// FLEET is the number of clusters, 10 by default; SWEEP=1 and "make fleet" have 50.
func TestFleet(t *testing.T) {
	fleet := 10
	if enginetest.Sweeping() {
		fleet = 50
	}
	if n, err := strconv.Atoi(os.Getenv("FLEET")); err == nil {
		fleet = n
	}
	alone := inOneAccount(t, 1)
	together := inOneAccount(t, fleet)
	for i, verb := range []string{"create", "delete"} {
		one, all := alone[i].took[0], together[i].took
		forced, by := alone[i].forced(fleet)
		median, slowest := all[len(all)/2], all[len(all)-1]
		t.Logf(
			"%s: one takes %s, %d take %s to %s, median %s; the limits force %s (%s); %d calls, %d of them refused",
			verb, rounded(one), fleet, rounded(all[0]), rounded(slowest), rounded(median), rounded(forced), by, together[i].calls, together[i].refused,
		)
		require.Less(t, slowest, 10*time.Minute)
		require.LessOrEqual(t, slowest, (forced+one)*6/5)
		if verb == "create" { // deletions that get ahead of the others end early
			require.LessOrEqual(t, slowest, median*3/2)
		}
	}
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Second) }

// lives is what the creations, or the deletions, of clusters of one account have taken.
type lives struct {
	took           []time.Duration // sorted
	calls, refused int
	buckets        map[string]*awssim.TokenBucket // those that they have taken tokens of
}

// forced returns how long the bucket that is emptied first makes n times the calls last.
func (l lives) forced(n int) (longest time.Duration, by string) {
	for class, b := range l.buckets {
		if d := time.Duration((b.Takes*float64(n) - b.Size) / b.Refill * float64(time.Second)); d > longest {
			longest, by = d, class
		}
	}
	return longest, by
}

// inOneAccount creates clusters at once, and then deletes them.
func inOneAccount(t *testing.T, fleet int) (each [2]lives) {
	t.Helper()
	text, err := enginetest.Read("quickstart.yaml")
	require.NoError(t, err)
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
		for i, do := range []func(*run.Cluster) (cluster.Result, error){
			func(c *run.Cluster) (cluster.Result, error) { return c.Apply(t.Context(), cluster.Options{}) },
			func(c *run.Cluster) (cluster.Result, error) { return c.Delete(t.Context(), cluster.Options{}) },
		} {
			calls := len(a.Calls())
			var runs sync.WaitGroup
			var mu sync.Mutex
			var failed []error
			for _, m := range all {
				runs.Go(func() {
					res, err := do(enginetest.Open(m, a.Process()))
					mu.Lock()
					defer mu.Unlock()
					failed, each[i].took = append(failed, err), append(each[i].took, res.Took)
				})
			}
			runs.Wait()
			require.NoError(t, errors.Join(failed...))
			slices.Sort(each[i].took)
			each[i].count(a.Process(), enginetest.Since(a, calls))
		}
		require.Equal(t, before, a.Inventory())
	})
	return each
}

// count counts calls, and the tokens that they have taken.
func (l *lives) count(p *awssim.Process, calls []awssim.Call) {
	l.calls, l.buckets = len(calls), map[string]*awssim.TokenBucket{}
	for _, c := range calls {
		limits, limited := p.Limits(c.Service)
		if !limited {
			continue
		}
		if c.Err == limits.Code {
			l.refused++
			continue
		}
		for _, b := range limits.Of(c.Operation, nil) {
			class := c.Service + " " + b.Class
			if b.Each {
				class = c.Service + " " + c.Operation
			}
			sum := l.buckets[class]
			if sum == nil {
				sum = &awssim.TokenBucket{Size: b.Size, Refill: b.Refill}
				l.buckets[class] = sum
			}
			sum.Takes += cmp.Or(b.Takes, 1)
		}
	}
}
