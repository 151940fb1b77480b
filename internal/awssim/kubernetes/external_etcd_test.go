package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// kubeadm does not start without the files for an external etcd.
func TestExternalEtcdFiles(t *testing.T) {
	config := `etcd: {external: {endpoints: ["https://10.0.0.10:2379"], caFile: /e/ca.crt, certFile: /e/c.crt, keyFile: /e/c.key}}`
	require.Empty(t, externalEtcdOf("etcd: {local: {}}").refused(nil))
	require.Equal(t, "[ERROR ExternalEtcdClientCertificates]: /e/c.key doesn't exist",
		externalEtcdOf(config).refused(map[string]string{"/e/ca.crt": "", "/e/c.crt": ""}))
	require.Contains(
		t,
		externalEtcdOf(config).refused(map[string]string{"/e/ca.crt": "", "/e/c.crt": "", "/e/c.key": ""}),
		"couldn't load external etcd's certificate",
	)
}
