package kubernetes

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// restored returns the cluster of a machine whose boot data has a script that restores etcd before
// kubeadm init; nil if it has none. It does what the script does.
func (svc *Service) restored(files map[string]string, text string, ignored []string, version string, up time.Time) (*kubesim.Cluster, error) {
	const path = "/etc/kubernetes/clusterawsadm-restore-etcd.sh"
	script, ok := files[path]
	if !ok {
		return nil, nil
	}
	for _, step := range []string{
		"kubeadm init phase etcd local --config", "curl --config -", "openssl enc -d -aes-256-cbc -md sha256", "sha256sum --check", "images mount", "--initial-cluster=", `mv -f "$work/db" "$data/member/snap/db"`,
		"--snapshot-count=1", "/v3/maintenance/alarm", // otherwise, the members that join have an empty database
	} {
		if !strings.Contains(script, step) {
			return nil, errors.New("not simulated: a restore without " + step)
		}
	}
	switch {
	case !strings.Contains(text, "bash "+path+" /") || !strings.Contains(text, " && kubeadm init "):
		return nil, errors.New("kubeadm init does not depend on the restore")
	case !slices.Contains(ignored, "DirAvailable--var-lib-etcd") && !slices.Contains(ignored, "all"):
		return nil, errors.New("[ERROR DirAvailable--var-lib-etcd]: /var/lib/etcd is not empty")
	}
	sealed, err := svc.linked(setting([]byte(script), "URL"))
	if err != nil {
		return nil, err
	}
	database, err := unsealed(sealed, strings.TrimSuffix(files[setting([]byte(script), "PASSWORD")], "\n"))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(database); hex.EncodeToString(sum[:]) != setting([]byte(script), "SHA256") {
		return nil, errors.New("restore of etcd: the snapshot is damaged")
	}
	return kubesim.Restore(database, version, up)
}

// linked returns the object at a presigned URL, which has to be valid.
func (svc *Service) linked(link string) ([]byte, error) {
	u, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	seconds, _ := strconv.Atoi(q.Get("X-Amz-Expires"))
	if err != nil || q.Get("X-Amz-Signature") == "" || svc.Now().After(signed.Add(time.Duration(seconds)*time.Second)) {
		return nil, errors.New("curl: (22) The requested URL returned error: 403")
	}
	bucket, _, _ := strings.Cut(u.Host, ".s3")
	key := strings.TrimPrefix(u.Path, "/")
	if name, path, ok := strings.Cut(key, "/"); ok && svc.S3.Bucket(name) != nil {
		bucket, key = name, path
	}
	b := svc.S3.Bucket(bucket)
	if b == nil || b.Objects[key] == nil {
		return nil, errors.New("curl: (22) The requested URL returned error: 404")
	}
	return b.Objects[key].Body, nil
}

// unsealed does what openssl and gzip do in the script.
func unsealed(sealed []byte, password string) ([]byte, error) {
	if len(sealed) < 32 || len(sealed)%aes.BlockSize != 0 || !bytes.HasPrefix(sealed, []byte("Salted__")) {
		return nil, errors.New("openssl: bad magic number")
	}
	derived, last := []byte{}, []byte{}
	for len(derived) < 48 { // EVP_BytesToKey with one round
		h := sha256.New()
		_, _ = fmt.Fprintf(h, "%s%s%s", last, password, sealed[8:16])
		last = h.Sum(nil)
		derived = append(derived, last...)
	}
	block, err := aes.NewCipher(derived[:32])
	if err != nil {
		return nil, err
	}
	plain := bytes.Clone(sealed[16:])
	cipher.NewCBCDecrypter(block, derived[32:48]).CryptBlocks(plain, plain)
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > aes.BlockSize {
		return nil, errors.New("openssl: bad decrypt")
	}
	z, err := gzip.NewReader(bytes.NewReader(plain[:len(plain)-pad]))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// loseGone loses the Nodes of a snapshot whose machines do not run any more. A machine that has the
// name of one of them keeps it, also if it has not joined yet: the cloud controller manager deletes a
// Node only after it has not been ready for a while.
func (svc *Service) loseGone(c *kubesim.Cluster) {
	alive := map[string]bool{}
	for i := range svc.EC2.Instances() {
		if i.Terminating.IsZero() {
			alive[svc.nodeName(i)] = true
		}
	}
	for _, o := range c.All("Node") {
		if name := kubesim.Value(o, "metadata", "name"); !alive[name] {
			c.Lose(c.Up, name)
		}
	}
}
