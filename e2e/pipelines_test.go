package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestPipelines runs the commands of the pipelines in docs/guides/ci on the simulated AWS:
// those that look for drift at the end, when there is none.
func TestPipelines(t *testing.T) {
	files, err := filepath.Glob("../docs/guides/ci/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var pipeline any
		require.NoError(t, yaml.UnmarshalStrict(text, &pipeline))
		commands := commandsIn(pipeline)
		require.GreaterOrEqual(t, len(commands), 4, file)
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Chdir(t.TempDir())
			u := newUser(t)
			u.types(t, "clusterawsadm cluster generate demo > cluster.yaml")
			for _, looksForDrift := range []bool{false, true} {
				for _, command := range commands {
					if strings.Contains(command, "--detailed-exitcode") == looksForDrift {
						out := u.types(t, command+" --simulate")
						assert.Equal(t, looksForDrift, strings.Contains(out, "No changes"), "%s\n%s", command, out)
					}
				}
			}
		})
	}
}

// commandsIn returns the commands of this program in a pipeline: those of the job plan, then
// those of create and of drift, each in the order of its steps.
func commandsIn(pipeline any) (found []string) {
	var walk func(any)
	walk = func(part any) {
		switch x := part.(type) {
		case map[string]any:
			for _, key := range []string{"plan", "create", "drift", "jobs", "steps", "run", "script"} {
				walk(x[key])
			}
		case []any:
			for _, y := range x {
				walk(y)
			}
		case string:
			for line := range strings.Lines(x) {
				command, _, _ := strings.Cut(strings.TrimSpace(line), " | ")
				if strings.HasPrefix(command, "clusterawsadm cluster ") {
					found = append(found, command)
				}
			}
		}
	}
	walk(pipeline)
	return found
}
