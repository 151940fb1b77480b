package reconcile

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Backup takes a snapshot of the etcd of a self-managed cluster from a healthy member, checks it,
// and writes it, encrypted, with the keys of the cluster to a new file, or to a new object of S3:
// "s3://BUCKET/KEY".
func (c *Cluster) Backup(ctx context.Context, to string, keys cluster.BackupKeys) (cluster.BackupInfo, error) {
	return c.run.Backup(ctx, to, keys)
}

// ReadBackup decrypts a backup, and checks it: that it is complete, and that the snapshot is the
// one that etcd has sent. The target is that of an account, for a backup in S3 or a key of KMS; nil
// for none.
func ReadBackup(ctx context.Context, file string, keys cluster.BackupKeys, t *cluster.Target) (cluster.BackupInfo, error) {
	return run.ReadBackup(ctx, file, keys, t)
}

// CheckBackupKeys returns an error if no backup can be written with keys.
func CheckBackupKeys(keys cluster.BackupKeys) error { return run.CheckBackupKeys(keys) }

// BackupInS3 reports whether a backup is an object of S3, "s3://BUCKET/KEY", and not a file.
func BackupInS3(name string) bool { return run.BackupInS3(name) }
