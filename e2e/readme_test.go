package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// documents returns the README and the guides.
func documents(t *testing.T) []string {
	t.Helper()
	guides, err := filepath.Glob("../docs/guides/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, guides)
	return append(guides, "../README.md")
}

// blocks returns the code blocks of a document in a language.
func blocks(t *testing.T, document, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	return found
}

// TestREADME runs the commands in the console blocks of README.md and of the guides, and
// compares the output. "…" matches any text within a line, and on a line of its own any
// lines. "# exit 4" after a command is its exit code, if it is not 0.
func TestREADME(t *testing.T) {
	for _, document := range documents(t) {
		all := blocks(t, document, "console")
		t.Run(filepath.Base(document), func(t *testing.T) {
			t.Chdir(t.TempDir())
			u := newUser(t)
			for _, block := range all {
				for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
					command, want, _ := strings.Cut(part, "\n")
					got := u.types(t, command)
					assert.Regexp(t, pattern(want), got, command)
				}
			}
		})
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
		LookupEnv: func(string) (string, bool) { return "", false },
		AWS: func(context.Context, string, string) (aws.Config, error) {
			return aws.Config{}, errors.New("the README needs an account")
		},
		Interrupts: make(chan os.Signal),
		Exit:       func(int) { t.Error("exit") },
	}
	return u
}

// types runs a command and returns its output. A redirection writes it to a file.
func (u *user) types(t *testing.T, command string) string {
	t.Helper()
	command, code, _ := strings.Cut(command, " # exit ")
	if words := strings.Fields(command); words[0] == "sed" {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		return string(out)
	}
	command, file, redirected := strings.Cut(command, " > ")
	words := strings.Fields(command)
	require.Equal(t, "clusterawsadm", words[0])
	u.out.Reset()
	var written bytes.Buffer
	if redirected {
		u.Out = &written
		defer func() { u.Out = &u.out }()
	}
	got := cli.Main(words[1:], u.Env)
	require.Equal(t, cmp.Or(code, "0"), strconv.Itoa(got), "%s\n%s", command, &u.out)
	if redirected {
		require.NoError(t, os.WriteFile(file, written.Bytes(), 0o600))
	}
	return u.out.String()
}

// TestCommandsOfDocuments checks the instructions of README.md and the guides for AWS: the
// make targets, commands and flags exist.
func TestCommandsOfDocuments(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "Makefile"))
	require.NoError(t, err)
	u := newUser(t)
	others := strings.Fields("# age aws base64 clusterawsadm-upstream cosign curl export go kubectl sed sha256sum tar tr while")
	for _, document := range documents(t) {
		for _, block := range blocks(t, document, "sh") {
			block = strings.ReplaceAll(block, "\\\n", "")
			for command := range strings.SplitSeq(strings.ReplaceAll(block, " | ", "\n"), "\n") {
				command, _, _ = strings.Cut(strings.TrimSpace(command), " > ")
				command, _, _ = strings.Cut(command, " # ")
				command, _, _ = strings.Cut(command, " -- ")
				words := strings.Fields(command)
				switch {
				case len(words) == 0, slices.Contains(others, words[0]), regexp.MustCompile(`^\w+=`).MatchString(words[0]):
				case words[0] == "make":
					assert.Contains(t, string(makefile), "\n"+words[1]+":", command)
				case words[0] == "clusterawsadm":
					u.out.Reset()
					assert.Equal(t, env.OK, cli.Main(append(words[1:], "--help"), u.Env), "%s: %s\n%s", document, command, &u.out)
				default:
					assert.Fail(t, "unknown command", "%s: %s", document, command)
				}
			}
		}
	}
}

// TestTroubleshooting checks that the program prints the messages that the guide explains:
// each is in its source.
func TestTroubleshooting(t *testing.T) {
	guide, err := os.ReadFile("../docs/guides/troubleshooting.md")
	require.NoError(t, err)
	messages := regexp.MustCompile(`(?m)^### "(.*)"$`).FindAllStringSubmatch(string(guide), -1)
	require.NotEmpty(t, messages)
	source := sources(t)
	for _, m := range messages {
		assert.Contains(t, source, m[1])
	}
}

// sources returns the source of the program without tests and simulators.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"../internal", "../pkg"} {
		readGo(t, folder, func(path, text string) {
			if !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "sim/") {
				all.WriteString(text)
			}
		})
	}
	return all.String()
}

// TestPicture checks that the README's picture of the graph is up to date: "make picture"
// draws it.
func TestPicture(t *testing.T) {
	drawn, err := os.ReadFile(filepath.Join("..", "docs", "quickstart.svg"))
	require.NoError(t, err)
	t.Chdir("..")
	got := newUser(t).types(t, "clusterawsadm cluster graph -f configs/quickstart.yaml --summary -o svg")
	assert.Equal(t, string(drawn), got, "docs/quickstart.svg is not what is drawn now; run make picture")
}
