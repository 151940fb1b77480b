package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestWorkflowsArePinned checks what runs in the workflows and with which rights. A tag of an
// action can be moved to other code, a commit cannot:
// https://docs.github.com/en/actions/reference/security/secure-use (using third-party actions).
func TestWorkflowsArePinned(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.y*ml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	uses := regexp.MustCompile(`(?m)^[ -]*["']?uses["']?: *(.*)$`)
	commit := regexp.MustCompile(`^([\w.-]+/[\w.-]+)[\w./-]*@([0-9a-f]{40}) # v\d+\.\d+\.\d+$`)
	versions := map[string]string{} // action -> commit
	for _, file := range append(files, "../docs/guides/ci/github-actions.yaml") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := uses.FindAllStringSubmatch(string(text), -1)
		require.Len(t, found, strings.Count(string(text), "uses"), file)
		for _, f := range found {
			parts := commit.FindStringSubmatch(f[1])
			if assert.NotNil(t, parts, "%s: %q is not OWNER/NAME@COMMIT # vX.Y.Z", file, f[1]) {
				if other := versions[parts[1]]; other != "" {
					assert.Equal(t, other, parts[2], "%s: two versions of %s", file, parts[1])
				}
				versions[parts[1]] = parts[2]
			}
		}
		var workflow struct {
			Permissions *map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Steps       []struct{ Run string }
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &workflow))
		require.NotEmpty(t, workflow.Jobs, file)
		if assert.NotNil(t, workflow.Permissions, file) {
			assert.Empty(t, *workflow.Permissions, "%s: rights belong to jobs", file)
		}
		for name, job := range workflow.Jobs {
			assert.NotEmpty(t, job.Permissions, "%s: job %s has no rights of its own", file, name)
			for _, step := range job.Steps {
				_, packages, installs := strings.Cut(step.Run, "pip install ")
				for _, p := range strings.Fields(packages) {
					assert.True(t, !installs || strings.Contains(p, "=="), "%s: %s has no version", file, p)
				}
			}
		}
	}
}
