package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRestore backs up a cluster of three control planes into a bucket, terminates all of them,
// and restores the backup: the objects are there, and the worker has stayed.
func TestRestore(t *testing.T) {
	l := Start(t)
	l.NewLaptop(t, "", "").Bootstrap(t)
	u := l.NewLaptop(t, "three-zones", threeZones(t, 1))
	u.bring(t, 3, 1)
	u.Kubectl(t, "create", "configmap", "settings", "--from-literal=value=before")
	u.Kubectl(t, "create", "secret", "generic", "password", "--from-literal=word=before")
	passphrase := filepath.Join(u.home, "passphrase")
	require.NoError(t, os.WriteFile(passphrase, []byte("correct horse battery staple\n"), 0o600))
	u.aws(t, "s3api", "create-bucket", "--bucket", "backups")
	key := u.aws(t, "kms", "create-key", "--query", "KeyMetadata.Arn", "--output", "text")
	u.aws(t, "kms", "create-alias", "--alias-name", "alias/backups", "--target-key-id", key)

	const backup, encrypted = "s3://backups/three-zones.backup", "s3://backups/with-kms.backup"
	u.Run(t, "cluster", "backup", u.Cluster, "--to", backup, "--passphrase-file", passphrase)
	taken := u.Run(t, "cluster", "backup", u.Cluster, "--to", encrypted, "--kms-key", "alias/backups")
	assert.Equal(t, taken, u.Run(t, "cluster", "backup", "--verify", encrypted))
	t.Log("proved: snapshots of the real etcd come through the API server, and are stored in a bucket:\n" + taken)

	u.Kubectl(t, "create", "configmap", "later", "--from-literal=value=after")
	u.Kubectl(t, "delete", "configmap", "settings")
	lost, workers := u.controlPlanes(t), u.workers(t)
	for _, m := range lost {
		u.Terminate(t, m)
	}
	u.speed = lifelike
	began := time.Now()
	u.Run(
		t,
		"cluster",
		"create",
		"-f",
		u.manifest,
		"--yes",
		"--wait",
		"nodes",
		"--restore",
		backup,
		"--passphrase-file",
		passphrase,
		"--restore-bucket",
		"backups",
	)
	took := time.Since(began)
	u.settled(t, 3, 1)
	assert.Equal(t, "before", u.Kubectl(t, "get", "configmap", "settings", "-o", "jsonpath={.data.value}"))
	assert.Equal(t, "YmVmb3Jl", u.Kubectl(t, "get", "secret", "password", "-o", "jsonpath={.data.word}"))
	_, err := u.TryKubectl(t.Context(), "get", "configmap", "later")
	require.Error(t, err, "it was made after the backup")
	for _, m := range u.controlPlanes(t) {
		members, err := u.Members(t.Context(), m)
		require.NoError(t, err)
		assert.Len(t, Voting(members), 3)
		key, err := u.etcdctl(t.Context(), m, "get", "--consistency=s", "--keys-only", "/registry/configmaps/default/settings")
		require.NoError(t, err)
		assert.Contains(t, string(key), "settings", "the member at %s does not have the snapshot", m.Address)
	}
	require.Len(t, u.workers(t), 1)
	assert.Equal(t, workers[0].ID, u.workers(t)[0].ID, "the worker has stayed")
	assert.NotContains(t, u.aws(t, "s3api", "list-objects-v2", "--bucket", "backups"), "clusterawsadm/", "the snapshot for the machine is deleted")
	u.write(t, "after the restore")
	u.NothingToDo(t)
	t.Logf("proved: all three control planes were terminated; in %s, new ones began with the snapshot, and the worker is back", took.Round(time.Second))
	u.speed = speed
	u.gone(t)
}

// aws runs the AWS CLI.
func (u *Laptop) aws(t *testing.T, args ...string) string {
	t.Helper()
	cmd, out, story := u.command(t.Context(), append([]string{"aws", "--region", region}, args...)...)
	require.NoError(t, cmd.Run(), "%s\n%s%s", args, out, story)
	return strings.TrimSpace(out.String())
}
