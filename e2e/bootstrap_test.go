//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everything is an AWSIAMConfiguration with all options enabled.
const everything = `apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSIAMConfiguration
spec:
  namePrefix: one-
  nameSuffix: .two
  partition: PARTITION
  bootstrapUser:
    enable: true
    extraGroups: [admins]
    tags: {owner: ada}
    extraStatements: [{Sid: Own, Effect: Allow, Action: "iam:GetUser", Resource: ["arn:*:iam::*:user/${aws:username}"], Condition: {Bool: {"aws:MultiFactorAuthPresent": "true"}}}]
  controlPlane:
    path: /kubernetes/
    # {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/boundary"}
    permissionsBoundary: eyJGbjo6U3ViIjogImFybjoke0FXUzo6UGFydGl0aW9ufTppYW06OiR7QVdTOjpBY2NvdW50SWR9OnBvbGljeS9ib3VuZGFyeSJ9
    enableCSIPolicy: true
    extraPolicyAttachments: [eyJGbjo6U3ViIjogImFybjoke0FXUzo6UGFydGl0aW9ufTppYW06OmF3czpwb2xpY3kvUmVhZE9ubHlBY2Nlc3MifQ==]
    trustStatements: [{Effect: Allow, Principal: {AWS: "arn:PARTITION:iam::123456789012:root"}, Action: ["sts:AssumeRole"]}]
    tags: {owner: ada, "2012-10-17": "on"}
  nodes: {ec2ContainerRegistryReadOnly: true}
  eks:
    iamRoleCreation: true
    enableUserEKSConsolePolicy: true
    managedMachinePool: {tags: {a: b}}
    fargate: {}
  eventBridge: {enable: true}
  secureSecretBackends: [secrets-manager, ssm-parameter-store]
  s3Buckets: {enable: true}
  allowAssumeRole: true
`

// TestCFNLint runs cfn-lint on the templates of all configurations in pkg/bootstrap, and
// on those with all options.
func TestCFNLint(t *testing.T) {
	configurations, err := filepath.Glob("../pkg/bootstrap/testdata/configs/*.yaml")
	require.NoError(t, err)
	require.Len(t, configurations, 14)
	dir := t.TempDir()
	for _, partition := range []string{"aws", "aws-cn", "aws-us-gov"} {
		file := filepath.Join(dir, partition+".yaml")
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(everything, "PARTITION", partition)), 0o600))
		configurations = append(configurations, file)
	}
	args := []string{"--format", "json", "--"}
	for _, file := range configurations {
		cmd := exec.CommandContext(t.Context(), binary(t), "bootstrap", "iam", "print-cloudformation-template", "--strict", "--config", file)
		cmd.Env = []string{"HOME=" + dir}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		template := filepath.Join(dir, "template-"+filepath.Base(file))
		require.NoError(t, os.WriteFile(template, out, 0o600))
		args = append(args, template)
	}
	out, err := exec.CommandContext(t.Context(), "cfn-lint", args...).Output() // it also fails for warnings
	if _, ran := err.(*exec.ExitError); err != nil && !ran {                   //nolint:errorlint // not wrapped
		require.NoError(t, err, "pip install cfn-lint")
	}
	var found []struct {
		Filename, Message string
		Rule              struct{ ID string }
	}
	require.NoError(t, json.Unmarshal(out, &found), "%s", out)
	for _, f := range found {
		if f.Rule.ID == "W3037" && strings.HasPrefix(f.Message, "'test' is not one of") {
			continue // with_extra_statements.yaml has actions of an invented service
		}
		assert.Fail(t, "cfn-lint", "%s: %s: %.200s", filepath.Base(f.Filename), f.Rule.ID, f.Message)
	}
	t.Logf("%d templates", len(configurations))
}
