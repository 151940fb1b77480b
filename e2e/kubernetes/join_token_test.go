package kubernetes

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// kubectl builds kubectl and returns its file.
func kubectl(t *testing.T) string {
	t.Helper()
	root, err := controlplane.Root()
	require.NoError(t, err)
	file, err := filepath.Abs(filepath.Join(root, ".cache", "kubernetes", "kubectl-"+controlplane.Version))
	require.NoError(t, err)
	if _, err := os.Stat(file); err == nil {
		return file // the name contains the version
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-C", "kubectl", "-ldflags", "-s -w", "-o", file, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

// writtenFile is a file in user data; the tests of internal/engine/boot check that
// machines get it.
func writtenFile(t *testing.T, userData, path string) string {
	t.Helper()
	root, err := controlplane.Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "internal", "engine", "boot", "testdata", userData))
	require.NoError(t, err)
	var doc struct {
		Files []struct{ Path, Content string } `json:"write_files"`
	}
	require.NoError(t, yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)).Decode(&doc))
	for _, f := range doc.Files {
		if f.Path == path {
			return f.Content
		}
	}
	require.Fail(t, "no file "+path)
	return ""
}

// Tests the script that control planes run every half hour, with a real kubectl and a
// real API server: it extends the tokens of this program to two hours, leaves others
// alone, and creates none.
func TestControlPlaneKeepsTheToken(t *testing.T) {
	c := controlplane.Start(t)
	secrets := c.Objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("kube-system")
	const ours = "lets the machines of this cluster join, made by clusterawsadm"
	soon := time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)
	for id, description := range map[string]string{"aaaaaa": ours, "bbbbbb": ours, "cccccc": "an administrator's", "dddddd": ""} {
		data := map[string]any{
			"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", "expiration": soon,
		}
		if description != "" {
			data["description"] = description
		}
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       "Secret",
			"metadata":   map[string]any{"name": "bootstrap-token-" + id},
			"type":       "bootstrap.kubernetes.io/token",
			"stringData": data,
		}}
		require.Eventually(t, func() bool { // the namespace takes a moment
			_, err := secrets.Create(t.Context(), o, metav1.CreateOptions{})
			return err == nil
		}, time.Minute, 100*time.Millisecond)
	}
	script := writtenFile(t, "init-pool.yaml", "/etc/kubernetes/clusterawsadm-join-token.sh")
	require.Contains(t, script, " --kubeconfig /etc/kubernetes/admin.conf ")
	script = strings.Replace(script, "/etc/kubernetes/admin.conf", c.Kubeconfig(t), 1)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(kubectl(t), filepath.Join(bin, "kubectl")))
	keep := func() {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash")
		cmd.Stdin, cmd.Env = strings.NewReader(script), []string{"HOME=" + bin, "PATH=" + bin + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}

	keep()
	for id, kept := range map[string]bool{"aaaaaa": true, "bbbbbb": true, "cccccc": false, "dddddd": false} {
		expires := expiration(t, secrets, id)
		if kept {
			assert.WithinDuration(t, time.Now().Add(2*time.Hour), expires, 2*time.Minute, id)
		} else {
			assert.Equal(t, soon, expires.UTC().Format(time.RFC3339), id)
		}
	}

	// A token that a run has superseded, which has another description, stays valid and
	// is not renewed.
	change, err := json.Marshal(map[string]any{"stringData": map[string]string{"description": "superseded: " + ours, "expiration": soon}})
	require.NoError(t, err)
	_, err = secrets.Patch(t.Context(), "bootstrap-token-bbbbbb", types.MergePatchType, change, metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, secrets.Delete(t.Context(), "bootstrap-token-aaaaaa", metav1.DeleteOptions{}))
	keep()
	assert.Equal(t, soon, expiration(t, secrets, "bbbbbb").UTC().Format(time.RFC3339))
	all, err := secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	require.NoError(t, err)
	assert.Len(t, all.Items, 3)
}

// expiration is when a token expires.
func expiration(t *testing.T, secrets dynamic.ResourceInterface, id string) time.Time {
	t.Helper()
	o, err := secrets.Get(t.Context(), "bootstrap-token-"+id, metav1.GetOptions{})
	require.NoError(t, err)
	text, _, err := unstructured.NestedString(o.Object, "data", "expiration")
	require.NoError(t, err)
	var raw []byte
	require.NoError(t, json.Unmarshal([]byte(`"`+text+`"`), &raw))
	at, err := time.Parse(time.RFC3339, string(raw))
	require.NoError(t, err)
	return at
}
