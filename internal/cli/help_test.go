package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// TestHelpFits checks that the help of every command fits into the terminal, and into 80
// columns without one. Only examples and usage lines may be longer.
func TestHelpFits(t *testing.T) {
	s := newShell(t)
	root, _ := newRoot(s.Env)
	for _, c := range []struct {
		terminal       bool
		columns, width int
	}{{false, 0, 80}, {true, 80, 80}, {true, 70, 70}, {true, 220, 100}} {
		s.OutIsTerminal, s.Size = c.terminal, func() (int, int) { return c.columns, 24 }
		for _, cmd := range append(commandsBelow(root), root) {
			args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
			require.Equal(t, env.OK, s.run(args...), s.err.String())
			_, flags, _ := strings.Cut(s.out.String(), "\nFlags:\n")
			about, _, _ := strings.Cut(s.out.String(), "\n\nUsage:\n")
			if c.width < 80 {
				about = regexp.MustCompile(`(?m)^ .*$`).ReplaceAllString(about, "") // lists
			}
			for line := range strings.Lines(about + "\n" + flags) {
				if len(strings.Fields(line)) > 1 && !strings.HasPrefix(line, "Use ") {
					assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), c.width, "%v: %s", args, line)
				}
			}
		}
	}
}

// TestHelpHasEverything compares the help with what the commands declare.
func TestHelpHasEverything(t *testing.T) {
	s := newShell(t)
	root, _ := newRoot(s.Env)
	for _, cmd := range append(commandsBelow(root), root) {
		require.Equal(t, env.OK, s.run(append(strings.Fields(cmd.CommandPath())[1:], "--help")...), s.err.String())
		cmd.InitDefaultHelpFlag()
		cmd.InitDefaultVersionFlag()
		words := strings.Join(strings.Fields(s.out.String()), " ")
		for _, text := range []string{cmd.Long, cmd.Example, cmd.UseLine(), cmd.LocalFlags().FlagUsages(), cmd.InheritedFlags().FlagUsages()} {
			assert.Contains(t, words, strings.Join(strings.Fields(text), " "), cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				assert.Contains(t, words, c.Name()+" "+c.Short, cmd.CommandPath())
			}
		}
	}
}

// TestCommandLines runs command lines with a mistake that the error has to name.
func TestCommandLines(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"plan -f demo.yaml", `unknown command "plan" for "clusterawsadm", did you mean 'clusterawsadm cluster plan'? (see 'clusterawsadm --help')`},
		{"create", `unknown command "create" for "clusterawsadm", did you mean 'clusterawsadm cluster create'? (see 'clusterawsadm --help')`},
		{"list", `unknown command "list" for "clusterawsadm", did you mean 'clusterawsadm ami list' or 'clusterawsadm cluster list' or 'clusterawsadm resource list'? (see 'clusterawsadm --help')`},
		{"cluster ami", `unknown command "ami" for "clusterawsadm cluster", did you mean 'clusterawsadm ami'? (see 'clusterawsadm cluster --help')`},
		{"cluster creat -f demo.yaml", `unknown command "creat" for "clusterawsadm cluster", did you mean create? (see 'clusterawsadm cluster --help')`},
		{"--simulate cluster list", `unknown flag: --simulate, it is a flag of 'clusterawsadm cluster', and belongs after these words (see 'clusterawsadm --help')`},
		{"help nope", `unknown command "nope" for "clusterawsadm" (see 'clusterawsadm --help')`},
		{"help cluster pla", `unknown command "pla" for "clusterawsadm cluster", did you mean plan? (see 'clusterawsadm cluster --help')`},
		{"completion tcsh", `unknown command "tcsh" for "clusterawsadm completion", did you mean bash or fish or zsh? (see 'clusterawsadm completion --help')`},
		{"cluster list extra", `unexpected argument "extra" (see 'clusterawsadm cluster list --help')`},
		{"cluster delete a b c", `unexpected argument "b" (see 'clusterawsadm cluster delete --help')`},
		{"cluster handover -f demo.yaml", `--to is missing (see 'clusterawsadm cluster handover --help')`},
		{"ami copy", `--kubernetes-version, --os are missing (see 'clusterawsadm ami copy --help')`},
		{"cluster list -v abc", `-v: "abc" is not a whole number (see 'clusterawsadm cluster list --help')`},
		{"cluster list --timeout 5", `--timeout: "5" is not a duration, such as 90s or 30m (see 'clusterawsadm cluster list --help')`},
		{"cluster list --simulate=maybe", `--simulate: "maybe" is neither true nor false (see 'clusterawsadm cluster list --help')`},
		{"cluster list --simulate-speed fast", `--simulate-speed: "fast" is not a number (see 'clusterawsadm cluster list --help')`},
	} {
		s := newShell(t)
		want := env.Failed // upstream's commands have no other code
		if strings.HasPrefix(c.line, "cluster ") {
			want = env.Wrong
		}
		assert.Equal(t, want, s.run(strings.Fields(c.line)...), c.line)
		assert.Equal(t, "error: "+c.want+"\n", s.err.String(), c.line)
		assert.Empty(t, s.out.String(), c.line)
	}
	s := newShell(t)
	s.variables["CLUSTERAWSADM_TIMEOUT"] = "5"
	assert.Equal(t, env.Wrong, s.run("cluster", "list"))
	assert.Equal(t, "error: CLUSTERAWSADM_TIMEOUT: timeout: \"5\" is not a duration, such as 90s or 30m\n", s.err.String())
}

// TestFlags compares the command lines of all commands with a golden file, so that the diff
// of a change shows every command, argument, alias and flag that it adds, changes or removes.
// A description is printed at the first flag that has it.
func TestFlags(t *testing.T) {
	s := newShell(t)
	s.ConfigDir, s.HomeDir = "~/.config", "~"
	var b strings.Builder
	described := map[string]bool{}
	for _, cmd := range commandsBelow(Commands(s.Env)) {
		b.WriteString(cmd.UseLine() + onlyIf(len(cmd.Aliases) > 0, " (also: "+strings.Join(cmd.Aliases, ", ")+")") +
			onlyIf(cmd.Hidden, " (hidden)") + onlyIf(cmd.Deprecated != "", " (deprecated)") + "\n")
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, usage := pflag.UnquoteUsage(f)
			_, required := f.Annotations[cobra.BashCompOneRequiredFlag]
			b.WriteString("  " + onlyIf(f.Shorthand != "", "-"+f.Shorthand+", ") + "--" + f.Name + onlyIf(value != "", " "+value) +
				onlyIf(!slices.Contains([]string{"", "[]", "0", "0s", "false"}, f.DefValue), " (default "+f.DefValue+")") +
				onlyIf(f.NoOptDefVal != "" && f.NoOptDefVal != "true", " (alone: "+f.NoOptDefVal+")") +
				onlyIf(required, " (required)") + onlyIf(f.Hidden, " (hidden)") + onlyIf(f.Deprecated != "", " (deprecated)") +
				onlyIf(!described[usage], ": "+usage) + "\n")
			described[usage] = true
		})
	}
	golden.Assert(t, "flags.txt", b.String())
}

// onlyIf returns the text if the condition is true.
func onlyIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}
