package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// recorderAddress is the endpoint of AWS for controllers, in the network of the laptop.
const recorderAddress = "127.0.0.1:5000"

// Management is a management cluster with the real controllers, in the network of the
// laptop, like one of kind. The methods of Laptop use its kubeconfig.
type Management struct {
	*Laptop
	Requests *Recorder // requests to AWS by the controllers

	logs        string // folder
	controllers []*controller
}

// controller is a program of the management cluster.
type controller struct {
	name string
	args []string
	env  []string

	cmd *exec.Cmd // nil while it does not run
}

// NewManagement starts a management cluster until the end of the test. The controllers
// reconcile all objects once in each sync period.
func (l *Lab) NewManagement(t *testing.T, syncPeriod time.Duration) *Management {
	t.Helper()
	background, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	recorder, err := newRecorder(background, l.account, l.laptop, recorderAddress)
	require.NoError(t, err)
	plane := controlplane.StartOn(t, l.laptop)
	m := &Management{Laptop: l.NewLaptop(t, "", ""), Requests: recorder, logs: filepath.Join(l.folder, "management")}
	m.kubeconfig = plane.Kubeconfig(t)
	require.NoError(t, os.Mkdir(m.logs, 0o755))
	t.Cleanup(func() { m.keepLogs(t) })

	m.collectGarbage(t)
	certificates, ca := plane.ServingCertificate(t)
	for _, p := range providers() {
		m.install(t, p, ca, certificates, syncPeriod)
	}
	t.Cleanup(func() { m.Stop(t) })
	m.Start(t)
	return m
}

// Kubeconfig is the file of the administrator's kubeconfig. It works only in the network
// of the laptop.
func (m *Management) Kubeconfig() string { return m.kubeconfig }

// Kubectl runs kubectl, which has to succeed. It also works while the test is cleaned up.
func (m *Management) Kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.TryKubectl(context.WithoutCancel(t.Context()), args...)
	require.NoError(t, err, "kubectl %s: %s", args, out)
	return out
}

// collectGarbage adds the controllers of Kubernetes that delete dependents of deleted
// objects, and the objects in deleted namespaces.
func (m *Management) collectGarbage(t *testing.T) {
	t.Helper()
	const name = "kube-controller-manager"
	program, err := controlplane.Build(t.Context(), controlplane.Kubernetes(name))
	require.NoError(t, err)
	m.controllers = append(m.controllers, &controller{name: name, args: []string{
		program, "--kubeconfig", m.kubeconfig, "--controllers", "garbage-collector-controller,namespace-controller",
		"--leader-elect=false", "--secure-port=0",
	}})
}

// install creates the objects of a provider, and adds its controller.
func (m *Management) install(t *testing.T, p provider, ca []byte, certificates string, syncPeriod time.Duration) {
	t.Helper()
	program, err := p.build(t.Context())
	require.NoError(t, err)
	release := p.release(t, m)
	m.apply(t, p.installed(t, release, ca)...)
	namespace, args := p.run(t, release)
	m.controllers = append(m.controllers, &controller{
		name: p.image,
		args: append(append([]string{program}, args...), "--leader-elect=false", "--diagnostics-address=0", "--health-addr=0",
			"--webhook-port", fmt.Sprint(p.port), "--webhook-cert-dir", certificates, "--sync-period", syncPeriod.String(), "--v=2"),
		env: []string{
			"KUBECONFIG=" + m.kubeconfig, "POD_NAMESPACE=" + namespace, "HOME=" + m.home, "AWS_ENDPOINT_URL=http://" + recorderAddress,
			"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=controller", "AWS_SECRET_ACCESS_KEY=controller", "AWS_EC2_METADATA_DISABLED=true",
		},
	})
}

// apply applies objects without a validation of their fields, which takes seconds for a
// CustomResourceDefinition.
func (m *Management) apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, o := range objects {
		list.Items = append(list.Items, *o)
	}
	text, err := json.Marshal(list.UnstructuredContent())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "objects.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	m.Kubectl(t, "apply", "--server-side", "--validate=false", "-f", file)
}

// Start starts the controllers, and waits until their webhooks respond. A start is also a
// reconciliation of all objects.
func (m *Management) Start(t *testing.T) {
	t.Helper()
	for _, c := range m.controllers {
		m.launch(t, c)
	}
	for _, p := range providers() {
		address := net.JoinHostPort("127.0.0.1", fmt.Sprint(p.port))
		require.Eventually(t, func() bool {
			c, err := m.laptop.dial(t.Context(), "tcp", address)
			if err != nil {
				return false
			}
			return c.Close() == nil
		}, time.Minute, 100*time.Millisecond, "%s does not serve its webhooks", p.image)
	}
}

func (m *Management) launch(t *testing.T, c *controller) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(m.logs, c.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	c.cmd = m.laptop.command(context.WithoutCancel(t.Context()), c.env, c.args...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	require.NoError(t, c.cmd.Start())
}

// Stop kills the controllers.
func (m *Management) Stop(t *testing.T) {
	t.Helper()
	for _, c := range m.controllers {
		if c.cmd == nil {
			continue
		}
		require.NoError(t, c.cmd.Cancel(), "%s has ended by itself", c.name)
		_ = c.cmd.Wait() // it was killed
		c.cmd = nil
	}
}

// Restart restarts the controllers, which forces a reconciliation of all objects.
func (m *Management) Restart(t *testing.T) {
	t.Helper()
	m.Stop(t)
	m.Start(t)
}

// Workload returns a user of a workload cluster with the kubeconfig that the controllers
// have made.
func (m *Management) Workload(t *testing.T, namespace, cluster string) *Laptop {
	t.Helper()
	u := m.NewLaptop(t, cluster, "")
	u.kubeconfig = filepath.Join(u.home, "kubeconfig")
	text := m.Kubectl(t, "get", "secret", "-n", namespace, cluster+"-kubeconfig", "-o", `go-template={{.data.value|base64decode}}`)
	require.NoError(t, os.WriteFile(u.kubeconfig, []byte(text), 0o600))
	return u
}

// keepLogs copies the logs of the controllers to LAB_LOGS, if that is set, and the end of
// them to the log of a failed test.
func (m *Management) keepLogs(t *testing.T) {
	t.Helper()
	if dir := os.Getenv("LAB_LOGS"); dir != "" {
		to := filepath.Join(dir, "management")
		if err := os.RemoveAll(to); err != nil {
			t.Log(err)
		}
		if err := os.CopyFS(to, os.DirFS(m.logs)); err != nil {
			t.Log(err)
		}
	}
	if !t.Failed() {
		return
	}
	for _, c := range m.controllers {
		text, _ := os.ReadFile(filepath.Join(m.logs, c.name+".log")) // there may be none
		t.Logf("log of %s:\n%s", c.name, text[max(0, len(text)-4000):])
	}
}

// kinds returns all kinds of the providers, for kubectl.
func (m *Management) kinds(t *testing.T) string {
	t.Helper()
	return strings.Join(strings.Fields(m.Kubectl(t, "get", "customresourcedefinitions", "-o", `jsonpath={.items[*].metadata.name}`)), ",")
}
