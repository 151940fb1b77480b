package topology_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Hooks of a machine: annotations of its Machine in Cluster API.
const (
	preDrain     = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"
	preTerminate = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/logs"
)

// hooked is a cluster of one worker, whose machines have both hooks.
func hooked(t *testing.T, workers int32) *manifest.Cluster {
	m := enginetest.Sized(t, 1, workers)
	m.Deployments[0].Object.Spec.Template.Annotations = map[string]string{preDrain: "backup-controller", preTerminate: "log-collector"}
	return m
}

// removesHooks removes the hooks of a Node, each a minute after it appears. It returns the
// times.
func removesHooks(ctx context.Context, a *awssim.AWS, node string) (removed map[string]time.Time) {
	removed = map[string]time.Time{}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			enginetest.Inside(a, func(c *kubesim.Cluster) {
				meta, _ := c.Get("/api/v1/nodes/" + node)["metadata"].(kubesim.Object)
				annotations, _ := meta["annotations"].(kubesim.Object)
				for _, hook := range []string{preDrain, preTerminate} {
					since, seen := removed[hook]
					switch _, waits := annotations[hook]; {
					case waits && !seen:
						removed[hook] = time.Now().Add(time.Minute)
					case waits && time.Now().After(since):
						delete(annotations, hook)
					}
				}
			})
		}
	}()
	return removed
}

// The drain waits for the pre-drain hooks, and the termination for the pre-terminate hooks.
func TestHooksOfMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, hooked(t, 2))
		node := enginetest.Leaving(a, goes)
		removed := removesHooks(t.Context(), a, node)
		w := &enginetest.Witness{T: t, A: a}
		_, err := draining(hooked(t, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: w.Observe})
		require.NoError(t, err)
		require.Len(t, enginetest.NodeNames(a), 2)
		seen := strings.Join(w.Events, "\n")
		assert.Contains(t, seen, "the pre-drain hook backup (of backup-controller): its owner, or kubectl annotate node "+node+" "+preDrain+"-, removes it")
		assert.Contains(t, seen, "the pre-terminate hook logs (of log-collector)")
		assert.Less(t, strings.LastIndex(seen, "pre-drain hook"), strings.Index(seen, " drain/three-zones-md-0/1"), "it is drained after the hook")
		enginetest.Inside(a, func(*kubesim.Cluster) { assert.Len(t, removed, 2) })
		enginetest.RequireDone(t, hooked(t, 1), a)
	})
}

// If nobody removes a hook, the run fails, and the machine stays. A later run for a manifest
// that keeps the machine removes the hooks from its Node.
func TestHookThatNobodyRemoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, hooked(t, 2))
		node := enginetest.Leaving(a, goes)
		_, err := draining(hooked(t, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorContains(t, err, "hook/pre-drain/three-zones-md-0/1")
		require.ErrorContains(t, err, "backup (of backup-controller)")
		require.Len(t, enginetest.NodeNames(a), 3)
		_, err = enginetest.Rolling(hooked(t, 2), a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		requireCordoned(t, a)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			meta, _ := c.Get("/api/v1/nodes/" + node)["metadata"].(kubesim.Object)
			assert.NotContains(t, meta["annotations"], preDrain)
		})
		enginetest.RequireDone(t, hooked(t, 2), a)
	})
}
