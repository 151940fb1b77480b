package backup_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestBackup backs up a cluster of which one member of etcd is down, by its name, and reads the
// backup again. The file is only for the user, and has no secrets that can be read.
func TestBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a := enginetest.Running(t, "three-zones")
		enginetest.AddSettings(a, "a value that nobody may read")
		enginetest.LoseMembers(a, 2)
		write, read := enginetest.BackupKeys(t)
		file := filepath.Join(t.TempDir(), "demo.backup")
		p := a.Process()
		c := run.OpenByName(m.Name, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)})
		info, err := c.Backup(t.Context(), file, write)
		require.NoError(t, err)
		assert.Len(t, info.Members, 3)
		assert.Contains(t, info.Members, info.Member)
		assert.Equal(t, "v1.34.2", info.Kubernetes)
		assert.Positive(t, info.Snapshot.Revision)
		assert.True(t, info.Complete)
		stat, err := os.Stat(file)
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, stat.Mode().Perm())
		assert.Equal(t, stat.Size(), info.Bytes)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, secret := range []string{"PRIVATE KEY", "a value that nobody may read", "/registry/"} {
			assert.NotContains(t, string(data), secret)
		}
		again, err := run.ReadBackup(t.Context(), file, read, nil)
		require.NoError(t, err)
		assert.Equal(t, info, again)
		_, err = c.Backup(t.Context(), file, write)
		require.ErrorContains(t, err, "exists")
		left, err := os.ReadDir(filepath.Dir(file))
		require.NoError(t, err)
		assert.Len(t, left, 1)
	})
}

// TestBackupOfDamagedFile reads backups that were changed, cut off, or are for somebody else.
func TestBackupOfDamagedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a := enginetest.Running(t, "quickstart")
		write, read := enginetest.BackupKeys(t)
		file := filepath.Join(t.TempDir(), "demo.backup")
		_, err := enginetest.Waiting(m, a.Process(), plan.NodesJoined).Backup(t.Context(), file, write)
		require.NoError(t, err)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		damaged := func(change func([]byte) []byte) error {
			require.NoError(t, os.WriteFile(file, change(bytes.Clone(data)), 0o600))
			_, err := run.ReadBackup(t.Context(), file, read, nil)
			return err
		}
		require.NoError(t, damaged(func(b []byte) []byte { return b }))
		for n := 0; n < len(data); n += len(data) / 7 {
			require.Error(t, damaged(func(b []byte) []byte { return b[:n] }), n)
			require.Error(t, damaged(func(b []byte) []byte { b[n] ^= 1; return b }), n)
		}
		_, other := enginetest.BackupKeys(t)
		require.NoError(t, os.WriteFile(file, data, 0o600))
		_, err = run.ReadBackup(t.Context(), file, other, nil)
		require.ErrorContains(t, err, "decrypt")
		_, err = run.ReadBackup(t.Context(), file, cluster.BackupKeys{}, nil)
		require.ErrorIs(t, err, cluster.ErrNoBackupKey)
	})
}

// TestBackupFails backs up while a request fails: the command repeats it, or leaves no file. A
// process that is killed leaves none.
func TestBackupFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a := enginetest.Running(t, "quickstart")
		write, read := enginetest.BackupKeys(t)
		for _, fault := range []awssim.Fault{awssim.LostBefore, awssim.LostAfter, awssim.Broken, awssim.Cut, awssim.Throttled, awssim.Denied, awssim.KillBefore, awssim.KillAfter} {
			for at := 1; ; at++ {
				p := a.Process()
				struck, asked := false, 0
				p.Fault = func(_ int, service, _ string) awssim.Fault {
					if service == "Kubernetes" {
						asked++
					}
					if struck || service != "Kubernetes" || asked != at {
						return awssim.None
					}
					struck = true
					return fault
				}
				file := filepath.Join(t.TempDir(), "demo.backup")
				_, err := run.OpenByName(m.Name, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}).Backup(t.Context(), file, write)
				if err == nil {
					_, err = run.ReadBackup(t.Context(), file, read, nil)
					require.NoError(t, err)
				} else {
					require.NoFileExists(t, file)
				}
				if !struck {
					break
				}
			}
		}
	})
}

// TestBackupRefused refuses an EKS cluster, whose etcd nobody can reach.
func TestBackupRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "eks.yaml", nil)
		write, _ := enginetest.BackupKeys(t)
		_, err := enginetest.Open(m, enginetest.Account(m, enginetest.Lag).Process()).Backup(t.Context(), filepath.Join(t.TempDir(), "x"), write)
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "AWS runs the etcd of an EKS cluster")
	})
}

// TestBackupIsJSON pins the names in the output.
func TestBackupIsJSON(t *testing.T) {
	data, err := json.Marshal(cluster.BackupInfo{})
	require.NoError(t, err)
	for _, name := range []string{"revision", "hash", "size", "keys", "members", "sha256", "time"} {
		assert.Contains(t, string(data), `"`+name+`"`)
	}
}
