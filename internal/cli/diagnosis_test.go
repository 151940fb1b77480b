package cli

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// TestWaitThatFails waits for an API server on a machine on which kubeadm fails, and
// compares the output to a pipe and to a terminal.
func TestWaitThatFails(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--wait", "infrastructure"), s.err.String())
	s.simulatedAccount(t, func(state *awssim.State) {
		for _, i := range state.EC2.Instances {
			i.Offline = time.Time{} // it has fetched its data
			i.Boot = &awssim.Boot{At: i.Running, Failed: "[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2"}
		}
		clear(state.Secrets.Secrets) // they have been fetched
		clear(state.Kubernetes)
	})
	end := func() string {
		text := s.err.String()
		at := regexp.MustCompile(`(?m)^(\x1b\[\S*)?error:`).FindStringIndex(text)
		require.NotNil(t, at, text)
		text = text[at[0]:]
		for pattern, with := range map[string]string{
			`\bi-[0-9a-f]{17}`: "i-0123456789abcdef0", `targetgroup/\S+`: "targetgroup/…", `apiserver-target-\w+/\w+`: "apiserver-target/…",
			` at \w{3}, \d.*\+0000`: " at (a time)", `[\w/]*/demo\.yaml`: "demo.yaml",
		} {
			text = regexp.MustCompile(pattern).ReplaceAllString(text, with)
		}
		return text
	}
	code := s.run("cluster", "create", "-f", file, "--yes", "--wait", "api")
	assert.Equal(t, env.Halfway, code, s.err.String())
	assert.Contains(t, s.err.String(), "failed: gave up after 15m0s waiting for ")
	golden.Assert(t, "wait-fails.txt", end())
	s.terminal("y\n")
	delete(s.variables, "NO_COLOR")
	s.run("cluster", "create", "-f", file, "--wait", "api")
	golden.Assert(t, "wait-fails-terminal.txt", end())
}
