package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// iamConfig writes an AWSIAMConfiguration.
func iamConfig(t *testing.T, spec string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "iam.yaml")
	text := "apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSIAMConfiguration\nspec:\n" + spec
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// stackCommands runs commands of "bootstrap iam" and returns their output, without what
// depends on the speed of the machine.
func (s *shellEnv) stackCommands(t *testing.T, commands ...[]string) string {
	t.Helper()
	var b strings.Builder
	for _, args := range commands {
		code := s.run(append([]string{"bootstrap", "iam"}, args...)...)
		fmt.Fprintf(&b, "$ clusterawsadm bootstrap iam %s\n", strings.Join(args, " "))
		for _, part := range []struct{ mark, text string }{{"1| ", s.out.String()}, {"2| ", s.err.String()}} {
			added := 0
			for line := range strings.Lines(part.text) {
				if strings.HasPrefix(line, "+  ") || strings.HasPrefix(line, "\x1b[32m+  ") {
					if added++; added > 8 {
						continue
					}
				}
				if !strings.Contains(line, "still waiting for ") {
					b.WriteString(strings.TrimRight(part.mark+line, " \n") + "\n")
				}
			}
			if added > 8 {
				fmt.Fprintf(&b, "(and more lines of templates)\n")
			}
		}
		fmt.Fprintf(&b, "exit %d\n\n", code)
	}
	text := regexp.MustCompile(`, in \d+\S*s\b`).ReplaceAllString(b.String(), ", in (a while)")
	text = strings.ReplaceAll(text, s.StateDir, "STATE")
	return regexp.MustCompile(`\S*/iam\.yaml`).ReplaceAllString(text, "iam.yaml")
}

// simulatedAccount changes the simulated account between two commands.
func (s *shellEnv) simulatedAccount(t *testing.T, edit func(*awssim.State)) {
	t.Helper()
	file := filepath.Join(s.StateDir, "clusterawsadm", "simulated.json")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	a, err := awssim.Continue(data, clock.Discrete, awssim.Options{})
	require.NoError(t, err)
	a.Edit(edit)
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, a.Save(f))
	require.NoError(t, f.Close())
}

func TestBootstrapStackCommands(t *testing.T) {
	s := newShell(t)
	s.simulated()
	more := iamConfig(t, "  controlPlane:\n    enableCSIPolicy: true\n  stackTags:\n    team: red\n")
	golden.Assert(t, "stack-life.txt", s.stackCommands(
		t,
		[]string{"create-cloudformation-stack", "--dry-run"},
		[]string{"create-cloudformation-stack"},
		[]string{"create-cloudformation-stack"},
		[]string{"create-cloudformation-stack", "--dry-run"},
		[]string{"update-cloudformation-stack", "--config", more},
		[]string{"delete-cloudformation-stack"},
		[]string{"create-cloudformation-stack", "--dry-run"},
		[]string{"create-cloudformation-stack"},
	))
	assert.Contains(t, s.out.String(), "\n\nFollowing resources are in the stack: \n\n", "upstream's line ends in a blank")
	assert.True(t, strings.HasSuffix(s.out.String(), "|CREATE_COMPLETE\n\n\n"))
}

func TestBootstrapStackFails(t *testing.T) {
	s := newShell(t)
	s.simulated()
	wrong := iamConfig(t, "  nodes:\n    extraPolicyAttachments: [\"arn:aws:iam::aws:policy/NoSuchPolicy\"]\n")
	text := s.stackCommands(
		t,
		[]string{"create-cloudformation-stack", "--config", wrong},
		[]string{"delete-cloudformation-stack"},
		[]string{"create-cloudformation-stack", "--config", wrong},
		[]string{"create-cloudformation-stack"},
		[]string{"create-cloudformation-stack", "--dry-run"},
		[]string{"create-cloudformation-stack", "--replace-failed"},
	)
	s.simulatedAccount(t, func(s *awssim.State) {
		r := s.IAM.Roles["nodes.cluster-api-provider-aws.sigs.k8s.io"]
		r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/ReadOnlyAccess")
		s.IAM.Roles["nodes.mine"] = &awssim.Role{Name: "nodes.mine"}
	})
	mine := iamConfig(t, "  stackName: mine\n  nameSuffix: .mine\n")
	text += s.stackCommands(
		t,
		[]string{"delete-cloudformation-stack"},
		[]string{"create-cloudformation-stack", "--config", mine},
		[]string{"create-cloudformation-stack", "--stack-name", "other"},
	)
	golden.Assert(t, "stack-failures.txt", text)
}

