package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

func TestPolicy(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "policy", "-f", file, "-o", "yaml"), s.err.String())
	golden.Assert(t, "policy.yaml", s.out.String())
	assert.Empty(t, s.err.String())
	require.Equal(t, 0, s.run("cluster", "policy", "-f", file, "--split"))
	assert.Equal(t, 1, strings.Count(s.out.String(), "\n"), "one line, because it fits")
	require.Equal(t, 0, s.run("cluster", "policy", "--kind", "any", "--region", "us-east-1", "--split"))
	lines := strings.Split(strings.TrimSpace(s.out.String()), "\n")
	assert.Len(t, lines, 2)
	for _, line := range lines {
		assert.LessOrEqual(t, len(line), 6144)
		assert.True(t, json.Valid([]byte(line)))
	}
	assert.Equal(t, 3, s.run("cluster", "policy", "--split", "-o", "yaml"))
	require.Equal(t, 0, s.run("cluster", "policy", "--region", "cn-north-1"))
	assert.NotContains(t, s.out.String(), `"arn:aws:`, "the partition is that of the region")
	require.Equal(t, 0, s.run("cluster", "policy"))
	assert.Contains(t, s.err.String(), "and IAM takes 6144 in a managed policy: use --split")
	assert.Contains(t, s.out.String(), `"arn:aws:s3:::*"`, "whatever a manifest may ask for")
	assert.NotContains(t, s.out.String(), "sts:AssumeRole", "unless a manifest says of what role")
	assert.Equal(t, 3, s.run("cluster", "policy", "-f", "nope.yaml"))
	assert.Equal(t, 3, s.run("cluster", "policy", "demo"))
	assert.Equal(t, 3, s.run("cluster", "policy", "--kind", "eks", "-f", file))
	assert.Equal(t, "error: use --kind or -f, not both: the manifest says who runs the control plane\n", s.err.String())
}
