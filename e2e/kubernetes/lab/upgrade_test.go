package lab

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// workload are two pods that run during the upgrade; one at a time may be evicted.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.k8s.io/pause:3.10"}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
`

// upgraded upgrades a cluster to the next minor version, with a run that is killed
// halfway and another one, while a client uses it.
func upgraded(t *testing.T, l *Lab) {
	buildOlder(t)
	manifest := threeZones(t, 1)
	require.Equal(t, 2, strings.Count(manifest, controlplane.Version))
	manifest = strings.ReplaceAll(manifest, controlplane.Version, older)
	u := l.NewLaptop(t, "three-zones", manifest)
	u.bring(t, 3, 1)
	file := filepath.Join(t.TempDir(), "workload.yaml")
	require.NoError(t, os.WriteFile(file, []byte(workload), 0o600))
	u.Kubectl(t, "apply", "-f", file)
	u.Kubectl(t, "wait", "deployment/web", "--for=condition=Available", "--timeout=1m", "--request-timeout=0")
	assert.Equal(t, []string{"3.5.21"}, u.etcdVersions(t))

	manifest = strings.Replace(manifest, "clusterConfiguration:\n", "clusterConfiguration:\n      dns: {imageTag: v1.12.1}\n", 1)
	require.NoError(t, os.WriteFile(u.manifest, []byte(strings.ReplaceAll(manifest, older, controlplane.Version)), 0o600))
	t.Log("\n" + u.Run(t, "cluster", "plan", "-f", u.manifest, "--wait", "ready"))
	w := u.witness(t)
	u.speed = lifelike
	began := time.Now()
	u.killedHalfWay(t)
	killed := time.Since(began)
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
	took := time.Since(began)
	w.stop(t)

	u.Until(t, "four instances", patience, func() bool { return len(u.Machines(t)) == 4 })
	u.settled(t, 3, 1)
	u.isOf(t, controlplane.Version)
	u.NothingToDo(t)
	t.Log("\n" + u.Kubectl(t, "get", "nodes") + u.Kubectl(t, "get", "pods", "-A"))
	t.Logf("proved: %s became %s by the manifest in %s, with the run killed after %s and begun again; etcd 3.5.21 became 3.6.5; "+
		"%d looks at it saw no worker newer than a control plane, and the budget kept; the longest time without a write was %s",
		older, controlplane.Version, took.Round(time.Second), killed.Round(time.Second), w.looks, w.longest.Round(100*time.Millisecond))
	u.gone(t)
}

// killedHalfWay kills a run when the first control plane of the new version has joined.
func (u *Laptop) killedHalfWay(t *testing.T) {
	t.Helper()
	cmd, out, story := u.command(t.Context(), u.program, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	u.Until(t, "a node of the new version", 2*patience, func() bool {
		select {
		case err := <-ended:
			require.Fail(t, "the upgrade ended", "%v\n%s%s", err, out, story)
		default:
		}
		return slices.ContainsFunc(u.Objects(t.Context(), "nodes"), func(n Object) bool {
			return n.Status.NodeInfo.KubeletVersion == controlplane.Version
		})
	})
	require.NoError(t, cmd.Cancel())
	require.Error(t, <-ended)
}

// isOf checks everything that has a version.
func (u *Laptop) isOf(t *testing.T, version string) {
	t.Helper()
	for _, n := range u.Objects(t.Context(), "nodes") {
		assert.Equal(t, version, n.Status.NodeInfo.KubeletVersion, n.Metadata.Name)
	}
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		image := "registry.k8s.io/" + component + ":" + version
		assert.Equal(t, strings.TrimSpace(strings.Repeat(image+" ", 3)),
			u.Kubectl(t, "get", "pods", "-n", "kube-system", "-l", "component="+component, "-o", "jsonpath={.items[*].spec.containers[0].image}"))
	}
	image := func(object string) string {
		return u.Kubectl(t, "get", "-n", "kube-system", object, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	}
	assert.Equal(t, "registry.k8s.io/kube-proxy:"+version, image("daemonset/kube-proxy"))
	assert.Equal(t, "registry.k8s.io/coredns/coredns:v1.12.1", image("deployment/coredns"))
	config := u.Kubectl(t, "get", "configmap", "-n", "kube-system", "kubeadm-config", "-o", "jsonpath={.data.ClusterConfiguration}")
	assert.Contains(t, config, "kubernetesVersion: "+version)
	assert.Equal(t, []string{"3.6.5"}, u.etcdVersions(t))
}

// etcdVersions returns the versions of the members, without duplicates.
func (u *Laptop) etcdVersions(t *testing.T) (all []string) {
	t.Helper()
	for _, m := range u.controlPlanes(t) {
		out, err := u.etcdctl(t.Context(), m, "endpoint", "status", "-w", "json")
		require.NoError(t, err)
		var answer []struct{ Status struct{ Version string } }
		require.NoError(t, json.Unmarshal(out, &answer), "%s", out)
		for _, a := range answer {
			all = append(all, a.Status.Version)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// witness writes to a cluster, and checks it, all the time.
type witness struct {
	*Laptop
	halt  context.CancelFunc
	ended sync.WaitGroup

	looks   int
	wrote   time.Time     // the last time
	longest time.Duration // between two writes
	faults  []string
}

func (u *Laptop) witness(t *testing.T) *witness {
	t.Helper()
	ctx, halt := context.WithCancel(t.Context())
	w := &witness{Laptop: u, halt: halt, wrote: time.Now()}
	w.ended.Go(func() {
		for ctx.Err() == nil {
			w.look(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	t.Cleanup(halt)
	return w
}

// stop ends it, and returns the result.
func (w *witness) stop(t *testing.T) {
	t.Helper()
	w.halt()
	w.ended.Wait()
	assert.Empty(t, w.faults)
	assert.Greater(t, w.looks, 10)
	assert.Less(t, w.longest, time.Minute, "without a write")
}

// look writes and checks once.
func (w *witness) look(ctx context.Context) {
	if _, err := w.TryKubectl(ctx, "annotate", "deployment", "web", "--overwrite", "at="+time.Now().Format(time.RFC3339Nano)); err == nil {
		w.longest, w.wrote = max(w.longest, time.Since(w.wrote)), time.Now()
	}
	var workers, controlPlanes []string
	for _, o := range w.Objects(ctx, "nodes,deployments") {
		switch {
		case o.Kind == "Deployment" && o.Status.AvailableReplicas < 1:
			w.faults = append(w.faults, "the budget is broken")
		case o.Kind == "Deployment":
			w.looks++
		case w.isControlPlane(o.Metadata.Name): // kubeadm sets the label after the join
			controlPlanes = append(controlPlanes, o.Status.NodeInfo.KubeletVersion)
		default:
			workers = append(workers, o.Status.NodeInfo.KubeletVersion)
		}
	}
	if slices.Contains(controlPlanes, older) && slices.Contains(workers, controlplane.Version) {
		w.faults = append(w.faults, "a worker is newer than a control plane")
	}
	if n := len(controlPlanes); n > 0 && (n < 3 || n > 4) {
		w.faults = append(w.faults, "there are fewer or more control planes than the manifest allows")
	}
}
