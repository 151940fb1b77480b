package etcd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// Info describes a snapshot, with the values that "etcdutl snapshot status" prints.
type Info struct {
	SHA256   string `json:"sha256"`   // of the database, in hexadecimal: etcd appends it to the snapshot
	Hash     string `json:"hash"`     // of the keys and values, as etcdutl computes it
	Revision int64  `json:"revision"` // of the last change
	Keys     int    `json:"keys"`     // that are not deleted
	Size     int64  `json:"size"`     // of the database in bytes
}

// Names of buckets and keys of the database (go.etcd.io/etcd/server/v3/storage/schema/bucket.go).
const (
	keyBucket      = "key"
	metaBucket     = "meta"
	membersBucket  = "members"
	removedBucket  = "members_removed"
	indexKey       = "consistent_index"
	termKey        = "term"
	confStateKey   = "confState"
	compactionKey  = "scheduledCompactRev"
	revisionLength = 17 // of a key in keyBucket: 8 bytes, '_', 8 bytes; 't' follows for a deleted key
	sector         = 512

	nodes = "/registry/minions/" // prefix of the keys of Nodes, in pkg/registry/core/rest of Kubernetes
)

// errDamaged says that a snapshot is not complete, or has changed.
var errDamaged = errors.New("the snapshot is damaged")

// Check checks a snapshot: the SHA-256 that etcd has appended, which is then removed, and the pages
// and the keys of the database.
func Check(f *files.Temporary) (info Info, err error) {
	_, size, err := trailer(f)
	if err != nil {
		return info, err
	}
	if err := f.Truncate(size); err != nil {
		return info, err
	}
	return Read(f)
}

// Read reads the pages and the keys of a database.
func Read(f *files.Temporary) (info Info, err error) {
	if info.Size, err = f.Seek(0, io.SeekEnd); err != nil {
		return info, err
	}
	if info.SHA256, err = SHA256(f); err != nil {
		return info, err
	}
	return info, view(f, func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
		hash := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		err := tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			_, _ = hash.Write(name) // a hash does not fail
			return info.read(string(name), b, hash)
		})
		info.Hash = fmt.Sprintf("%08x", hash.Sum32())
		return err
	})
}

// trailer compares the SHA-256 at the end of a snapshot with what is before it.
func trailer(f *files.Temporary) (sum string, size int64, err error) {
	if size, err = f.Seek(0, io.SeekEnd); err != nil {
		return "", 0, err
	}
	if size -= sha256.Size; size <= 0 || size%sector != 0 {
		return "", 0, fmt.Errorf("%w: it does not end with the SHA-256 that etcd appends", errDamaged)
	}
	want, hash := make([]byte, sha256.Size), sha256.New()
	if _, err := f.ReadAt(want, size); err != nil {
		return "", 0, err
	}
	if _, err := io.Copy(hash, io.NewSectionReader(f, 0, size)); err != nil {
		return "", 0, err
	}
	if !bytes.Equal(hash.Sum(nil), want) {
		return "", 0, fmt.Errorf("%w: its SHA-256 is not the one that etcd has appended", errDamaged)
	}
	return hex.EncodeToString(want), size, nil
}

// read reads a bucket. In the bucket of keys, it counts those that are not deleted.
func (i *Info) read(name string, b *bolt.Bucket, hash io.Writer) error {
	live := map[string]bool{}
	err := b.ForEach(func(k, v []byte) error {
		_, _ = hash.Write(k) // a hash does not fail
		_, _ = hash.Write(v)
		if name != keyBucket {
			return nil
		}
		if len(k) < revisionLength {
			return fmt.Errorf("%w: the revision %x is too short", errDamaged, k)
		}
		key, err := keyOf(v)
		if err != nil {
			return err
		}
		if i.Revision = int64(binary.BigEndian.Uint64(k)); len(k) > revisionLength { //nolint:gosec // etcd has written an int64
			delete(live, key)
		} else {
			live[key] = true
		}
		return nil
	})
	if name == keyBucket {
		i.Keys = len(live)
	}
	return err
}

// keyOf returns the key of a mvccpb.KeyValue, its field 1.
func keyOf(value []byte) (string, error) {
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return "", fmt.Errorf("%w: %w", errDamaged, protowire.ParseError(n))
		}
		value = value[n:]
		if number == 1 && kind == protowire.BytesType {
			key, n := protowire.ConsumeBytes(value)
			if n < 0 {
				return "", fmt.Errorf("%w: %w", errDamaged, protowire.ParseError(n))
			}
			return string(key), nil
		}
		if n = protowire.ConsumeFieldValue(number, kind, value); n < 0 {
			return "", fmt.Errorf("%w: %w", errDamaged, protowire.ParseError(n))
		}
		value = value[n:]
	}
	return "", nil
}

