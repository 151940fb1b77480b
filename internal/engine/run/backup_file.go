package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"filippo.io/age"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/backup"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// BackupInS3 reports whether a backup is an object of S3, "s3://BUCKET/KEY", and not a file.
func BackupInS3(name string) bool { return s3.IsURL(name) }

// mostBackup is how many bytes of a backup are loaded: more than the largest object that this program
// stores.
const mostBackup = 16 << 30

// checkNew returns an error if a backup would overwrite something, or cannot be stored.
func checkNew(ctx context.Context, c *cloud.Clients, to string) error {
	if !s3.IsURL(to) {
		if _, err := os.Lstat(to); err == nil {
			return &plan.RefusedError{Reasons: []error{&fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}}}
		}
		return nil
	}
	f, err := s3.ParseFile(to)
	if err == nil {
		err = f.CheckNew(ctx, c)
	}
	return refusedFile(err)
}

// store writes a new file or object, and returns its size. An object is written to a temporary file
// before it is sent, because its request has the size and the checksum.
func store(ctx context.Context, c *cloud.Clients, to string, write func(io.Writer) error) (bytes int64, err error) {
	var written counter
	if !s3.IsURL(to) {
		err := files.CreateWith(to, files.Private, func(w io.Writer) error { return write(io.MultiWriter(w, &written)) })
		return int64(written), err
	}
	f, err := s3.ParseFile(to)
	if err != nil {
		return 0, err
	}
	t, err := files.NewTemporary()
	if err != nil {
		return 0, err
	}
	defer t.Close() //nolint:errcheck // a temporary file
	if err := write(io.MultiWriter(t, &written)); err != nil {
		return 0, err
	}
	if _, err := t.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return int64(written), refusedFile(f.Create(ctx, c, t.File))
}

// refusedFile makes a RefusedError of an answer of AWS about an object or a key.
func refusedFile(err error) error {
	if err == nil || !cloud.Rejected(err) && cloud.Code(err) != "" || cloud.Unanswered(err) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &plan.RefusedError{Reasons: []error{err}}
}

// counter counts the bytes that are written to it.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// recipientsOf returns for whom a backup is encrypted. It encrypts with the keys of KMS, so that one that
// cannot be used is found before the snapshot is taken.
func recipientsOf(ctx context.Context, c *cloud.Clients, keys cluster.BackupKeys) ([]age.Recipient, error) {
	all, err := backup.Keys(keys).ForWriting()
	if err != nil {
		return nil, keyError(err)
	}
	for _, key := range keys.KMS {
		r, err := backup.ForKMS(func(secret []byte) (string, []byte, error) { return kms.Encrypt(ctx, c, key, secret) })
		if err != nil {
			return nil, refusedFile(err)
		}
		all = append(all, r)
	}
	return all, nil
}

// ReadBackup decrypts a backup, and checks it: that it is complete, and that the snapshot is the
// one that etcd has sent. The target is that of an account, for a backup in S3 or a key of KMS; nil
// for none.
func ReadBackup(ctx context.Context, file string, keys cluster.BackupKeys, t *cluster.Target) (info cluster.BackupInfo, err error) {
	var c *cloud.Clients
	if t != nil {
		c = cloud.New(t.Config, "", ClientOptions(*t))
	}
	b, bytes, err := openBackup(cloud.ReadOnly(ctx), c, file, keys)
	if err != nil {
		return info, err
	}
	defer b.Snapshot.Close() //nolint:errcheck // a temporary file
	return backupInfo(b, bytes), nil
}

// openBackup reads a backup. Without clients, only a file, and not with a key of KMS.
func openBackup(ctx context.Context, c *cloud.Clients, file string, keys cluster.BackupKeys) (*backup.Backup, int64, error) {
	identities, err := backup.Keys(keys).ForReading()
	if err != nil {
		return nil, 0, err
	}
	given := len(identities) > 0
	if c != nil {
		identities = append(identities, backup.WithKMS(func(arn string, sealed []byte) ([]byte, error) { return kms.Decrypt(ctx, c, arn, sealed) }))
	} else if !given {
		return nil, 0, cluster.ErrNoBackupKey
	}
	f, err := content(ctx, c, file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	var read counter
	b, err := backup.Read(io.TeeReader(f, &read), identities...)
	if errors.Is(err, age.ErrIncorrectIdentity) && !given { // it names no key of KMS
		err = cluster.ErrNoBackupKey
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", file, err)
	}
	return b, int64(read), nil
}

// content opens a file, or loads an object into a temporary one.
func content(ctx context.Context, c *cloud.Clients, file string) (io.ReadCloser, error) {
	if !s3.IsURL(file) {
		return os.Open(file) //nolint:gosec // the user has named it
	}
	f, err := s3.ParseFile(file)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("%s: an object needs the target of an account", f)
	}
	t, err := files.NewTemporary()
	if err != nil {
		return nil, err
	}
	if err := f.Load(ctx, c, t, mostBackup); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}
