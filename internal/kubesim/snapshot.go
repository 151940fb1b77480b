package kubesim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
)

// The format of etcd's database: buckets, revisions and values (go.etcd.io/etcd/server/v3/storage).
// Objects are stored at /registry and their path, as JSON; Nodes have the key of the real ones.
const (
	registry = "/registry"
	nodes    = "/api/v1/nodes/"
	minions  = "/minions/"
	applied  = "/kubesim/applied" // who has applied what, which a real API server keeps in the objects
)

// Snapshot returns the answer of a member to a snapshot request: its database, and the SHA-256 of
// that.
func (c *Cluster) Snapshot() ([]byte, error) {
	folder, err := os.MkdirTemp("", "kubesim-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	file := filepath.Join(folder, "db")
	db, err := bolt.Open(file, 0o600, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(db.Update(c.writeDatabase), db.Close()); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file) //nolint:gosec // a temporary file
	sum := sha256.Sum256(data)
	return append(data, sum[:]...), err
}

func (c *Cluster) writeDatabase(tx *bolt.Tx) error {
	buckets := map[string]*bolt.Bucket{}
	for _, name := range []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "key", "lease", "members", "members_removed", "meta"} {
		b, err := tx.CreateBucket([]byte(name))
		if err != nil {
			return err
		}
		buckets[name] = b
	}
	position := binary.BigEndian.AppendUint64(nil, uint64(c.Serial)+1000) //nolint:gosec // it counts up from 0
	err := errors.Join(buckets["meta"].Put([]byte("consistent_index"), position), buckets["meta"].Put([]byte("term"), binary.BigEndian.AppendUint64(nil, 2)),
		buckets["meta"].Put([]byte("confState"), []byte("{}")), buckets["cluster"].Put([]byte("clusterVersion"), []byte("3.6.0")))
	for _, m := range c.Members {
		member, failed := json.Marshal(Object{"id": m.ID, "name": m.Name})
		err = errors.Join(err, failed, buckets["members"].Put([]byte(strconv.FormatUint(m.ID, 16)), member))
	}
	for path, o := range c.Objects {
		revision, _ := strconv.ParseInt(text(o, "metadata", "resourceVersion"), 10, 64) // put sets it
		err = errors.Join(err, putKey(buckets["key"], revision, 0, registry+moved(path, nodes, minions), o))
	}
	for n, path := range slices.Sorted(maps.Keys(c.Applied)) {
		err = errors.Join(err, putKey(buckets["key"], int64(c.Serial), int64(n)+1, applied+path, c.Applied[path]))
	}
	return err
}

// moved returns a path with another prefix, if it has one.
func moved(path, from, to string) string {
	if name, ok := strings.CutPrefix(path, from); ok {
		return to + name
	}
	return path
}

// putKey stores a key at a revision, as a mvccpb.KeyValue.
func putKey(b *bolt.Bucket, main, sub int64, key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	at := binary.BigEndian.AppendUint64(append(binary.BigEndian.AppendUint64(nil, uint64(main)), '_'), uint64(sub)) //nolint:gosec // they count up from 0
	kv := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte(key))
	kv = protowire.AppendVarint(protowire.AppendTag(kv, 3, protowire.VarintType), uint64(main)) //nolint:gosec // as above
	return b.Put(at, protowire.AppendBytes(protowire.AppendTag(kv, 5, protowire.BytesType), data))
}

// Restore returns the cluster that kubeadm init creates on a machine whose etcd has a database. It
// refuses what a real etcd does not start with, or what clients would not notice.
func Restore(database []byte, version string, up time.Time) (*Cluster, error) {
	folder, err := os.MkdirTemp("", "kubesim-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	file := filepath.Join(folder, "db")
	if err := os.WriteFile(file, database, 0o600); err != nil {
		return nil, err
	}
	db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	c := New(version, up)
	if err := db.View(c.readDatabase); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	for path, o := range c.Objects {
		switch text(o, "kind") {
		case "CustomResourceDefinition":
			c.define(o)
			c.Defined[path] = up
		case "Node":
			c.Joined[text(o, "metadata", "name")] = up
		}
	}
	return c, nil
}

func (c *Cluster) readDatabase(tx *bolt.Tx) error {
	meta, members, keys := tx.Bucket([]byte("meta")), tx.Bucket([]byte("members")), tx.Bucket([]byte("key"))
	switch {
	case meta == nil || members == nil || keys == nil:
		return errors.New("the database lacks a bucket")
	case members.Stats().KeyN > 0:
		return errors.New("the database has the members of another cluster")
	case meta.Get([]byte("consistent_index")) != nil && binary.BigEndian.Uint64(meta.Get([]byte("consistent_index"))) > 3:
		return errors.New("the database is ahead of the log: all writes until there would be ignored")
	}
	objects, last, err := liveKeys(keys)
	if err != nil {
		return err
	}
	if compacted := meta.Get([]byte("scheduledCompactRev")); len(compacted) < 8 || int64(binary.BigEndian.Uint64(compacted)) != last { //nolint:gosec // as above
		return errors.New("the revision goes back, and clients that watch a later one are not told")
	}
	c.Serial = int(last)
	c.Objects = map[string]Object{}
	for key, value := range objects {
		if path, ok := strings.CutPrefix(key, applied); ok {
			into := map[string]any{}
			err = errors.Join(err, json.Unmarshal(value, &into))
			c.Applied[path] = into
			continue
		}
		into := Object{}
		err = errors.Join(err, json.Unmarshal(value, &into))
		c.Objects[moved(strings.TrimPrefix(key, registry), minions, nodes)] = into
	}
	return err
}

// liveKeys returns the keys that are not deleted, with their values, and the last revision.
func liveKeys(keys *bolt.Bucket) (objects map[string]json.RawMessage, last int64, err error) {
	objects = map[string]json.RawMessage{}
	err = keys.ForEach(func(at, kv []byte) error {
		last = int64(binary.BigEndian.Uint64(at)) //nolint:gosec // as in putKey
		key, value, err := readKeyValue(kv)
		switch deleted := len(at) > 17; {
		case deleted && objects[key] == nil:
			return errors.New("etcd panics: a key that does not exist was deleted")
		case deleted:
			delete(objects, key)
		case key != "":
			objects[key] = value
		}
		return err
	})
	return objects, last, err
}

func readKeyValue(kv []byte) (key string, value []byte, err error) {
	for len(kv) > 0 {
		number, kind, n := protowire.ConsumeTag(kv)
		if n < 0 {
			return "", nil, protowire.ParseError(n)
		}
		kv = kv[n:]
		if n = protowire.ConsumeFieldValue(number, kind, kv); n < 0 {
			return "", nil, protowire.ParseError(n)
		}
		if kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(kv)
			switch int32(number) {
			case 1:
				key = string(content)
			case 5:
				value = content
			}
		}
		kv = kv[n:]
	}
	return key, slices.Clone(value), nil
}

// Alive returns the member on a Node; nil if it does not answer.
func (c *Cluster) Alive(node string) *Member {
	if m := c.member(node); m != nil && !m.Gone {
		return m
	}
	return nil
}
