package kubesim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ownersOf returns the managers of the labels of a Node.
func ownersOf(o Object) map[string]string {
	out := map[string]string{}
	entries, _ := value(o, "metadata", "managedFields").([]any)
	for _, x := range entries {
		entry, _ := x.(Object)
		fields, _ := value(entry, "fieldsV1", "f:metadata", "f:labels").(Object)
		for field := range fields {
			if key, ok := strings.CutPrefix(field, "f:"); ok {
				out[key] += text(entry, "manager")
			}
		}
	}
	return out
}

// A label of a Node belongs to the client that has changed it last.
func TestLabelsHaveManagers(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := New("v1.34.2", now)
	c.Join(now, Machine{Name: "a", ControlPlane: true, Labels: map[string]string{"mine": "1", "team": "a"}})
	path := "/api/v1/nodes/a"
	before := map[string]string{
		"kubernetes.io/hostname": "kubelet", "kubernetes.io/os": "kubelet", "kubernetes.io/arch": "kubelet", "mine": "kubelet", "team": "kubelet",
		"node-role.kubernetes.io/control-plane": "kubeadm",
	}
	assert.Equal(t, before, ownersOf(c.Get(path)))

	body := `{"metadata": {"labels": {"team": "b", "mine": "1", "new": "x", "kubernetes.io/arch": null}}}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, path, nil)
	r.Header.Set("Content-Type", "application/merge-patch+json")
	r.Header.Set("User-Agent", "kubectl/v1.34.2 (linux/amd64)")
	code, _ := c.Serve(now.Add(time.Second), r, []byte(body))
	require.Equal(t, http.StatusOK, code)
	before["team"], before["new"] = "kubectl", "kubectl"
	delete(before, "kubernetes.io/arch")
	assert.Equal(t, before, ownersOf(c.Get(path)), "who sets a label to the value that it has does not take it over")

	Label(now, c.Get(path), "by-hand", "new", "y")
	before["new"] = "by-hand"
	assert.Equal(t, before, ownersOf(c.Get(path)))
}
