package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// terminal simulates a terminal, with an answer to the next question.
func (s *shellEnv) terminal(answer string) {
	s.InIsTerminal, s.ErrIsTerminal = true, true
	s.Size = func() (int, int) { return 400, 30 } // messages are not broken
	s.In = strings.NewReader(answer)
}

// simulated makes all commands use a simulated account.
func (s *shellEnv) simulated() {
	s.variables["CLUSTERAWSADM_SIMULATE"] = "true"
	s.variables["NO_COLOR"] = "1"
	s.Size = func() (int, int) { return 100, 30 }
}

// TestClusterCommands runs all commands in turn, with a simulated account that is stored
// between them.
func TestClusterCommands(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.simulated()
	step := s.steps(t)

	step(0, "plan", "-f", file)
	assert.Contains(t, s.out.String(), "+ vpc\n")
	assert.Regexp(t, `Plan: \d+ to create, 0 to change, 0 to delete, 5 to wait for; AWS takes about 4 minutes\.`, s.out.String())
	assert.Contains(
		t,
		s.out.String(),
		"Note: Nodes will not become ready: the manifest installs no pod network and no AWS cloud controller manager. Install them with",
	)
	step(env.Changes, "plan", "-f", file, "--detailed-exitcode", "-o", "json")
	assert.True(t, json.Valid(s.out.Bytes()), "stdout is the answer and nothing else")
	assert.NotContains(t, s.err.String(), "error")

	step(env.Wrong, "create", "-f", file)
	assert.Contains(t, s.err.String(), "stdin is not a terminal")
	assert.Contains(t, s.err.String(), "--yes")
	s.terminal("n\n")
	step(env.Refused, "create", "-f", file)
	assert.Contains(t, s.err.String(), "Create cluster demo in us-east-1, account 123456789012? [y/N]")
	assert.Contains(t, s.err.String(), "not confirmed; nothing was changed")
	assert.Empty(t, s.out.String())

	s.terminal("y\n")
	step(0, "create", "-f", file)
	assert.Contains(t, s.err.String(), "✓ network ")
	assert.Contains(t, s.err.String(), "API server: https://")
	assert.Contains(
		t,
		s.err.String(),
		" All machines have joined (2 Nodes).\nNodes are not ready yet (2 of 2): the manifest installs no pod network and no AWS cloud controller manager. Install them with --cni FILE and --addon FILE, or with kubectl.\n",
	)
	assert.Contains(t, s.err.String(), "Next: clusterawsadm cluster describe -f "+file+" --simulate")
	assert.Contains(t, s.err.String(), "\x1b[?25h", "the cursor is back")
	assert.Empty(t, s.out.String())

	s.terminal("")
	step(0, "create", "-f", file, "-o", "json")
	var result struct {
		Version, Writes int
		Changed         map[string]int
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &result))
	assert.Equal(t, 1, result.Version)
	assert.Zero(t, result.Writes, "a second run has nothing to do, and does not ask")
	assert.Zero(t, result.Changed["create"])
	step(0, "plan", "-f", file, "--detailed-exitcode")
	assert.Contains(t, s.out.String(), "No changes: everything is up to date")

	step(0, "describe", "-f", file)
	assert.Contains(t, s.out.String(), "✓ network")
	assert.Regexp(t, `\nAPI server: ready \(v1\.34\.2\)  Nodes: 2 joined, 0 ready\n`, s.out.String())
	assert.Regexp(t, `├─ … workers 0/1\n.* … machine/demo-md-0/0 +i-\w+ +pending  NotReady t3\.large`, s.out.String())
	assert.Contains(t, s.out.String(), "\n38 of 42 up to date, 4 pending.\n")
	step(env.Changes, "describe", "-f", file, "--detailed-exitcode")
	testFormats(t, s)
	step(0, "list")
	assert.Regexp(t, `\ndemo   us-east-1   kubeadm   v1\.34\.2   1               1         running   \d+\w+\n$`, s.out.String())

	testKubeconfig(t, s, file)
	testConflict(t, s, file)

	s.terminal("dmeo\n")
	step(env.Refused, "delete", "demo")
	assert.Contains(t, s.err.String(), "This deletes the cluster in us-east-1, account 123456789012, and cannot be undone. Type its name to delete it: ")
	s.terminal("demo\n")
	step(0, "delete", "demo")
	assert.Contains(t, s.err.String(), "is deleted (")
	step(0, "list", "-o", "json")
	assert.JSONEq(t, `{"version": 1, "clusters": []}`, s.out.String())
	step(env.Failed, "delete", "demo", "--yes")
	assert.Contains(
		t,
		s.err.String(),
		"error: there is no cluster demo in us-east-1: 'clusterawsadm cluster list --all-regions --simulate' lists the clusters in all regions",
	)
	step(env.Failed, "delete", "demo", "--dry-run")
	step(env.Failed, "describe", "demo")
	step(0, "delete", "-f", file, "--yes")
	assert.Contains(t, s.err.String(), "Cluster demo in us-east-1 has no resources to delete.")
}

