// Package upstream finds the sources of Cluster API Provider AWS for tests.
package upstream

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Dir returns the folder of the Go module of Cluster API Provider AWS.
func Dir(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api-provider-aws/v2").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// Tags returns the releases of Cluster API Provider AWS of which the Go module proxy may have the
// module, the last one of each minor version that it has.
func Tags() []string {
	return []string{
		"v0.6.8", "v1.0.0", "v1.1.0", "v1.3.0", "v1.5.0", "v2.0.2", "v2.2.4", "v2.3.5", "v2.4.0", "v2.5.2", "v2.6.1", "v2.7.1", "v2.8.2", "v2.9.3",
		"v2.10.0", "v2.11.0", "v2.12.1",
	}
}

// Download returns the folder of the module at a tag, or why there is none.
func Download(t *testing.T, tag string) (dir, whyNot string) {
	t.Helper()
	module := "sigs.k8s.io/cluster-api-provider-aws"
	if strings.HasPrefix(tag, "v2.") {
		module += "/v2"
	}
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module+"@"+tag) //nolint:gosec // of the list above
	cmd.Dir = t.TempDir()                                                                     // outside of this module, whose go.mod does not name it
	out, _ := cmd.Output()
	var answer struct{ Dir, Error string }
	require.NoError(t, json.Unmarshal(out, &answer), string(out))
	return answer.Dir, answer.Error
}
