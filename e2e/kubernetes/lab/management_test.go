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
// in the lab by themselves.
func TestManagement(t *testing.T) {
	l := Start(t)
	m := l.newManagement(t)
	began := time.Now()
	u := m.makes(t, "quickstart")
	u.settled(t, 1, 1)
	t.Logf(
		"proved: the real controllers make a cluster of 1 control plane and 1 worker, all conditions as desired after %s, with %d requests to AWS, %d of them writes",
		time.Since(began).Round(time.Second),
		len(m.Requests.All()),
		len(m.Requests.Writes()),
	)
	m.resynced(t, "quickstart")
}

// syncPeriod is how often the controllers reconcile all objects: a few times while staysQuiet
// watches them for ten minutes.
const syncPeriod = 3 * time.Minute

// newManagement starts a management cluster in an account that is prepared for CAPA and EKS.
// LAB_DUMP is a folder for its objects and requests.
func (l *Lab) newManagement(t *testing.T) *Management {
	t.Helper()
	u := l.NewLaptop(t, "", "")
	config := filepath.Join(u.home, "iam.yaml")
	require.NoError(
		t,
		os.WriteFile(
			config,
			[]byte(
				`{apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1, kind: AWSIAMConfiguration, spec: {eks: {managedMachinePool: {disable: false}}}}`,
			),
			0o600,
		),
	)
	u.Run(t, "bootstrap", "iam", "create-cloudformation-stack", "--config", config)
	m := l.NewManagement(t, syncPeriod)
	if dir := os.Getenv("LAB_DUMP"); dir != "" {
		t.Cleanup(func() { m.Dump(t, dir) })
	}
	return m
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