func testKubeconfig(t *testing.T, s *shellEnv, manifest string) {
	t.Helper()
	require.Equal(t, 0, s.run("cluster", "kubeconfig", "-f", manifest), s.err.String())
	_, err := clientcmd.Load(s.out.Bytes())
	require.NoError(t, err)
	assert.NotContains(t, s.err.String(), "client-key-data")

	file := filepath.Join(s.HomeDir, ".kube", "config")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	old := "apiVersion: v1\nkind: Config\ncurrent-context: other\ncontexts: [{name: other, context: {cluster: other, user: other}}]\n" +
		"clusters: [{name: other, cluster: {server: https://other}}]\nusers: [{name: other, user: {token: t}}]\n"
	require.NoError(t, os.WriteFile(file, []byte(old), 0o644))
	require.Equal(t, 0, s.run("cluster", "kubeconfig", "demo", "--merge"), s.err.String())
	assert.Empty(t, s.out.String(), "a secret is told in one place only")
	merged, err := clientcmd.LoadFromFile(file)
	require.NoError(t, err)
	assert.Len(t, merged.Contexts, 2, "what was there stays")
	assert.Equal(t, "other", merged.CurrentContext, "nothing answers at the address of a simulated cluster")
	assert.Equal(t, "https://other", merged.Clusters["other"].Server)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	elsewhere := filepath.Join(t.TempDir(), "kubeconfig")
	require.Equal(t, 0, s.run("cluster", "kubeconfig", "demo", "--to", elsewhere), s.err.String())
	info, err = os.Stat(elsewhere)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func testConflict(t *testing.T, s *shellEnv, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	edited := strings.ReplaceAll(string(text), "t3.large", "m5.large")
	s.In = strings.NewReader(edited)
	require.Equal(t, 0, s.run("cluster", "plan", "-f", "-"), s.err.String())
	assert.Contains(
		t,
		s.out.String(),
		"Plan: 2 to replace, 1 to create, 2 to change, 0 to delete, 2 to wait for; AWS takes about 4 minutes.",
		"machines of another type take the place of those that are there",
	)
	assert.Contains(
		t,
		s.out.String(),
		"\nNote: Old machines leave when the Nodes of the new ones are ready: the manifest installs no pod network and no AWS cloud controller manager. Install them with --cni FILE and --addon FILE, or with kubectl, if that was not done.\n",
	)
	assert.Regexp(
		t,
		`(?m)^  -/\+ machine/demo-md-0/0 \(i-\w+\)\n      ~ instanceType  t3\.large → m5\.large  # stdin:\d+\n        with          drain, node-object\n        new           machine/demo-md-0/1$`,
		s.out.String(),
	)
	s.In = strings.NewReader(edited)
	require.Equal(t, env.Refused, s.run("cluster", "plan", "-f", "-", "--wait", "infrastructure"))
	assert.Contains(t, s.out.String(), "cannot be changed")
	assert.Contains(t, s.err.String(), `cannot change instanceType from "t3.large" to "m5.large"`)
}

func TestGraphNeedsNoAccount(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	for format, want := range map[string]string{"text": "Network\n", "mermaid": "flowchart LR", "dot": "digraph", "svg": "</svg>", "json": `"needs"`} {
		require.Equal(t, 0, s.run("cluster", "graph", "-f", file, "-o", format), s.err.String())
		assert.Contains(t, s.out.String(), want)
	}
	require.Equal(t, 0, s.run("cluster", "graph", "-f", file, "-o", "json"), s.err.String())
	var document map[string]any
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &document))
	assert.Equal(t, []string{"resources", "title", "version"}, slices.Sorted(maps.Keys(document)), "as docs/events.md says")
	assert.InDelta(t, 1, document["version"], 0)
}

