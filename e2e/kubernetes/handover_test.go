package kubernetes

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/wire"
)

// handedOver are the kinds of the objects of a self-managed cluster.
func handedOver() []string {
	return []string{
		"clusters.cluster.x-k8s.io/v1beta2", "awsclusters.infrastructure.cluster.x-k8s.io/v1beta2",
		"awsmachinetemplates.infrastructure.cluster.x-k8s.io/v1beta2", "kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io/v1beta2",
		"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io/v1beta2", "machinedeployments.cluster.x-k8s.io/v1beta2",
		"machinesets.cluster.x-k8s.io/v1beta2", "machines.cluster.x-k8s.io/v1beta2", "awsmachines.infrastructure.cluster.x-k8s.io/v1beta2",
		"machinepools.cluster.x-k8s.io/v1beta2", "awsmachinepools.infrastructure.cluster.x-k8s.io/v1beta2",
		"kubeadmconfigs.bootstrap.cluster.x-k8s.io/v1beta2", "secrets/v1",
	}
}

// installKinds installs the CustomResourceDefinitions of handedOver.
func installKinds(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	const capi = "sigs.k8s.io/cluster-api"
	c.InstallCRDs(t, capi, "core/config/crd/bases", nil, "cluster.x-k8s.io_clusters.yaml", "cluster.x-k8s.io_machinedeployments.yaml",
		"cluster.x-k8s.io_machinesets.yaml", "cluster.x-k8s.io_machines.yaml", "cluster.x-k8s.io_machinepools.yaml")
	c.InstallCRDs(
		t,
		capi,
		"bootstrap/kubeadm/config/crd/bases",
		nil,
		"bootstrap.cluster.x-k8s.io_kubeadmconfigs.yaml",
		"bootstrap.cluster.x-k8s.io_kubeadmconfigtemplates.yaml",
	)
	c.InstallCRDs(t, capi, "controlplane/kubeadm/config/crd/bases", nil, "controlplane.cluster.x-k8s.io_kubeadmcontrolplanes.yaml")
	c.InstallCRDs(
		t,
		"sigs.k8s.io/cluster-api-provider-aws/v2",
		"config/crd/bases",
		nil,
		"infrastructure.cluster.x-k8s.io_awsclusters.yaml",
		"infrastructure.cluster.x-k8s.io_awsmachines.yaml",
		"infrastructure.cluster.x-k8s.io_awsmachinetemplates.yaml",
		"infrastructure.cluster.x-k8s.io_awsmachinepools.yaml",
	)
}

// objects returns the objects of a cluster, "Kind/name", with the names of their owners. It
// fails the test if an owner reference names an object that does not exist, or has the UID
// of another object.
func objects(t *testing.T, c *controlplane.ControlPlane) map[string]string {
	t.Helper()
	names, owners := map[types.UID]string{}, map[string][]metav1.OwnerReference{}
	for _, kind := range handedOver() {
		list, err := c.Objects.Resource(controlplane.Resource(kind)).Namespace("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, o := range list.Items {
			name := o.GetKind() + "/" + o.GetName()
			names[o.GetUID()], owners[name] = name, o.GetOwnerReferences()
		}
	}
	all := map[string]string{}
	for name, refs := range owners {
		all[name] = ""
		for _, r := range refs {
			require.Equal(t, r.Kind+"/"+r.Name, names[r.UID], "owner of %s", name)
			all[name] += names[r.UID]
		}
	}
	return all
}

