package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// otherDocuments are commands whose JSON has a form of AWS, or of upstream's clusterawsadm.
var otherDocuments = []string{
	"cluster policy",
	"cluster export", "cluster kubeconfig", // objects of Kubernetes
	"version", "ami list", "eks addons list-available", "eks addons list-installed", "resource list", "simulate",
}

// TestEveryDocument runs each command that has -o json: "version" is the version of the
// document and nothing else, and an endpoint is a URL.
func TestEveryDocument(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file, plan := s.generated(t), filepath.Join(t.TempDir(), "demo.plan")
	runs := [][]string{ // in this order
		{"cluster explain", "AWSCluster.spec"},
		{"cluster validate", "-f", file},
		{"cluster plan", "-f", file, "--to", plan},
		{"cluster plan show", plan},
		{"cluster graph", "-f", file},
		{"cluster create", "-f", file, "--yes"},
		{"cluster list"},
		{"cluster describe", "demo"},
		{"cluster logs", "demo", "--to", plan + ".tar.gz"},
		{"cluster backup", "demo", "--to", plan + ".backup", "--passphrase-file", file},
		{"cluster upgrade-plan", "demo"},
		{"cluster stop", "demo", "--yes"},
		{"cluster start", "demo", "--yes"},
		{"cluster delete", "demo", "--yes"},
		{"cluster rehearse", "-f", file},
	}
	seen := append(slices.Clone(otherDocuments), "cluster exec") // TestExec: -o json cannot be the end of its arguments
	for _, run := range runs {
		seen = append(seen, run[0])
		args := append(append(strings.Fields(run[0]), run[1:]...), "-o", "json")
		require.Equal(t, 0, s.run(args...), "%s\n%s", run[0], s.err.String())
		var document map[string]any
		require.NoError(t, json.Unmarshal(s.out.Bytes(), &document), run[0])
		assert.InDelta(t, 1, document["version"], 0, run[0])
		checkFields(t, run[0], document)
	}
	root, _ := newRoot(newShell(t).Env)
	for _, cmd := range commandsBelow(root) {
		if f := cmd.Flags().Lookup("output"); f != nil && strings.Contains(f.Usage, "json") {
			name := strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")
			assert.Contains(t, seen, name, "the command has -o json, and is not tested here")
		}
	}
}

// checkFields checks the fields below the top of a document.
func checkFields(t *testing.T, command string, value any) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			_, isText := field.(string)
			assert.False(t, name == "version" && isText, "%s: the field version is %v", command, field)
			if name == "endpoint" {
				assert.Regexp(t, `^https://[^/]+:\d+$`, field, command)
			}
			checkFields(t, command, field)
		}
	case []any:
		for _, item := range value {
			checkFields(t, command, item)
		}
	}
}

// commandsBelow lists a command and all commands below it.
func commandsBelow(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		all = append(all, commandsBelow(sub)...)
	}
	return all
}
