package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
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
		panic("a test")
	}
	require.Equal(t, env.Crashed, s.run("cluster", "plan", "-f", file, "--detailed-exitcode"))
	require.Contains(t, s.err.String(), "error: bug in clusterawsadm: a test\n")
	require.Contains(t, s.err.String(), "crash_test.go", "the stack")
	require.Contains(t, s.err.String(), "Please report this bug with the lines above: https://github.com/clusterawsadm/clusterawsadm/issues\n")
	require.Empty(t, s.out.String())
	require.Equal(t, env.Failed, s.run("resource", "list", "--cluster-name", "demo", "--region", "us-east-1"), "upstream has no other codes")
}

// The control characters of a manifest do not reach the terminal.
func TestControlCharacters(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.In = strings.NewReader("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: \"\\e[2J\\e[31mdemo\\u202e\"}\n")
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", "-"))
	require.Contains(t, s.err.String(), `\u001b[2J\u001b[31mdemo`)
	require.NotContains(t, s.err.String(), "\x1b")
	require.NotContains(t, s.err.String(), "\u202e")

	dir := filepath.Dir(file)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "\xff[2J.yaml"), []byte("{}"), 0o600))
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", dir))
	require.Contains(t, s.err.String(), `the name of the file "\xff[2J.yaml" is not UTF-8`)
}
