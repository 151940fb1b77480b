// Package controlplane runs real Kubernetes control planes for tests: etcd and
// kube-apiserver, on free ports of 127.0.0.1.
package controlplane

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// ControlPlane is a cluster without nodes and controllers.
type ControlPlane struct {
	URL     string
	Objects dynamic.Interface // as an administrator

	host Host
	pki  *authority
}

// Host is where a control plane runs: this machine, or a network namespace of it.
type Host interface {
	// Command returns a command with its arguments. Cancel kills it.
	Command(ctx context.Context, args ...string) *exec.Cmd
	// Dial connects to an address of the host.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// thisMachine is a Host.
type thisMachine struct{ net.Dialer }

// Command implements Host.
func (*thisMachine) Command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, args[0], args[1:]...)
}

// Dial implements Host.
func (m *thisMachine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return m.DialContext(ctx, network, address)
}

// patience is the timeout for the start of a process on a busy machine.
const patience = time.Minute

// Start starts a control plane on this machine until the end of the test. If etcd is not
// installed, the test fails. It is not skipped, because that would look like success.
func Start(t *testing.T) *ControlPlane {
	t.Helper()
	return StartOn(t, &thisMachine{})
}

// StartOn starts a control plane on a host until the end of the test.
func StartOn(t *testing.T, host Host) *ControlPlane {
	t.Helper()
	etcd, err := exec.LookPath("etcd")
	require.NoError(t, err, "etcd is not installed; this test needs it (apt-get install etcd-server)")
	server, err := Build(t.Context(), Kubernetes("kube-apiserver"))
	require.NoError(t, err)
	dir := t.TempDir()
	pki := newServerKeys(t, dir)
	require.NoError(t, pki.issue("admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}))

	c := &ControlPlane{host: host, pki: pki}
	for attempt := 1; ; attempt++ { // another process may have taken a free port
		err := c.launch(t, etcd, server, filepath.Join(dir, fmt.Sprint("etcd-", attempt)))
		if err == nil {
			return c
		}
		require.Less(t, attempt, 3, "%v", err)
	}
}

// newServerKeys makes the certificates and keys of an API server in a folder.
func newServerKeys(t *testing.T, dir string) *authority {
	t.Helper()
	pki, err := newAuthority(dir)
	require.NoError(t, err)
	require.NoError(t, pki.issue("server", pkix.Name{CommonName: "kube-apiserver"}))
	require.NoError(t, pki.writeKey("accounts", pki.key))
	return pki
}

// ServerArguments returns the arguments that an API server needs, except for the address of etcd and the modes of authorization. It creates keys, and
// chooses a free port.
func ServerArguments(t *testing.T) []string {
	t.Helper()
	return serverArguments(newServerKeys(t, t.TempDir()), freePort(t))
}

func serverArguments(pki *authority, port int) []string {
	return []string{
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port),
		"--tls-cert-file", pki.file("server.crt"), "--tls-private-key-file", pki.file("server.key"), "--client-ca-file", pki.file("ca.crt"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", pki.file("accounts.key"),
		"--service-account-signing-key-file", pki.file("accounts.key"), "--service-cluster-ip-range", "10.96.0.0/16",
		"--disable-admission-plugins", "ServiceAccount", "--endpoint-reconciler-type", "none", "--allow-privileged", // as with kubeadm
	}
}

func (c *ControlPlane) launch(t *testing.T, etcd, server, data string) error {
	t.Helper()
	client, peer, secure := freePort(t), freePort(t), freePort(t)
	etcdURL, peerURL := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	c.URL = fmt.Sprintf("https://127.0.0.1:%d", secure)
	store := run(t, c.host, data+".log", etcd, "--data-dir", data, "--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL, "--unsafe-no-fsync")
	args := append([]string{server, "--etcd-servers", etcdURL, "--authorization-mode", "RBAC"}, serverArguments(c.pki, secure)...)
	apiserver := run(t, c.host, data+"-apiserver.log", args...)
	cfg, err := clientcmd.NewDefaultClientConfig(*c.config("admin"), nil).ClientConfig()
	if err != nil {
		return err
	}
	cfg.QPS, cfg.WarningHandler, cfg.Dial = -1, rest.NoWarnings{}, c.host.Dial
	if c.Objects, err = dynamic.NewForConfig(cfg); err != nil {
		return err
	}
	return ready(t.Context(), cfg, store, apiserver)
}

// ready waits until the API server is ready, or one of the processes has ended.
func ready(ctx context.Context, cfg *rest.Config, processes ...*process) error {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	question, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		for _, p := range processes {
			if p.ended() {
				log, _ := os.ReadFile(p.log) // shown as far as it was read
				return fmt.Errorf("%s ended:\n%s", p.cmd.Path, log[max(0, len(log)-3000):])
			}
		}
		answer, err := client.Do(question)
		if err != nil {
			continue
		}
		if err := answer.Body.Close(); err == nil && answer.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("the API server is not ready after %s; see %s", patience, processes[1].log)
}

// process is a program that runs until the end of the test.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func run(t *testing.T, host Host, log string, args ...string) *process {
	t.Helper()
	out, err := os.Create(log)
	require.NoError(t, err)
	p := &process{cmd: host.Command(context.WithoutCancel(t.Context()), args...), log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // the test kills it
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Cancel() // it may have ended
		<-p.done
		_ = out.Close()
	})
	return p
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	address, ok := l.Addr().(*net.TCPAddr)
	require.True(t, ok)
	return address.Port
}

// config is the kubeconfig of a user with a client certificate.
func (c *ControlPlane) config(user string) *api.Config {
	cfg := api.NewConfig()
	cfg.Clusters["test"] = &api.Cluster{Server: c.URL, CertificateAuthority: c.pki.file("ca.crt")}
	cfg.AuthInfos[user] = &api.AuthInfo{ClientCertificate: c.pki.file(user + ".crt"), ClientKey: c.pki.file(user + ".key")}
	cfg.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: user}
	cfg.CurrentContext = "test"
	return cfg
}

// Kubeconfig writes the kubeconfig of an administrator, with the context "test", and
// returns its file.
func (c *ControlPlane) Kubeconfig(t *testing.T) string {
	t.Helper()
	return c.write(t, "admin")
}

// KubeconfigOf writes the kubeconfig of a user without permissions, and returns its file.
func (c *ControlPlane) KubeconfigOf(t *testing.T, user string) string {
	t.Helper()
	require.NoError(t, c.pki.issue(user, pkix.Name{CommonName: user}))
	return c.write(t, user)
}

// ServingCertificate issues a certificate for servers at 127.0.0.1, and returns the folder
// of its files tls.crt and tls.key, and the CA.
func (c *ControlPlane) ServingCertificate(t *testing.T) (folder string, ca []byte) {
	t.Helper()
	require.NoError(t, c.pki.issue("tls", pkix.Name{CommonName: "webhooks"}))
	ca, err := os.ReadFile(c.pki.file("ca.crt"))
	require.NoError(t, err)
	return c.pki.dir, ca
}

func (c *ControlPlane) write(t *testing.T, user string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*c.config(user), file))
	return file
}
