package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/backup"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/etcd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// restoring is a backup that was opened.
type restoring struct {
	backup   *backup.Backup
	keys     *boot.PKI
	bucket   string
	database string // SHA-256 of what is restored
	began    func() secrets.RestoreState
}

// openRestore opens and checks the backup once, before the first write.
func (l *Looking) openRestore(ctx context.Context) (err error) {
	want := l.Cluster.Target.Restore
	if want == nil || l.restore != nil {
		return nil
	}
	b, _, err := openBackup(cloud.ReadOnly(ctx), l.Cloud, want.File, want.Keys)
	if errors.Is(err, cluster.ErrNoBackupKey) {
		err = fmt.Errorf("%s: %w: use --age-key or --passphrase-file", want.File, cluster.ErrNoBackupKey)
	}
	if err != nil {
		return &plan.RefusedError{Reasons: []error{fmt.Errorf("restore: %w", err)}}
	}
	x := &restoring{backup: b, bucket: want.Bucket}
	if s := l.Cluster.Manifest.Infra.Spec.S3Bucket; x.bucket == "" && s != nil {
		x.bucket = s.Name
	}
	if err := errors.Join(l.checkBackup(ctx, x)); err != nil {
		_ = b.Snapshot.Close() // it is not used
		return &plan.RefusedError{Reasons: []error{fmt.Errorf("restore of %s: %w", want.File, err)}}
	}
	noMachines := len(l.Inventory.Machines) == 0 && !l.Inventory.Initialized
	if had := x.continues(l.Inventory); had != nil {
		noMachines = had.NoMachines
	}
	if err := etcd.Prepare(b.Snapshot, b.About.Snapshot, noMachines); err != nil {
		return err
	}
	x.database, err = etcd.SHA256(b.Snapshot)
	now := l.Cloud.Now().UTC()
	x.began = func() secrets.RestoreState { return secrets.RestoreState{Began: now, NoMachines: noMachines} }
	l.restore = x
	return err
}

// checkBackup returns why a backup does not fit the manifest or the account.
func (l *Looking) checkBackup(ctx context.Context, x *restoring) (err error) {
	about, m := x.backup.About, l.Cluster.Manifest
	if about.Cluster != m.Name {
		return fmt.Errorf("it is a backup of cluster %s, and the manifest describes %s", about.Cluster, m.Name)
	}
	if x.bucket == "" {
		return errors.New(
			"the first machine loads the snapshot from a bucket, and the manifest has none: name an existing bucket in the region with --restore-bucket",
		)
	}
	if x.keys, err = boot.ParsePKI(x.backup.PKI); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	if err := checkVersions(about.Kubernetes, topology.ControlPlaneVersion(m)); err != nil {
		return err
	}
	if err := checkEtcd(about.Etcd, topology.EtcdVersion(m)); err != nil {
		return err
	}
	if err := checkEncryption(x.backup, l.Cluster); err != nil {
		return err
	}
	stored, err := secrets.PKIParameters(cloud.ReadOnly(ctx), l.Cloud)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(x.backup.PKI)) {
		if have := stored.Parts[name]; have != nil && !bytes.Equal(have, x.backup.PKI[name]) {
			return fmt.Errorf(
				"the account has another key %s for a cluster of this name: delete that cluster first, if it is not needed",
				l.Cloud.ParameterPath("pki", name),
			)
		}
	}
	return nil
}

// checkVersions refuses versions of Kubernetes that may not read what the one of the backup has
// stored: an older one, or one that is two minor versions later.
func checkVersions(of, wanted string) error {
	have, err := semver.ParseTolerant(cmp.Or(of, wanted))
	if err != nil {
		return fmt.Errorf("version of Kubernetes: %w", err)
	}
	want, err := semver.ParseTolerant(wanted)
	if err != nil {
		return fmt.Errorf("version of Kubernetes: %w", err)
	}
	if have.Major != want.Major || want.Minor < have.Minor || want.Minor > have.Minor+1 {
		return fmt.Errorf("the backup is of Kubernetes %s, and the manifest wants %s: restore with the version of the backup, and upgrade then", of, wanted)
	}
	return nil
}

// checkEtcd refuses an etcd that is older than the one of the snapshot: it does not start with its
// database (mustDetectDowngrade in go.etcd.io/etcd/server/v3/etcdserver/api/membership/downgrade.go).
func checkEtcd(of, wanted string) error {
	have, err := semver.ParseTolerant(of)
	if err != nil {
		return fmt.Errorf("version of etcd: %w", err)
	}
	want, err := semver.ParseTolerant(wanted)
	if err != nil {
		return nil //nolint:nilerr // it is not known
	}
	if have.Major > want.Major || have.Major == want.Major && have.Minor > want.Minor {
		return fmt.Errorf(
			"the snapshot is of etcd %s, and the manifest wants %s, which does not start with it: set etcd.local.imageTag of the ClusterConfiguration to the version of the backup or a later one",
			of,
			wanted,
		)
	}
	return nil
}

// checkEncryption refuses a manifest whose API server cannot decrypt the objects of the backup.
func checkEncryption(b *backup.Backup, c *Cluster) error {
	file := b.About.Encryption
	if file == "" {
		return nil
	}
	have, err := topology.ControlPlaneFile(c.Manifest, file)
	switch was := b.Files[file]; {
	case err != nil:
		return err
	case topology.ServerArgument(c.Manifest, "encryption-provider-config") == "":
		return fmt.Errorf("objects in the snapshot are encrypted with %s, and the API server of the manifest has no encryption-provider-config", file)
	case len(was) > 0 && !bytes.Equal(have, was):
		return fmt.Errorf(
			"objects in the snapshot are encrypted with a %s that the manifest does not have: restore with the file of the backup (age --decrypt BACKUP | tar -xzO files%s), and change it then",
			file,
			file,
		)
	}
	return nil
}

// options returns what the graph has to know; nil without a restore. A run that continues a restore
// of the same snapshot keeps its record.
func (x *restoring) options(inv topology.Inventory) *topology.Restore {
	if x == nil {
		return nil
	}
	info := x.backup.About
	state := x.began()
	state.Snapshot, state.Database, state.Revision, state.Taken = info.Snapshot.SHA256, x.database, info.Snapshot.Revision, info.Time
	state.Bucket, state.Object = x.bucket, fmt.Sprintf("clusterawsadm/%s/restore/%s", info.Cluster, x.database)
	if had := x.continues(inv); had != nil && had.Database == state.Database {
		state = *had
	}
	return &topology.Restore{State: state, Count: info.Snapshot.Keys, Keys: x.keys, Seal: x.seal}
}

// continues returns the record of the same restore that another run has begun; nil for none.
func (x *restoring) continues(inv topology.Inventory) *secrets.RestoreState {
	had := inv.Restore
	if had == nil || had.Done || had.Snapshot != x.backup.About.Snapshot.SHA256 || had.Bucket != x.bucket {
		return nil
	}
	return had
}

// seal writes the database for the machine.
func (x *restoring) seal(w io.Writer, keys *secrets.PKIState) error {
	password, err := keys.PKI.Password("restore " + x.database)
	if err != nil {
		return err
	}
	if _, err := x.backup.Snapshot.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return backup.Seal(w, x.backup.Snapshot, password)
}
