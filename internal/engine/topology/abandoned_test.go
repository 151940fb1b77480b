package topology_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// TestAbandonedChange kills a run that adds a feature to a cluster, or takes it from it, after one of its writes. Then the manifest is as before: the
// cluster is the same as one that was never changed. Without a sweep, it kills each change a few times.
func TestAbandonedChange(t *testing.T) {
	more := []feature{
		{"machines", enginetest.Quickstart, nil, []string{"replicas: 1\n", "replicas: 3\n"}},
		{"machines of Ignition", "flatcar.yaml", nil, []string{"replicas: 1\n", "replicas: 3\n"}},
		{"name of a MachineDeployment", enginetest.Quickstart, nil, []string{"quickstart-md-0", "quickstart-md-1"}},
	}
	for _, f := range append(features(), more...) {
		on, off := f.load(t)
		for _, way := range []struct {
			name     string
			from, to *manifest.Cluster
		}{{"added", off, on}, {"removed", on, off}} {
			t.Run(f.name+"/"+way.name, func(t *testing.T) {
				t.Parallel()
				var want []string
				synctest.Test(t, func(t *testing.T) {
					a := enginetest.Prepared(t, on)
					enginetest.MustApply(t, way.from, a)
					want = settled(a)
				})
				first, stride := 1, 10
				if enginetest.Sweeping() {
					first, stride = enginetest.First(1, 0), enginetest.Stride(1)
				}
				for n, over := first, false; !over; n += stride {
					synctest.Test(t, func(t *testing.T) { over = abandons(t, on, way.from, way.to, n, want) })
				}
			})
		}
	}
}

// abandons kills a change after its n-th write, and goes back. It reports whether the change has fewer writes.
func abandons(t *testing.T, all, from, to *manifest.Cluster, n int, want []string) (over bool) {
	t.Helper()
	a := enginetest.Prepared(t, all)
	enginetest.MustApply(t, from, a)
	p, writes, last := a.Process(), 0, ""
	_ = enginetest.Faulty(t, p, func(_ int, service, op string) awssim.Fault {
		if len(enginetest.Writes([]awssim.Call{{Service: service, Operation: op}})) > 0 {
			if writes++; writes == n {
				last = service + "." + op
				return awssim.KillAfter
			}
		}
		return awssim.None
	}, func(ctx context.Context) error {
		_, err := enginetest.Open(to, p).Apply(ctx, cluster.Options{})
		return err
	})
	enginetest.MustApply(t, from, a)
	enginetest.RequireNoChange(t, from, a)
	requireSame(t, want, settled(a), fmt.Sprintf("write %d: %s", n, last))
	return writes < n
}

// TestLostBootDataOfPool deletes the boot data of a pool: a run stores it again, and replaces no machine.
func TestLostBootDataOfPool(t *testing.T) {
	for _, file := range []string{"machine-pool.yaml", "flatcar-pool.yaml"} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			a := enginetest.Prepared(t, m)
			enginetest.MustApply(t, m, a)
			want := settled(a)
			a.Edit(func(s *awssim.State) {
				clear(s.Secrets.Secrets)
				for _, b := range s.S3.Buckets {
					maps.DeleteFunc(b.Objects, func(key string, _ *awssim.Object) bool { return strings.HasPrefix(key, "node/") })
				}
			})
			require.Equal(t, []string{"update launch-template/" + enginetest.Name(file) + "-mp-0"}, enginetest.Done(enginetest.MustPlan(t, m, a)))
			before := len(a.Calls())
			enginetest.MustApply(t, m, a)
			require.NotContains(t, enginetest.Writes(enginetest.Since(a, before)), "CreateLaunchTemplateVersion")
			enginetest.RequireNoChange(t, m, a)
			requireSame(t, want, settled(a))
		})
	}
}
