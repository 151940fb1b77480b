package lab

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestManagement tests that the real controllers of a management cluster make a cluster
// in the lab by themselves. LAB_DUMP is a folder for their objects and requests.
func TestManagement(t *testing.T) {
	l := Start(t)
	l.NewLaptop(t, "", "").Bootstrap(t)
	began := time.Now()
	m := l.NewManagement(t, 10*time.Minute)
	t.Logf("the management cluster runs after %s", time.Since(began).Round(time.Second))
	if dir := os.Getenv("LAB_DUMP"); dir != "" {
		t.Cleanup(func() { m.Dump(t, dir) })
	}

	began = time.Now()
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(Example(t, "quickstart")), 0o600))
	m.Kubectl(t, "apply", "-f", file)
	m.Until(t, "the kubeconfig", patience, func() bool {
		_, err := m.TryKubectl(t.Context(), "get", "secret", "quickstart-kubeconfig")
		return err == nil
	})
	u := m.Workload(t, "default", "quickstart")
	u.Until(t, "add-ons are applied", 2*patience, func() bool {
		_, err := u.TryKubectl(t.Context(), "apply", "-f", "testdata/addons.yaml")
		return err == nil
	})
	t.Logf("add-ons are applied after %s", time.Since(began).Round(time.Second))
	m.Settled(t, "quickstart", 2*patience)
	u.settled(t, 1, 1)
	t.Logf("proved: the real controllers make a cluster of 1 control plane and 1 worker, all conditions as desired after %s, with %d requests to AWS, %d of them writes",
		time.Since(began).Round(time.Second), len(m.Requests.All()), len(m.Requests.Writes()))
	m.resynced(t, "quickstart")
}

// resynced forces two reconciliations of a settled cluster, which have to change nothing.
func (m *Management) resynced(t *testing.T, cluster string) {
	t.Helper()
	machines := m.Kubectl(t, "get", "machines", "-A", "-o", "name")
	m.Requests.Quiet(t, 10*time.Second, patience)
	m.Requests.Reset()
	for range 2 {
		m.Restart(t)
		m.Requests.Quiet(t, 10*time.Second, patience)
	}
	m.Settled(t, cluster, patience)
	for _, q := range m.Requests.Writes() {
		assert.True(t, q.Repeated(), "%s", q)
	}
	assert.NotEmpty(t, m.Requests.All(), "nothing was reconciled")
	assert.Equal(t, machines, m.Kubectl(t, "get", "machines", "-A", "-o", "name"))
	t.Logf("proved: two forced reconciliations change nothing in AWS, with %d requests, %d of them writes that CAPA always repeats",
		len(m.Requests.All()), len(m.Requests.Writes()))
}
