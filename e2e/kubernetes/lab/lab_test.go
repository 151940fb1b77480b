package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLab tests how machines boot, on several accounts in turn.
func TestLab(t *testing.T) {
	l := Start(t)
	l.NewLaptop(t, "", "").Bootstrap(t)
	t.Run("one control plane", func(t *testing.T) { oneControlPlane(t, l) })
	t.Run("three control planes", func(t *testing.T) { threeControlPlanes(t, l) })
	t.Run("killed while they join", func(t *testing.T) { killedWhileJoining(t, l) })
	t.Run("upgraded", func(t *testing.T) { upgraded(t, l) })
}

func oneControlPlane(t *testing.T, l *Lab) {
	u := l.NewLaptop(t, "quickstart", withResourceSet(t, Example(t, "quickstart")))
	times := u.bring(t, 1, 1)
	t.Logf("proved: the printed kubeconfig works with kubectl; create --wait ready ends when 1 control plane and 1 worker are Ready: %s", times)

	worker := u.workers(t)[0]
	name := ""
	for _, line := range strings.Split(u.Kubectl(t, "get", "csr", "--no-headers"), "\n") {
		if strings.Contains(line, "system:bootstrap:") && strings.Contains(line, "Approved,Issued") {
			name = strings.Fields(line)[0]
		}
	}
	require.NotEmpty(t, name, "a CSR by a bootstrap token")
	by := u.Kubectl(t, "get", "csr", name, "-o", "jsonpath={.spec.username} {.spec.signerName} {.status.conditions[0].message}")
	t.Logf("proved: a worker's bootstrap token is accepted, and its CSR %s approved: %s", name, by)
	console := u.console(t, worker)
	assert.Contains(t, console, "waiting for a connection to "+bootService, "it was launched before it had a route")
	assert.Contains(t, console, "cloud-init is restarted", "the boothook has had it restarted")
	assert.Contains(t, console, `kubeadm says "success"`)
	resourceSetArrived(t, u)
	podOnControlPlane(t, u)
	u.gone(t)
}

// withResourceSet returns a manifest with a ClusterResourceSet for the components that
// Nodes need to become ready.
func withResourceSet(t *testing.T, manifest string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/addons.yaml")
	require.NoError(t, err)
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ")
	manifest = strings.Replace(manifest, "kind: Cluster\nmetadata:\n", "kind: Cluster\nmetadata:\n  labels: {lab: \"yes\"}\n", 1)
	return manifest + `
---
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: addons}
spec:
  strategy: Reconcile
  clusterSelector: {matchLabels: {lab: "yes"}}
  resources: [{kind: ConfigMap, name: addons}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: addons}
data:
  addons.yaml: |
` + indented + "\n"
}

// brings reports whether the manifest has the add-ons.
func (u *Laptop) brings(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile(u.manifest)
	require.NoError(t, err)
	return strings.Contains(string(text), "kind: ClusterResourceSet")
}

// resourceSetArrived checks that the add-ons of the manifest were applied, that another
// run has no changes, and that a run reverts changes by others.
func resourceSetArrived(t *testing.T, u *Laptop) {
	t.Helper()
	managers := func() string {
		return u.Kubectl(t, "get", "daemonset", "-n", "kube-system", "network", "-o", "jsonpath={.metadata.managedFields[*].manager}", "--show-managed-fields")
	}
	assert.Contains(t, managers(), "clusterawsadm")
	u.NothingToDo(t)
	u.Kubectl(t, "patch", "daemonset", "-n", "kube-system", "network", "--type", "merge", "-p", `{"spec":{"template":{"spec":{"hostNetwork":false}}}}`)
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
	assert.Equal(t, "true", u.Kubectl(t, "get", "daemonset", "-n", "kube-system", "network", "-o", "jsonpath={.spec.template.spec.hostNetwork}"))
	t.Log("proved: a ClusterResourceSet arrives by server-side apply; another plan is empty; what somebody has changed is mended")
}

