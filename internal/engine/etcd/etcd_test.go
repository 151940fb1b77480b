package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// programs are the releases of the real etcd on this machine: those that "make lab" has built, and
// the one of the distribution.
func programs(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	built, err := filepath.Glob("../../../.cache/kubernetes/etcd-v*.?")
	require.NoError(t, err)
	for _, p := range built {
		p, err := filepath.Abs(p)
		require.NoError(t, err)
		found[filepath.Base(p)] = p
	}
	if p, err := exec.LookPath("etcd"); err == nil {
		found["distribution"] = p
	}
	if len(found) == 0 {
		t.Skip("etcd is not installed")
	}
	return found
}

// server is a running etcd with the TLS settings of kubeadm.
type server struct {
	folder, client, peer string
	config               *tls.Config
	cmd                  *exec.Cmd
}

// authority writes the certificates of etcd into a folder, as kubeadm does, and returns the
// settings of a client.
func authority(t *testing.T, folder string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "etcd-ca"},
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(
			2,
		),
		Subject:     pkix.Name{CommonName: "node"},
		NotAfter:    time.Now().Add(time.Hour),
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	root, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for name, block := range map[string]*pem.Block{"ca.crt": {Type: "CERTIFICATE", Bytes: root}, "server.crt": {Type: "CERTIFICATE", Bytes: certificate}, "server.key": {Type: "PRIVATE KEY", Bytes: private}} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600))
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "server.crt"), filepath.Join(folder, "server.key"))
	require.NoError(t, err)
	roots := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(root)
	require.NoError(t, err)
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close() //nolint:errcheck // it only reserves a port
	return l.Addr().String()
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{folder: t.TempDir(), client: freePort(t), peer: freePort(t)}
	s.config = authority(t, s.folder)
	return s
}

// start starts etcd, and waits until it answers.
func (s *server) start(t *testing.T, program string) *Client {
	t.Helper()
	in := func(name string) string { return filepath.Join(s.folder, name) }
	s.cmd = exec.CommandContext(t.Context(), program,
		"--name=node", "--data-dir="+in("data"), "--listen-client-urls=https://"+s.client, "--advertise-client-urls=https://"+s.client,
		"--listen-peer-urls=http://"+s.peer, "--initial-advertise-peer-urls=http://"+s.peer, "--initial-cluster=node=http://"+s.peer,
		"--client-cert-auth=true", "--trusted-ca-file="+in("ca.crt"), "--cert-file="+in("server.crt"), "--key-file="+in("server.key"))
	log, err := os.Create(in("log"))
	require.NoError(t, err)
	s.cmd.Stderr, s.cmd.Stdout = log, log
	require.NoError(t, s.cmd.Start())
	t.Cleanup(s.stop)
	c := NewClient(func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", s.client) }, s.config)
	require.Eventually(t, func() bool {
		status, err := c.Status(t.Context())
		return err == nil && status.Leader != 0
	}, time.Minute, 50*time.Millisecond)
	return c
}

func (s *server) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// put writes a key, through the same API.
func put(t *testing.T, c *Client, key, value string) {
	t.Helper()
	r, err := c.http.Post( //nolint:noctx // a test
		"https://localhost/v3/kv/put",
		"application/json",
		strings.NewReader(fmt.Sprintf(`{"key":%q,"value":%q}`, base64Of(key), base64Of(value))),
	)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, 200, r.StatusCode)
}

func get(t *testing.T, c *Client, key string) string {
	t.Helper()
	r, err := c.http.Post( //nolint:noctx // a test
		"https://localhost/v3/kv/range",
		"application/json",
		strings.NewReader(fmt.Sprintf(`{"key":%q}`, base64Of(key))),
	)
	require.NoError(t, err)
	data, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	return string(data)
}

func drop(t *testing.T, c *Client, key string) {
	t.Helper()
	r, err := c.http.Post( //nolint:noctx // a test
		"https://localhost/v3/kv/deleterange",
		"application/json",
		strings.NewReader(fmt.Sprintf(`{"key":%q}`, base64Of(key))),
	)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
}

// A snapshot of the real etcd is taken, checked and restored: another etcd, which has its own
// members, starts with it, knows the keys, has a higher revision, and takes writes.
func TestRealEtcd(t *testing.T) {
	for name, program := range programs(t) {
		t.Run(name, func(t *testing.T) {
			old := newServer(t)
			c := old.start(t, program)
			for i := range 50 {
				put(t, c, fmt.Sprintf("/registry/configmaps/default/%d", i), strings.Repeat("x", 4000))
			}
			drop(t, c, "/registry/configmaps/default/7")
			for _, name := range []string{"node", "worker"} {
				put(t, c, "/registry/minions/"+name, "a Node")
			}
			status, err := c.Status(t.Context())
			require.NoError(t, err)
			names, err := c.Members(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []string{"node"}, names)
			f, err := files.NewTemporary()
			require.NoError(t, err)
			defer f.Close() //nolint:errcheck // a test
			require.NoError(t, c.Snapshot(t.Context(), f))
			info, err := Check(f)
			require.NoError(t, err)
			assert.Equal(t, 51, info.Keys)
			assert.Equal(t, status.Header.Revision, info.Revision)
			old.stop()

			require.NoError(t, Prepare(f, info, false))
			fresh := newServer(t)
			fresh.start(t, program).Close()
			fresh.stop()
			db, err := os.Create(filepath.Join(fresh.folder, "data/member/snap/db"))
			require.NoError(t, err)
			_, err = f.Seek(0, io.SeekStart)
			require.NoError(t, err)
			_, err = io.Copy(db, f)
			require.NoError(t, err)
			require.NoError(t, db.Close())
			c = fresh.start(t, program)
			for range 2 {
				assert.Contains(t, get(t, c, "/registry/configmaps/default/8"), `"count":"1"`)
				assert.Contains(t, get(t, c, "/registry/minions/worker"), `"count":"1"`)
				assert.NotContains(t, get(t, c, "/registry/minions/node"), "count", "its machine is lost")
				assert.NotContains(t, get(t, c, "/registry/configmaps/default/7"), "count")
				put(t, c, "/registry/after", "restore")
				assert.Contains(t, get(t, c, "/registry/after"), base64Of("restore"))
				status, err = c.Status(t.Context())
				require.NoError(t, err)
				assert.Greater(t, status.Header.Revision, info.Revision+bump)
				names, err = c.Members(t.Context())
				require.NoError(t, err)
				assert.Equal(t, []string{"node"}, names)
				fresh.stop()
				c = fresh.start(t, program) // what was written is there after a restart
			}
		})
	}
}
