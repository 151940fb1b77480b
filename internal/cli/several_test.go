package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// several writes one manifest file with a generated cluster for each name, and returns its path. edit changes the text
// of a cluster. The clusters use one availability zone, so that each needs only one NAT gateway.
func (s *shellEnv) several(t *testing.T, edit func(name, text string) string, names ...string) string {
	t.Helper()
	var all []string
	for _, name := range names {
		text := strings.Replace(bare(t, name), "spec:\n  region:", "spec:\n  network: {vpc: {availabilityZoneUsageLimit: 1}}\n  region:", 1)
		all = append(all, edit(name, text))
	}
	file := filepath.Join(t.TempDir(), "all.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(all, "\n---\n")), 0o600))
	return file
}

func unedited(_, text string) string { return text }

// Several clusters in one file are planned, created, shown and deleted side by side.
func TestSeveralClusters(t *testing.T) {
	s := newShell(t)
	file := s.several(t, unedited, "red", "blue")
	s.simulated()
	step := s.steps(t)
	step(0, "validate", "-f", file)
	assert.Regexp(t, `^valid: cluster red in .*\nvalid: cluster blue in .*\n$`, s.out.String())
	step(0, "plan", "-f", file)
	assert.Regexp(t, `CLUSTER +REGION +CREATE .*\nred +us-east-1 +\d+ .* 0\nblue +us-east-1 +\d+ .* 0\n$`, s.out.String())
	step(env.Changes, "plan", "-f", file, "--detailed-exitcode", "-o", "json")
	var plans struct{ Clusters []struct{ Cluster string } }
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &plans))
	assert.Equal(t, "blue", plans.Clusters[1].Cluster)
	step(env.Wrong, "plan", "-f", file, "--to", filepath.Join(t.TempDir(), "x.plan"))
	assert.Contains(t, s.err.String(), "--to is for one cluster, and the manifest has red, blue: choose one with --cluster NAME")
	require.Equal(t, 0, s.run("__complete", "cluster", "plan", "-f", file, "--cluster", ""), s.err.String())
	assert.Contains(t, s.out.String(), "red\nblue\n:")
	step(env.Wrong, "kubeconfig", "-f", file)
	assert.Contains(t, s.err.String(), "choose one with --cluster NAME")

	step(env.Wrong, "create", "-f", file)
	assert.Contains(t, s.err.String(), "stdin is not a terminal")
	assert.Contains(t, s.err.String(), "[red] Plan: ")
	s.terminal("n\n")
	step(env.Refused, "create", "-f", file)
	assert.Contains(t, s.err.String(), "\nCreate 2 clusters? [y/N]")
	assert.Regexp(t, `red +us-east-1 +declined +4\n`, s.err.String())
	s.terminal("y\n")
	step(0, "create", "-f", file)
	assert.Regexp(t, `✓ red +\d+/\d+  done\n`, strings.ReplaceAll(s.err.String(), "\x1b[K", ""))
	assert.Regexp(t, `blue +us-east-1 +\d+ created, .* 0\n`, s.err.String())
	s.InIsTerminal, s.ErrIsTerminal = false, false
	step(0, "create", "-f", file, "--yes", "-o", "json")
	assert.NotRegexp(t, `"writes": [1-9]`, s.out.String(), "there is nothing to do")

	step(0, "describe", "-f", file)
	assert.Regexp(t, `(?s)^red  us-east-1 .*\nblue  us-east-1 `, s.out.String())
	step(0, "describe", "-f", file, "--cluster", "blue", "-o", "name")
	s.terminal("delete 2 cluster\n")
	step(env.Refused, "delete", "-f", file)
	assert.Contains(t, s.err.String(), "Type 'delete 2 clusters' to go on: ")
	s.InIsTerminal, s.ErrIsTerminal = false, false
	step(0, "delete", "-f", file, "--yes", "--progress", "json")
	for line := range strings.Lines(s.err.String()) {
		var record struct{ Type, Cluster string }
		require.NoError(t, json.Unmarshal([]byte(line), &record), line)
		assert.True(t, record.Cluster != "" || record.Type == "note", line)
	}
	step(0, "list")
	assert.Contains(t, s.err.String(), "no clusters found")
}

