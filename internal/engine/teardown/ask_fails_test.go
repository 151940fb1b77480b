package teardown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestAPIServerLostDuringDeletion loses the API server while the cluster deletes its
// resources, or denies the requests: the deletion continues after a minute.
func TestAPIServerLostDuringDeletion(t *testing.T) {
	for _, forbid := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.LoadQuick(t, enginetest.Quickstart)
			a := enginetest.Prepared(t, m)
			before := a.Detailed()
			enginetest.MustApply(t, m, a)
			works(t, a)
			p := a.Process()
			if forbid {
				p.Fault = func(_ int, service, op string) awssim.Fault {
					if service == "Kubernetes" && op != "GET" {
						return awssim.Denied
					}
					return awssim.None
				}
			}
			var warned []string
			var ended time.Duration
			began := time.Now()
			_, err := asking(t, m, p, forbid, &warned).Delete(t.Context(), cluster.Options{Observe: func(e plan.Event) {
				switch {
				case e.Resource == "in-cluster/volumes" && e.What == plan.Deleting && !forbid:
					a.Edit(func(s *awssim.State) {
						for _, g := range s.ELB.TargetGroups {
							g.Targets = nil
						}
						for _, b := range s.ELB.Classic {
							clear(b.Instances)
						}
					})
				case e.Resource.Kind() != "in-cluster" && e.What == plan.Deleting && ended == 0:
					ended = time.Since(began)
				}
			}})
			require.NoError(t, err)
			require.Len(t, warned, 2)
			for _, w := range warned {
				require.Contains(t, w, " default/")
				require.Contains(t, w, map[bool]string{false: "connection refused", true: "not allowed"}[forbid])
			}
			require.GreaterOrEqual(t, ended, time.Minute)
			require.Less(t, ended, 80*time.Second)
			require.Equal(t, before, withoutArchive(t, a))
		})
	}
}

// TestAskingMayDie kills a deletion at many calls, and completes it with the next one.
func TestAskingMayDie(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	for _, fault := range []awssim.Fault{awssim.KillAfter, awssim.LostAfter, awssim.Denied, awssim.Broken} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for tries, n, over := 0, enginetest.First(stepOver(1, fault), 0), false; !over; tries, n = tries+1, n+enginetest.Stride(stepOver(n, fault)) {
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Prepared(t, m)
					before := a.Detailed()
					enginetest.MustApply(t, m, a)
					works(t, a)
					p := a.Process()
					err := enginetest.Spoilt(t, p, n, fault, func(ctx context.Context) error {
						_, err := asking(t, m, p, tries%2 == 1, nil).Delete(ctx, cluster.Options{})
						return err
					})
					over = err == nil && p.Calls() < n
					_, err = asking(t, m, a.Process(), tries%3 == 2, nil).Delete(t.Context(), cluster.Options{})
					require.NoError(t, err, "call %d", n)
					require.Equal(t, before, withoutArchive(t, a), "call %d", n)
				})
			}
		})
	}
}

// stepOver skips calls that other tests cover: reads before the first request, and the
// deletion of leftovers.
func stepOver(n int, fault awssim.Fault) int {
	if n >= 40 && n < 110 && fault == awssim.KillAfter {
		return 1
	}
	return 11
}
