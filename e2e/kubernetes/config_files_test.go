package kubernetes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// The real API server and scheduler accept and refuse the same configuration files as the rules of manifests and the simulated machines do. They
// read the files before they connect to etcd or to an API server, so the test starts neither.
func TestConfigurationFiles(t *testing.T) {
	root, err := controlplane.Root()
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(root, "internal", "enginetest", "configfiles", "cases.yaml"))
	require.NoError(t, err)
	var cases []struct{ Component, Argument, Word, Text string }
	require.NoError(t, yaml.Unmarshal(raw, &cases))
	programs := map[string]string{}
	for _, name := range []string{"kube-apiserver", "kube-scheduler"} {
		programs[name], err = controlplane.Build(t.Context(), controlplane.Kubernetes(name))
		require.NoError(t, err)
	}
	reasons := make([]string, len(cases))
	var running errgroup.Group
	running.SetLimit(16) // a server that starts waits 20 s for etcd
	for n, c := range cases {
		if program, is := programs[c.Component]; is { // the kubelet needs a machine
			running.Go(func() error {
				reasons[n] = started(t, program, c.Component, c.Argument, c.Text)
				return nil
			})
		}
	}
	require.NoError(t, running.Wait())
	for n, c := range cases {
		starts := strings.Contains(reasons[n], "context deadline exceeded") || strings.Contains(reasons[n], "127.0.0.1:1: connect: connection refused")
		if c.Word == "" {
			assert.True(t, starts || programs[c.Component] == "", "%s\n%s", c.Text, reasons[n])
		} else if programs[c.Component] != "" {
			assert.False(t, starts, c.Text)
			assert.Contains(t, strings.ToLower(reasons[n]), strings.ToLower(c.Word), c.Text)
		}
	}
}

// started runs a component with a file until it ends, and returns its last error: that about the file, or that etcd or the API server does not
// answer.
func started(t *testing.T, program, component, argument, text string) (reason string) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "file")
	const nowhere = "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	for name, content := range map[string]string{kubeconfig: nowhere, file: strings.ReplaceAll(text, "/etc/kubernetes/scheduler.conf", kubeconfig)} {
		if !assert.NoError(t, os.WriteFile(name, []byte(content), 0o600)) {
			return ""
		}
	}
	args := []string{"--" + argument, file, "--secure-port", "0"}
	if component == "kube-apiserver" {
		args = append(controlplane.ServerArguments(t), "--etcd-servers", "http://127.0.0.1:1", "--"+argument, file)
		if argument != "authorization-config" {
			args = append(args, "--authorization-mode", "RBAC")
		}
		switch argument {
		case "oidc-ca-file":
			args = append(args, "--oidc-issuer-url", "https://127.0.0.1:1", "--oidc-client-id", "a")
		case "admission-control-config-file":
			args = append(args, "--enable-admission-plugins", "EventRateLimit")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said, err := exec.CommandContext(ctx, program, args...).CombinedOutput() //nolint:gosec // a program that this test has built
	assert.Error(t, err, text)
	return lastError(string(said))
}

// lastError returns the last error in the log of a component, with the lines that belong to it. A connection to etcd writes its own entries beside
// it, at any time.
func lastError(log string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(log)) {
		if !otherEntry.MatchString(line) {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "E") || strings.HasPrefix(lines[i], "F") || strings.HasPrefix(lines[i], "error") {
			return strings.Join(lines[i:], "\n")
		}
	}
	return log
}

// otherEntry matches the first line of information and warnings in a log of Kubernetes.
var otherEntry = regexp.MustCompile(`^[IW]\d{4} `)

func TestLastErrorIsNotThatOfAConnection(t *testing.T) {
	assert.Equal(
		t,
		"E1130 02:00:00.1 run.go:72] command failed\n\tno rules",
		lastError("I1130 02:00:00.0 a\nE1130 02:00:00.1 run.go:72] command failed\n\tno rules\n"+
			"W1130 02:00:00.2 logging.go:55] grpc: dial tcp 127.0.0.1:1: connect: connection refused\n"),
	)
}
