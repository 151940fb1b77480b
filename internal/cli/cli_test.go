package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// shellEnv is the environment of a user.
type shellEnv struct {
	*env.Env
	out, err  bytes.Buffer
	variables map[string]string
}

func newShell(t *testing.T) *shellEnv {
	t.Helper()
	dir := t.TempDir()
	s := &shellEnv{variables: map[string]string{}}
	s.Env = &env.Env{
		In: strings.NewReader(""), Out: render.NewOutput(&s.out), Err: render.NewOutput(&s.err),
		LookupEnv: func(name string) (string, bool) { v, ok := s.variables[name]; return v, ok },
		HomeDir:   filepath.Join(dir, "home"), ConfigDir: filepath.Join(dir, "config"), StateDir: filepath.Join(dir, "state"),
		Who: "a test",
		AWS: func(_ context.Context, region, profile string) (aws.Config, error) {
			if profile == "nope" {
				return aws.Config{}, errors.New("there is no profile nope")
			}
			if region == "" {
				region = s.variables["AWS_REGION"]
			}
			return aws.Config{Region: region}, nil
		},
		HTTP: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("no such host")
		})},
		Interrupts: make(chan os.Signal),
		Exit:       func(int) { t.Error("exit") },
	}
	return s
}

// roundTripper replaces servers other than AWS.
type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// run runs a command.
func (s *shellEnv) run(args ...string) (code int) {
	s.out.Reset()
	s.err.Reset()
	return Main(args, s.Env)
}

// steps returns a function that runs a command of "cluster" and requires its exit code.
func (s *shellEnv) steps(t *testing.T) func(want int, args ...string) {
	t.Helper()
	return func(want int, args ...string) {
		t.Helper()
		require.Equal(t, want, s.run(append([]string{"cluster"}, args...)...), "%s\n%s", args, s.err.String())
	}
}

