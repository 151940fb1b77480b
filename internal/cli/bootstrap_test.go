package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// iamFile writes a file with a configuration. Messages contain its name without the
// folder.
func iamFile(t *testing.T, spec string) (file string, plain func(string) string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "iam.yaml")
	text := "apiVersion: bootstrap.aws.infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSIAMConfiguration\nspec:\n" + spec
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file, func(s string) string { return strings.ReplaceAll(s, dir+string(filepath.Separator), "") }
}

// TestBootstrapIAMPrints compares the output without a file byte for byte: scripts parse
// it.
func TestBootstrapIAMPrints(t *testing.T) {
	for name, args := range map[string][]string{
		"config.yaml":                            {"print-config"},
		"template.yaml":                          {"print-cloudformation-template"},
		"policies.json":                          {"print-policy"},
		"policy.json":                            {"print-policy", "--document", "AWSIAMManagedPolicyControllersEKS"},
		"policy-iam-json.json":                   {"print-policy", "--document", "AWSIAMManagedPolicyControllersEKS", "--format", "iam-json"},
		"policies-iam-json.json":                 {"print-policy", "--format", "iam-json"},
		"policy-terraform.tf.json":               {"print-policy", "--document", "AWSIAMManagedPolicyCloudProviderNodes", "--format", "terraform"},
		"policies-terraform.tf.json":             {"print-policy", "--format", "terraform"},
		"help.txt":                               {},
		"help-print-policy.txt":                  {"print-policy", "--help"},
		"help-print-cloudformation-template.txt": {"print-cloudformation-template", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			s.ConfigDir = "/home/ada/.config"
			args := append([]string{"bootstrap", "iam"}, args...)
			require.Equal(t, 0, s.run(args...), s.err.String())
			assert.Empty(t, s.err.String())
			piped := s.out.String()
			golden.Assert(t, "bootstrap-iam/"+name, piped)
			s.terminal("")
			require.Equal(t, 0, s.run(args...), s.err.String())
			assert.Equal(t, piped, s.out.String(), "a terminal gets the same")
		})
	}
}

// TestBootstrapIAMTooLarge warns of what IAM would refuse. The output is that of upstream.
func TestBootstrapIAMTooLarge(t *testing.T) {
	long := strings.Repeat("x", 2000)
	statement := "{Effect: Allow, Action: [\"ec2:DescribeVpcs\"], Resource: [\"arn:aws:ec2:::" + long + "\"]}"
	file, _ := iamFile(t, "  bootstrapUser: {enable: true, extraStatements: ["+statement+"]}\n  controlPlane: {trustStatements: ["+
		"{Effect: Allow, Action: [\"sts:AssumeRole\"], Principal: {AWS: [\"arn:aws:iam::123456789012:role/"+long+"\"]}}]}\n"+
		"  nodes: {extraStatements: ["+strings.Join(slices.Repeat([]string{statement}, 6), ", ")+"]}\n")
	for _, command := range []string{"print-policy", "print-cloudformation-template"} {
		s := newShell(t)
		require.Equal(t, 0, s.run("bootstrap", "iam", command, "--config", file), s.err.String())
		assert.Equal(t, command == "print-cloudformation-template", strings.Contains(s.out.String(), long), "print-policy prints managed policies only")
		for _, what := range []string{"the inline policies of user ", "the inline policies of role nodes", "the trust policy of role control-plane"} {
			assert.Contains(t, s.err.String(), "warning: "+what)
		}
	}
}

func TestBootstrapIAMOfFile(t *testing.T) {
	file, plain := iamFile(
		t,
		"  stackName: mine\n  eks:\n    enable: true\n  nodes:\n    ec2ContainerRegistryReadOnly: false\n    path: /x/\n  controlPlane: {enableCSIPolicy: on}\n",
	)
	s := newShell(t)
	for _, command := range []string{"print-config", "print-cloudformation-template", "print-policy"} {
		require.Equal(t, 0, s.run("bootstrap", "iam", command, "--config", file), s.err.String())
		golden.Assert(t, "bootstrap-iam/warnings.txt", plain(s.err.String()))
		assert.NotContains(t, s.out.String(), "warning")

		assert.Equal(t, 1, s.run("bootstrap", "iam", command, "--config", file, "--strict"))
		golden.Assert(t, "bootstrap-iam/strict.txt", plain(s.err.String()))
		assert.Empty(t, s.out.String())
	}
	require.Equal(t, 0, s.run("bootstrap", "iam", "print-policy", "--config", file, "--document", "AWSEBSCSIPolicyController"), s.err.String())
	assert.Contains(t, s.out.String(), `"ManagedPolicyName": "csi.cluster-api-provider-aws.sigs.k8s.io"`)
}