func TestBootstrapStackOnATerminal(t *testing.T) {
	s := newShell(t)
	s.simulated()
	s.terminal("")
	s.OutIsTerminal = true
	delete(s.variables, "NO_COLOR")
	golden.Assert(t, "stack-terminal.txt", s.stackCommands(
		t,
		[]string{"create-cloudformation-stack", "--dry-run"},
		[]string{"create-cloudformation-stack"},
		[]string{"create-cloudformation-stack", "--config", iamConfig(t, "  nodes:\n    extraPolicyAttachments: [\"arn:aws:iam::aws:policy/NoSuchPolicy\"]\n")},
	))
}

// The region is that of --region, of the configuration, of the environment, in this
// order; in upstream the environment comes before the configuration.
func TestRegionOfTheBootstrapStack(t *testing.T) {
	s := newShell(t)
	s.simulated()
	s.variables["AWS_REGION"] = "eu-west-2"
	config := iamConfig(t, "  region: eu-west-1\n")
	missing := func(args ...string) string {
		t.Helper()
		require.Equal(t, 0, s.run(append([]string{"bootstrap", "iam", "delete-cloudformation-stack", "--stack-name", "none"}, args...)...), s.err.String())
		assert.Equal(t, "Attempting to delete AWS CloudFormation stack none\n", s.out.String())
		return s.err.String()
	}
	assert.Contains(t, missing(), "stack none does not exist in eu-west-2: nothing was deleted")
	story := missing("--config", config)
	assert.Contains(t, story, "stack none does not exist in eu-west-1")
	assert.Contains(t, story, "spec.region of the configuration, eu-west-1, is used instead of the region of the environment, eu-west-2")
	story = missing("--config", config, "--region", "eu-west-3")
	assert.Contains(t, story, "stack none does not exist in eu-west-3")
	assert.NotContains(t, story, "is used instead of")
	s.variables["CLUSTERAWSADM_REGION"] = "eu-south-1"
	assert.Contains(t, missing(), "in eu-south-1")
	story = missing("--config", config)
	assert.Contains(t, story, "stack none does not exist in eu-west-1", "a setting is not typed")
	assert.Contains(t, story, "is used instead of the region of the environment, eu-south-1")
	delete(s.variables, "CLUSTERAWSADM_REGION")
	delete(s.variables, "AWS_REGION")
	s.variables["DEFAULT_AWS_REGION"] = "eu-north-1"
	assert.Contains(t, missing(), "in eu-north-1", "a variable that only clusterawsadm knows")
}

func TestBootstrapStackNeedsAnAccount(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 1, s.run("bootstrap", "iam", "create-cloudformation-stack", "--region", "us-east-1"))
	assert.Contains(t, s.err.String(), "error: no AWS credentials: use --profile")
	assert.Empty(t, s.out.String())
	require.Equal(t, 1, s.run("bootstrap", "iam", "create-cloudformation-stack"))
	assert.Contains(t, s.err.String(), "error: no AWS region: use --region, set AWS_REGION")
	require.Equal(t, 1, s.run("bootstrap", "iam", "delete-cloudformation-stack", "x"))
	require.Equal(t, 1, s.run("bootstrap", "iam", "create-cloudformation-stack", "--profile", "nope"))
	assert.Contains(t, s.err.String(), "there is no profile nope")
}

// alarm interrupts a command when a text is printed.
type alarm struct {
	w          io.Writer
	at         string
	interrupts chan<- os.Signal
}

func (a *alarm) Write(p []byte) (int, error) {
	if a.at != "" && strings.Contains(string(p), a.at) {
		a.at = ""
		go func() { a.interrupts <- os.Interrupt }()
	}
	return a.w.Write(p)
}

// After the end of the wait, the message says that the operation continues in AWS, and
// how to continue the wait.
func TestInterruptedBootstrapStack(t *testing.T) {
	s := newShell(t)
	s.simulated()
	interrupts := make(chan os.Signal)
	s.Interrupts = interrupts
	s.Err = render.NewOutput(&alarm{&s.err, "AWSIAMRoleNodes", interrupts})
	require.Equal(t, env.Interrupted, s.run("bootstrap", "iam", "create-cloudformation-stack"), s.err.String())
	assert.Contains(
		t,
		s.err.String(),
		"error: update stack cluster-api-provider-aws-sigs-k8s-io in us-east-1: stopped waiting: interrupted\n       The operation continues in AWS\n",
	)
	assert.Contains(
		t,
		s.err.String(),
		"or continue to wait with:\n         clusterawsadm bootstrap iam create-cloudformation-stack --region us-east-1 --simulate\n",
	)
	require.Equal(t, 0, s.run("bootstrap", "iam", "create-cloudformation-stack"), s.err.String())
	assert.Contains(t, s.err.String(), "nothing to change")
}