// podOnControlPlane runs etcdctl in the etcd image, on a control plane.
func podOnControlPlane(t *testing.T, u *Laptop) {
	node := u.controlPlanes(t)[0].Name
	file := filepath.Join(t.TempDir(), "pod.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
apiVersion: v1
kind: Pod
metadata: {name: etcdctl, namespace: kube-system}
spec:
  nodeName: %s
  hostNetwork: true
  restartPolicy: Never
  containers:
  - name: etcdctl
    image: registry.k8s.io/etcd:3.6.5-0
    command: [etcdctl, --endpoints=https://127.0.0.1:2379, --cacert=/keys/ca.crt, --cert=/keys/server.crt, --key=/keys/server.key, endpoint, health, --write-out=json]
    volumeMounts: [{name: keys, mountPath: /keys}]
  volumes: [{name: keys, hostPath: {path: /etc/kubernetes/pki/etcd}}]
`, node), 0o600))
	u.Kubectl(t, "apply", "-f", file)
	phase := func() string {
		return u.Kubectl(t, "get", "pod", "-n", "kube-system", "etcdctl", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].state.terminated.exitCode}")
	}
	u.Until(t, "the pod has ended", patience, func() bool { return strings.HasPrefix(phase(), "Succeeded") || strings.HasPrefix(phase(), "Failed") })
	assert.Equal(t, "Succeeded 0", phase())
	assert.Contains(t, u.Kubectl(t, "logs", "-n", "kube-system", "etcdctl"), `"health":true`)
	u.Kubectl(t, "delete", "pod", "-n", "kube-system", "etcdctl", "--wait=true")
	t.Log("proved: a pod on a control-plane node runs etcdctl of the image of etcd, with the keys of the host; kubectl logs has what it printed")
}

// gone deletes the cluster.
func (u *Laptop) gone(t *testing.T) {
	t.Helper()
	u.Delete(t)
	u.Until(t, "no instances", patience, func() bool { return len(u.Machines(t)) == 0 })
}

func threeControlPlanes(t *testing.T, l *Lab) {
	u := l.NewLaptop(t, "three-zones", threeZones(t, 1))
	times := u.bring(t, 3, 1)
	for _, m := range u.controlPlanes(t) {
		members, err := u.Members(t.Context(), m)
		require.NoError(t, err)
		assert.Len(t, Voting(members), 3, "%+v", members)
	}
	t.Logf("proved: three control planes, launched at the same time, are one etcd of three voting members: %s", times)
	t.Run("each is killed", func(t *testing.T) { killedWhenFormed(t, u) })
	t.Run("one is lost", func(t *testing.T) { lostWhenFormed(t, u) })
	t.Run("scaled down", func(t *testing.T) { scaledDown(t, u) })
	u.gone(t)
}

// times are the durations of the phases of a cluster.
type times struct{ infrastructure, api, nodes, ready time.Duration }

func (t times) String() string {
	r := func(d time.Duration) string { return d.Round(time.Second).String() }
	return fmt.Sprintf("infrastructure after %s, API server %s, nodes %s, Ready %s", r(t.infrastructure), r(t.api), r(t.nodes), r(t.ready))
}

// bring creates a cluster with a pod network and a cloud controller manager, and waits
// until all Nodes are ready.
func (u *Laptop) bring(t *testing.T, controlPlanes, workers int) (at times) {
	t.Helper()
	began := time.Now()
	u.Create(t)
	at.infrastructure = time.Since(began)
	u.Until(t, "the API server", patience, func() bool {
		_, err := u.TryKubectl(t.Context(), "get", "--raw", "/readyz")
		return err == nil
	})
	at.api = time.Since(began)
	if !u.brings(t) {
		u.Until(t, "add-ons are applied", patience, func() bool {
			_, err := u.TryKubectl(t.Context(), "apply", "-f", "testdata/addons.yaml")
			return err == nil
		})
	}
	u.Until(t, "all nodes", patience, func() bool { return len(u.Objects(t.Context(), "nodes")) == controlPlanes+workers })
	at.nodes = time.Since(began)
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
	at.ready = time.Since(began)
	u.settled(t, controlPlanes, workers)
	t.Log("\n" + u.Kubectl(t, "get", "nodes") + u.Kubectl(t, "get", "pods", "-A"))
	return at
}

// settled waits for the number of Nodes, until all are ready with all their static pods.
func (u *Laptop) settled(t *testing.T, controlPlanes, workers int) {
	t.Helper()
	u.Until(t, "all nodes are Ready", patience, func() bool {
		ready, masters := 0, 0
		for _, n := range u.Objects(t.Context(), "nodes") {
			if n.Is("Ready") && strings.HasPrefix(n.Spec.ProviderID, "aws:///") {
				ready++
				if _, is := n.Metadata.Labels["node-role.kubernetes.io/control-plane"]; is {
					masters++
				}
			}
		}
		return ready == controlPlanes+workers && masters == controlPlanes
	})
	u.Until(t, "static pods are Ready", patience, func() bool {
		ready := 0
		for _, p := range u.Objects(t.Context(), "pods", "-n", "kube-system", "-l", "tier=control-plane") {
			if p.Is("Ready") {
				ready++
			}
		}
		return ready == 4*controlPlanes
	})
}