// generated writes a manifest of the cluster "demo", and returns its path: with arguments what generate prints,
// and without any the small flavor, which has no add-ons.
func (s *shellEnv) generated(t *testing.T, args ...string) string {
	t.Helper()
	text := bare(t, "demo")
	if len(args) > 0 {
		require.Equal(t, 0, s.run(append([]string{"cluster", "generate", "demo"}, args...)...), s.err.String())
		text = s.out.String()
	}
	file := filepath.Join(t.TempDir(), "demo.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// bare returns the flavor quickstart, without add-ons, for a cluster with another name.
func bare(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../configs/quickstart.yaml")
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "quickstart", name)
}

func TestHelp(t *testing.T) {
	s := newShell(t)
	s.ConfigDir = "/home/ada/.config"
	for name, args := range map[string][]string{
		"root": nil, "cluster": {"cluster"}, "create": {"cluster", "create", "--help"}, "delete": {"help", "cluster", "delete"},
	} {
		require.Equal(t, 0, s.run(args...), s.err.String())
		golden.Assert(t, "help-"+name+".txt", s.out.String())
		assert.Empty(t, s.err.String())
	}
}

func TestEveryCommandHelpsAndCompletes(t *testing.T) {
	root, _ := newRoot(newShell(t).Env)
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		assert.NotEmpty(t, c.Short, c.CommandPath())
		assert.NotContains(t, c.Short, "\n")
		assert.False(t, strings.HasSuffix(c.Short, "."), c.CommandPath())
		for line := range strings.Lines(c.Long) {
			if strings.HasPrefix(c.CommandPath(), "clusterawsadm cluster") {
				assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSpace(line)), 90, "%s: %s", c.CommandPath(), line)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	s := newShell(t)
	require.Equal(t, 0, s.run("__complete", "cluster", "plan", "-o", ""))
	assert.Contains(t, s.out.String(), "text\nmarkdown\njson\nyaml\n")
	require.Equal(t, 0, s.run("completion", "bash"))
	assert.Contains(t, s.out.String(), "__start_clusterawsadm")
}

// Regions and profiles are completed, and a region that does not exist is told.
func TestRegionsAndProfiles(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"config": "[default]\n[profile dev]\nregion = eu-west-1\n[sso-session corp]\n", "credentials": "[ci]\n[dev]\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s.variables["AWS_CONFIG_FILE"], s.variables["AWS_SHARED_CREDENTIALS_FILE"] = filepath.Join(dir, "config"), filepath.Join(dir, "credentials")
	require.Equal(t, 0, s.run("__complete", "cluster", "list", "--profile", ""))
	assert.Equal(t, "ci\ndefault\ndev\n:4\n", s.out.String())
	require.Equal(t, 0, s.run("__complete", "ami", "list", "--region", "eu-w"))
	assert.Contains(t, s.out.String(), "eu-west-1\neu-west-2\n")

	s.simulated()
	require.Equal(t, 0, s.run("cluster", "list", "--region", "us-est-1"), s.err.String())
	assert.Contains(t, s.err.String(), "warning: region us-est-1 is not one of those that were known when this program was built: did you mean us-east-1?\n")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", "../../configs/quickstart.yaml"))
	assert.NotContains(t, s.err.String(), "warning: region")
}

// The names of the clusters in the account are completed, unless a manifest has the name.
func TestNamesOfClusters(t *testing.T) {
	s := newShell(t)
	s.simulated()
	require.Equal(t, 0, s.run("__complete", "cluster", "describe", ""))
	assert.Equal(t, ":4\n", s.out.String())
	require.Equal(t, 0, s.run("cluster", "create", "-f", "../../configs/quickstart.yaml", "--yes", "--wait=infrastructure"), s.err.String())
	for _, command := range []string{"describe", "delete", "wait", "logs", "kubeconfig", "export", "upgrade-plan", "import"} {
		require.Equal(t, 0, s.run("__complete", "cluster", command, ""), command)
		assert.Equal(t, "quickstart\n:4\n", s.out.String(), command)
	}
	require.Equal(t, 0, s.run("__complete", "cluster", "describe", "-f", "demo.yaml", ""))
	assert.Equal(t, ":4\n", s.out.String())
	require.Equal(t, 0, s.run("__complete", "cluster", "generate", ""))
	assert.NotContains(t, s.out.String(), "quickstart\n", "the name of a new cluster")
}

func TestWhatIsTypedWrong(t *testing.T) {
	const example = "../../configs/quickstart.yaml"
	dir, large := t.TempDir(), filepath.Join(t.TempDir(), "large.yaml")
	require.NoError(t, os.WriteFile(large, make([]byte, input.MaxSize+1), 0o600))
	dangling, noPlan := filepath.Join(t.TempDir(), "dangling.yaml"), filepath.Join(t.TempDir(), "no.plan")
	require.NoError(t, os.Symlink("nowhere", dangling))
	require.NoError(t, os.WriteFile(noPlan, nil, 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"cluster", "crate"}, `did you mean create?`},
		{[]string{"cluster", "plan", "--nope"}, `error: unknown flag: --nope (see 'clusterawsadm cluster plan --help')`},
		{[]string{"cluster", "plan"}, "error: no manifest: use -f FILE, or -f - for standard input"},
		{[]string{"cluster", "create"}, "error: no manifest: use -f FILE, or -f - for standard input"},
		{[]string{"cluster", "delete"}, "error: no cluster: use its name, or -f FILE for its manifest"},
		{[]string{"cluster", "delete", "", "--yes"}, `error: "" cannot be the name of a cluster: it must consist of lower-case letters, digits, `},
		{[]string{"cluster", "delete", "a/b", "--yes"}, `error: "a/b" cannot be the name of a cluster: `},
		{[]string{"cluster", "delete", "*", "--yes"}, `error: "*" cannot be the name of a cluster: `},
		{[]string{"cluster", "describe", strings.Repeat("a", 64)}, `cannot be the name of a cluster: must be no more than 63`},
		{[]string{"cluster", "kubeconfig", "Demo"}, `error: "Demo" cannot be the name of a cluster: `},
		{[]string{"cluster", "validate"}, "error: no manifest: use -f FILE, or -f - for standard input"},
		{[]string{"cluster", "plan", "-f", "nope.yaml"}, "error: nope.yaml: no such file"},
		{[]string{"cluster", "plan", "-f", dir}, "this directory contains no YAML file"},
		{[]string{"cluster", "plan", "-f", "/dev/zero"}, "error: /dev/zero: the input is larger than 8 MiB"},
		{[]string{"cluster", "plan", "-f", large}, "large.yaml: the input is larger than 8 MiB"},
		{[]string{"cluster", "list", "--config", "/dev/zero"}, "error: configuration: /dev/zero: the input is larger than 8 MiB"},
		{[]string{"cluster", "plan", "demo"}, `error: unexpected argument "demo": name the manifest of the cluster with -f FILE`},
		{[]string{"cluster", "create", example}, `: did you mean -f ../../configs/quickstart.yaml?`},
		{[]string{"cluster", "create", strings.TrimSuffix(example, ".yaml")}, `: did you mean -f ../../configs/quickstart.yaml?`},
		{[]string{"cluster", "generate"}, "error: the name of the cluster is missing: clusterawsadm cluster generate NAME\n"},
		{[]string{"cluster", "takeback", "a", "b"}, `error: unexpected argument "b": clusterawsadm cluster takeback NAME`},
		{[]string{"cluster", "plan", "--simulat"}, `error: unknown flag: --simulat, did you mean --simulate? (see`},
		{[]string{"cluster", "list", "-f", "x.yaml"}, "unknown shorthand flag: 'f'"},
		{[]string{"cluster", "validate", "-f", example, "--set", "WORKERS=5"}, "error: --set WORKERS: the manifest has no ${WORKERS}\n"},
		{[]string{"cluster", "validate", "-f", "../../configs/eks-addons.yaml", "--set", "VPC_CNI_VERSIO=v1"}, `the manifest has no ${VPC_CNI_VERSIO}: did you mean "VPC_CNI_VERSION"?`},
		{[]string{"cluster", "plan", "-o", "xml"}, "must be one of text, markdown, json, yaml"},
		{[]string{"cluster", "validate", "-f", "-", "--set", "nothing"}, `error: --set nothing: the environment has no nothing: use --set nothing=VALUE`},
		{[]string{"cluster", "describe", "demo", "-f", "x.yaml"}, "not both"},
		{[]string{"cluster", "describe", "demo"}, "error: no AWS region: use --region, set AWS_REGION, or choose a profile that has one\n"},
		{[]string{"cluster", "list"}, "error: no AWS region: use --region, set AWS_REGION, or choose a profile that has one\n"},
		{[]string{"cluster", "generate", "Demo_1"}, `"Demo_1" is not a valid cluster name`},
		{[]string{"cluster", "generate", "demo", "--flavor", "nope"}, "must be one of"},
		{[]string{"cluster", "validate", "-f", edited(t, "../../configs/byo-vpc.yaml", "id: vpc-", "id: vpv-")}, `:39: AWSCluster/byo-vpc spec.network.vpc.id: "vpv-0123456789abcdef0" is not the id of a VPC — set an id that begins with vpc-`},
		{[]string{"cluster", "list", "--config", "/nope.yaml"}, "configuration: "},
		{[]string{"cluster", "list", "--parallel", "-1"}, "error: --parallel: must not be negative, is -1"},
		{[]string{"cluster", "list", "--simulate", "--faults", "x"}, "error: --faults: the seed must be a whole number from 0 on, is \"x\""},
		{[]string{"cluster", "list", "--simulate", "--faults", "1:rain"}, "error: --faults: the profile must be one of capacity, denied, expired, killed, launch, lost, mixed, nat, network, silent, slow, stale, throttled, unsettled, is \"rain\""},
		{[]string{"cluster", "list", "--faults", "1"}, "error: --faults needs --simulate"},
		{[]string{"cluster", "list", "--simulate-state", "x.json"}, "error: --simulate-state needs --simulate\n"},
		{[]string{"cluster", "delete", "demo", "--yes", "--simulate-speed", "60"}, "error: --simulate-speed needs --simulate\n"},
		{[]string{"cluster", "plan", "-f", ""}, "error: -f needs the name of a file\n"},
		{[]string{"cluster", "plan", "-f", example, "-f", "./" + example}, "quickstart.yaml is named twice with -f\n"},
		{[]string{"cluster", "plan", "-f", "https://example.com/a.yaml"}, "error: https://example.com/a.yaml: addresses are not read: download it first, or use -f -\n"},
		{[]string{"cluster", "plan", "-f", dangling}, "dangling.yaml: this symbolic link leads to a file that does not exist\n"},
		{[]string{"cluster", "plan", "-f", example, "--simulate", "--to", "/nope/demo.plan"}, "error: --to /nope/demo.plan: there is no folder /nope\n"},
		{[]string{"cluster", "plan", "-f", example, "--simulate", "--to", dir}, "is a directory\n"},
		{[]string{"cluster", "import", "demo", "--simulate", "--to", "/nope/demo.yaml"}, "error: --to /nope/demo.yaml: there is no folder /nope\n"},
		{[]string{"cluster", "rehearse", "-f", example, "--save", "/nope/account.json"}, "error: --save /nope/account.json: there is no folder /nope\n"},
		{[]string{"cluster", "create", "nope.plan"}, "error: nope.plan: no such file\n"},
		{[]string{"cluster", "create", noPlan}, "no.plan is not a plan: 'clusterawsadm cluster plan -f FILE --to "},
		{[]string{"cluster", "delete", "demo", "--yes", "--keep-volumes", "--delete-volumes"}, "error: use --keep-volumes or --delete-volumes, not both\n"},
		{[]string{"cluster", "rehearse", "-f", example, "--every-call", "20"}, `error: unexpected argument "20": did you mean --every-call=20?`},
		{[]string{"cluster", "report", "nope.ndjson"}, "error: nope.ndjson: no such file\n"},
		{[]string{"cluster", "list", "--simulate-speed", "-5"}, "error: --simulate-speed: must be 1 or more, is -5"},
		{[]string{"cluster", "list", "--timeout", "-5s"}, "error: --timeout: must not be negative, is -5s"},
	} {
		s := newShell(t)
		assert.Equal(t, env.Wrong, s.run(c.args...), c.args)
		assert.Contains(t, s.err.String(), c.want)
		assert.Equal(t, 1, strings.Count(s.err.String(), "error: "), "told once: %s", s.err.String())
		assert.NotContains(t, s.err.String(), "Usage:")
		assert.Empty(t, s.out.String(), "stdout is for answers")
	}
}

