// Package enginetest has what tests of whole lives of clusters share: the examples, simulated accounts,
// and what happens in them.
package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Lag is how long new resources are not visible in the simulated AWS.
const Lag = 3 * time.Second

// Booting is when simulated machines have booted.
const Booting = 2 * time.Minute

// Load reads an example. Examples have no variables except those in env, and EKS roles
// are created for those whose names end in -iam.
func Load(t *testing.T, file string, env map[string]string) *manifest.Cluster {
	t.Helper()
	raw, err := Read(file)
	require.NoError(t, err)
	m, err := loader.Load([]input.Source{{Name: filepath.Base(file), Data: raw}}, input.LoadOptions{
		Lookup:       func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		EKSEnableIAM: strings.HasSuffix(Name(file), "-iam"),
	})
	require.NoError(t, err)
	return m
}

// Account returns a simulated account in the region of the manifest.
func Account(m *manifest.Cluster, lag time.Duration) *awssim.AWS {
	return awssim.New(awssim.Options{Region: m.Region, Lag: lag})
}

// Open returns the cluster for a new process.
func Open(m *manifest.Cluster, p *awssim.Process) *run.Cluster {
	return run.Open(m, cluster.Target{Config: p.Config(), Owner: "test"})
}

// MustPlan returns the plan of a new process, and fails the test on an error.
func MustPlan(t *testing.T, m *manifest.Cluster, a *awssim.AWS) plan.Plan {
	t.Helper()
	p, err := Open(m, a.Process()).Plan(t.Context())
	require.NoError(t, err)
	return p
}

// MustApply creates or updates the cluster as a new process does, and fails the test on an error.
func MustApply(t *testing.T, m *manifest.Cluster, a *awssim.AWS) cluster.Result {
	t.Helper()
	res, err := Open(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: Tell(t)})
	require.NoError(t, err)
	return res
}

// RequireNoChange requires a plan without changes, and returns it.
func RequireNoChange(t *testing.T, m *manifest.Cluster, a *awssim.AWS) plan.Plan {
	t.Helper()
	p := MustPlan(t, m, a)
	for _, s := range p.Steps {
		require.False(t, s.Does(), "%s: %s %v", s.Resource, s.Action, s.Diff)
	}
	return p
}

// MustDelete deletes the cluster as a new process does, and fails the test on an error.
func MustDelete(t *testing.T, m *manifest.Cluster, a *awssim.AWS) cluster.Result {
	t.Helper()
	res, err := Open(m, a.Process()).Delete(t.Context(), cluster.Options{Observe: Tell(t)})
	require.NoError(t, err)
	provesAbsence(t, res)
	return res
}

// provesAbsence checks that a deletion has looked again for all that it has deleted in AWS.
func provesAbsence(t *testing.T, res cluster.Result) {
	t.Helper()
	proved := map[string]bool{}
	for _, a := range res.Absent {
		require.NotEmpty(t, a.CloudID, a.Resource)
		require.NotEmpty(t, a.Asked, a.Resource)
		require.WithinDuration(t, time.Now(), a.At, 2*time.Minute)
		proved[string(a.Resource)+" "+a.CloudID] = true
	}
	for _, s := range res.Plan.Steps {
		if inCluster := s.Resource.Kind() == "services" || s.Resource.Kind() == "claims"; s.Action == plan.Remove && !inCluster {
			require.True(t, proved[string(s.Resource)+" "+s.CloudID], "nobody has looked for %s %s again", s.Resource, s.CloudID)
		}
	}
}

// Everything are the options of a deletion that also deletes volumes of a cluster that
// cannot say their reclaim policy.
var Everything = cluster.Options{Volumes: cluster.DeleteVolumes}

// MustDeleteAll is MustDelete with all volumes.
func MustDeleteAll(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	res, err := Open(m, a.Process()).Delete(t.Context(), Everything)
	require.NoError(t, err)
	provesAbsence(t, res)
}

// Tell logs events with -v.
func Tell(t *testing.T) func(plan.Event) {
	t.Helper()
	if !testing.Verbose() || os.Getenv("TELL") == "" {
		return nil
	}
	began := time.Now()
	return func(e plan.Event) {
		t.Logf("%8s %-9s %-40s %s %s %v", time.Since(began).Round(100*time.Millisecond), e.What, e.Resource, e.CloudID, e.Detail, e.Err)
	}
}

// EditKeys changes the stored keys of a cluster. edit gets the keys of one parameter, by the names of kubeadm's files.
func EditKeys(s *awssim.State, cluster string, edit func(keys map[string]string)) {
	for name, p := range s.SSM.Parameters {
		keys := map[string]string{}
		if strings.HasPrefix(name, "/clusterawsadm/"+cluster+"/pki/") && json.Unmarshal([]byte(p.Value), &keys) == nil {
			edit(keys)
			value, err := json.Marshal(keys)
			if err != nil {
				panic(err) // a map of strings
			}
			p.Value = string(value)
		}
	}
}

// Counted returns the number of calls, and that of each operation.
func Counted(calls []awssim.Call) (n int, ops map[string]int) {
	ops = map[string]int{}
	for _, c := range calls {
		n++
		ops[c.Operation]++
	}
	return n, ops
}

// Examples lists the files of configs/.
func Examples(t *testing.T) []string {
	t.Helper()
	root, err := moduleRoot()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, "configs", "*.yaml"))
	require.NoError(t, err)
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	require.NotEmpty(t, files)
	slices.Sort(files)
	return files
}

// Name is the name of an example.
func Name(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

// Transport passes requests of a process to the simulated API servers.
func Transport(p *awssim.Process) cluster.Transport {
	return func(a cluster.Access) http.RoundTripper { return p.Kubernetes(kube.Access(a)) }
}

// AccountGraph is the graph of a run in the account, which knows its subnets and machines.
func AccountGraph(ctx context.Context, c *run.Cluster) (*graph.Graph, error) {
	l := &run.Looking{Session: run.Begin(c, nil)}
	err := l.Look(ctx)
	return l.Built.Graph, err
}

// Read returns the content of an example, "quickstart.yaml", or of the file of an absolute path.
func Read(file string) ([]byte, error) {
	if filepath.IsAbs(file) {
		return os.ReadFile(file)
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(root, "configs", file))
}

// moduleRoot returns the folder of go.mod: tests run in the folder of their package.
func moduleRoot() (string, error) {
	for dir := "."; ; dir = filepath.Join("..", dir) {
		switch _, err := os.Stat(filepath.Join(dir, "go.mod")); {
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		if here, err := filepath.Abs(dir); err != nil || here == filepath.Dir(here) {
			return "", errors.New("the tests are not in a module")
		}
	}
}
