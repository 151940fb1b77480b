// Package helm runs the program helm of the user. Its requests to the API server of a cluster go through this
// process, by a proxy on the loopback interface: helm gets no credentials of the cluster, and a run that has lost its
// lock, or that is interrupted, stops what helm writes.
package helm

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
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
	serving.Go(func() { _ = proxy.Serve(listener) }) // it ends with Close
	defer func() {
		_ = proxy.Close()
		serving.Wait()
	}()
	_, err = p.start(ctx, args, stdin, []string{"HELM_KUBEAPISERVER=http://" + listener.Addr().String(), "HELM_KUBETOKEN=" + token, "KUBECONFIG=" + os.DevNull})
	return err
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
		err = fmt.Errorf("%s", strings.TrimPrefix(text, "Error: "))
	}
	return out.String(), err
}
