package management

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// connected returns a cluster whose API server is the handler.
func connected(t *testing.T, serve http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		serve(w, r)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(
		t,
		os.WriteFile(
			file,
			[]byte(`{current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "`+server.URL+`"}}]}`),
			0o600,
		),
	)
	c, err := Connect(Options{Kubeconfig: file, UserAgent: "github.com/clusterawsadm/clusterawsadm/test", Clock: clock.Fast(time.Now(), 1000)})
	require.NoError(t, err)
	return c
}

// deployment returns a Deployment with two replicas and a status.
func deployment(status string) string {
	return `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "capa-controller-manager", "namespace": "capa-system", "generation": 5},
		"spec": {"replicas": 2}, "status": ` + status + `}`
}

func TestAwaitRollout(t *testing.T) {
	states := []string{
		`{"observedGeneration": 4, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}`, // of the previous generation
		`{"observedGeneration": 5, "replicas": 2, "updatedReplicas": 0, "availableReplicas": 2}`,
		`{"observedGeneration": 5, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}`,
		`{"observedGeneration": 5, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}`,
		`{"observedGeneration": 5, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}`,
		`{"observedGeneration": 5, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}`,
	}
	at := 0
	c := connected(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(deployment(states[at]))) // the client fails if the response does not arrive
		at++
	})
	var told []string
	require.NoError(t, c.AwaitRollout(t.Context(), DefaultNamespace, func(s string) { told = append(told, s) }))
	assert.Equal(t, []string{
		"waiting for the deployment spec update to be observed", "0 of 2 pods are updated", "1 old pods are terminating", "1 of 2 updated pods are available",
	}, told, "each state once")
	assert.Len(t, states, at)
}

func TestAwaitRolloutGivesUp(t *testing.T) {
	c := connected(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(
			[]byte(
				deployment(`{"observedGeneration": 5, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "it has timed out"}]}`),
			),
		)
	})
	err := c.AwaitRollout(t.Context(), DefaultNamespace, func(string) {})
	require.ErrorContains(t, err, "deployment capa-system/capa-controller-manager: it has timed out; 'kubectl -n capa-system describe pods' shows the reason")

	c = connected(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(deployment(`{}`))) })
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	require.ErrorIs(t, c.AwaitRollout(ctx, DefaultNamespace, func(string) { cancel(late) }), late)
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	for code, want := range map[int]string{
		http.StatusUnauthorized:        "does not accept the credentials of the kubeconfig",
		http.StatusForbidden:           "lacks a permission",
		http.StatusInternalServerError: "out of order",
	} {
		c := connected(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			reason := map[int]string{401: "Unauthorized", 403: "Forbidden", 500: "InternalError"}[code]
			_, _ = fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": %d, "reason": %q, "message": "out of order"}`, code, reason)
		})
		_, err := c.SetGC(t.Context(), "default", "demo", true)
		require.ErrorContains(t, err, want)
		if code != http.StatusUnauthorized { // client-go has its own message for this status
			require.ErrorContains(t, err, "out of order", "contains the message of the API server")
		}
		_, err = c.Credentials(t.Context(), DefaultNamespace)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, c.Rollout(t.Context(), DefaultNamespace), want)
	}
}

// TestHalfOfAnEKSCluster makes the second annotation fail: the first one is reported.
func TestHalfOfAnEKSCluster(t *testing.T) {
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case r.Method == http.MethodPatch && strings.HasSuffix(path, "awsmanagedclusters/x"):
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict", "message": "a webhook says no"}`))
		case strings.Count(path, "/") == 2:
			_, _ = w.Write([]byte(`{"kind": "APIGroup", "preferredVersion": {"version": "v1beta2"}}`))
		case strings.Count(path, "/") == 3:
			_, _ = w.Write(
				[]byte(`{"kind": "APIResourceList", "resources": [{"name": "clusters", "kind": "Cluster"}, {"name": "awsmanagedclusters", "kind": "AWSManagedCluster"},
				{"name": "awsmanagedcontrolplanes", "kind": "AWSManagedControlPlane"}]}`),
			)
		case strings.HasSuffix(path, "/clusters/x"):
			_, _ = w.Write([]byte(`{"apiVersion": "a/v1", "kind": "Cluster", "metadata": {"name": "x"}, "spec": {
				"infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSManagedCluster", "name": "x"},
				"controlPlaneRef": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "AWSManagedControlPlane", "name": "x"}}}`))
		case strings.HasSuffix(path, "awsmanagedclusters/x"):
			_, _ = w.Write([]byte(`{"apiVersion": "a/v1", "kind": "AWSManagedCluster", "metadata": {"name": "x"}}`))
		default:
			_, _ = w.Write([]byte(`{"apiVersion": "a/v1", "kind": "AWSManagedControlPlane", "metadata": {"name": "x"}}`))
		}
	})
	done, err := c.SetGC(t.Context(), "default", "x", true)
	require.ErrorContains(t, err, "annotate AWSManagedCluster default/x: a webhook says no")
	assert.Equal(t, []Annotated{{Kind: "AWSManagedControlPlane", Namespace: "default", Name: "x"}}, done)
}

func TestCredentialsAreNotPrintedByAccident(t *testing.T) {
	c, err := ParseCredentials("W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkID0gU0VDUkVUCg==")
	require.NoError(t, err)
	assert.Contains(t, string(c.Reveal()), "SECRET")
	for _, verb := range []string{"%v", "%+v", "%s", "%#v", "%q"} {
		assert.NotContains(t, fmt.Sprintf(verb, c), "SECRET")
		assert.NotContains(t, fmt.Sprintf(verb, struct{ C Credentials }{c}), "SECRET")
	}
	for _, empty := range []string{"", " \n", "Cg==", "ICAK"} {
		c, err := ParseCredentials(empty)
		require.NoError(t, err)
		assert.True(t, c.IsZeroed())
	}
}

func TestConnectExplainsKubeconfigs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte("{contexts: [{name: c, context: {cluster: c}}]}"), 0o600))
	_, err := Connect(Options{Kubeconfig: file, Context: "c"})
	require.ErrorContains(t, err, "no kubeconfig of a management cluster (searched: "+file+")")
	require.NoError(t, os.WriteFile(file, []byte("nonsense: ["), 0o600))
	_, err = Connect(Options{Kubeconfig: file})
	require.ErrorContains(t, err, "kubeconfig: ")
	_, err = Connect(Options{Files: []string{"/nope/a", "/nope/b"}})
	require.ErrorContains(t, err, "searched: /nope/a, /nope/b")
	_, err = Connect(Options{Files: []string{"/nope/a"}, Context: "c"})
	require.ErrorContains(t, err, "no kubeconfig of a management cluster (searched: /nope/a)")
}
