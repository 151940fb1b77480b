package topology_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// withExternalEtcd reads an example with three control planes whose etcd runs elsewhere.
func withExternalEtcd(t *testing.T, secrets []byte, oldnew ...string) *manifest.Cluster {
	t.Helper()
	raw, err := enginetest.Read("three-zones.yaml")
	require.NoError(t, err)
	oldnew = append(oldnew, "    clusterConfiguration:\n", `    clusterConfiguration:
      etcd:
        external:
          endpoints: ['https://10.0.0.10:2379', 'https://10.0.0.11:2379']
          caFile: /etc/kubernetes/pki/etcd/ca.crt
          certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt
          keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key
`)
	for i := 0; i < len(oldnew); i += 2 {
		require.Contains(t, string(raw), oldnew[i])
		raw = bytes.ReplaceAll(raw, []byte(oldnew[i]), []byte(oldnew[i+1]))
	}
	m, err := loader.Load([]input.Source{{Name: "three-zones.yaml", Data: raw}, {Name: "secrets.yaml", Data: secrets}}, input.LoadOptions{})
	require.NoError(t, err)
	return enginetest.Quick(m)
}

// A cluster with an external etcd is created, changes nothing, is upgraded, and is deleted. Its machines get the certificates for etcd from the
// manifest: two of the three control planes join.
func TestExternalEtcdLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := boot.NewPKI("", 0, time.Now())
		require.NoError(t, err)
		given := &boot.PKI{Etcd: boot.KeyPair{Cert: keys.Etcd.Cert}, EtcdClient: keys.FrontProxy}
		secrets, err := given.Secrets("default", "three-zones")
		require.NoError(t, err)
		m := withExternalEtcd(t, secrets)
		require.Empty(t, m.Warnings)

		a := enginetest.Account(m, enginetest.Lag)
		before := a.Inventory()
		require.NotEmpty(t, enginetest.MustPlan(t, m, a).Steps)
		a = enginetest.Alive(t, m)
		enginetest.RequireDone(t, m, a)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			require.True(t, c.ExternalEtcd)
			require.Empty(t, c.Members)
			require.Len(t, c.Joined, 6)
		})
		next := withExternalEtcd(t, secrets, "v1.34.2", "v1.34.3")
		enginetest.MustRoll(t, next, a)
		enginetest.RequireDone(t, next, a)
		enginetest.RequireVersion(t, a, "v1.34.3")
		enginetest.MustDelete(t, next, a)
		require.Equal(t, before, a.Inventory())
	})
}

// Without the certificates for etcd, kubeadm refuses to start.
func TestExternalEtcdNeedsItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := boot.NewPKI("", 0, time.Now())
		require.NoError(t, err)
		secrets, err := (&boot.PKI{Etcd: keys.Etcd, EtcdClient: keys.FrontProxy}).Secrets("default", "three-zones")
		require.NoError(t, err)
		m := withExternalEtcd(t, secrets)
		m.Secrets["three-zones-apiserver-etcd-client"].Data["tls.key"] = keys.CA.Key
		a := enginetest.Account(m, enginetest.Lag)
		require.Contains(t, enginetest.Refused(t, m, a), "certificate and private key do not match")
		require.Empty(t, a.Inventory())
		a.Edit(func(s *awssim.State) { require.Empty(t, s.EC2.Instances) })
	})
}
