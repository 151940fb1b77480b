package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// TestOneWordForOneThing walks all commands of ours: a flag of one name means one thing, and a thing has one name.
// The commands of upstream stay as they are.
func TestOneWordForOneThing(t *testing.T) {
	root, _ := newRoot(newShell(t).Env)
	meanings := map[string]map[string][]string{} // of each flag: the commands, by its usage
	for _, cmd := range commandsBelow(root) {
		if upstream(cmd) {
			continue
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "clusterawsadm cluster ")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if meanings[f.Name] == nil {
				meanings[f.Name] = map[string][]string{}
			}
			what, _ := pflag.UnquoteUsage(f)
			meanings[f.Name][what] = append(meanings[f.Name][what], name)
			checkWords(t, cmd, f, what)
		})
	}
	for flag, byMeaning := range meanings {
		if len(byMeaning) > 1 && !slices.Contains([]string{
			"to",  // the place of the result; of handover the management cluster, of upgrade-plan the version
			"cni", // files of objects; of generate the name of a network, whose objects it prints
		}, flag) {
			assert.Len(t, byMeaning, 1, "--%s takes different things: %v", flag, byMeaning)
		}
	}
}

// checkWords checks one flag.
func checkWords(t *testing.T, cmd *cobra.Command, f *pflag.Flag, what string) {
	t.Helper()
	place := func() bool { return what == "FILE" || what == "FOLDER" }
	switch {
	case f.Name == "output":
		assert.Contains(t, f.Usage, "output format: ", "%s: -o is a format", cmd.CommandPath())
		assert.Equal(t, "o", f.Shorthand)
	case f.Shorthand == "o":
		t.Errorf("%s: -o is a format, and not --%s", cmd.CommandPath(), f.Name)
	case f.Hidden || !place():
	case strings.Contains(f.Usage, "write") && f.Name != "to":
		assert.Contains(t, []string{
			"report", // beside the result
			"save",   // beside the result
		}, f.Name, "%s: --to is the place of the result", cmd.CommandPath())
	}
	if f.Name == "wait" || f.Name == "for" {
		assert.Contains(t, f.Usage, "infrastructure", cmd.CommandPath())
		for _, state := range []string{"api", "joined", "ready"} {
			assert.Contains(t, f.Usage, state, cmd.CommandPath())
		}
		assert.NotContains(t, f.Usage, "nodes (", cmd.CommandPath())
	}
}

// TestOldWords uses the names of the release before: they work, and are told.
func TestOldWords(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t, "--region", "us-east-1")
	in := func(name string) string { return filepath.Join(t.TempDir(), name) }
	written := func(path, warning string, args ...string) {
		t.Helper()
		require.Equal(t, 0, s.run(append([]string{"cluster"}, args...)...), s.err.String())
		assert.Contains(t, s.err.String(), "warning: "+warning)
		_, err := os.Stat(path)
		require.NoError(t, err)
	}
	plan := in("demo.plan")
	written(plan, "--out is --to now", "plan", "-f", file, "--out", plan, "--wait", "nodes")
	assert.Contains(t, s.err.String(), "warning: --wait=nodes is --wait=ready now")
	require.Equal(t, 0, s.run("cluster", "create", plan, "-f", file, "--wait", "ready"), s.err.String())
	assert.NotContains(t, s.err.String(), "warning")
	config := in("config")
	written(config, "-o "+config+": use --to "+config, "kubeconfig", "demo", "-o", config)
	archive := in("demo.tar.gz")
	written(archive, "-o "+archive+": use --to", "logs", "demo", "-o", archive)
	manifest := in("manifest.yaml")
	written(manifest, "-o "+manifest+": use --to", "import", "demo", "-o", manifest)
	folder := in("objects")
	written(folder, "-o "+folder+": use --to", "export", "-f", file, "-o", folder, "--with-secrets")
	text := in("converted.yaml")
	written(text, "-o "+text+": use --to", "convert", "-f", file, "-o", text)

	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{"kubeconfig", "demo", "-o", "table"},
		{"import", "demo", "-o", "json"},
		{"convert", "-f", file, "-o", "text"},
		{"logs", "demo", "-o", "yaml"},
		{"kubeconfig", "demo", "-o", "x", "--to", "y"},
		{"kubeconfig", "demo", "--to", ""},
	} {
		require.Equal(t, env.Wrong, s.run(append([]string{"cluster"}, args...)...), args)
	}
	require.Equal(t, 0, s.run("cluster", "kubeconfig", "demo", "-o", "json"))
	assert.True(t, strings.HasPrefix(s.out.String(), "{"), "a format is no file")
	s.variables["CLUSTERAWSADM_OUTPUT"] = "wide"
	require.Equal(t, 0, s.run("cluster", "kubeconfig", "demo"), "a setting is a format, for commands that have it")
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, left)
}
