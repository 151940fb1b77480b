package cloud_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// apiServer answers every request with an empty object, and records it.
type apiServer struct{ asked []string }

func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r.Method)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)),
	}, nil
}

// clients returns the clients of a run, and its client of the API server.
func (s *apiServer) clients(t *testing.T, o cloud.Options) (*cloud.Clients, *kube.Client) {
	t.Helper()
	o.Kubernetes = func(kube.Access) http.RoundTripper { return s }
	c := cloud.New(awssim.New(awssim.Options{}).Process().Config(), "demo", o)
	k, err := c.API("https://demo", func() (kube.Access, error) { return kube.Access{Server: "https://demo"}, nil })
	require.NoError(t, err)
	return c, k
}

// A run has one client of an API server, and asks for access to it once.
func TestOneClientOfAnAPIServer(t *testing.T) {
	c, k := (&apiServer{}).clients(t, cloud.Options{})
	again, err := c.API("https://demo", func() (kube.Access, error) {
		t.Error("access is known")
		return kube.Access{}, nil
	})
	require.NoError(t, err)
	require.Same(t, k, again)
}

// A plan reads from the API server, and writes nothing to it.
func TestPlansDoNotWriteToKubernetes(t *testing.T) {
	in(t, func(t *testing.T) {
		s := &apiServer{}
		_, k := s.clients(t, cloud.Options{})
		ctx := cloud.ReadOnly(t.Context())
		require.NoError(t, k.Get(ctx, "/api/v1/nodes", &struct{}{}))
		require.ErrorAs(t, k.Delete(ctx, "/api/v1/nodes/a"), new(*cloud.RefusedError))
		require.Equal(t, []string{http.MethodGet}, s.asked)
		require.NoError(t, k.Delete(t.Context(), "/api/v1/nodes/a"))
		require.Equal(t, []string{http.MethodGet, http.MethodDelete}, s.asked)
	})
}

// A write to the API server checks that the run still holds the cluster's lock; a read
// does not, nor does a run without a lock.
func TestWritesToKubernetesCheckTheLock(t *testing.T) {
	in(t, func(t *testing.T) {
		s := &apiServer{}
		c, k := s.clients(t, cloud.Options{})
		require.NoError(t, k.Delete(t.Context(), "/api/v1/nodes/a"), "there is no lock to check")
		require.NoError(t, c.AcquireLock(t.Context(), cloud.LockOptions{Who: "ada"}))
		require.NoError(t, k.Delete(t.Context(), "/api/v1/nodes/a"))
		c.Lock.LoseForTest()
		require.NoError(t, k.Get(t.Context(), "/api/v1/nodes", &struct{}{}))
		require.ErrorIs(t, k.Delete(t.Context(), "/api/v1/nodes/a"), cloud.ErrLockLost)
		require.Equal(t, []string{http.MethodDelete, http.MethodDelete, http.MethodGet}, s.asked)
		c.Lock.StopForTest()
	})
}

// Requests to the API server are logged like calls to AWS, if a log is set.
func TestRequestsToKubernetesAreLogged(t *testing.T) {
	in(t, func(t *testing.T) {
		var calls []string
		_, k := (&apiServer{}).clients(t, cloud.Options{Log: func(c plan.Call) { calls = append(calls, c.Service+" "+c.Operation) }})
		require.NoError(t, k.Get(t.Context(), "/api/v1/nodes", &struct{}{}))
		require.Equal(t, []string{"Kubernetes GET /api/v1/nodes"}, calls)
	})
}
