package discover_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// noAnswer is a network without a way to the API server.
type noAnswer struct{}

func (noAnswer) RoundTrip(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

// marked returns the example with labels and taints of its Nodes: labels of Machines, those of the
// kubelet, taints of workers, and a control plane without a taint.
func marked(t *testing.T) *manifest.Cluster {
	t.Helper()
	m := enginetest.Labelled(t, 1, 2)
	workers := &m.Deployments[0].Bootstrap.Spec.Template.Spec.JoinConfiguration.NodeRegistration
	text := "tier=web,node.kubernetes.io/lifecycle=spot"
	workers.KubeletExtraArgs = append(workers.KubeletExtraArgs, bootstrapv1.Arg{Name: "node-labels", Value: &text})
	workers.Taints = &[]corev1.Taint{{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule}}
	control := &m.ControlPlane.Object.Spec.KubeadmConfigSpec
	control.InitConfiguration.NodeRegistration.Taints, control.JoinConfiguration.NodeRegistration.Taints = &[]corev1.Taint{}, &[]corev1.Taint{}
	return m
}

// byHand changes the first Nodes of workers, as many as given.
func byHand(a *awssim.AWS, count int, edit func(node kubesim.Object)) {
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		for _, o := range c.All("Node") {
			if labels, _ := o["metadata"].(kubesim.Object)["labels"].(kubesim.Object); labels["node-role.kubernetes.io/control-plane"] == nil && count > 0 {
				count--
				edit(o)
			}
		}
	})
}

func label(key, value string) func(kubesim.Object) {
	return func(o kubesim.Object) { kubesim.Label(time.Now(), o, "kubectl-label", key, value) }
}

// imports imports the cluster of an account, and requires that a run with the manifest changes
// nothing that exists.
func imports(t *testing.T, a *awssim.AWS, m *manifest.Cluster, o cluster.ImportOptions) *adopt.Imported {
	t.Helper()
	p := a.Process()
	i, err := adopt.Import(t.Context(), m.Name, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}, o)
	require.NoError(t, err)
	require.Empty(t, i.Differences, "%s", i.Manifest)
	require.Empty(t, i.Templates, "%s", i.Manifest)
	require.Empty(t, i.Unknown)
	return i
}

// reload loads the manifest of an import.
func reload(t *testing.T, i *adopt.Imported) *manifest.Cluster {
	t.Helper()
	m, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: i.Manifest}}, input.LoadOptions{})
	require.NoError(t, err, "%s", i.Manifest)
	return m
}

// The labels and taints of Nodes are in the manifest of an import where they came from. What is
// from somebody else is in a comment, and a plan that compares the Nodes is empty.
func TestImportLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := marked(t)
		a := enginetest.Alive(t, m)
		i := imports(t, a, m, cluster.ImportOptions{})
		require.True(t, i.Plan.Empty(), "%v", i.Plan.Steps)
		text := string(i.Manifest)
		assert.Contains(
			t,
			text,
			"        node-restriction.kubernetes.io/tier: web\n        node-role.kubernetes.io/worker: \"\"\n        x.node-restriction.kubernetes.io/zone: safe\n",
		)
		assert.Contains(t, text, "node.cluster.x-k8s.io/rack: \"7\"")
		assert.Contains(t, text, "value: tier=web,node.kubernetes.io/lifecycle=spot\n")
		assert.Contains(t, text, "taints:\n          - key: dedicated\n            effect: NoSchedule\n            value: web\n")
		assert.Contains(t, text, "taints: []")
		for _, absent := range []string{"hostname:", "topology.kubernetes.io", "team", "uninitialized", "labels and taints", "All Nodes", "Left out"} {
			assert.NotContains(t, text, absent)
		}
		want, err := enginetest.Rolling(m, a.Process()).Graph()
		require.NoError(t, err)
		have, err := run.Open(reload(t, i), enginetest.RollingTarget(a.Process())).Graph()
		require.NoError(t, err)
		require.Empty(t, enginetest.GraphDifferences(want, have), "%s", i.Manifest)

		byHand(a, 2, label("team", "red"))
		byHand(a, 1, label("blue", "yes"))
		byHand(a, 2, func(o kubesim.Object) {
			spec, _ := o["spec"].(kubesim.Object)
			taints, _ := spec["taints"].([]any)
			spec["taints"] = append(
				taints,
				kubesim.Object{"key": "drained", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
				kubesim.Object{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"},
			)
		})
		i = imports(t, a, m, cluster.ImportOptions{})
		require.True(t, i.Plan.Empty(), "%v", i.Plan.Steps)
		assert.Contains(
			t,
			string(i.Manifest),
			"  # All Nodes also have: team=red, taint drained:NoExecute. This manifest does not set that,\n  # and Nodes that are added do not have it.\n  # Left out, because only some Nodes have it, or with another value: blue.\n  template:\n    metadata:",
		)
		assert.NotContains(t, string(i.Manifest), "disk-pressure")
		have, err = run.Open(reload(t, i), enginetest.RollingTarget(a.Process())).Graph()
		require.NoError(t, err)
		require.Empty(t, enginetest.GraphDifferences(want, have))
	})
}

