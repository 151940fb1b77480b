package cli

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// A bug has its own exit code: Go's own, 2, is that of a plan with changes.
func TestCrash(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.AWS = func(context.Context, string, string) (aws.Config, error) {
		var none map[string]int
		none["a"] = 1
		return aws.Config{}, nil
	}
	require.Equal(t, env.Crashed, s.run("cluster", "plan", "-f", file, "--detailed-exitcode"))
	require.Contains(t, s.err.String(), "error: bug in clusterawsadm: assignment to entry in nil map\n")
	require.Contains(t, s.err.String(), "crash_test.go", "the stack")
	require.Contains(t, s.err.String(), "Please report this bug with the lines above: https://github.com/clusterawsadm/clusterawsadm/issues\n")
	require.Empty(t, s.out.String())
	require.Equal(t, env.Failed, s.run("resource", "list", "--cluster-name", "demo", "--region", "us-east-1"), "upstream has no other codes")
}
