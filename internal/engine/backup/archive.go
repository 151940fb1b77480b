// Package backup writes and reads backups of clusters: a snapshot of etcd, the keys of the cluster,
// and what a restore has to know, in one encrypted file.
//
// The file is an age file (https://age-encryption.org/v1) with a compressed tar archive: the
// program age decrypts it, too.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/etcd"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// About describes a backup. It has no secrets.
type About struct {
	Format     int       `json:"format"` // of the archive
	Cluster    string    `json:"cluster"`
	Region     string    `json:"region"`
	Time       time.Time `json:"time"`
	Kubernetes string    `json:"kubernetes,omitempty"` // version of the control plane
	Endpoint   string    `json:"endpoint"`             // host:port of the API server
	Etcd       string    `json:"etcd"`                 // version
	Members    []string  `json:"members"`              // of etcd
	Member     string    `json:"member"`               // that the snapshot is of
	// Encryption is the file with which the API server encrypts objects in etcd; "" if it
	// does not. The file is in the backup if the manifest was known.
	Encryption string    `json:"encryption,omitempty"`
	Snapshot   etcd.Info `json:"snapshot"`
}

// Backup is the content of a backup.
type Backup struct {
	About    About
	PKI      map[string][]byte // keys of the cluster, by the names that boot.PKI.Marshal gives them
	Files    map[string][]byte // other files that a control plane needs, by their path on the machines
	Snapshot *files.Temporary  // the database
}

// format is the version of the archive.
const format = 1

// Names in the archive.
const (
	aboutName    = "about.json"
	snapshotName = "etcd.db"
	pkiFolder    = "pki/"
	filesFolder  = "files/"
)

// mostFile is how many bytes a file beside the snapshot has at most, and mostSnapshot how many the
// snapshot has: twice the largest database that etcd suggests
// (https://etcd.io/docs/v3.6/dev-guide/limit/).
const (
	mostFile     = 4 << 20
	mostSnapshot = 16 << 30
)

// Write writes a backup for recipients.
func (b *Backup) Write(w io.Writer, recipients []age.Recipient) error {
	sealed, err := age.Encrypt(w, recipients...)
	if err != nil {
		return fmt.Errorf("encrypt: %w", err)
	}
	packed := gzip.NewWriter(sealed)
	archive := tar.NewWriter(packed)
	if err := b.writeFiles(archive); err != nil {
		return err
	}
	return errors.Join(archive.Close(), packed.Close(), sealed.Close())
}

func (b *Backup) writeFiles(w *tar.Writer) error {
	b.About.Format = format
	about, err := json.MarshalIndent(b.About, "", "  ")
	if err != nil {
		return err
	}
	if err := b.writeFile(w, aboutName, append(about, '\n')); err != nil {
		return err
	}
	for _, x := range []struct {
		folder string
		files  map[string][]byte
	}{{pkiFolder, b.PKI}, {filesFolder, b.Files}} {
		for _, name := range slices.Sorted(maps.Keys(x.files)) {
			if err := b.writeFile(w, path.Join(x.folder, name), x.files[name]); err != nil {
				return err
			}
		}
	}
	if err := w.WriteHeader(b.header(snapshotName, b.About.Snapshot.Size)); err != nil {
		return err
	}
	_, err = io.Copy(w, io.NewSectionReader(b.Snapshot, 0, b.About.Snapshot.Size))
	return err
}

func (b *Backup) header(name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: b.About.Time}
}

func (b *Backup) writeFile(w *tar.Writer, name string, content []byte) error {
	if err := w.WriteHeader(b.header(name, int64(len(content)))); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// errDamaged says that a file is not a backup, or not a whole one.
var errDamaged = errors.New("the backup is damaged")

// Read reads a backup with identities, and checks it. The caller closes its snapshot.
func Read(r io.Reader, identities ...age.Identity) (_ *Backup, err error) {
	plain, err := age.Decrypt(r, identities...)
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	packed, err := gzip.NewReader(plain)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	b := &Backup{PKI: map[string][]byte{}, Files: map[string][]byte{}}
	if b.Snapshot, err = files.NewTemporary(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = b.Snapshot.Close() // it is not returned
		}
	}()
	for archive := tar.NewReader(packed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = b.readFile(h, archive)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	if _, err := io.Copy(io.Discard, packed); err != nil { //nolint:gosec // the checksum at the end; the sizes before it were checked
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return b, b.check()
}

func (b *Backup) readFile(h *tar.Header, r io.Reader) error {
	if h.Name == snapshotName {
		_, err := io.Copy(b.Snapshot, io.LimitReader(r, mostSnapshot))
		return err
	}
	content, err := io.ReadAll(io.LimitReader(r, mostFile))
	if err != nil {
		return err
	}
	if name, ok := strings.CutPrefix(h.Name, pkiFolder); ok {
		b.PKI[name] = content
		return nil
	}
	if name, ok := strings.CutPrefix(h.Name, filesFolder); ok {
		b.Files["/"+name] = content
		return nil
	}
	if h.Name == aboutName {
		return json.Unmarshal(content, &b.About)
	}
	return nil // of a later version
}

// check compares the snapshot with its description.
func (b *Backup) check() error {
	switch {
	case b.About.Format == 0:
		return fmt.Errorf("%w: it has no %s", errDamaged, aboutName)
	case b.About.Format > format:
		return fmt.Errorf("the backup is of a later version of this program: its format is %d, and this one reads %d", b.About.Format, format)
	}
	info, err := etcd.Read(b.Snapshot)
	if err == nil && info != b.About.Snapshot {
		err = fmt.Errorf("%w: its snapshot is not the one that it describes", errDamaged)
	}
	return err
}
