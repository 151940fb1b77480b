package cloud

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// API returns the client of an API server. There is one for each server in a run; access
// is called only to create it.
func (c *Clients) API(server string, access func() (kube.Access, error)) (*kube.Client, error) {
	if known, ok := c.apis.Load(server); ok {
		return known.(*kube.Client), nil //nolint:forcetypeassert // only this function stores into apis
	}
	a, err := access()
	if err != nil {
		return nil, err
	}
	created, err := kube.New(a, c.via, func(next http.RoundTripper) http.RoundTripper { return &guardedTransport{c: c, next: next} }, c.Clock)
	if err != nil {
		return nil, err
	}
	known, _ := c.apis.LoadOrStore(server, created)
	return known.(*kube.Client), nil //nolint:forcetypeassert // only this function stores into apis
}

// guardedTransport does for requests to Kubernetes what guard does for calls to AWS: it
// refuses writes in a read-only context and checks the lock before each write.
type guardedTransport struct {
	c       *Clients
	next    http.RoundTripper
	failing atomic.Bool // the last request got no answer or a 5xx status
}

// RoundTrip implements http.RoundTripper.
func (g *guardedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, op := r.Context(), r.Method+" "+r.URL.Path
	writes := r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == ""
	if writes && ctx.Value(readOnlyKey) != nil {
		return nil, &RefusedError{op}
	}
	if writes && g.c.Lock != nil {
		if err := g.c.Lock.check(ctx); err != nil {
			return nil, err
		}
	}
	if writes {
		g.c.stats.KubeWrites.Add(1)
	} else {
		g.c.stats.KubeReads.Add(1)
	}
	began := g.c.Clock.Now()
	if g.failing.Load() && r.Header.Get("Upgrade") == "" { // a connection always leads to the same machine; a new one may reach a healthy machine
		r = r.Clone(ctx)
		r.Close = true
	}
	answer, err := g.next.RoundTrip(r)
	g.failing.Store(err != nil || answer.StatusCode >= http.StatusInternalServerError)
	if g.c.log != nil {
		g.c.log(plan.Call{Service: "Kubernetes", Operation: strings.TrimSuffix(op, "/"), Took: g.c.Clock.Since(began), Err: err, Attempts: 1, Writes: writes})
	}
	return answer, err
}

// CheckWrite refuses what a program that is run would write, as a request to Kubernetes is refused: in a read-only
// context, and without the lock.
func (c *Clients) CheckWrite(ctx context.Context, what string) error {
	if ctx.Value(readOnlyKey) != nil {
		return &RefusedError{what}
	}
	if c.Lock != nil {
		return c.Lock.check(ctx)
	}
	return nil
}
