package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// TestDeleteWithTheWrongVPC: a mistake in --vpc would delete the keys of a cluster whose machines
// and network stay.
func TestDeleteWithTheWrongVPC(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, env.OK, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	for _, more := range [][]string{{"--dry-run"}, {"--yes"}} {
		require.Equal(t, env.Refused, s.run(append([]string{"cluster", "delete", "demo", "--vpc", "vpc-0123456789abcdef0"}, more...)...), s.err.String())
		assert.Regexp(
			t,
			`error: no resource of cluster demo is in vpc-0123456789abcdef0, but vpc-[0-9a-f]{17} has its tag: name that VPC, or remove its tag sigs\.k8s\.io/cluster-api-provider-aws/cluster/demo\n`,
			s.err.String(),
		)
	}
	require.Equal(t, env.OK, s.run("cluster", "plan", "-f", file))
	assert.Contains(t, s.out.String(), "No changes: ")
	require.Equal(t, env.OK, s.run("cluster", "describe", "demo", "-o", `jsonpath={.resources[?(@.resource=="vpc")].cloudID}`), s.err.String())
	vpc := s.out.String()
	require.Equal(t, env.OK, s.run("cluster", "delete", "demo", "--vpc", vpc, "--yes"), s.err.String())
	assert.Contains(t, s.err.String(), "Cluster demo in us-east-1 is deleted")
}

// TestNextCommandIsQuoted: the command that create suggests works as it is.
func TestNextCommandIsQuoted(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	spaced := filepath.Join(filepath.Dir(file), "my demo.yaml")
	require.NoError(t, os.Rename(file, spaced))
	require.Equal(t, env.OK, s.run("cluster", "create", "-f", spaced, "--yes"), s.err.String())
	assert.Contains(t, s.err.String(), "\nNext: clusterawsadm cluster describe -f '"+spaced+"' --simulate")
}
