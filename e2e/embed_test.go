//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// TestEmbed builds test/embed, a program in its own module that uses the engine as a
// library, and creates, shows and deletes a cluster with it.
func TestEmbed(t *testing.T) {
	program := filepath.Join(t.TempDir(), "embed")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "test", "embed")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	server := moto.Start(t)
	server.Bootstrap(t)
	before := inventory(t, server)
	cmd := exec.CommandContext(t.Context(), program, example("quickstart"))
	cmd.Env = []string{
		"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "AWS_ENDPOINT_URL=" + server.URL,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true",
	}
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Regexp(t, `(?m)^plan: [1-9][0-9]* to create, about [1-9]m`, string(out))
	assert.Regexp(t, `(?m)^  vpc +vpc-[0-9a-f]+$`, string(out), "progress")
	assert.Regexp(t, `(?m)^status: \S+ in us-east-1, https://\S+:6443$`, string(out))
	assert.Regexp(t, `(?m)^  ok +vpc +vpc-[0-9a-f]+$`, string(out))
	assert.NotRegexp(t, `(?m)^  (missing|pending|differs|conflict|extra|unknown) `, string(out))
	assert.Regexp(t, `(?m)^deleted: [1-9][0-9]* resources$`, string(out))
	assert.Equal(t, before, inventory(t, server), "nothing is left")
}
