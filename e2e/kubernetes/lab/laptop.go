package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// speed is how much faster than AWS moto is assumed to be, as in e2e.
const speed = "30"

// patience is the timeout for a cluster on a busy machine with two cores.
const patience = 3 * time.Minute

// lifelike is the speed for runs that wait for Kubernetes, which is not faster than in
// reality: their timeouts should be nearly real. The clock of such a run is ahead of that of the
// API server, and a run does not use pods that are older than five minutes.
const lifelike = "2"

// Laptop is a user in the network of the lab, with one cluster.
type Laptop struct {
	*Lab
	Cluster    string
	manifest   string
	home       string
	program    string
	kubeconfig string // file of the kubeconfig, after the cluster is created
	speed      string // speed of moto
	tools      string // folder before the others in PATH; "" for none
	roots      string // file of the certificates that it trusts; "" for those of this machine
}

// NewLaptop returns a user with the manifest of a cluster, in a bootstrapped account.
func (l *Lab) NewLaptop(t *testing.T, cluster, manifest string) *Laptop {
	t.Helper()
	root, err := controlplane.Root()
	require.NoError(t, err)
	u := &Laptop{Lab: l, Cluster: cluster, home: t.TempDir(), program: filepath.Join(root, "bin", "clusterawsadm"), speed: speed}
	require.FileExists(t, u.program, "make build makes it")
	u.manifest = filepath.Join(u.home, "cluster.yaml")
	require.NoError(t, os.WriteFile(u.manifest, []byte(manifest), 0o600))
	t.Cleanup(func() {
		if t.Failed() && u.kubeconfig != "" {
			out, _ := u.TryKubectl(context.WithoutCancel(t.Context()), "get", "nodes,pods,csr", "-A", "-o", "wide")
			t.Log("the cluster:\n" + out)
		}
	})
	return u
}

// Example returns the text of an example in configs.
func Example(t *testing.T, name string) string {
	t.Helper()
	root, err := controlplane.Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "configs", name+".yaml"))
	require.NoError(t, err)
	return string(text)
}

// threeZones returns the example with another number of workers, all of them identical.
func threeZones(t *testing.T, workers int) string {
	t.Helper()
	const three = "  replicas: 3\n  selector"
	text := Example(t, "three-zones")
	require.Equal(t, 1, strings.Count(text, three))
	return strings.Replace(text, three, fmt.Sprintf("  replicas: %d\n  selector", workers), 1)
}

func (u *Laptop) command(ctx context.Context, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	cmd = u.laptop.command(ctx, []string{
		"HOME=" + u.home, "AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_EC2_METADATA_DISABLED=true", "CLUSTERAWSADM_EMULATOR_SPEED=" + u.speed, "KUBECONFIG=" + u.kubeconfig,
		"PATH=" + u.tools + ":" + os.Getenv("PATH"),
		"SSL_CERT_FILE=" + u.roots,
	}, args...)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// Run runs clusterawsadm, which has to succeed.
func (u *Laptop) Run(t *testing.T, args ...string) string {
	t.Helper()
	cmd, out, story := u.command(t.Context(), append([]string{u.program}, args...)...)
	require.NoError(t, cmd.Run(), "%s\n%s%s", args, out, story)
	return out.String()
}

// killed runs clusterawsadm and kills it after some time. It reports whether the program had
// ended before.
func (u *Laptop) killed(t *testing.T, after time.Duration, args ...string) (ended bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	cmd, out, story := u.command(ctx, append([]string{u.program}, args...)...)
	err := cmd.Run()
	if ctx.Err() == nil {
		require.NoError(t, err, "%s\n%s%s", args, out, story)
	}
	return err == nil
}

// NothingToDo requires that another run with the manifest has no changes.
func (u *Laptop) NothingToDo(t *testing.T) {
	t.Helper()
	u.Run(t, "cluster", "plan", "-f", u.manifest, "--wait", "ready", "--detailed-exitcode") // 2 if there are changes
}

// Bootstrap creates the IAM resources of the account.
func (u *Laptop) Bootstrap(t *testing.T) {
	t.Helper()
	u.Run(t, "bootstrap", "iam", "create-cloudformation-stack")
}

// Create creates the cluster, or continues an interrupted run.
func (u *Laptop) Create(t *testing.T) {
	t.Helper()
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "infrastructure")
	u.kubeconfig = filepath.Join(u.home, "kubeconfig")
	require.NoError(t, os.WriteFile(u.kubeconfig, []byte(u.Run(t, "cluster", "kubeconfig", u.Cluster)), 0o600))
}

// Terminate terminates an instance, and waits until it has ended.
func (u *Laptop) Terminate(t *testing.T, m *Machine) {
	t.Helper()
	require.NoError(t, u.account.terminate(t.Context(), m.ID))
	u.Until(t, m.ID+" ends", patience, func() bool {
		return !slices.ContainsFunc(u.Machines(t), func(x *Machine) bool { return x.ID == m.ID })
	})
}

// Delete deletes the cluster.
func (u *Laptop) Delete(t *testing.T) {
	t.Helper()
	u.Run(t, "cluster", "delete", u.Cluster, "--yes")
	u.kubeconfig = ""
}

// TryKubectl runs kubectl with the printed kubeconfig.
func (u *Laptop) TryKubectl(ctx context.Context, args ...string) (string, error) {
	cmd, out, story := u.command(ctx, append([]string{filepath.Join(u.programs, "kubectl-"+controlplane.Version), "--request-timeout=10s"}, args...)...)
	err := cmd.Run()
	if err != nil {
		return strings.TrimSpace(story.String()), err
	}
	return out.String(), nil
}

// Kubectl runs kubectl, which has to succeed.
func (u *Laptop) Kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := u.TryKubectl(t.Context(), args...)
	require.NoError(t, err, "kubectl %s: %s", args, out)
	return out
}

// Object has the fields of a Kubernetes object that tests use.
type Object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		ProviderID string
		NodeName   string
	}
	Status struct {
		Phase             string
		Conditions        []struct{ Type, Status string }
		AvailableReplicas int
		NodeInfo          struct{ KubeletVersion string }
	}
}

// Is reports whether a condition is true.
func (o Object) Is(condition string) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

// Objects gets objects with kubectl; none if the API server does not respond.
func (u *Laptop) Objects(ctx context.Context, args ...string) []Object {
	out, err := u.TryKubectl(ctx, append([]string{"get", "-o", "json"}, args...)...)
	if err != nil {
		return nil
	}
	var list struct{ Items []Object }
	if json.Unmarshal([]byte(out), &list) != nil {
		return nil
	}
	return list.Items
}

// Until waits for a condition, and returns how long that took.
func (u *Laptop) Until(t *testing.T, what string, patience time.Duration, is func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !is() {
		require.NoError(t, t.Context().Err())
		u.Machines(t) // the lab itself has to work
		require.Less(t, time.Since(began), patience, "not within the time: %s", what)
		time.Sleep(500 * time.Millisecond)
	}
	return time.Since(began)
}
