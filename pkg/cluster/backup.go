package cluster

import (
	"errors"
	"time"
)

// BackupKeys say for whom a backup is encrypted, and how it is decrypted. A backup has the keys of
// the cluster, so there is none without.
type BackupKeys struct {
	Recipients []string // public keys of age: "age1…"
	Identities string   // file with private keys of age: "AGE-SECRET-KEY-1…"
	Passphrase string   // file whose first line is a passphrase
	KMS        []string // keys of AWS KMS: IDs, ARNs, aliases. A backup names its keys, so they are not needed to read it
}

// ErrNoBackupKey says that a backup cannot be written or read without a key.
var ErrNoBackupKey = errors.New("a backup contains the keys of the cluster, so it is always encrypted")

// BackupInfo describes a backup. It has no secrets.
type BackupInfo struct {
	Cluster    string         `json:"cluster"`
	Region     string         `json:"region"`
	Time       time.Time      `json:"time"`
	Kubernetes string         `json:"kubernetes,omitempty"` // version of the control plane
	Endpoint   string         `json:"endpoint"`             // host:port of the API server
	Etcd       string         `json:"etcd"`                 // version
	Members    []string       `json:"members"`              // of etcd
	Member     string         `json:"member"`               // that the snapshot is of
	Encryption string         `json:"encryption,omitempty"` // file with which the API server encrypts objects
	Complete   bool           `json:"complete"`             // false: the encryption file is not in the backup
	Snapshot   BackupSnapshot `json:"snapshot"`
	Bytes      int64          `json:"bytes"` // of the backup
}

// BackupSnapshot describes a snapshot of etcd, with the values of "etcdutl snapshot status".
type BackupSnapshot struct {
	SHA256   string `json:"sha256"` // of the database
	Hash     string `json:"hash"`
	Revision int64  `json:"revision"`
	Keys     int    `json:"keys"`
	Size     int64  `json:"size"`
}

// BackupFirst says where Apply stores a backup before it replaces machines of the control plane, and
// for whom it is encrypted.
type BackupFirst struct {
	To   string // a new file or object, as in Cluster.Backup
	Keys BackupKeys
}

// Restore says which backup is restored.
type Restore struct {
	File string // or "s3://BUCKET/KEY"
	Keys BackupKeys
	// Bucket is an existing bucket in the region of the cluster, from which the first machine loads
	// the snapshot, encrypted; "" for the bucket of the manifest.
	Bucket string
}