// A wrong manifest of one cluster does not hide the other one, and nothing is created.
func TestOneOfSeveralIsWrong(t *testing.T) {
	s := newShell(t)
	file := s.several(t, func(name, text string) string {
		if name == "red" {
			text = strings.Replace(text, "instanceType: ", "instanceTyp: ", 1)
		}
		return text
	}, "red", "blue")
	s.simulated()
	require.Equal(t, env.Wrong, s.run("cluster", "plan", "-f", file), s.err.String())
	assert.Regexp(t, `all\.yaml:\d+: AWSMachineTemplate/red-.*instanceTyp`, s.err.String())
	assert.Contains(t, s.err.String(), "error: cluster red: the manifest is wrong")
	assert.Contains(t, s.out.String(), "Cluster blue\n")
	assert.Regexp(t, `red +us-east-1|red +- `, s.out.String())
	require.Equal(t, env.Wrong, s.run("cluster", "create", "-f", file, "--yes"))
	assert.Contains(t, s.err.String(), "Nothing was changed.")
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--cluster", "blue"), s.err.String())
	require.Equal(t, env.Wrong, s.run("cluster", "delete", "-f", file, "--yes"))
	require.Equal(t, 0, s.run("cluster", "list", "-o", "name"))
	assert.Equal(t, "blue\n", s.out.String())
}

// What is assumed follows from the fields that refer to it, and is not assumed twice.
func TestWhatIsAssumed(t *testing.T) {
	s := newShell(t)
	s.simulated()
	text := strings.NewReplacer(
		"iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io",
		"iamInstanceProfile: ours",
		`sshKeyName: ""`,
		"sshKeyName: ops\n  identityRef: {kind: AWSClusterRoleIdentity, name: elsewhere}\n  network: {vpc: {id: vpc-0123456789abcdef0}, subnets: [{id: subnet-0000000000000001a}, {id: subnet-0000000000000002b}]}",
		"      rootVolume:\n        size: 40\n        type: gp3\n        encrypted: true\n",
		"",
		"instanceType: t3.large",
		"instanceType: t3.large\n      ami: {id: ami-0123456789abcdef0}\n      placementGroupName: near\n      rootVolume: {size: 20, encrypted: true, encryptionKey: 'arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555'}",
	).Replace(bare(t, "demo"))
	file := filepath.Join(t.TempDir(), "demo.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--simulate-assume", "--yes"), s.err.String())
	for _, want := range []string{
		"VPC vpc-0123456789abcdef0 with 10.0.0.0/16", "subnet subnet-0000000000000001a, public in us-east-1a", "subnet subnet-0000000000000002b, private in us-east-1a",
		"key pair ops (", "image ami-0123456789abcdef0 for x86_64 v1.34.2", "instance profile ours", "placement group near", "KMS key arn:aws:kms:us-east-1:",
	} {
		assert.Equal(t, 1, strings.Count(s.err.String(), "assumed: "+want), "%s\n%s", want, s.err.String())
	}
	assert.Contains(t, s.err.String(), "AWSClusterRoleIdentity/elsewhere is not in the input: the credentials of the caller are taken for it")
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--simulate-assume", "--yes"), s.err.String())
	assert.Contains(t, s.err.String(), "nothing to change")
	require.Equal(t, 0, s.run("cluster", "delete", "-f", file, "--simulate-assume", "--yes"), s.err.String())
}