// The machines of Cluster API say nothing of their template. The labels and taints of their Nodes
// are in the manifest, so that machines that are added have them, too.
func TestImportLabelsOfClusterAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := marked(t)
		a := enginetest.Alive(t, m)
		enginetest.Reachable(a, "control-plane", "nodes")
		a.Edit(func(s *awssim.State) { enginetest.AsClusterAPI(m, s) })
		byHand(a, 2, label("team", "red"))
		i := imports(t, a, m, cluster.ImportOptions{KeysFromMachine: true})
		assert.Contains(t, string(i.Manifest), "# All Nodes also have: team=red. This manifest does not set that")
		_, err := i.Adopt(t.Context(), cluster.Options{})
		require.NoError(t, err)

		n := strings.Index(string(i.Manifest), "kind: MachineDeployment")
		i.Manifest = []byte(string(i.Manifest[:n]) + strings.Replace(string(i.Manifest[n:]), "replicas: 2", "replicas: 3", 1))
		_, err = run.Open(reload(t, i), enginetest.RollingTarget(a.Process())).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		worker := "map[node-restriction.kubernetes.io/tier:web node-role.kubernetes.io/worker: node.kubernetes.io/lifecycle:spot tier:web x.node-restriction.kubernetes.io/zone:safe]"
		old := strings.Replace(worker, " tier:web", " team:red tier:web", 1)
		require.ElementsMatch(t, []string{enginetest.OfControl, old, old, worker}, enginetest.LabelsOf(a))
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			for _, o := range c.All("Node") {
				spec, _ := o["spec"].(kubesim.Object)
				taints, _ := spec["taints"].([]any)
				if kubesim.Value(o, "metadata", "labels", "tier") == "web" {
					require.Len(t, taints, 1)
					require.Equal(t, "dedicated", kubesim.Value(taints[0].(kubesim.Object), "key"))
				} else {
					require.Empty(t, taints)
				}
			}
		})
	})
}

// Without an answer of the API server, the manifest says that labels and taints are not known.
func TestImportLabelsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := marked(t)
		a := enginetest.Alive(t, m)
		target := cluster.Target{Config: a.Process().Config(), Owner: "test", Transport: func(cluster.Access) http.RoundTripper { return noAnswer{} }}
		i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
		require.NoError(t, err)
		text := string(i.Manifest)
		assert.Regexp(
			t,
			`Not read: how kubeadm is configured in the cluster, and labels and taints of Nodes, because its API server at \S+ cannot be asked: connection refused\.\n`,
			strings.ReplaceAll(text, "\n# ", " "),
		)
		assert.Contains(t, text, "  # Not known: labels and taints of the Nodes.\n  machineTemplate:")
		assert.Contains(t, text, "  # Not known: labels and taints of the Nodes.\n  template:")
	})
}