func open(f *files.Temporary, readOnly bool) (*bolt.DB, error) {
	return bolt.Open(f.Path(), 0o600, &bolt.Options{ReadOnly: readOnly, NoFreelistSync: true, FreelistType: bolt.FreelistMapType})
}

// view reads a database. It returns a panic as an error, because bbolt panics on some damaged
// files.
func view(f *files.Temporary, read func(*bolt.Tx) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errDamaged, r)
		}
	}()
	db, err := open(f, true)
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	return db.View(read)
}

// bump is how much the revision grows by a restore. Clients that have seen later revisions than
// that of the snapshot, such as the kubelets of workers, would wait for them otherwise. Kubernetes
// recommends this value
// (https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/#restoring-an-etcd-cluster).
const bump = 1_000_000_000

// Prepare makes the database of a snapshot one that another, new etcd can start with: like
// "etcdutl snapshot restore --bump-revision --mark-compacted", it removes the members and the
// position in their log, raises the revision, and marks all earlier ones as compacted. It also
// removes the Nodes of the members, whose machines are lost, and all other Nodes if no machine is
// left. Otherwise, a new machine with the address of a lost one would keep its Node, with the
// provider ID of the lost machine, because a kubelet does not change it.
func Prepare(f *files.Temporary, info Info, noMachines bool) error {
	db, err := open(f, false)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		lost, err := lostNodes(tx, noMachines)
		if err != nil {
			return err
		}
		for _, name := range []string{membersBucket, removedBucket} {
			if tx.Bucket([]byte(name)) == nil {
				continue
			}
			if err := tx.DeleteBucket([]byte(name)); err != nil {
				return err
			}
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return errors.Join(raise(tx, info.Revision+bump), remove(tx, info.Revision+bump, lost))
	})
	return errors.Join(err, db.Close())
}

// lostNodes returns the keys of the Nodes of the members, or of all Nodes. kubeadm names a member
// after its Node.
func lostNodes(tx *bolt.Tx, all bool) ([]string, error) {
	members, keys := tx.Bucket([]byte(membersBucket)), tx.Bucket([]byte(keyBucket))
	if members == nil || keys == nil {
		return nil, nil
	}
	names := map[string]bool{}
	err := members.ForEach(func(_, v []byte) error {
		m := struct{ Name string }{}
		if err := json.Unmarshal(v, &m); err != nil {
			return fmt.Errorf("%w: a member: %w", errDamaged, err)
		}
		names[m.Name] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	live := map[string]bool{}
	err = keys.ForEach(func(k, v []byte) error {
		key, err := keyOf(v)
		if name, ok := strings.CutPrefix(key, nodes); ok && (all || names[name]) {
			live[key] = len(k) == revisionLength
		}
		return err
	})
	maps.DeleteFunc(live, func(_ string, alive bool) bool { return !alive })
	return slices.Sorted(maps.Keys(live)), err
}

// remove deletes keys, which have to exist, at a revision.
func remove(tx *bolt.Tx, revision int64, keys []string) error {
	bucket := tx.Bucket([]byte(keyBucket))
	for n, key := range keys {
		at := revisionBytes(revision, '_')
		binary.BigEndian.PutUint64(at[9:], uint64(n)+1)
		value := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		if err := bucket.Put(append(at, 't'), value); err != nil {
			return err
		}
	}
	return nil
}

// raise sets the revision, and forgets the position in the log of the members.
func raise(tx *bolt.Tx, revision int64) error {
	keys, err := tx.CreateBucketIfNotExists([]byte(keyBucket))
	if err != nil {
		return err
	}
	if err := keys.Put(revisionBytes(revision, '_'), []byte{}); err != nil {
		return err
	}
	meta, err := tx.CreateBucketIfNotExists([]byte(metaBucket))
	if err != nil {
		return err
	}
	for _, k := range []string{indexKey, termKey, confStateKey} {
		if err := meta.Delete([]byte(k)); err != nil {
			return err
		}
	}
	return meta.Put([]byte(compactionKey), revisionBytes(revision, '_'))
}

// revisionBytes encodes a revision as etcd does (server/v3/storage/mvcc/revision.go).
func revisionBytes(revision int64, separator byte) []byte {
	out := make([]byte, revisionLength)
	binary.BigEndian.PutUint64(out, uint64(revision)) //nolint:gosec // it is positive
	out[8] = separator
	return out
}

// SHA256 returns the SHA-256 of a file, in hexadecimal.
func SHA256(f *files.Temporary) (string, error) {
	hash := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
