package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// edits runs a command on a file, and returns what it has said and the lines that are another now.
func (s *shellEnv) edits(t *testing.T, code int, file string, args ...string) (said, changed string) {
	t.Helper()
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, code, s.run(append([]string{"cluster", args[0], "-f", file}, args[1:]...)...), s.err.String())
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	was, is := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	for i, line := range is {
		if len(is) != len(was) || line != was[i] {
			changed += strings.TrimSpace(line) + "\n"
		}
	}
	return strings.ReplaceAll(s.err.String(), file, "demo.yaml"), changed
}

func TestScale(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	said, changed := s.edits(t, 0, file, "scale", "demo/md-0", "3")
	assert.Equal(t, "replicas: 3\n", changed)
	assert.Regexp(t, `(?m)^demo.yaml:\d+: MachineDeployment/demo-md-0 spec.replicas: 1 → 3$`, said)
	assert.Contains(t, said, "Nothing in AWS is changed. Next: clusterawsadm cluster create -f demo.yaml --simulate")
	assert.Contains(t, s.out.String(), "Plan: ")
	assert.Contains(t, s.out.String(), "machine/demo-md-0/… ×2")
	require.Equal(t, 0, s.run("cluster", "describe", "demo"))
	assert.NotContains(t, s.out.String(), "machine/demo-md-0/1", "nothing is changed in AWS")

	_, changed = s.edits(t, 0, file, "scale", "control-plane", "3", "--dry-run")
	assert.Empty(t, changed)
	assert.Contains(t, s.out.String(), "machine/demo-control-plane/… ×2", "the plan is that of the edited manifest")
	_, changed = s.edits(t, 0, file, "scale", "demo-control-plane", "3", "--no-plan")
	assert.Equal(t, "replicas: 3 # 3 tolerate the loss of a machine or of a zone\n", changed)

	for args, want := range map[string]string{
		"demo/md-7 2":     "there is no group md-7: the manifest has demo-control-plane, demo-md-0",
		"md-0 many":       `"many" is not a number of machines`,
		"md-0 -1":         "error: -1: a number cannot be negative here",
		"md-0":            "name the group and the number of its machines",
		"other/md-0 2":    "there is no Cluster other in the input",
		"control-plane 4": "etcd on the control plane needs an odd number of machines",
	} {
		said, changed = s.edits(t, env.Wrong, file, append([]string{"scale"}, strings.Fields(args)...)...)
		assert.Contains(t, said, want)
		assert.Empty(t, changed)
	}
	require.Equal(t, env.Wrong, s.run("cluster", "scale", "-f", "-", "md-0", "2"))
}

// The number is where it belongs: in the limits of a pool, in the topology of a class, in the cluster that is named.
func TestScaleInOtherPlaces(t *testing.T) {
	s := newShell(t)
	s.simulated()
	for _, c := range []struct{ flavor, group, n, changed, said string }{
		{"eks", "pool-0", "9", "replicas: 9\nmaxSize: 9\n", "AWSManagedMachinePool/demo-pool-0 spec.scaling.maxSize: 4 → 9"},
		{"eks", "pool-0", "0", "replicas: 0\nminSize: 0\n", "spec.scaling.minSize: 1 → 0"},
		{"machine-pool", "mp-0", "3", "replicas: 3\n", "MachinePool/demo-mp-0 spec.replicas: "},
		{"clusterclass", "md-0", "4", "replicas: 4\n", "Cluster/demo spec.topology.workers.machineDeployments[0].replicas: 1 → 4"},
		{"clusterclass", "control-plane", "3", "replicas: 3 # 3 tolerate the loss of a machine or of a zone\n", "Cluster/demo spec.topology.controlPlane.replicas: 1 → 3"},
	} {
		file := s.generated(t, "--flavor", c.flavor)
		said, changed := s.edits(t, 0, file, "scale", c.group, c.n, "--no-plan")
		assert.Equal(t, c.changed, changed, c.flavor)
		assert.Contains(t, said, c.said)
	}
	file := s.generated(t, "--flavor", "eks")
	said, _ := s.edits(t, env.Wrong, file, "scale", "control-plane", "3")
	assert.Contains(t, said, "EKS runs the control plane: it has no number of machines")

	both := bare(t, "blue") + "---\n" + bare(t, "green")
	require.NoError(t, os.WriteFile(file, []byte(both), 0o600))
	said, changed := s.edits(t, 0, file, "scale", "green/md-0", "5", "--no-plan")
	assert.Equal(t, "replicas: 5\n", changed)
	assert.Contains(t, said, "MachineDeployment/green-md-0 spec.replicas: 1 → 5")

	template := strings.Replace(bare(t, "demo"), "replicas: 1\n", "replicas: ${WORKERS}\n", 1)
	require.NoError(t, os.WriteFile(file, []byte(template), 0o600))
	said, _ = s.edits(t, env.Wrong, file, "scale", "md-0", "5", "--set", "WORKERS=2")
	assert.Regexp(t, `demo.yaml:\d+: MachineDeployment/demo-md-0 spec.replicas: the value is \$\{WORKERS\} — change the variable`, said)
	template = strings.Replace(bare(t, "demo"), "replicas: 1\n", "replicas: ${WORKERS:=1} # few\n", 1)
	require.NoError(t, os.WriteFile(file, []byte(template), 0o600))
	_, changed = s.edits(t, 0, file, "scale", "md-0", "5", "--no-plan")
	assert.Equal(t, "replicas: ${WORKERS:=5} # few\n", changed)
}

