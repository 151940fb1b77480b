// Package upstream finds the sources of Cluster API Provider AWS for tests.
package upstream

import (
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
