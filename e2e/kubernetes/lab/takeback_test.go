package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTakeback takes a cluster that the controllers have made back, hands it over again, has
// the controllers add a machine, takes it back and deletes it.
func TestTakeback(t *testing.T) {
	l := Start(t)
	m := l.newManagement(t)
	u := m.makes(t, "quickstart")
	m.gives(t, u)
	m.takes(t, u)

	before := len(l.Machines(t))
	m.Kubectl(t, "scale", "machinedeployment", "quickstart-md-0", "--replicas=2")
	m.Settled(t, u.Cluster, patience)
	assert.Len(t, l.Machines(t), before+1)
	launched := 0
	for _, q := range m.Requests.Writes() {
		if q.Action == "RunInstances" {
			launched++
		}
	}
	assert.Equal(t, 1, launched, "scaling makes one instance")
	t.Log("proved: a MachineDeployment that was handed over is scaled by one instance")

	m.gives(t, u)
	u.gone(t)
	require.Empty(t, l.Machines(t))
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
	u.Run(t, "cluster", "takeback", u.Cluster, "--from", m.Kubeconfig(), "-o", u.manifest, "--yes", "--timeout", "3m")
	t.Logf("taken back after %s", time.Since(began).Round(time.Second))
	u.NothingToDo(t)
	m.Restart(t)
	time.Sleep(5 * time.Second)
	for _, q := range m.Requests.Writes() {
		assert.True(t, q.Repeated(), "the controllers have written to AWS: %s", q)
	}
	var left struct {
		Items []json.RawMessage `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(m.Kubectl(t, "get", "clusters,machines,machinesets,machinedeployments,kubeadmcontrolplanes,awsclusters,awsmachines,awsmachinetemplates,kubeadmconfigs", "-A", "-o", "json")), &left))
	assert.Empty(t, left.Items)
	assert.Equal(t, machines, m.Machines(t))
	t.Logf("proved: %s is taken back, nothing of it is left in the management cluster, and a plan is empty", u.Cluster)
}
