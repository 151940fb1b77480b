package kubernetes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// forward answers a request for port forwarding to a pod of etcd. With cut, the connection breaks
// in the middle of what etcd sends.
func (svc *Service) forward(req *http.Request, cut bool) (*http.Response, error) {
	words := strings.Split(strings.Trim(req.URL.Path, "/"), "/") // api/v1/namespaces/kube-system/pods/etcd-NODE/portforward
	node := strings.TrimPrefix(words[len(words)-2], "etcd-")
	if req.Header.Get(httpstream.HeaderUpgrade) != "SPDY/3.1" || req.Header.Get(httpstream.HeaderProtocolVersion) != "portforward.k8s.io" {
		return answered(req, http.StatusBadRequest, []byte("unable to upgrade: missing upgrade headers in request")), nil
	}
	member := etcdMember{svc: svc, node: node, cut: cut}
	config, err := member.tls()
	if err != nil {
		return answered(req, http.StatusInternalServerError, []byte(`error upgrading connection: `+err.Error())), nil //nolint:nilerr // the answer has it
	}
	mine, theirs := newPipe()
	member.under = theirs
	go member.serve(streamConn{theirs}, config)
	return &http.Response{
		StatusCode: http.StatusSwitchingProtocols, Status: "101 Switching Protocols", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}}, Body: mine,
	}, nil
}

// etcdMember is the etcd on a Node.
type etcdMember struct {
	svc  *Service
	node string
	cut  bool

	under io.Closer // the connection that its answers are sent on
}

// tls returns the TLS settings that kubeadm gives to etcd: clients need a certificate of the CA
// whose files are on the machine.
func (m etcdMember) tls() (config *tls.Config, err error) {
	m.svc.Do(func() {
		files, now := map[string]string{}, m.svc.Now()
		for i := range m.svc.EC2.Instances() {
			if i.Boot != nil && i.Boot.Node == m.node && i.Terminating.IsZero() {
				files, err = m.svc.filesOf(i)
			}
		}
		if err == nil {
			config, err = serverTLS([]byte(files["/etc/kubernetes/pki/etcd/ca.crt"]), []byte(files["/etc/kubernetes/pki/etcd/ca.key"]), now)
		}
	})
	return config, err
}

func serverTLS(ca, caKey []byte, now time.Time) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(ca, caKey)
	if err != nil {
		return nil, fmt.Errorf("etcd does not run: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(
			2,
		),
		Subject:     pkix.Name{CommonName: "etcd"},
		NotBefore:   now.Add(-time.Hour),
		NotAfter:    now.Add(24 * time.Hour),
		DNSNames:    []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, pair.Leaf, key.Public(), pair.PrivateKey)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	block, _ := pem.Decode(ca)
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	roots.AddCert(authority)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12, Time: func() time.Time { return now }, NextProtos: []string{"http/1.1"},
	}, nil
}

// serve serves the streams of a connection.
func (m etcdMember) serve(c net.Conn, config *tls.Config) {
	var failure httpstream.Stream
	all, err := spdy.NewServerConnection(c, func(s httpstream.Stream, replied <-chan struct{}) error {
		if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			failure = s
			return nil
		}
		go func() {
			<-replied
			if port, _ := strconv.Atoi(s.Headers().Get(corev1.PortHeader)); port != 2379 {
				_, _ = io.WriteString(failure, "dial tcp 127.0.0.1: connect: connection refused")
				_ = failure.Close()
				return
			}
			server := http.Server{Handler: m, ReadHeaderTimeout: time.Hour}
			_ = server.Serve(&oneListener{conn: tls.Server(streamConn{s}, config)}) // it ends with the connection
		}()
		return nil
	})
	if err == nil {
		<-all.CloseChan()
	}
}

