package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"filippo.io/age"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/backup"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

func backupInfo(b *backup.Backup, bytes int64) cluster.BackupInfo {
	a := b.About
	return cluster.BackupInfo{
		Cluster: a.Cluster, Region: a.Region, Time: a.Time, Kubernetes: a.Kubernetes, Endpoint: a.Endpoint, Etcd: a.Etcd, Members: a.Members, Member: a.Member,
		Encryption: a.Encryption, Complete: a.Encryption == "" || len(b.Files[a.Encryption]) > 0, Snapshot: cluster.BackupSnapshot(a.Snapshot), Bytes: bytes,
	}
}

// Backup takes a snapshot of the etcd of a self-managed cluster from a healthy member, checks it,
// and writes it, encrypted, with the keys of the cluster to a new file, or to a new object of S3:
// "s3://BUCKET/KEY".
func (c *Cluster) Backup(ctx context.Context, to string, keys cluster.BackupKeys) (cluster.BackupInfo, error) {
	return Begin(c, nil).backup(ctx, to, keys)
}

func (s *Session) backup(ctx context.Context, to string, keys cluster.BackupKeys) (info cluster.BackupInfo, err error) {
	reading := cloud.ReadOnly(ctx)
	if err := checkNew(reading, s.Cloud, to); err != nil {
		return info, err
	}
	if err := s.warnOfOwnBucket(reading, to); err != nil {
		return info, err
	}
	recipients, err := recipientsOf(reading, s.Cloud, keys)
	if err != nil {
		return info, err
	}
	return s.backupFor(ctx, to, recipients)
}

// warnOfOwnBucket warns about a backup in the bucket that is a part of the cluster.
func (s *Session) warnOfOwnBucket(ctx context.Context, to string) error {
	if !s3.IsURL(to) {
		return nil
	}
	f, err := s3.ParseFile(to)
	if err != nil {
		return err
	}
	own, err := s3.BucketNameIfAllowed(ctx, s.Cloud)
	if err == nil && own == f.Bucket {
		s.Warn("bucket %s is a part of the cluster: the cluster cannot be deleted before the backup is moved to another bucket", own)
	}
	return err
}

// backupFor makes a backup for recipients.
func (s *Session) backupFor(ctx context.Context, to string, recipients []age.Recipient) (info cluster.BackupInfo, err error) {
	b, err := s.takeBackup(cloud.ReadOnly(ctx))
	if err != nil {
		return info, err
	}
	defer b.Snapshot.Close() //nolint:errcheck // a temporary file
	bytes, err := store(ctx, s.Cloud, to, func(w io.Writer) error { return b.Write(w, recipients) })
	return backupInfo(b, bytes), err
}

// CheckBackupKeys returns an error if no backup can be written with keys.
func CheckBackupKeys(keys cluster.BackupKeys) error {
	_, err := backup.Keys(keys).ForWriting()
	return keyError(err)
}

func keyError(err error) error {
	if errors.Is(err, backup.ErrNoKey) {
		return cluster.ErrNoBackupKey
	}
	return err
}

// takeBackup takes a snapshot, and collects what belongs to it. The caller closes the snapshot.
func (s *Session) takeBackup(ctx context.Context) (*backup.Backup, error) {
	if err := s.checkStacked(ctx); err != nil {
		return nil, err
	}
	stored, err := secrets.PKIParameters(ctx, s.Cloud)
	if err != nil {
		return nil, RefuseIdentity(fmt.Errorf("read the keys of the cluster: %w", err))
	}
	keys, err := secrets.StoredPKI(ctx, s.Cloud)
	switch {
	case err != nil:
		return nil, err
	case keys == nil:
		return nil, &plan.RefusedError{
			Reasons: []error{
				fmt.Errorf("the account has no keys of cluster %s in %s, and without them no snapshot can be taken or restored", s.Cluster.Name, s.Cluster.Region),
			},
		}
	case len(keys.Etcd.Key) == 0:
		return nil, &plan.RefusedError{Reasons: []error{errors.New("the cluster uses an external etcd: back it up where it runs, with 'etcdctl snapshot save'")}}
	}
	endpoint, err := s.knownEndpoint(ctx)
	if err != nil {
		return nil, err
	}
	k, err := incluster.Administrator(s.Cloud, endpoint, keys)
	if err != nil {
		return nil, err
	}
	taken, err := incluster.TakeSnapshot(ctx, s.Cloud, k, keys)
	if err != nil {
		if why, unavailable := kube.Unavailable(err); unavailable {
			return nil, fmt.Errorf("snapshot of etcd: the API server at %s: %s", endpoint, why)
		}
		return nil, fmt.Errorf("snapshot of etcd: %w", err)
	}
	b := &backup.Backup{PKI: stored.Parts, Files: map[string][]byte{}, Snapshot: taken.File}
	delete(b.PKI, secrets.TokenName) // it is only valid for hours
	b.About = backup.About{
		Cluster: s.Cluster.Name, Region: s.Cluster.Region, Time: s.Cloud.Now().UTC().Truncate(time.Second), Endpoint: endpoint,
		Etcd: taken.Version, Members: taken.Members, Member: taken.Member, Snapshot: taken.Info,
	}
	if err := s.describeControlPlane(ctx, k, b); err != nil {
		_ = b.Snapshot.Close() // it is not returned
		return nil, err
	}
	return b, nil
}

// checkStacked refuses clusters whose etcd is not on their control plane.
func (s *Session) checkStacked(ctx context.Context) error {
	managed := s.Cluster.IsEKS()
	if s.Cluster.Manifest == nil {
		s, err := eks.Tagged(ctx, s.Cloud)
		if err != nil {
			return RefuseIdentity(err)
		}
		managed = s != nil
	}
	if managed {
		return &plan.RefusedError{
			Reasons: []error{
				errors.New(
					"AWS runs the etcd of an EKS cluster and keeps backups of it, which it restores itself: there is no access to it. Tools such as Velero back up the objects",
				),
			},
		}
	}
	return nil
}

// knownEndpoint returns the address of the API server, from the manifest or from the load balancer
// with the tag of the cluster.
func (s *Session) knownEndpoint(ctx context.Context) (string, error) {
	if m := s.Cluster.Manifest; m != nil {
		if e := topology.GivenEndpoint(m); e != "" {
			return e, nil
		}
	}
	e, err := s.StoredAddress(ctx)
	if e == "" && err == nil {
		err = fmt.Errorf("cluster %s has no load balancer in %s", s.Cluster.Name, s.Cluster.Region)
	}
	return e, err
}

// describeControlPlane adds the version of the control plane, and the file with which it encrypts
// objects.
func (s *Session) describeControlPlane(ctx context.Context, k *kube.Client, b *backup.Backup) error {
	config, err := incluster.StoredClusterConfig(ctx, k)
	if err != nil {
		return fmt.Errorf("ConfigMap kubeadm-config: %w", err)
	}
	if config == nil {
		return nil
	}
	b.About.Kubernetes, b.About.Encryption = config.Version, config.ServerArgument("encryption-provider-config")
	if b.About.Encryption == "" || s.Cluster.Manifest == nil {
		return nil
	}
	content, err := topology.ControlPlaneFile(s.Cluster.Manifest, b.About.Encryption)
	if len(content) > 0 {
		b.Files[b.About.Encryption] = content
	}
	return err
}