// TestBootstrapIAMPolicyForScripts: the document is where scripts look for it, and a
// reference to a role is reported.
func TestBootstrapIAMPolicyForScripts(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("bootstrap", "iam", "print-policy", "--document", "AWSIAMManagedPolicyControllers"), s.err.String())
	var resource struct {
		Type       string
		Properties struct {
			PolicyDocument map[string]any
			Roles          []map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &resource))
	assert.Equal(t, "AWS::IAM::ManagedPolicy", resource.Type)
	assert.Equal(t, []map[string]string{{"Ref": "AWSIAMRoleControllers"}, {"Ref": "AWSIAMRoleControlPlane"}}, resource.Properties.Roles)
	assert.False(t, strings.HasSuffix(s.out.String(), "\n"))
	require.Equal(t, 0, s.run("bootstrap", "iam", "print-policy", "--document", "AWSIAMManagedPolicyControllers", "--format", "iam-json"), s.err.String())
	var document map[string]any
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &document))
	assert.Equal(t, resource.Properties.PolicyDocument, document)
}

// TestBootstrapIAMFromStandardInput also reads the output of print-config.
func TestBootstrapIAMFromStandardInput(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("bootstrap", "iam", "print-config"), s.err.String())
	printed := s.out.String()
	s.In = strings.NewReader(printed)
	require.Equal(t, 0, s.run("bootstrap", "iam", "print-config", "--config", "-", "--strict"), s.err.String())
	assert.Equal(t, printed, s.out.String())
	assert.True(t, strings.HasSuffix(printed, "\n\n") && !strings.HasSuffix(printed, "\n\n\n"))
}

func TestBootstrapIAMFails(t *testing.T) {
	s := newShell(t)
	file, plain := iamFile(t, "  namePrefix: 7\n  eks: {disable: true}\n  bootstrapUser:\n    enable: maybe\n")
	good, _ := iamFile(t, "  eks:\n    disable: true\n")
	dir := filepath.Dir(file)
	empty, folder, nope := filepath.Join(dir, "empty.yaml"), filepath.Join(dir, "folder"), filepath.Join(dir, "nope.yaml")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.NoError(t, os.Mkdir(folder, 0o700))
	var all strings.Builder
	for _, args := range [][]string{
		{"print-config", "--config", file},
		{"print-config", "--config", nope},
		{"print-cloudformation-template", "--config", folder},
		{"print-cloudformation-template", "--config", empty},
		{"print-policy", "--document", "AWSIAMManagedPolicyControler"},
		{"print-policy", "--document", "AWSEBSCSIPolicyController"},
		{"print-policy", "--config", good, "--document", "AWSIAMManagedPolicyControllersEKS"},
		{"print-policy", "--config", nope, "--document", "nope"},
		{"print-policy", "--format", "hcl"},
		{"print-config", "extra"},
		{"print-confg"},
	} {
		assert.Equal(t, 1, s.run(append([]string{"bootstrap", "iam"}, args...)...), args)
		assert.Empty(t, s.out.String(), args)
		text := plain("$ clusterawsadm bootstrap iam " + strings.Join(args, " ") + "\n" + s.err.String())
		all.WriteString(strings.ReplaceAll(text, filepath.Dir(good)+string(filepath.Separator), ""))
	}
	golden.Assert(t, "bootstrap-iam/failures.txt", all.String())
}

// TestSettingsBesideConfig: the settings file of the program and the configuration file
// of these commands are independent.
func TestSettingsBesideConfig(t *testing.T) {
	s := newShell(t)
	dir := filepath.Join(s.ConfigDir, name)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("strict: true\n"), 0o600))
	file, _ := iamFile(t, "  eks: {enable: true}\n")
	assert.Equal(t, 1, s.run("bootstrap", "iam", "print-config", "--config", file), "strict by the settings")
	assert.Contains(t, s.err.String(), "iam.yaml:4: spec.eks.enable: ")
}
