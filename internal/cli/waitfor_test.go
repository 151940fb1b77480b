package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// TestWait waits for the states of a cluster.
func TestWait(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, env.Halfway, s.run("cluster", "wait", "demo", "--timeout", "200ms"), s.err.String())
	assert.Regexp(t, `waiting for cluster demo in us-east-1 to be ready: no control plane runs\n`, s.err.String())
	assert.Regexp(t, `error: gave up after \w+ waiting for ready: no control plane runs\n`, s.err.String())

	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	for _, state := range []string{"api", "joined"} {
		require.Equal(t, 0, s.run("cluster", "wait", "demo", "--for", state), s.err.String())
		require.Equal(t, 0, s.run("cluster", "wait", "-f", file, "--for="+state), s.err.String())
	}
	assert.Regexp(t, `^Cluster demo in us-east-1 is joined \(\S+\)\.\n$`, s.lastLine())
	require.Equal(t, env.Halfway, s.run("cluster", "wait", "demo", "--for=condition=Ready", "--timeout", "2s"), s.err.String())
	assert.Regexp(t, `waiting for ready: not ready: ip-\S+, ip-\S+\n`, s.err.String())
	assert.Regexp(t, `  1\. node ip-\S+ is not ready: `, s.err.String())
	require.Equal(t, env.Halfway, s.run("cluster", "wait", "-f", file, "--for=delete", "--timeout", "2s"), s.err.String())
	assert.Contains(t, s.err.String(), "This command changes nothing. To wait again, repeat it")
	assert.NotContains(t, s.err.String(), "No cleanup is needed")
	assert.Contains(t, s.err.String(), " resources left\n")
	assert.Empty(t, s.out.String())

	require.Equal(t, 0, s.run("cluster", "delete", "demo", "--yes"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "wait", "demo", "--for=delete"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "wait", "-f", file, "--for=deleted"), s.err.String())
	require.Equal(t, env.Wrong, s.run("cluster", "wait", "demo", "--for=nope"))
	assert.Contains(t, s.err.String(), "must be one of infrastructure, api, joined, ready, delete")
	require.Equal(t, env.Wrong, s.run("cluster", "wait"))
}

// lastLine is the last line on stderr.
func (s *shellEnv) lastLine() string {
	text := s.err.String()
	at := len(text) - 1
	for at > 0 && text[at-1] != '\n' {
		at--
	}
	return text[at:]
}
