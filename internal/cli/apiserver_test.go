package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// apiServer serves the part of the Kubernetes API that the commands use: it stores
// objects, serves kinds, and merges patches. e2e/kubernetes runs the same commands with a
// real API server.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string]map[string]any // by path
	denied  string                    // prefixes of paths that are forbidden
	patched []string                  // paths, in order
}

func newAPIServer(t *testing.T, objects map[string]string) *apiServer {
	t.Helper()
	s := &apiServer{objects: map[string]map[string]any{}}
	for path, text := range objects {
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &o), path)
		s.objects[path] = o
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// kubeconfig writes a kubeconfig with the contexts "management" and "other".
func (s *apiServer) kubeconfig(t *testing.T, file string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: management
contexts: [{name: management, context: {cluster: c, user: u}}, {name: other, context: {cluster: other, user: u}}]
clusters: [{name: c, cluster: {server: %q}}, {name: other, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: secret-token}}]
`, s.URL), 0o600))
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[r.URL.Path]
	switch {
	case s.denied != "" && strings.HasPrefix(r.URL.Path, s.denied):
		status(
			w,
			http.StatusForbidden,
			"Forbidden",
			fmt.Sprintf("%s is forbidden: User %q cannot %s it", filepath.Base(r.URL.Path), "ada", strings.ToLower(r.Method)),
		)
		return
	case !ok:
		status(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%q not found", filepath.Base(r.URL.Path)))
		return
	case r.Method == http.MethodPatch:
		var patch map[string]any
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &patch)
		}
		if err != nil {
			status(w, http.StatusBadRequest, "BadRequest", err.Error())
			return
		}
		merge(o, patch)
		s.patched = append(s.patched, r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o) // the client reports a lost response
}

func status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}

// merge applies a JSON merge patch.
func merge(o, patch map[string]any) {
	for k, v := range patch {
		part, isMap := v.(map[string]any)
		old, wasMap := o[k].(map[string]any)
		switch {
		case v == nil:
			delete(o, k)
		case isMap && wasMap:
			merge(old, part)
		case isMap:
			fresh := map[string]any{}
			merge(fresh, part)
			o[k] = fresh
		default:
			o[k] = v
		}
	}
}

// at returns a field of an object, nil if it does not exist.
func (s *apiServer) at(path string, fields ...string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var v any = s.objects[path]
	for _, f := range fields {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[f]
	}
	return v
}
