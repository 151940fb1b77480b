package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFlagsAct runs every command below "cluster": those that show the flags of an account open
// one, and the others do not. Flags that are not shown are accepted.
func TestFlagsAct(t *testing.T) {
	s := newShell(t)
	file, plan := s.generated(t), filepath.Join(t.TempDir(), "demo.plan")
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--to", plan), s.err.String())
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(managementKubeconfig), 0o600))
	s = newShell(t)
	asked, opened := false, false
	s.AWS = func(context.Context, string, string) (aws.Config, error) {
		asked = true
		return aws.Config{Region: "us-east-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			opened = true
			return aws.Credentials{}, errors.New("this test has no account")
		})}, nil
	}
	arguments := map[string]string{
		"generate": "demo", "report": plan, "plan show": plan, "list": "", "import": "demo",
		"schema": "", "explain": "Cluster",
		"scale": "-f " + file + " md-0 1", "set": "-f " + file + " AWSCluster.spec.sshKeyName=a --dry-run",
		"backup": "-f " + file + " --passphrase-file " + file,
		"exec":   "-f " + file + " demo-md-0/0 -- true", "ssh": "-f " + file + " demo-md-0/0",
		"takeback": "demo --lost --yes", "handover": "-f " + file + " --yes --to " + kubeconfig,
	}
	root, _ := newRoot(newShell(t).Env)
	group, _, err := root.Find([]string{"cluster"})
	require.NoError(t, err)
	for _, cmd := range commandsBelow(group)[1:] {
		name := strings.TrimPrefix(cmd.CommandPath(), group.CommandPath()+" ")
		args, ok := arguments[name]
		if !ok {
			args = "-f " + file
		}
		for _, flag := range []string{"simulate-state", "simulate-speed", "faults", "parallel", "verbose", "progress"} {
			assert.Equal(t, shows(cmd, "parallel"), shows(cmd, flag), "%s --%s", name, flag)
		}
		asked, opened = false, false
		line := append([]string{"cluster"}, strings.Fields(name+" --profile dev --parallel 3 "+args)...)
		s.run(line...)
		assert.NotContains(t, s.err.String(), "unknown", name)
		assert.Equal(t, shows(cmd, "profile"), asked, "%s\n%s", line, s.err.String())
		assert.Equal(t, shows(cmd, "parallel"), opened, "%s\n%s", line, s.err.String())
	}
	require.Equal(t, 0, s.run("cluster", "report", "--help"))
	assert.NotContains(t, s.out.String(), "--region")
}

// managementKubeconfig is for a server that does not exist.
const managementKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: m, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: m, user: {token: t}}]
contexts: [{name: m, context: {cluster: m, user: m}}]
current-context: m
`

// shows reports whether the help of a command shows a flag.
func shows(cmd *cobra.Command, name string) bool {
	f := cmd.Flags().Lookup(name)
	if f == nil {
		f = cmd.InheritedFlags().Lookup(name)
	}
	return f != nil && !f.Hidden
}
