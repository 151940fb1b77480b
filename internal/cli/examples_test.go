package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExamplesParse checks the examples of all commands: each is a command line that is right
// as far as that can be told without running it. Every command that upstream does not have
// has one.
func TestExamplesParse(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	t.Chdir(t.TempDir())
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--to", "demo.plan"), s.err.String()) // create reads it first
	for _, cmd := range commandsBelow(Commands(s.Env)) {
		_, group := cmd.Annotations[isGroup]
		lines := exampleLines(cmd.Example)
		if cmd.Example != "" || !group && !upstream(cmd) {
			assert.NotEmpty(t, lines, "%s has no example", cmd.CommandPath())
		}
		shown := false
		for _, line := range lines {
			root, _ := newRoot(s.Env)
			found, args, err := root.Find(line)
			require.NoError(t, err, line)
			shown = shown || strings.HasPrefix(found.CommandPath()+" ", cmd.CommandPath()+" ")
			_, group := found.Annotations[isGroup]
			assert.False(t, group, "%q names no command", line)
			found.SetContext(t.Context())
			require.NoError(t, found.ParseFlags(args), line)
			assert.NoError(t, found.ValidateArgs(found.Flags().Args()), line)
			assert.NoError(t, found.ValidateFlagGroups(), line)
			assert.NoError(t, missingFlags(found), line)
		}
		assert.True(t, shown || len(lines) == 0, "no example of %s runs it", cmd.CommandPath())
	}
}

// exampleLines returns the arguments of each call of this program in an example.
func exampleLines(example string) (lines [][]string) {
	example = strings.ReplaceAll(example, "\\\n", " ")
	for _, found := range regexp.MustCompile(`(?m)(?:^\s*|[|(&] *)clusterawsadm ([^\n|&;)]*)`).FindAllStringSubmatch(example, -1) {
		line := regexp.MustCompile(`\s\d?>.*`).ReplaceAllString(found[1], "") // redirected
		lines = append(lines, strings.Fields(strings.ReplaceAll(line, "'", "")))
	}
	return lines
}

// TestExampleLines checks that exampleLines finds a call wherever a shell runs one.
func TestExampleLines(t *testing.T) {
	for example, want := range map[string][][]string{
		"  clusterawsadm version\n  clusterawsadm cluster list -o json 2> log | jq '.x | .y'": {{"version"}, {"cluster", "list", "-o", "json"}},
		"  A=$(clusterawsadm a b) && clusterawsadm c > f":                                     {{"a", "b"}, {"c"}},
		"  clusterawsadm a \\\n    --b='{.c[*].d}' | clusterawsadm e -f -":                    {{"a", "--b={.c[*].d}"}, {"e", "-f", "-"}},
		"  kubectl --exec-command=clusterawsadm x":                                            nil,
	} {
		assert.Equal(t, want, exampleLines(example), example)
	}
}