// edited returns a copy of a manifest with a text replaced by another one.
func edited(t *testing.T, file, old, text string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(data), old)
	out := filepath.Join(t.TempDir(), filepath.Base(file))
	require.NoError(t, os.WriteFile(out, []byte(strings.ReplaceAll(string(data), old, text)), 0o600))
	return out
}

// A region that is not known may be new: it is remarked on once, with its place.
func TestRegionOfAManifest(t *testing.T) {
	s := newShell(t)
	assert.Equal(t, env.OK, s.run("cluster", "validate", "--strict", "-f", edited(t, "../../configs/quickstart.yaml", "region: us-east-1", "region: us-est-1")))
	assert.Regexp(
		t,
		`^warning: \S+quickstart\.yaml:40: AWSCluster/quickstart spec\.region: region us-est-1 is not one of those that were known when this program was built: did you mean us-east-1\?\n$`,
		s.err.String(),
	)
}

// TestInvalidForPrograms prints the problems of a manifest as JSON; a syntax error is told
// without its consequences.
func TestInvalidForPrograms(t *testing.T) {
	s := newShell(t)
	assert.Equal(
		t,
		env.Wrong,
		s.run("cluster", "validate", "-o", "json", "-f", edited(t, "../../configs/quickstart.yaml", "  region: us-east-1", "   region: us-east-1")),
	)
	var out struct {
		Valid    *bool
		Findings []struct {
			File, Message string
			Line          int
		}
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &out))
	require.NotNil(t, out.Valid)
	assert.False(t, *out.Valid)
	require.Len(t, out.Findings, 1, s.err.String())
	assert.Contains(t, out.Findings[0].Message, "the YAML is invalid")
	assert.Contains(t, out.Findings[0].File, "quickstart.yaml")
	assert.Positive(t, out.Findings[0].Line)
	assert.Contains(t, s.err.String(), "error: 1 problem\n")
}