// TestFlavorsInExamplesExist checks the commands in comments of examples.
func TestFlavorsInExamplesExist(t *testing.T) {
	for _, flavor := range flavors(t) {
		text, err := os.ReadFile("../../configs/" + flavor + ".yaml")
		require.NoError(t, err)
		for _, named := range regexp.MustCompile(`--flavor ([-\w]+)`).FindAllStringSubmatch(string(text), -1) {
			assert.Contains(t, flavors(t), named[1], flavor)
		}
	}
}

// TestProgressForPrograms parses the events of a run.
func TestProgressForPrograms(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--progress", "json", "-o", "json"), s.err.String())
	assert.True(t, json.Valid(s.out.Bytes()))
	var last map[string]any
	for line := range strings.Lines(s.err.String()) {
		if strings.HasPrefix(line, "{") {
			last = nil
			require.NoError(t, json.Unmarshal([]byte(line), &last))
		}
	}
	assert.Equal(t, "end", last["type"])
	assert.Equal(t, []string{"{"}, firsts(s.err.String()), "every line is a record")
	require.Equal(t, 0, s.run("cluster", "delete", "-f", file, "--yes", "--progress", "none"), s.err.String())
	assert.NotContains(t, s.err.String(), "deleting")
}

// firsts lists the distinct first letters of lines.
func firsts(text string) (out []string) {
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		if !seen[line[:1]] {
			seen[line[:1]] = true
			out = append(out, line[:1])
		}
	}
	return out
}

