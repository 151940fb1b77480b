package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// blocks returns the code blocks of README.md in a language.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	require.NotEmpty(t, found)
	return found
}

// TestREADME runs the commands of README.md's console blocks, and compares the output.
// "…" matches any text within a line, and on a line of its own any lines.
func TestREADME(t *testing.T) {
	all := blocks(t, "console")
	t.Chdir(t.TempDir())
	u := newUser(t)
	for _, block := range all {
		for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			got := u.types(t, command)
			assert.Regexp(t, pattern(want), got, command)
		}
	}
}

// pattern converts expected output to a regular expression.
func pattern(want string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for line := range strings.Lines(strings.TrimSuffix(want, "\n") + "\n") {
		switch line = strings.TrimSuffix(line, "\n"); line {
		case "":
		case "…":
			b.WriteString("(?:.*\n)*")
		default:
			b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "\n")
		}
	}
	return regexp.MustCompile(b.String() + "$")
}

// user is a shell without an AWS account.
type user struct {
	*env.Env
	out bytes.Buffer
}

func newUser(t *testing.T) *user {
	t.Helper()
	home := t.TempDir()
	u := &user{}
	u.Env = &env.Env{
		In: strings.NewReader(""), Out: &u.out, Err: &u.out, HomeDir: home, ConfigDir: home, StateDir: home, Who: "a reader",
		LookupEnv: func(name string) (string, bool) {
			if name == "CLUSTERAWSADM_SIMULATE_SPEED" {
				return "1000", true
			}
			return "", false
		},
		AWS: func(context.Context, string, string) (aws.Config, error) {
			return aws.Config{}, errors.New("the README needs an account")
		},
		Interrupts: make(chan os.Signal),
		Exit:       func(int) { t.Error("exit") },
	}
	return u
}

// types runs a command, which has to succeed, and returns its output. A redirection
// writes it to a file.
func (u *user) types(t *testing.T, command string) string {
	t.Helper()
	command, file, redirected := strings.Cut(command, " > ")
	words := strings.Fields(command)
	require.Equal(t, "clusterawsadm", words[0])
	u.out.Reset()
	require.Equal(t, env.OK, cli.Main(words[1:], u.Env), "%s\n%s", command, &u.out)
	if redirected {
		require.NoError(t, os.WriteFile(file, u.out.Bytes(), 0o600))
		return ""
	}
	return u.out.String()
}

// TestREADMEOnAWS checks the instructions of README.md for AWS: the make targets,
// commands and flags exist.
func TestREADMEOnAWS(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "Makefile"))
	require.NoError(t, err)
	u := newUser(t)
	for _, block := range blocks(t, "sh") {
		for line := range strings.Lines(block) {
			command, _, _ := strings.Cut(strings.TrimSpace(line), " > ")
			command, _, _ = strings.Cut(command, " # ")
			switch words := strings.Fields(command); words[0] {
			case "make":
				assert.Contains(t, string(makefile), "\n"+words[1]+":", line)
			case "clusterawsadm":
				u.out.Reset()
				assert.Equal(t, env.OK, cli.Main(append(words[1:], "--help"), u.Env), "%s\n%s", line, &u.out)
			case "go", "kubectl", "clusterawsadm-upstream":
			default:
				assert.Fail(t, "unknown command", line)
			}
		}
	}
}

// TestPicture checks that the README's picture of the graph is up to date: "make picture"
// draws it.
func TestPicture(t *testing.T) {
	drawn, err := os.ReadFile(filepath.Join("..", "docs", "quickstart.svg"))
	require.NoError(t, err)
	t.Chdir("..")
	got := newUser(t).types(t, "clusterawsadm cluster graph -f configs/quickstart.yaml -o svg")
	assert.Equal(t, string(drawn), got, "docs/quickstart.svg is not what is drawn now; run make picture")
}
