package enginetest

import (
	"os"
	"path/filepath"
	"testing"

	agekeys "filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// BackupKeys returns keys of age in both directions.
func BackupKeys(t *testing.T) (cluster.BackupKeys, cluster.BackupKeys) {
	t.Helper()
	key, err := agekeys.GenerateX25519Identity()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key.txt")
	require.NoError(t, os.WriteFile(file, []byte(key.String()+"\n"), 0o600))
	return cluster.BackupKeys{Recipients: []string{key.Recipient().String()}}, cluster.BackupKeys{Identities: file}
}

// AddSettings adds a ConfigMap with a value to the only cluster of an account.
func AddSettings(a *awssim.AWS, value string) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			c.Put(c.Up, kubesim.Object{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": kubesim.Object{"name": "settings", "namespace": "default"}, "data": kubesim.Object{"value": value},
			})
		}
	})
}

// Running creates a cluster of an example, and waits for its Nodes.
func Running(t *testing.T, example string) (*manifest.Cluster, *awssim.AWS) {
	t.Helper()
	m := Load(t, example+".yaml", nil)
	a := Account(m, Lag)
	_, err := Waiting(m, a.Process(), plan.NodesJoined).Apply(t.Context(), cluster.Options{Observe: Tell(t)})
	require.NoError(t, err)
	return m, a
}

// LoseMembers ends members of etcd, so that they do not answer, and leaves n.
func LoseMembers(a *awssim.AWS, n int) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			for _, m := range c.Members[n:] {
				c.Hang(c.Up, m.Name)
			}
		}
	})
}