func TestInterruptedRunIsContinued(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	s.simulated()
	interrupts := make(chan os.Signal)
	s.Interrupts = interrupts
	s.Err = &watched{Writer: render.NewOutput(&s.err), word: "nat-gateway/us-east-1a", then: func() { go func() { interrupts <- os.Interrupt }() }}
	require.Equal(t, env.Interrupted, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	assert.Contains(t, s.err.String(), "To continue, run the command again:\n\n  clusterawsadm cluster create -f "+file+" --yes")
	s.Err = render.NewOutput(&s.err)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	assert.NotRegexp(t, `(?m)^ *\d\S* +vpc +creat`, s.err.String(), "what was made is not made again")
	require.Equal(t, 0, s.run("cluster", "delete", "-f", file, "--yes"), s.err.String())
}

// watched is a writer that calls a function when a word is first written.
type watched struct {
	io.Writer
	word string
	then func()
}

func (w *watched) Write(p []byte) (int, error) {
	if w.then != nil && strings.Contains(string(p), w.word) {
		w.then()
		w.then = nil
	}
	return w.Writer.Write(p)
}

func TestSummaryOfErrorsIsTyped(t *testing.T) {
	err := &plan.LeftoverError{Left: []string{"vpc-1", "subnet-2"}}
	s := newShell(t)
	s.Explain(err)
	assert.Equal(t, "error: 2 resources are left: vpc-1, subnet-2\n", s.err.String())
}

// TestPlanFile carries out a plan that was written to a file, and refuses to if anything has
// changed since.
func TestPlanFile(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	planned := filepath.Join(t.TempDir(), "demo.plan")
	step := s.steps(t)
	step(0, "plan", "-f", file, "--to", planned, "--wait", "infrastructure")
	assert.Contains(t, s.err.String(), "wrote "+planned+": 'clusterawsadm cluster create "+planned+"' carries out this plan, or says what has changed\n")
	printed := s.out.String()
	data, err := os.ReadFile(planned)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "PRIVATE KEY")
	step(0, "plan", "show", planned)
	assert.Equal(t, printed, s.out.String())

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "show", file}, "is not a plan: "},
		{[]string{"plan", "show", "nope.plan"}, "error: nope.plan: no such file\n"},
		{[]string{"plan", "show"}, "name one file"},
		{[]string{"create", file}, "did you mean -f " + file},
		{[]string{"create", planned, "--wait", "api"}, "error: the plan was made with --wait=infrastructure: make it again for another value\n"},
		{[]string{"create", planned, "--drain=false"}, "error: the plan was made without --drain: make it again\n"},
		{[]string{"create", planned, "--set", "A=b"}, "error: the plan was made with no --set: use the same values\n"},
	} {
		step(env.Wrong, c.args...)
		assert.Contains(t, s.err.String(), c.want)
	}

	step(0, "create", planned)
	assert.Contains(t, s.err.String(), "Cluster demo in us-east-1 is up to date")
	step(0, "create", planned) // there is nothing to do any more
	step(0, "plan", "-f", file, "--to", planned)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("t3.large"), []byte("m5.large")), 0o600))
	step(env.Refused, "create", planned)
	assert.Contains(t, s.err.String(), "error: "+file+" or its variables have changed since the plan was made: make the plan again\n")

	step(0, "plan", "-f", file, "--to", planned)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	step(0, "delete", "demo", "--yes")
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("t3.large"), []byte("m5.large")), 0o600))
	step(env.Refused, "create", planned)
	assert.Contains(t, s.err.String(), "vpc: is to create now, which is not in the plan\n")
	assert.Regexp(t, `retired/machine/demo-md-0/0/i-\w+: the plan would delete it, which is not necessary any more\n`, s.err.String())
	assert.Regexp(t, `the plan of \S+ does not apply any more: make it again\n`, s.err.String())
	step(env.Failed, "describe", "demo")
}

// TestPlanFileGoesOn continues a saved plan after a run of it that was stopped half way, and only then.
func TestPlanFileGoesOn(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	planned := filepath.Join(t.TempDir(), "demo.plan")
	step := s.steps(t)
	const stale = "does not apply any more: make it again"
	step(0, "plan", "-f", file, "--to", planned)
	for _, after := range []string{"20s", "45s", "1m15s"} {
		step(env.Halfway, "create", planned, "--timeout", after)
		assert.Contains(t, s.err.String(), "To continue, run the command again")
	}
	step(0, "create", planned)
	assert.Contains(t, s.err.String(), "Cluster demo in us-east-1 is up to date")

	s.simulatedAccount(t, func(state *awssim.State) { // the plan is done: this is another change
		for _, i := range state.EC2.Instances {
			if strings.Contains(i.Tags["Name"], "md-0") {
				i.Terminating, i.Terminated = i.Running, i.Running.Add(time.Second)
			}
		}
	})
	step(env.Refused, "create", planned)
	assert.Contains(t, s.err.String(), stale)
	step(env.Refused, "create", planned)
	assert.Contains(t, s.err.String(), stale, "a refused run has begun nothing")

	step(0, "delete", "demo", "--yes")
	step(0, "plan", "-f", file, "--to", planned)
	step(env.Halfway, "create", planned, "--timeout", "45s")
	step(env.Halfway, "create", "-f", file, "--yes", "--timeout", "20s")
	step(env.Refused, "create", planned)
	assert.Contains(t, s.err.String(), stale, "another run has changed the cluster since")
}

