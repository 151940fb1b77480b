package kubesim

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/objects"
)

// send sends a request with an object to the simulated API server, and returns the status code and the answer.
func send(t *testing.T, c *Cluster, method, query string, o Object) (code int, answer Object) {
	t.Helper()
	r, ok := c.resourceOf(text(o, "apiVersion"), text(o, "kind"))
	require.True(t, ok, text(o, "kind"))
	name := text(o, "metadata", "name")
	if method == http.MethodPost {
		name = ""
	}
	body, err := json.Marshal(o)
	require.NoError(t, err)
	request := httptest.NewRequestWithContext(
		t.Context(),
		method,
		"https://a"+r.path(text(o, "metadata", "namespace"), name)+"?"+query,
		strings.NewReader(string(body)),
	)
	if request.Header.Set("Content-Type", applyPatch); method != http.MethodPatch {
		request.Header.Set("Content-Type", "application/json")
	}
	code, said := c.Serve(time.Now(), request, body)
	raw, err := json.Marshal(said)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &answer))
	return code, answer
}

// fieldsOf returns the fields that a refusal names.
func fieldsOf(answer Object) (all []string) {
	for _, cause := range list(answer, "details", "causes") {
		all = append(all, text(cause, "field"))
	}
	return all
}

// The simulated API server accepts and refuses the same changes as the real one, and a dry run stores nothing.
func TestUpdates(t *testing.T) {
	all, err := objects.Updates()
	require.NoError(t, err)
	for _, u := range all {
		began := time.Now().Add(-time.Hour)
		c := New("v1.34.2", began)
		c.EKS = "a" // without etcd members
		code, answer := send(t, c, http.MethodPatch, "fieldManager=test&dryRun=All", u.Have)
		require.Equal(t, http.StatusCreated, code, answer)
		before := len(c.Objects)
		code, answer = send(t, c, http.MethodPatch, "fieldManager=test", u.Have)
		require.Equal(t, http.StatusCreated, code, answer)
		require.Len(t, c.Objects, before+1)
		c.Settle(time.Now().Add(time.Minute)) // definitions are established
		r, _ := c.resourceOf(text(u.Have, "apiVersion"), text(u.Have, "kind"))
		path := r.path(text(u.Have, "metadata", "namespace"), text(u.Have, "metadata", "name"))
		stored := copied(c.Get(path))
		code, answer = send(t, c, http.MethodPatch, "fieldManager=test&force=true&dryRun=All", u.After)
		assert.Equal(t, u.Refused, fieldsOf(answer), "%v: %v", u.After, answer["message"])
		assert.Equal(t, stored, copied(c.Get(path)))
		if u.Refused == nil {
			require.Equal(t, http.StatusOK, code, answer)
		} else {
			require.Equal(t, http.StatusUnprocessableEntity, code, answer)
			assert.Contains(t, text(answer, "message"), "is invalid: ")
		}
	}
}

// All writes of an API server can be dry runs.
func TestDryRun(t *testing.T) {
	c := New("v1.34.2", time.Now().Add(-time.Hour))
	c.EKS = "a" // without etcd members
	o := func(data string) Object {
		return Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": Object{"name": "a", "namespace": "default"}, "data": Object{"a": data}}
	}
	data := func() string { return text(c.Get("/api/v1/namespaces/default/configmaps/a"), "data", "a") }
	code, _ := send(t, c, http.MethodPost, "dryRun=All", o("1"))
	assert.Equal(t, http.StatusCreated, code)
	assert.Empty(t, data())
	code, _ = send(t, c, http.MethodPost, "", o("1"))
	assert.Equal(t, http.StatusCreated, code)
	code, _ = send(t, c, http.MethodPut, "dryRun=All", o("2"))
	assert.Equal(t, http.StatusOK, code)
	code, _ = send(t, c, http.MethodDelete, "dryRun=All", o("2"))
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "1", data())
	c.Put(time.Now(), Object{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": Object{"name": "a"},
		"webhooks": []any{Object{
			"name": "a.example.com", "sideEffects": "Some", "failurePolicy": "Ignore", "clientConfig": Object{"url": "https://a"},
			"rules": []any{Object{"apiGroups": []any{""}, "resources": []any{"configmaps"}}},
		}},
	})
	code, answer := send(t, c, http.MethodPut, "dryRun=All", o("2"))
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, text(answer, "message"), `admission webhook "a.example.com" does not support dry run`)
	code, _ = send(t, c, http.MethodPut, "", o("2"))
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "2", data())
}