func TestSetFields(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	said, changed := s.edits(t, 0, file, "set", "AWSMachineTemplate/demo-md-0.spec.template.spec.instanceType=m5.large")
	assert.Equal(t, "instanceType: m5.large\n", changed)
	assert.Contains(t, said, "AWSMachineTemplate/demo-md-0 spec.template.spec.instanceType: t3.large → m5.large")
	assert.Contains(t, s.out.String(), "Plan: ")
	_, _ = s.edits(
		t,
		0,
		file,
		"set",
		"awscluster.spec.additionalTags={team: a}",
		"AWSCluster.spec.sshKeyName-",
		"AWSCluster.metadata.annotations.example.com/x=1",
		"--no-plan",
	)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), "  additionalTags: {team: a}\n")
	assert.Contains(t, string(text), "  annotations:\n    example.com/x: \"1\"\n")
	assert.NotContains(t, string(text), "sshKeyName")
	assert.Contains(t, string(text), "# 3 tolerate the loss", "comments stay")
	require.Equal(t, 0, s.run("cluster", "validate", "-f", file), s.err.String())

	for arg, want := range map[string]string{
		"AWSCluster.spec.regio=x":                                     `AWSCluster v1beta2 has no field spec.regio: did you mean "region"?`,
		"AWSMachineTemplate.spec.template.spec.instanceType=x":        "name one of AWSMachineTemplate/demo-control-plane, AWSMachineTemplate/demo-md-0",
		"AWSMachineTemplate/demo-md-1.spec.template.spec.sshKeyName=": `there is no AWSMachineTemplate/demo-md-1 in the files: did you mean`,
		"KubeadmControlPlane.spec.replicas=two":                       `KubeadmControlPlane.spec.replicas is of the type integer: "two" is not`,
		"AWSCluster.spec.additionalTags=team":                         "write it as YAML on one line, {key: value}",
		"KubeadmControlPlane.spec.version=v1.2":                       "the file is not changed: the edited manifest would be invalid",
		"AWSCluster.spec.bastion":                                     "use KIND/NAME.FIELD=VALUE",
		"spec.replicas=3":                                             "spec.replicas: name its object, as in MachineDeployment/demo-md-0.spec.replicas",
		"Pod.spec=1":                                                  "there is no Pod in the files",
	} {
		said, changed = s.edits(t, env.Wrong, file, "set", arg)
		assert.Contains(t, said, want)
		assert.Empty(t, changed, arg)
	}
}

func TestUpgradePlanWrites(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t, "--kubernetes-version", "v1.33.0")
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	said, changed := s.edits(t, 0, file, "upgrade-plan", "--write", "--to", "v1.34.1")
	assert.Equal(t, "version: v1.34.1\nversion: v1.34.1\nimage: registry.k8s.io/provider-aws/cloud-controller-manager:v1.34.0\n", changed)
	assert.Contains(t, said, "MachineDeployment/demo-md-0 spec.template.spec.version: v1.33.0 → v1.34.1")
	assert.Contains(t, s.out.String(), "2 to replace")
	_, changed = s.edits(t, env.Refused, file, "upgrade-plan", "--write", "--to", "v1.32.0")
	assert.Empty(t, changed)
	said, _ = s.edits(t, env.Wrong, file, "upgrade-plan", "--write", "-o", "json")
	assert.Contains(t, said, "--write shows a plan as text")
	require.Equal(t, env.Wrong, s.run("cluster", "upgrade-plan", "demo", "--write"))

	folder := t.TempDir() // the objects are in several files
	documents := strings.Split(bare(t, "demo"), "\n---\n")
	for i, d := range documents {
		require.NoError(t, os.WriteFile(filepath.Join(folder, string(rune('a'+i))+".yaml"), []byte(d+"\n"), 0o600))
	}
	require.Equal(t, 0, s.run("cluster", "scale", "-f", folder, "md-0", "2", "--no-plan"), s.err.String())
	assert.Contains(t, s.err.String(), filepath.Join(folder, "e.yaml")+":")
}