func TestVersionFlag(t *testing.T) {
	s := newShell(t)
	assert.Equal(t, env.OK, s.run("--version"), s.err.String())
	assert.Regexp(t, `^clusterawsadm version \S.*, compatible with clusterawsadm v2\.13\.0\n$`, s.out.String())
}

// TestUpstreamsExitCodes checks that upstream's commands have the two exit codes of
// upstream.
func TestUpstreamsExitCodes(t *testing.T) {
	for _, args := range [][]string{{"version", "-o", "xml"}, {"version", "extra"}, {"version", "--nope"}, {"--nope"}, {"clutser"}} {
		s := newShell(t)
		assert.Equal(t, env.Failed, s.run(args...), args)
		assert.Equal(t, 1, strings.Count(s.err.String(), "error: "), s.err.String())
		assert.Empty(t, s.out.String())
		if args[0] == "clutser" {
			assert.Equal(t, "error: unknown command \"clutser\" for \"clusterawsadm\", did you mean cluster? (see 'clusterawsadm --help')\n", s.err.String())
		}
	}
}

func TestAccountOutOfReach(t *testing.T) {
	s := newShell(t)
	require.Equal(t, env.Failed, s.run("cluster", "describe", "demo", "--region", "us-east-1"))
	assert.Contains(t, s.err.String(), "error: no AWS credentials: use --profile")
	require.Equal(t, env.Failed, s.run("cluster", "describe", "demo", "--profile", "nope"))
	assert.Equal(t, "error: AWS configuration: there is no profile nope\n", s.err.String())
	s.AWS = func(context.Context, string, string) (aws.Config, error) {
		return aws.Config{Region: "us-east-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("the token has expired")
		})}, nil
	}
	require.Equal(t, env.Failed, s.run("cluster", "list"))
	assert.Contains(t, s.err.String(), "(the token has expired)")
}