// ServeHTTP serves the part of etcd's HTTP API that tools use for snapshots.
func (m etcdMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	var answer any
	var snapshot []byte
	var err error
	m.svc.Do(func() {
		c, member := m.member()
		if member == nil {
			err = errors.New("etcdserver: not started")
			return
		}
		id, revision := strconv.FormatUint(member.ID, 10), strconv.Itoa(c.Serial)
		header := map[string]any{"cluster_id": "1", "member_id": id, "revision": revision, "raft_term": "2"}
		switch r.URL.Path {
		case "/v3/maintenance/status":
			status := map[string]any{"header": header, "version": "3.6.5", "dbSize": "32768"}
			if member.Learner {
				status["isLearner"] = true
			}
			if c.Quorate() {
				status["leader"] = strconv.FormatUint(c.Leader, 10)
			}
			answer = status
		case "/v3/cluster/member/list":
			members := []any{}
			for _, x := range c.Members {
				members = append(members, map[string]any{"ID": strconv.FormatUint(x.ID, 10), "name": x.Name})
			}
			answer = map[string]any{"header": header, "members": members}
		case "/v3/maintenance/snapshot":
			snapshot, err = c.Snapshot()
		default:
			err = errors.New("not simulated: " + r.URL.Path)
		}
	})
	switch {
	case err != nil:
		http.Error(w, `{"error":"`+err.Error()+`","code":14}`, http.StatusServiceUnavailable)
	case snapshot != nil:
		m.send(w, snapshot)
	default:
		_ = json.NewEncoder(w).Encode(answer) // an error is the client's
	}
}

// member returns the cluster and the member on the Node; nil if it does not run.
func (m etcdMember) member() (*kubesim.Cluster, *kubesim.Member) {
	for i := range m.svc.EC2.Instances() {
		if i.Boot != nil && i.Boot.Node == m.node && i.Terminating.IsZero() && running(i) {
			if c := m.svc.clusters[i.Boot.Host]; c != nil {
				return c, c.Alive(m.node)
			}
		}
	}
	return nil, nil
}

func running(i *ec2.Instance) bool { return i.Boot.Failed == "" && !i.Boot.Joined.IsZero() }

// sendChunk is the size of the messages of a snapshot (server/v3/etcdserver/api/v3rpc/maintenance.go).
const sendChunk = 32 << 10

// send sends a snapshot in messages; the SHA-256 is the last one.
func (m etcdMember) send(w http.ResponseWriter, snapshot []byte) {
	for sent := 0; sent < len(snapshot); {
		n := min(sendChunk, len(snapshot)-sent)
		if rest := len(snapshot) - sent - n; rest > 0 && rest < 32 {
			n -= 32 - rest
		}
		if m.cut && sent > 0 {
			_ = m.under.Close()
			panic(http.ErrAbortHandler)
		}
		message := map[string]any{"result": map[string]any{
			"remaining_bytes": strconv.Itoa(len(snapshot) - sent - n), "blob": base64.StdEncoding.EncodeToString(snapshot[sent : sent+n]), "version": "3.6",
		}}
		if json.NewEncoder(w).Encode(message) != nil {
			return
		}
		sent += n
	}
}

// oneListener returns one connection.
type oneListener struct {
	conn net.Conn
	once sync.Once
}

// Accept implements net.Listener.
func (l *oneListener) Accept() (c net.Conn, err error) {
	err = io.EOF
	l.once.Do(func() { c, err = l.conn, nil })
	return c, err
}

// Close implements net.Listener.
func (l *oneListener) Close() error { return nil }

// Addr implements net.Listener.
func (l *oneListener) Addr() net.Addr { return &net.TCPAddr{} }

// streamConn is a stream as a connection.
type streamConn struct{ io.ReadWriteCloser }

// LocalAddr implements net.Conn.
func (streamConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (streamConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn.
func (streamConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (streamConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (streamConn) SetWriteDeadline(time.Time) error { return nil }

// end is one end of a connection that, like TCP, takes what is written before it is read.
type end struct{ in, out *buffer }

// newPipe returns both ends of a connection.
func newPipe() (*end, *end) {
	x, y := newBuffer(), newBuffer()
	return &end{x, y}, &end{y, x}
}

// Read implements io.Reader.
func (e *end) Read(p []byte) (int, error) { return e.in.read(p) }

// Write implements io.Writer.
func (e *end) Write(p []byte) (int, error) { return e.out.write(p) }

// Close implements io.Closer.
func (e *end) Close() error {
	e.in.close()
	e.out.close()
	return nil
}

// buffer is what was written to one direction of a connection, and not read yet.
type buffer struct {
	mu     sync.Mutex
	more   *sync.Cond
	data   []byte
	closed bool
}

func newBuffer() *buffer {
	b := &buffer{}
	b.more = sync.NewCond(&b.mu)
	return b
}

func (b *buffer) read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.data) == 0 && !b.closed {
		b.more.Wait()
	}
	if len(b.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

func (b *buffer) write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, net.ErrClosed
	}
	b.data = append(b.data, p...)
	b.more.Broadcast()
	return len(p), nil
}

func (b *buffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.more.Broadcast()
}