// controllers report for all objects that they are ready, while the Cluster is not paused.
// They stand in for the real ones, which the lab runs.
func controllers(ctx context.Context, c *controlplane.ControlPlane) {
	ready := []byte(`{"status":{"ready":true,"conditions":[
		{"type":"Available","status":"True","reason":"Available","message":"it is","lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"Ready","status":"True","reason":"Ready","message":"it is","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	running := []byte(`{"status":{"phase":"Running"}}`)
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		clusters, err := c.Objects.Resource(controlplane.Resource(handedOver()[0])).Namespace("default").List(ctx, metav1.ListOptions{})
		if err != nil || len(clusters.Items) == 0 {
			continue
		}
		if paused, _, _ := unstructured.NestedBool(clusters.Items[0].Object, "spec", "paused"); paused {
			continue
		}
		for _, kind := range handedOver() {
			r := c.Objects.Resource(controlplane.Resource(kind)).Namespace("default")
			list, err := r.List(ctx, metav1.ListOptions{})
			if err != nil || kind == "secrets/v1" {
				continue
			}
			for _, o := range list.Items {
				status := ready
				if o.GetKind() == "MachinePool" {
					status = running
				}
				_, _ = r.Patch(ctx, o.GetName(), types.MergePatchType, status, metav1.PatchOptions{}, "status") // a kind may have no status
			}
		}
	}
}

// TestHandoverKilled kills a handover and a takeback at random moments, and runs them again:
// the result is always the same, also if the controllers have renewed the bootstrap token of a
// pool in the meantime. HANDOVER_KILLS is how often.
func TestHandoverKilled(t *testing.T) {
	t.Parallel()
	kills, err := strconv.Atoi(os.Getenv("HANDOVER_KILLS"))
	if err != nil {
		kills = 4
	}
	c := controlplane.Start(t)
	installKinds(t, c)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go controllers(ctx, c)

	manifest, kubeconfig := withPool(t), c.Kubeconfig(t)
	s := newShell(t)
	s.run(0, "cluster", "create", "-f", manifest, "--simulate", "--yes", "--progress", "none")
	s.run(4, "cluster", "takeback", "quickstart", "--from", kubeconfig, "--simulate", "--yes")
	assert.Contains(t, s.err, "there is no Cluster quickstart in namespace default")
	s.run(0, "cluster", "handover", "-f", manifest, "--simulate", "--to", kubeconfig, "--dry-run")
	require.Empty(t, objects(t, c), "a dry run creates nothing")

	give := []string{"cluster", "handover", "-f", manifest, "--simulate", "--to", kubeconfig, "--yes", "--simulate-speed", "60", "--timeout", "1h"}
	began := time.Now()
	s.run(0, give...)
	whole := time.Since(began)
	want := objects(t, c)
	require.Contains(t, want, "Secret/quickstart-etcd")
	require.Equal(t, "MachinePool/quickstart-mp-0", want["AWSMachinePool/quickstart-mp-0"])
	require.Equal(t, "Machine/"+machine(want), want["AWSMachine/"+machine(want)])
	s.run(0, give...)
	require.Equal(t, want, objects(t, c), "a second handover changes nothing")
	s.run(4, "cluster", "create", "-f", manifest, "--simulate", "--yes")
	require.Contains(t, s.err, "manages cluster quickstart")
	s.run(4, "cluster", "delete", "quickstart", "--simulate", "--yes")
	require.Contains(t, s.err, "manages cluster quickstart")

	s.rotates("quickstart-mp-0")
	s.run(3, "cluster", "takeback", "quickstart", "--from", kubeconfig, "--simulate", "-o", filepath.Join(t.TempDir(), "taken.yaml"))
	require.Contains(t, s.err, "launch-template/quickstart-mp-0: a new version")
	require.Contains(t, s.err, "pass --yes")

	for i := range kills {
		s.rotates("quickstart-mp-0")
		taken := filepath.Join(t.TempDir(), "taken.yaml")
		take := []string{"cluster", "takeback", "quickstart", "--from", kubeconfig, "--simulate", "--yes", "-o", taken, "--simulate-speed", "60", "--timeout", "1h"}
		s.killed(rand.N(7*time.Second+whole), take)
		s.run(0, take...)
		require.Empty(t, objects(t, c), "takeback %d", i)
		s.run(0, take...) // as after a kill when the last object was gone
		s.run(0, "cluster", "plan", "-f", taken, "--simulate", "--detailed-exitcode")
		s.account(func(c wire.Client) {
			require.Equal(t, "clusterawsadm: machines of earlier versions are up to date", s.latest(c, "quickstart-mp-0").Description)
		})

		give := slices.Clone(give)
		give[3] = taken
		s.killed(rand.N(whole), give)
		s.run(0, give...)
		require.Equal(t, want, objects(t, c), "handover %d", i)
	}
	s.run(0, "cluster", "takeback", "quickstart", "--lost", "--simulate", "--yes")
	require.Contains(t, s.err, "forgot that")
	s.run(0, "cluster", "delete", "quickstart", "--simulate", "--yes")
	t.Logf("proved: %d handovers and %d takebacks, killed at random moments within %s and run again, end the same", kills, kills, whole.Round(time.Millisecond))
}

// withPool writes the quick start with the pool of another example, and returns the file.
func withPool(t *testing.T) string {
	t.Helper()
	root, err := controlplane.Root()
	require.NoError(t, err)
	example := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, "configs", name+".yaml"))
		require.NoError(t, err)
		return string(text)
	}
	_, pool, found := strings.Cut(example("machine-pool"), "kind: MachinePool\n")
	require.True(t, found)
	pool = strings.ReplaceAll("\n---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: MachinePool\n"+pool, "machine-pool", "quickstart")
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, []byte(example("quickstart")+pool), 0o600))
	return file
}

// machine is the name of one of the Machines.
func machine(all map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if rest, ok := strings.CutPrefix(name, "Machine/"); ok {
			return rest
		}
	}
	return ""
}

// killed runs a command and kills it after some time, unless it ends earlier.
func (s *shell) killed(after time.Duration, args []string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), after)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.path, args...)
	cmd.Env = s.env
	_ = cmd.Run() // it was killed, or not
}

// TestHandoverRefused lists what prevents a handover, before anything is created.
func TestHandoverRefused(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t)
	root, err := controlplane.Root()
	require.NoError(t, err)
	manifest, kubeconfig := filepath.Join(root, "configs", "quickstart.yaml"), c.Kubeconfig(t)
	s := newShell(t)
	give := []string{"cluster", "handover", "-f", manifest, "--simulate", "--to", kubeconfig, "--yes"}
	s.run(4, give...)
	assert.Contains(t, s.err, "does not exist yet")
	s.run(0, "cluster", "create", "-f", manifest, "--simulate", "--yes", "--progress", "none")
	s.run(4, give...)
	assert.Contains(t, s.err, "has no kinds of the group cluster.x-k8s.io: is Cluster API installed in it")
	installKinds(t, c)
	c.Create(t, `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachineTemplate
metadata: {name: quickstart-md-0, namespace: default}
spec: {template: {spec: {instanceType: m5.large}}}
`)
	s.run(4, give...)
	assert.Contains(t, s.err, "has AWSMachineTemplate/quickstart-md-0 in namespace default already")
	require.Len(t, objects(t, c), 1)
	s.run(3, append(give, "--to", "/nope")...)
	assert.Contains(t, s.err, "there is no file /nope")
	s.run(3, "cluster", "handover", "-f", manifest, "--simulate")
	assert.Contains(t, s.err, `--to is missing`)
	s.run(0, "cluster", "create", "-f", manifest, "--simulate", "--yes", "--progress", "none") // nobody else manages it
}