func TestValidate(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file), s.err.String())
	assert.Equal(t, file+": valid: cluster demo in us-east-1, Kubernetes v1.34.2, 1 control plane, 1 worker in 1 deployment\n", s.out.String())

	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "-o", "json", "--region", "eu-west-1"))
	var v struct {
		Version int
		Valid   bool
		Region  string
		Workers int

		Warnings []string
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &v))
	assert.Equal(t, 1, v.Version)
	assert.True(t, v.Valid)
	assert.Equal(t, "eu-west-1", v.Region, "the flag goes before the manifest")
	require.Len(t, v.Warnings, 1)
	assert.Regexp(t, `demo\.yaml:\d+: AWSCluster/demo spec\.region: the manifest has region us-east-1, and --region overrides it with eu-west-1`, v.Warnings[0])
	assert.Contains(t, s.err.String(), "warning: "+v.Warnings[0])
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file, "--region", "eu-west-1", "--strict"))
	assert.Contains(t, s.err.String(), "error: 1 problem")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file, "--region", "us-east-1", "--strict"))
	assert.Empty(t, s.err.String(), "they agree")
	assert.Equal(t, 1, v.Workers)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	s.In = bytes.NewReader(text)
	require.Equal(t, 0, s.run("cluster", "validate", "-f", "-"))
	assert.True(t, strings.HasPrefix(s.out.String(), "stdin: valid: "))
	require.Equal(t, 0, s.run("cluster", "validate", "-f", filepath.Dir(file)), "a directory stands for the files in it")
}

func TestManifestProblemsAreListed(t *testing.T) {
	s := newShell(t)
	text, err := os.ReadFile(s.generated(t))
	require.NoError(t, err)
	wrong := strings.NewReplacer("loadBalancerType: nlb", "loadBalancerTyp: nlb", "instanceType: t3.large", "instanceTyp: t3.large").Replace(string(text))
	s.In = strings.NewReader(wrong)
	require.Equal(t, env.Wrong, s.run("cluster", "plan", "-f", "-", "--simulate"))
	lines := strings.Split(strings.TrimSpace(s.err.String()), "\n")
	assert.Contains(t, lines[0], "stdin:")
	assert.Contains(t, lines[0], "loadBalancerTyp")
	assert.Equal(t, fmt.Sprintf("error: %d problems", len(lines)-1), lines[len(lines)-1])
}

