package reconcile_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// lag is how long new resources are not visible in the simulated AWS.
const lag = 3 * time.Second

// booting is when simulated machines have booted.
const booting = 2 * time.Minute

// load reads an example. Examples have no variables except those in env, and EKS roles
// are created for those whose names end in -iam.
func load(t *testing.T, file string, env map[string]string) *manifest.Cluster {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	m, err := manifest.Load([]input.Source{{Name: filepath.Base(file), Data: raw}}, input.LoadOptions{
		Lookup:       func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		EKSEnableIAM: strings.HasSuffix(name(file), "-iam"),
	})
	require.NoError(t, err)
	return m
}

// account returns a simulated account in the region of the manifest.
func account(m *manifest.Cluster, lag time.Duration) *awssim.AWS {
	return awssim.New(awssim.Options{Region: m.Region, Lag: lag})
}

// open returns the cluster for a new process.
func open(m *manifest.Cluster, p *awssim.Process) *reconcile.Cluster {
	return reconcile.OpenModel(m, cluster.Target{Config: p.Config(), Owner: "test"})
}

// mustPlan returns the plan of a new process.
func mustPlan(t *testing.T, m *manifest.Cluster, a *awssim.AWS) plan.Plan {
	t.Helper()
	p, err := open(m, a.Process()).Plan(t.Context())
	require.NoError(t, err)
	return p
}

// mustApply applies in a new process, and returns the result.
func mustApply(t *testing.T, m *manifest.Cluster, a *awssim.AWS) cluster.Result {
	t.Helper()
	res, err := open(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
	require.NoError(t, err)
	return res
}

// requireNoChange requires a plan without changes.
func requireNoChange(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	for _, s := range mustPlan(t, m, a).Steps {
		require.False(t, s.Does(), "%s: %s %v", s.Resource, s.Action, s.Diff)
	}
}

// mustDelete deletes in a new process.
func mustDelete(t *testing.T, m *manifest.Cluster, a *awssim.AWS) cluster.Result {
	t.Helper()
	res, err := open(m, a.Process()).Delete(t.Context(), cluster.Options{Observe: tell(t)})
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

// everything are the options of a deletion that also deletes volumes of a cluster that
// cannot say their reclaim policy.
var everything = cluster.Options{Volumes: cluster.DeleteVolumes}

// mustDeleteAll deletes in a new process, with all volumes.
func mustDeleteAll(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	res, err := open(m, a.Process()).Delete(t.Context(), everything)
	require.NoError(t, err)
	provesAbsence(t, res)
}

// tell logs events with -v.
func tell(t *testing.T) func(plan.Event) {
	t.Helper()
	if !testing.Verbose() || os.Getenv("TELL") == "" {
		return nil
	}
	began := time.Now()
	return func(e plan.Event) {
		t.Logf("%8s %-9s %-40s %s %s %v", time.Since(began).Round(100*time.Millisecond), e.What, e.Resource, e.CloudID, e.Detail, e.Err)
	}
}

// counted counts the calls in a budget: those for the lock and for secrets do not count.
func counted(calls []awssim.Call) (n int, ops map[string]int) {
	ops = map[string]int{}
	for _, c := range calls {
		if c.Service == "SSM" || c.Service == "Secrets Manager" {
			continue
		}
		n++
		ops[c.Operation]++
	}
	return n, ops
}

// examples lists the files of configs/.
func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../configs/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	slices.Sort(files)
	return files
}

func name(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

// transport passes requests of a process to the simulated API servers.
func transport(p *awssim.Process) cluster.Transport {
	return func(a cluster.Access) http.RoundTripper { return p.Kubernetes(kube.Access(a)) }
}
