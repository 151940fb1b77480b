//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// bootstrap runs a command of "bootstrap iam", which has to succeed.
func (s *shell) bootstrap(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd, out, story := s.command(t.Context())
	cmd.Args = append([]string{cmd.Args[0], "bootstrap", "iam"}, args...)
	require.NoError(t, cmd.Run(), "%s\n%s%s", args, out, story)
	return out.String(), story.String()
}

// awsCLI runs the AWS CLI, which has to succeed, and returns its output.
func (s *shell) awsCLI(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "aws", args...)
	of, _, story := s.command(t.Context())
	cmd.Env, cmd.Stderr = append(of.Env, "AWS_DEFAULT_REGION="+moto.Region, "AWS_PAGER="), story
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", args, story)
	return out
}

// names returns the names of resources of one type in the account, without those of AWS.
func (s *shell) names(t *testing.T, list, field, name string, args ...string) (names []string) {
	t.Helper()
	query := []string{"--query", field + "[]." + name, "--output", "json"}
	require.NoError(t, json.Unmarshal(s.awsCLI(t, append(append([]string{"iam", list}, args...), query...)...), &names))
	return names
}

// TestStack creates, updates and deletes the default stack, and checks the result with
// the AWS CLI.
func TestStack(t *testing.T) {
	s := newShell(t, moto.Start(t))
	const suffix = ".cluster-api-provider-aws.sigs.k8s.io"
	policies := func() []string { return s.names(t, "list-policies", "Policies", "PolicyName", "--scope", "Local") }

	out, _ := s.bootstrap(t, "create-cloudformation-stack", "--dry-run")
	assert.Contains(t, out, "11 to add, 0 to change, 0 to replace, 0 to remove.")
	assert.Empty(t, policies())

	out, story := s.bootstrap(t, "create-cloudformation-stack")
	assert.Contains(t, out, "Attempting to create AWS CloudFormation stack cluster-api-provider-aws-sigs-k8s-io\n\nFollowing resources are in the stack: \n")
	assert.Contains(t, out, "AWS::IAM::Role            |nodes"+suffix+" ")
	assert.Contains(t, story, "stack cluster-api-provider-aws-sigs-k8s-io in "+moto.Region+" is created")
	assert.ElementsMatch(t, []string{"control-plane" + suffix, "controllers" + suffix, "controllers-eks" + suffix, "nodes" + suffix}, policies())
	assert.ElementsMatch(
		t,
		[]string{"control-plane" + suffix, "controllers" + suffix, "eks-controlplane" + suffix, "nodes" + suffix},
		s.names(t, "list-roles", "Roles", "RoleName"),
	)
	profiles := []string{"control-plane" + suffix, "controllers" + suffix, "nodes" + suffix}
	assert.ElementsMatch(t, profiles, s.names(t, "list-instance-profiles", "InstanceProfiles", "InstanceProfileName"))
	assert.ElementsMatch(t, []string{"controllers" + suffix, "controllers-eks" + suffix, "control-plane" + suffix, "nodes" + suffix},
		s.names(t, "list-attached-role-policies", "AttachedPolicies", "PolicyName", "--role-name", "control-plane"+suffix))

	config := filepath.Join(t.TempDir(), "iam.yaml")
	require.NoError(
		t,
		os.WriteFile(
			config,
			[]byte("apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSIAMConfiguration\nspec:\n  controlPlane:\n    enableCSIPolicy: true\n"),
			0o600,
		),
	)
	_, story = s.bootstrap(t, "update-cloudformation-stack", "--config", config)
	assert.Contains(t, story, "is updated")
	assert.Contains(t, policies(), "csi"+suffix)

	_, story = s.bootstrap(t, "delete-cloudformation-stack")
	assert.Contains(t, story, "is deleted")
	assert.Empty(t, policies())
	assert.Empty(t, s.names(t, "list-roles", "Roles", "RoleName"))
	assert.Empty(t, s.names(t, "list-instance-profiles", "InstanceProfiles", "InstanceProfileName"))
	_, story = s.bootstrap(t, "delete-cloudformation-stack")
	assert.Contains(t, story, "does not exist in "+moto.Region)
}
