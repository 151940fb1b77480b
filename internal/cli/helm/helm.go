// Package helm runs the program helm of the user. Its requests to the API server of a cluster go through this
// process, by a proxy on the loopback interface: helm gets no credentials of the cluster, and a run that has lost its
// lock, or that is interrupted, stops what helm writes.
package helm

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Program is the program helm.
type Program struct {
	Environ []string // of this process

	once    sync.Once
	version string
	err     error
}

// Version returns the version, which it asks once.
func (p *Program) Version(ctx context.Context) (string, error) {
	p.once.Do(func() {
		out, err := p.start(ctx, []string{"version", "--template", "{{.Version}}"}, nil, nil)
		if errors.Is(err, exec.ErrNotFound) {
			err = errors.New("it is not in the PATH")
		}
		p.version, p.err = strings.TrimSpace(out), err
	})
	return p.version, p.err
}

// Run implements cluster.Helm.
func (p *Program) Run(ctx context.Context, args []string, stdin []byte, server string, api http.RoundTripper) error {
	to, err := url.Parse(server)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	token := rand.Text()
	certificate, authority, err := identity()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer os.Remove(authority) //nolint:errcheck // it is in the folder for temporary files
	proxy := &http.Server{
		Handler: guarded(token, &httputil.ReverseProxy{
			Transport:     api,
			FlushInterval: -1, // a watch is answered bit by bit
			ErrorLog:      log.New(io.Discard, "", 0),
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(to)
				r.Out = r.Out.WithContext(ctxOf(ctx, r.Out))
				r.Out.Header.Del("Authorization")
			},
		}),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	var serving sync.WaitGroup
	listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13})
	serving.Go(func() { _ = proxy.Serve(listener) }) // it ends with Close
	defer func() {
		_ = proxy.Close()
		serving.Wait()
	}()
	_, err = p.start(ctx, args, stdin, []string{
		"HELM_KUBEAPISERVER=https://" + listener.Addr().String(), "HELM_KUBECAFILE=" + authority, "HELM_KUBETOKEN=" + token, "KUBECONFIG=" + os.DevNull,
		"NO_PROXY=127.0.0.1," + p.exceptions(),
	})
	return err
}

// exceptions returns the hosts that are reached without a proxy.
func (p *Program) exceptions() string {
	for _, v := range p.Environ {
		if hosts, ok := strings.CutPrefix(v, "NO_PROXY="); ok {
			return hosts
		}
	}
	return ""
}

// identity returns a certificate for the proxy, and a file with its authority, which is itself: clients send their token
// to a server with TLS only.
func identity() (certificate tls.Certificate, authority string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clusterawsadm"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), // it lives as long as one command
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return certificate, "", err
	}
	file, err := os.CreateTemp("", "clusterawsadm-*.crt")
	if err != nil {
		return certificate, "", err
	}
	err = errors.Join(pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: der}), file.Close())
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file.Name(), err
}

// ctxOf returns the context of a request, with the values of that of the run.
func ctxOf(run context.Context, r *http.Request) context.Context { return joined{r.Context(), run} }

// joined is a context with the end of one and the values of another.
type joined struct {
	context.Context //nolint:containedctx // it is a context

	values context.Context //nolint:containedctx // as above
}

// Value implements context.Context.
func (j joined) Value(key any) any {
	if v := j.values.Value(key); v != nil {
		return v
	}
	return j.Context.Value(key)
}

// guarded refuses requests without the token: other users of the machine can connect, too.
func guarded(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) != 1 {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// most is the number of bytes of standard error that an error has.
const most = 2000

// start runs helm to its end, and returns its standard output.
func (p *Program) start(ctx context.Context, args []string, stdin []byte, env []string) (string, error) {
	cmd := exec.CommandContext(ctx, "helm", args...) //nolint:gosec // the program of the user, without a shell; values are on its standard input
	cmd.Env = append(slices.DeleteFunc(slices.Clone(p.Environ), func(v string) bool {
		return strings.HasPrefix(v, "HELM_KUBE") || strings.HasPrefix(v, "HELM_NAMESPACE=") || strings.HasPrefix(v, "KUBECONFIG=") ||
			strings.HasPrefix(v, "HELM_DRIVER=")
	}), env...)
	var out, story bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &story
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if text := strings.TrimSpace(story.String()); err != nil && text != "" && !errors.Is(err, exec.ErrNotFound) {
		if len(text) > most {
			text = text[len(text)-most:]
		}
		if at := strings.LastIndex("\n"+text, "\nError: "); at >= 0 {
			text = text[at:] // helm 4 logs warnings before
		}
		err = fmt.Errorf("%s", strings.TrimPrefix(text, "Error: "))
	}
	return out.String(), err
}