func TestExitCodes(t *testing.T) {
	background := t.Context()
	interrupted, cancel := context.WithCancelCause(background)
	cancel(env.ErrInterrupted)
	late := &env.TimeoutError{After: time.Second}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{background, nil, 0},
		{background, errors.New("x"), 1},
		{background, env.ErrChanges, 2},
		{background, env.Usagef("x"), 3},
		{background, &input.InvalidError{}, 3},
		{background, fmt.Errorf("confirm: %w", env.Usagef("x")), 3},
		{background, &plan.RefusedError{Reasons: []error{errors.New("x")}}, 4},
		{background, fmt.Errorf("x: %w", plan.ErrDeclined), 4},
		{background, &plan.HalfwayError{Err: errors.New("x")}, 5},
		{background, fmt.Errorf("x: %w", &plan.TimeoutError{Awaited: errors.New("x")}), 5},
		{background, &plan.HalfwayError{Err: late}, 5},
		{background, &plan.LeftoverError{Left: []string{"vpc-1"}}, 6},
		{background, fmt.Errorf("x: %w", late), 130},
		{interrupted, &plan.HalfwayError{Err: context.Canceled}, 130},
		{interrupted, nil, 0},
	} {
		assert.Equal(t, c.want, env.ExitCode(c.ctx, c.err), "%v", c.err)
	}
}

func TestHalfwaySaysHowToGoOn(t *testing.T) {
	s := newShell(t)
	printContinue(s.Env, new(cobra.Command), errors.New("x"), nil)
	assert.Empty(t, s.err.String())
	printContinue(s.Env, new(cobra.Command), &plan.HalfwayError{Err: errors.New("x")}, []string{"cluster", "create", "-f", "my demo.yaml", "--set", "A=it's"})
	assert.Contains(t, s.err.String(), `  clusterawsadm cluster create -f 'my demo.yaml' --set 'A=it'\''s'`)
}

// The last words say whether another run alone helps: not if the cause is in the manifest, in the boot of
// machines, or in the permissions; and if AWS lacks capacity, what else helps.
func TestLastWordsSayWhetherToRepeat(t *testing.T) {
	refused := func(code string) error {
		return &plan.ResourceError{
			Resource: "machine/demo-md-0/0",
			Err:      &smithy.OperationError{ServiceID: "EC2", OperationName: "RunInstances", Err: &smithy.GenericAPIError{Code: code}},
		}
	}
	waited := func(awaited string, findings ...string) error {
		return &plan.ResourceError{Resource: "node/demo-md-0/0", Err: &plan.TimeoutError{Awaited: errors.New(awaited), Findings: findings}}
	}
	const change, later, check, same = "Another run would end in the same way", "another instanceType, another zone", "change it first", "needed. To continue, run the command again"
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("x"), same},
		{refused("RequestLimitExceeded"), same},
		{refused("InvalidInstanceID.NotFound"), same},
		{refused("InternalError"), same},
		{refused("InsufficientInstanceCapacity"), later},
		{refused("InvalidParameterValue"), change},
		{refused("InvalidAMIID.NotFound"), change},
		{refused("Unsupported"), change},
		{refused("VcpuLimitExceeded"), change},
		{refused("SpotMaxPriceTooLow"), change},
		{refused("InvalidSubnetID.Malformed"), change},
		{refused("InsufficientFreeAddressesInSubnet"), change},
		{refused("DependencyViolation"), same},
		{refused("ResourceInUseException"), same},
		{refused("InvalidGroup.NotFound"), same},
		{refused("InvalidCapacityReservationId.NotFound"), change},
		{&plan.ConflictError{Change: plan.Change{Field: "cidr"}}, change},
		{refused("UnauthorizedOperation"), change},
		{waited("the resource to exist"), same},
		{waited("instances (We currently do not have sufficient m5.large capacity)"), later},
		{waited("the resource to exist", "instance i-1 does not exist any more: run this again"), check},
		{waited("the resource to exist", "i-1 says on its console \"kubeadm: command not found\": …; without a change, another run ends in the same way"), change},
		{errors.Join(refused("InternalError"), refused("InvalidParameterValue"), refused("InsufficientInstanceCapacity")), change},
		{errors.Join(refused("InsufficientInstanceCapacity"), refused("InternalError")), later},
	} {
		s := newShell(t)
		printContinue(s.Env, new(cobra.Command), &plan.HalfwayError{Err: c.err}, []string{"cluster", "create"})
		assert.Contains(t, s.err.String(), c.want, "%v", c.err)
		assert.Contains(t, s.err.String(), "No cleanup is needed")
		assert.Contains(t, s.err.String(), "\n\n  clusterawsadm cluster create\n")
	}
}