// TestList lists clusters with what AWS tells of them, in the simulated account of a region.
func TestList(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--wait", "infrastructure"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "list"), s.err.String())
	assert.Regexp(
		t,
		`^NAME   REGION      TYPE      VERSION   CONTROL PLANE   WORKERS   STATUS    AGE\ndemo   us-east-1   kubeadm   v1\.34\.2   1               1         running   \d+\w+\n$`,
		s.out.String(),
	)
	require.Equal(t, 0, s.run("cluster", "list", "-o", "wide"), s.err.String())
	assert.Regexp(t, `STATUS    AGE +RESOURCES   KINDS\n`, s.out.String())
	require.Equal(t, 0, s.run("cluster", "list", "-o", "json"), s.err.String())
	assert.Contains(t, s.out.String(), `"kubernetes": "v1.34.2"`)
	require.Equal(t, env.Changes, s.run("cluster", "describe", "demo", "--detailed-exitcode"), s.err.String())
	assert.Regexp(t, `^demo  us-east-1  Kubernetes v1\.34\.2  https://\S+:6443  \d+\w+ old\n`, s.out.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	larger := filepath.Join(t.TempDir(), "larger.yaml")
	require.NoError(t, os.WriteFile(larger, bytes.ReplaceAll(text, []byte("replicas: 1\n"), []byte("replicas: 2\n")), 0o600))
	require.Equal(t, 0, s.run("cluster", "describe", "-f", larger, "--wait", "infrastructure"), s.err.String())
	require.Equal(t, env.Changes, s.run("cluster", "describe", "-f", larger, "--wait", "infrastructure", "--detailed-exitcode"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "delete", "demo", "--yes"), s.err.String())

	s.variables["CAPA_EKS_IAM"] = "true"
	require.Equal(t, 0, s.run("cluster", "create", "-f", configured("eks"), "--yes", "--wait", "infrastructure"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "list"), s.err.String())
	assert.Regexp(t, `\neks +us-east-1 +eks +v1\.34 +eks +2 +active +\d+\w+\n$`, s.out.String())
	require.Equal(t, 0, s.run("cluster", "stop", "eks", "--yes"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "list"), s.err.String())
	assert.Regexp(t, `\neks +us-east-1 +eks +v1\.34 +eks +0 +stopped +\d+\w+\n$`, s.out.String())
}

// testFormats prints the cluster demo, whose two Nodes have joined, in the formats for programs.
func testFormats(t *testing.T, s *shellEnv) {
	t.Helper()
	for _, c := range []struct{ args, want string }{
		{"list -o name", "^demo\n$"},
		{"list -o jsonpath={.clusters[*].kubernetes}", `^v1\.34\.2\n$`},
		{"list -o jsonpath=clusters[0].workers.running", "^1\n$"},
		{"list -o jsonpath={.clusters[0].nope}", "^\n$"},
		{"describe demo -o name", `(?m)^machine/demo-md-0/0$`},
		{"describe demo -o wide", `├─ … ip-\S+ +pending +control-plane v1\.34\.2  NotReady\n`},
		{"describe demo -o yaml", `apiServer:\n  kubernetes: v1\.34\.2\n  state: ready\n`},
		{"describe demo -o jsonpath={range.nodes[*]}{.roles[0]}={.ready},{end}", "^control-plane=false,=false,\n$"},
	} {
		require.Equal(t, 0, s.run(append([]string{"cluster"}, strings.Fields(c.args)...)...), s.err.String())
		assert.Regexp(t, c.want, s.out.String(), c.args)
	}
	for path, want := range map[string]string{"{.a[": "unterminated array", "": "the expression is empty"} {
		require.Equal(t, env.Wrong, s.run("cluster", "list", "-o", "jsonpath="+path))
		assert.Contains(t, s.err.String(), want)
	}
}