// The subnets that are assumed for EKS are private and in two zones. In a new simulated account, the roles of the bootstrap stack have no
// policies: one that an identity of the manifest assumes gets the policy AdministratorAccess.
func TestAssumedForEKS(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", "eks"), s.err.String())
	text := strings.Replace(s.out.String(), "  region: us-east-1\n", "  region: us-east-1\n  identityRef: {kind: AWSClusterRoleIdentity, name: team}\n"+
		"  network: {vpc: {id: vpc-0123456789abcdef0}, subnets: [{id: subnet-0000000000000001a}, {id: subnet-0000000000000002b}]}\n", 1) + `---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterRoleIdentity
metadata: {name: team}
spec:
  allowedNamespaces: {}
  roleARN: arn:aws:iam::123456789012:role/controllers.cluster-api-provider-aws.sigs.k8s.io
  sourceIdentityRef: {kind: AWSClusterControllerIdentity, name: default}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterControllerIdentity
metadata: {name: default}
spec: {allowedNamespaces: {}}
`
	file := filepath.Join(t.TempDir(), "demo.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	s.simulated()
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--simulate-assume", "--yes"), s.err.String())
	for _, want := range []string{
		"subnet subnet-0000000000000001a, private in us-east-1a", "subnet subnet-0000000000000002b, private in us-east-1b",
		"role/controllers.cluster-api-provider-aws.sigs.k8s.io, which may do everything",
	} {
		assert.Contains(t, s.err.String(), want)
	}
}

// The Secret with the keys of an identity seldom is where manifests are kept: the caller's credentials are taken for it.
func TestAssumedSecretOfIdentity(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := filepath.Join(t.TempDir(), "demo.yaml")
	text := strings.Replace(bare(t, "demo"), `sshKeyName: ""`, "sshKeyName: \"\"\n  identityRef: {kind: AWSClusterStaticIdentity, name: team}", 1) + `---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterStaticIdentity
metadata: {name: team}
spec: {secretRef: team-keys, allowedNamespaces: {}}
`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.Equal(t, env.Wrong, s.run("cluster", "validate", "-f", file))
	assert.Contains(t, s.err.String(), "AWSClusterStaticIdentity/team spec.secretRef: there is no Secret/team-keys in the input")
	for _, args := range [][]string{{"validate"}, {"create", "--yes"}, {"delete", "--yes"}} {
		require.Equal(t, 0, s.run(append([]string{"cluster", args[0], "-f", file, "--simulate-assume"}, args[1:]...)...), s.err.String())
		assert.Contains(t, s.err.String(), "Secret/team-keys is not in the input: the credentials of the caller are taken for it")
	}
}

// Plans that fit into a quota one by one, and not together, are refused before the first write.
func TestQuotasOfSeveral(t *testing.T) {
	s := newShell(t)
	file := s.several(t, func(_, text string) string {
		return strings.Replace(text, "availabilityZoneUsageLimit: 1", "availabilityZoneUsageLimit: 3", 1)
	}, "red", "blue")
	s.simulated()
	const want = "error: together the clusters red, blue need 6 elastic IP addresses, but us-east-1 allows 5 and 0 are in use"
	require.Equal(t, env.Refused, s.run("cluster", "plan", "-f", file))
	assert.Contains(t, s.err.String(), want)
	require.Equal(t, env.Refused, s.run("cluster", "create", "-f", file, "--yes"))
	assert.Contains(t, s.err.String(), want)
	require.Equal(t, 0, s.run("cluster", "list"))
	assert.Contains(t, s.err.String(), "no clusters found")
}

// The examples with parts that somebody else has made work with --simulate-assume.
func TestAssumed(t *testing.T) {
	for _, example := range []string{"byo-vpc", "byo-load-balancer", "eks-byo-vpc", "external", "multi-tenancy", "spot-volumes-placement"} {
		t.Run(example, func(t *testing.T) {
			s := newShell(t)
			s.simulated()
			file := filepath.Join("..", "..", "configs", example+".yaml")
			for _, command := range []string{"plan", "create", "delete"} {
				args := []string{"cluster", command, "-f", file, "--simulate-assume"}
				if command != "plan" {
					args = append(args, "--yes")
				}
				require.Equal(t, 0, s.run(args...), s.err.String())
				assert.Equal(t, command == "plan", strings.Contains(s.err.String(), "\nassumed: "), "it is assumed once: %s", s.err.String())
			}
		})
	}
	examples, err := filepath.Glob(filepath.Join("..", "..", "configs", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, examples)
	for _, file := range examples {
		s := newShell(t)
		s.simulated()
		assert.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--simulate-assume", "--cost=off"), s.err.String())
	}
	s := newShell(t)
	require.Equal(t, env.Wrong, s.run("cluster", "plan", "-f", "x.yaml", "--simulate-assume"))
	assert.Contains(t, s.err.String(), "--simulate-assume needs --simulate")
}

// If EKS lets nobody use the API server, a run does not wait for it.
func TestClosedAPIServer(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", "eks"), s.err.String())
	text := strings.Replace(
		s.out.String(),
		"  region: us-east-1\n",
		"  region: us-east-1\n  accessConfig: {authenticationMode: api, bootstrapClusterCreatorAdminPermissions: false}\n",
		1,
	)
	require.Contains(t, text, "bootstrapClusterCreatorAdminPermissions", text)
	file := filepath.Join(t.TempDir(), "demo.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	s.simulated()
	for range 2 {
		require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--simulate-assume"), s.err.String())
	}
	assert.Contains(t, s.err.String(), "nothing to change")
	require.Equal(t, 0, s.run("cluster", "delete", "-f", file, "--yes"), s.err.String())
}