// TestInterruptedCall: which call an interrupt has prevented is of no interest, and what an
// interrupted command leaves is.
func TestInterruptedCall(t *testing.T) {
	call := &smithy.OperationError{ServiceID: "SSM", OperationName: "GetParametersByPath", Err: fmt.Errorf("not sent: %w", env.ErrInterrupted)}
	assert.Equal(t, []string{"interrupted"}, env.Errors(fmt.Errorf("lock: %w", call)))
	assert.Equal(t, []string{"the stack goes on: interrupted"}, env.Errors(fmt.Errorf("the stack goes on: %w", env.ErrInterrupted)))
}

func TestInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		interrupts := make(chan os.Signal)
		s.Interrupts = interrupts
		var log []string
		s.Exit = func(code int) { log = append(log, fmt.Sprint("exit ", code)) }
		s.OnExit(func() { log = append(log, "first") })
		s.OnExit(func() { log = append(log, "second") })
		s.OnExit(func() { log = append(log, "taken back") })()
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := watch(s.Env, cancel)
		interrupts <- os.Interrupt
		synctest.Wait()
		require.ErrorIs(t, context.Cause(ctx), env.ErrInterrupted)
		assert.Contains(t, s.err.String(), "press Ctrl-C again")
		assert.Empty(t, log)
		interrupts <- os.Interrupt
		synctest.Wait()
		assert.Equal(t, []string{"second", "first", "exit 130"}, log)
		stop()
	})
}

func TestVersion(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("version"))
	assert.True(t, strings.HasPrefix(s.out.String(), `clusterawsadm version: &version.Info{Major:"`), s.out.String())
	require.Equal(t, 0, s.run("version", "-o", "json"))
	var v map[string]map[string]string
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &v))
	assert.NotEmpty(t, v["awsProviderVersion"]["goVersion"])
	require.Equal(t, 0, s.run("version", "-o", "yaml"))
	assert.Contains(t, s.out.String(), "awsProviderVersion:\n")
	require.Equal(t, 0, s.run("version", "-o", "short"))
	assert.Equal(t, 1, strings.Count(s.out.String(), "\n"))
}

func TestTheStoryOfAnError(t *testing.T) {
	s := newShell(t)
	s.Explain(errors.New("one\ntwo"))
	assert.Equal(t, "error: one\n       two\n", s.err.String())
	s.err.Reset()
	s.ErrIsTerminal = true
	s.Explain(errors.New("x"))
	assert.Equal(t, "\x1b[31merror:\x1b[0m x\n", s.err.String())
	s.err.Reset()
	s.variables["NO_COLOR"] = "1"
	s.Explain(errors.New("x"))
	assert.Equal(t, "error: x\n", s.err.String())
	assert.Equal(t, render.Style{}, s.ErrStyle())
	s.Explain(env.ErrChanges)
	assert.Equal(t, "error: x\n", s.err.String(), "that there are changes is no error")
}

func TestTheProcess(t *testing.T) {
	e := Process()
	assert.NotNil(t, e.Interrupts)
	assert.NotEmpty(t, e.StateDir)
	assert.Contains(t, e.Who, " pid ")
	t.Setenv("XDG_STATE_HOME", "/somewhere")
	assert.Equal(t, "/somewhere", stateDir("/home/ada"))
	t.Setenv("XDG_STATE_HOME", "")
	assert.Equal(t, "/home/ada/.local/state", stateDir("/home/ada"))
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_REGION", "eu-north-1")
	cfg, err := e.AWS(t.Context(), "", "")
	require.NoError(t, err)
	assert.Equal(t, "eu-north-1", cfg.Region)
	cfg, err = e.AWS(t.Context(), "eu-west-1", "")
	require.NoError(t, err)
	assert.Equal(t, "eu-west-1", cfg.Region)
	_, err = e.AWS(t.Context(), "", "no-such-profile")
	require.Error(t, err)
}
