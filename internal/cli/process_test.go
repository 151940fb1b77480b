package cli

import (
	"runtime"
	"testing"

	"github.com/aws/smithy-go/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Without a home directory there is no folder for state: one below /tmp could be made by
// anybody first.
func TestStateDirWithoutHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has LOCALAPPDATA")
	}
	for _, relative := range []string{"", "state", "./state"} {
		t.Setenv("XDG_STATE_HOME", relative)
		assert.Empty(t, stateDir(""))
		assert.Equal(t, "/home/x/.local/state", stateDir("/home/x"))
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	assert.Equal(t, "/state", stateDir(""))
	t.Setenv("HOME", "relative")
	assert.NotEqual(t, "relative", homeDir())
}

// What the AWS SDK logs is not written between the lines of the progress.
func TestLogOfTheSDK(t *testing.T) {
	s := newShell(t)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	cfg, err := awsConfig(t.Context(), s.Env, "us-east-1", "")
	require.NoError(t, err)
	cfg.Logger.Logf(logging.Warn, "failed to discard remaining HTTP response body: %v", "EOF")
	assert.Empty(t, s.err.String())
	s.LogLevel = 4
	cfg.Logger.Logf(logging.Warn, "failed to discard remaining HTTP response body: %v", "EOF")
	assert.Equal(t, "AWS SDK: failed to discard remaining HTTP response body: EOF\n", s.err.String())
}
