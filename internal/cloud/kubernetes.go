package cloud

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// API returns the client of an API server, one for the whole run. The access is
// asked for only the first time.
func (c *Clients) API(server string, access func() (kube.Access, error)) (*kube.Client, error) {
	if known, ok := c.apis.Load(server); ok {
		return known.(*kube.Client), nil //nolint:forcetypeassert // only this function stores into apis
	}
	a, err := access()
	if err != nil {
		return nil, err
	}
	made, err := kube.New(a, c.via, func(next http.RoundTripper) http.RoundTripper { return &guarded{c: c, next: next} })
	if err != nil {
		return nil, err
	}
	known, _ := c.apis.LoadOrStore(server, made)
	return known.(*kube.Client), nil //nolint:forcetypeassert // only this function stores into apis
}

// guarded is what guard is for AWS: it keeps a plan from writing, and a writer
// to the lock.
type guarded struct {
	c    *Clients
	next http.RoundTripper
	sick atomic.Bool // the last answer was none, or none worth having
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
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
	if g.sick.Load() { // a connection leads to one machine for good: the next one may lead to another, that does better
		r = r.Clone(ctx)
		r.Close = true
	}
	answer, err := g.next.RoundTrip(r)
	g.sick.Store(err != nil || answer.StatusCode >= http.StatusInternalServerError)
	if g.c.log != nil {
		g.c.log(Call{"Kubernetes", strings.TrimSuffix(op, "/"), g.c.Clock.Since(began), err})
	}
	return answer, err
}
