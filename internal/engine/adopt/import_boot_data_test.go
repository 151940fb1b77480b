package adopt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// withBootData returns a file with the quick start, whose machines have files, commands and
// users, and more.
func withBootData(t *testing.T, more string) string {
	t.Helper()
	text, err := enginetest.Read("quickstart.yaml")
	require.NoError(t, err)
	const boot = `files:
- path: /etc/motd
  content: "hello from the template"
- path: /etc/sysctl.d/90-max.conf
  owner: root:root
  permissions: "0644"
  content: |
    vm.max_map_count = 262144
preKubeadmCommands: [sysctl --system, echo before]
postKubeadmCommands: [echo after]
ntp: {enabled: true, servers: [169.254.169.123]}
users:
- name: admin
  sudo: ALL=(ALL) NOPASSWD:ALL
  sshAuthorizedKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkdLxS1Jm2x8j0aFh9Cq2M3n5p7r9t1v3x5z7B9D1F3 admin]
`
	out := string(text)
	for _, parent := range []string{"  kubeadmConfigSpec:\n", "    spec:\n      joinConfiguration:\n"} {
		require.Equal(t, 1, strings.Count(out, parent), parent)
		first := parent[:strings.Index(parent, "\n")+1]
		indent := strings.Repeat(" ", strings.Index(first, strings.TrimSpace(first))+2)
		in := indent + strings.ReplaceAll(strings.TrimSpace(boot+more), "\n", "\n"+indent) + "\n"
		out = strings.Replace(out, parent, first+in+parent[len(first):], 1)
	}
	file := filepath.Join(t.TempDir(), "quickstart.yaml")
	require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	return file
}

// What machines booted with makes the manifest complete: the machines have its templates.
func TestImportBootData(t *testing.T) {
	m := enginetest.Load(t, withBootData(t, ""), nil)
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: m.Region})
		enginetest.MustApply(t, m, a)
		time.Sleep(6 * time.Minute) // until all machines have joined
		p := a.Process()
		target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}
		i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{BootDataFromMachines: true})
		require.NoError(t, err)
		require.Len(t, i.LeftOut, 1)
		require.Regexp(t, `^boot data of i-\w+: the SSM agent has never reported`, i.LeftOut[0], "the control plane")
		require.Len(t, i.Templates, 1, "AWS stores what the worker has booted with")

		a.Edit(func(s *awssim.State) { clear(s.Secrets.Secrets) })
		i, err = adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{BootDataFromMachines: true})
		require.NoError(t, err)
		require.Len(t, i.LeftOut, 1)
		require.Regexp(t, `^boot data of i-\w+, i-\w+: the SSM agent has never reported`, i.LeftOut[0])
		require.Len(t, i.Templates, 2)

		enginetest.Reachable(a, "control-plane")
		i, err = adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{BootDataFromMachines: true})
		require.NoError(t, err)
		require.Len(t, i.LeftOut, 1)
		require.Regexp(t, `^boot data of i-\w+: the SSM agent has never reported`, i.LeftOut[0], "the worker")
		require.Len(t, i.Templates, 1, "the control plane was read")

		enginetest.Reachable(a, "nodes")
		i, err = adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{BootDataFromMachines: true})
		require.NoError(t, err)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Templates, "%s", i.Manifest)
		require.True(t, i.Plan.Empty(), "%v", i.Plan.Steps)
		enginetest.RequireSealed(t, a)
		again, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: i.Manifest}}, input.LoadOptions{})
		require.NoError(t, err)
		want, err := enginetest.Open(m, a.Process()).Graph()
		require.NoError(t, err)
		have, err := run.Open(again, target).Graph()
		require.NoError(t, err)
		require.Empty(t, enginetest.GraphDifferences(want, have))
	})
}

// A cluster of Cluster API gets what its machines booted with into its manifest, but no
// secrets.
func TestImportBootDataOfClusterAPI(t *testing.T) {
	file := withBootData(t, "- {name: other, passwd: $6$salt$hunter1}\nbootCommands: [echo boot, \"login --password=hunter2\"]\n")
	text, err := enginetest.Read(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "hello from the template", "token: hunter3")), 0o600))
	m := enginetest.Load(t, file, nil)
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Region: m.Region})
		enginetest.MustApply(t, m, a)
		time.Sleep(6 * time.Minute) // until all machines have joined
		enginetest.Reachable(a, "control-plane", "nodes")
		a.Edit(func(s *awssim.State) { enginetest.AsClusterAPI(m, s) })
		p := a.Process()
		target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}
		i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{KeysFromMachine: true, BootDataFromMachines: true})
		require.NoError(t, err)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Unknown)
		require.Empty(t, i.Differences)
		manifest := string(i.Manifest)
		for _, secret := range []string{"hunter", "PRIVATE KEY", "BEGIN", "/etc/kubernetes/pki", "/run/kubeadm"} {
			require.NotContains(t, manifest, secret)
		}
		for _, text := range []string{"vm.max_map_count = 262144", "echo before", "echo after", "echo boot", "169.254.169.123", "name: admin", "cloud-provider"} {
			require.GreaterOrEqual(t, strings.Count(manifest, text), 2, "%s in %s", text, manifest)
		}
		require.Equal(t, 1, strings.Count(manifest, "# Not known: identityRef"))
		require.Equal(t, 2, strings.Count(manifest, "# Not known: how machines are replaced"))
		require.Equal(t, 3, strings.Count(manifest, "Not known"), "nothing of what they boot with")
		require.Equal(
			t,
			2,
			strings.Count(manifest, "# Left out: file /etc/motd, which may contain a secret, the password of user other, a command, which may contain a secret.\n"),
			manifest,
		)
	})
}
