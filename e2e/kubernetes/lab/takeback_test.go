package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestTakeback takes a cluster that the controllers have made back, hands it over again, has
// the controllers replace a machine and add one, takes it back and deletes it.
func TestTakeback(t *testing.T) {
	l := Start(t)
	m := l.newManagement(t)
	u := m.makes(t, "quickstart")
	m.gives(t, u)
	m.takes(t, u)

	m.upgrades(t, l, u)
	before := len(l.Machines(t))
	m.Requests.Reset()
	m.Kubectl(t, "scale", "machinedeployment", "quickstart-md-0", "--replicas=2")
	m.Settled(t, u.Cluster, patience)
	assert.Len(t, l.Machines(t), before+1)
	assert.Equal(t, 1, m.Requests.count("RunInstances"), "scaling makes one instance")
	t.Log("proved: a MachineDeployment that was handed over is scaled by one instance")

	m.gives(t, u)
	u.gone(t)
	require.Empty(t, l.Machines(t))
}

// upgrades gives the machines of a deployment another template, and the controllers replace
// its one machine.
func (m *Management) upgrades(t *testing.T, l *Lab, u *Laptop) {
	t.Helper()
	before := l.Machines(t)
	m.Requests.Reset()
	var template unstructured.Unstructured
	require.NoError(t, json.Unmarshal([]byte(m.Kubectl(t, "get", "awsmachinetemplate", "quickstart-md-0", "-o", "json")), &template))
	metadata := map[string]any{"name": "quickstart-md-0-large", "namespace": template.GetNamespace(), "labels": map[string]any{clusterLabel: u.Cluster}}
	template.Object["metadata"] = metadata
	require.NoError(t, unstructured.SetNestedField(template.Object, "m5.xlarge", "spec", "template", "spec", "instanceType"))
	m.apply(t, &template)
	m.Kubectl(t, "patch", "machinedeployment", "quickstart-md-0", "--type", "merge", "-p",
		`{"spec":{"template":{"spec":{"infrastructureRef":{"name":"quickstart-md-0-large"}}}}}`)
	m.Until(t, "the machine is replaced", 2*patience, func() bool { return m.Requests.count("TerminateInstances") > 0 })
	m.Settled(t, u.Cluster, 2*patience)
	assert.Len(t, l.Machines(t), len(before))
	assert.Equal(t, 1, m.Requests.count("RunInstances"), "one machine is new")
	t.Log("proved: the controllers replace the machine of a MachineDeployment that was handed over, when its template changes")
}

// makes has the controllers make the cluster of an example.
func (m *Management) makes(t *testing.T, example string) *Laptop {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(Example(t, example)), 0o600))
	m.Kubectl(t, "apply", "-f", file)
	m.Until(t, "the kubeconfig", patience, func() bool {
		_, err := m.TryKubectl(t.Context(), "get", "secret", example+"-kubeconfig")
		return err == nil
	})
	u := m.Workload(t, "default", example)
	u.Until(t, "add-ons are applied", 2*patience, func() bool {
		_, err := u.TryKubectl(t.Context(), "apply", "-f", "testdata/addons.yaml")
		return err == nil
	})
	m.Settled(t, example, 2*patience)
	return u
}

// gives takes a cluster back from the management cluster, which has none of its objects
// afterwards, and whose controllers change nothing in AWS.
func (m *Management) gives(t *testing.T, u *Laptop) {
	t.Helper()
	m.Requests.Reset()
	machines := m.Machines(t)
	u.manifest = filepath.Join(t.TempDir(), "taken.yaml")
	began := time.Now()
	u.Run(t, "cluster", "takeback", u.Cluster, "--from", m.Kubeconfig(), "--to", u.manifest, "--yes", "--timeout", "3m")
	t.Logf("taken back after %s", time.Since(began).Round(time.Second))
	u.NothingToDo(t)
	m.Restart(t)
	time.Sleep(5 * time.Second)
	for _, q := range m.Requests.Writes() {
		assert.True(t, q.Repeated(), "the controllers have written to AWS: %s", q)
	}
	assert.Empty(t, m.objects(t, u.Cluster))
	assert.Equal(t, machines, m.Machines(t))
	t.Logf("proved: %s is taken back, nothing of it is left in the management cluster, and a plan is empty", u.Cluster)
}
