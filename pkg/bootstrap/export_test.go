package bootstrap_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/test/iamconfig"
)

func policies(t require.TestingT, c *bootstrap.Config, name string, f bootstrap.Format) (v any) {
	text, err := c.Policies(name, f)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &v), string(text))
	return v
}

// TestPolicies: printed policies are those of the template.
func TestPolicies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, file := iamconfig.Draw(t)
		c := load(t, file)
		resources := under(rendered(t, c), "Resources").(object)
		want, documents := object{}, object{}
		for id, r := range resources {
			if under(r, "Type") == "AWS::IAM::ManagedPolicy" {
				want[id], documents[id] = r, under(r, "Properties", "PolicyDocument")
			}
		}
		assert.Empty(t, cmp.Diff(any(want), policies(t, c, "", bootstrap.CloudFormation)))
		assert.Empty(t, cmp.Diff(any(documents), policies(t, c, "", bootstrap.IAMJSON)))
		for _, name := range bootstrap.Documents() {
			if want[name] == nil {
				_, err := c.Policies(name, bootstrap.CloudFormation)
				require.ErrorContains(t, err, "this configuration has no "+name)
				continue
			}
			assert.Empty(t, cmp.Diff(want[name], policies(t, c, name, bootstrap.CloudFormation)))
			assert.Empty(t, cmp.Diff(documents[name], policies(t, c, name, bootstrap.IAMJSON)))
		}
	})
}

func TestMissingPolicy(t *testing.T) {
	for _, c := range []struct{ spec, name, want string }{
		{"{}", "AWSEBSCSIPolicyController", "set spec.controlPlane.enableCSIPolicy: true to get it"},
		{"{}", "AWSIAMManagedPolicyEKSConsole", "set spec.eks.enableUserEKSConsolePolicy: true to get it"},
		{"{eks: {disable: true, enableUserEKSConsolePolicy: true}}", "AWSIAMManagedPolicyEKSConsole", "iam.yaml:3: this configuration has no AWSIAMManagedPolicyEKSConsole: spec.eks.disable is set"},
		{"{eks: {disable: true}}", "AWSIAMManagedPolicyControllersEKS", "spec.eks.disable is set"},
		{"{nodes: {disableCloudProviderPolicy: true}}", "AWSIAMManagedPolicyCloudProviderNodes", "spec.nodes.disableCloudProviderPolicy is set"},
		{"{controlPlane: {disableCloudProviderPolicy: true}}", "AWSIAMManagedPolicyCloudProviderControlPlane", "spec.controlPlane.disableCloudProviderPolicy is set"},
		{"{}", "AWSIAMManagedPolicyCloudProviderNode", "did you mean AWSIAMManagedPolicyCloudProviderNodes?"},
		{"{}", "nope", "use one of AWSIAMManagedPolicyControllers, "},
	} {
		_, err := load(t, []byte(head+"spec: "+c.spec+"\n")).Policies(c.name, bootstrap.CloudFormation)
		require.ErrorContains(t, err, c.want)
	}
}

// terraformed is a configuration with everything that Terraform supports.
const terraformed = head + `spec:
  partition: aws-cn
  bootstrapUser: {enable: true, extraGroups: [admins], tags: {who: ada}, extraStatements: [{Effect: Allow, Action: "iam:GetUser", Resource: ["arn:aws-cn:iam::*:user/${aws:username}"]}]}
  controlPlane:
    path: /kubernetes/
    permissionsBoundary: "%BOUNDARY%"
    extraPolicyAttachments: [arn:aws-cn:iam::aws:policy/One, arn:aws-cn:iam::1:policy/One, arn:aws-cn:iam::aws:policy/One, "%SUB%"]
    extraStatements: [{Effect: Allow, Action: ["s3:*"], Resource: ["%ROLE%", "%JOIN%"]}]
`

func terraform(replacements ...string) []byte {
	for i := 1; i < len(replacements); i += 2 {
		replacements[i] = iamconfig.Encoded(replacements[i])
	}
	return []byte(strings.NewReplacer(replacements...).Replace(terraformed))
}

func TestTerraform(t *testing.T) {
	c := load(t, terraform(
		"%BOUNDARY%", `{"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/${!literal}%{"}`,
		"%SUB%", `{"Ref": "AWSIAMManagedPolicyCloudProviderNodes"}`,
		"%ROLE%", `{"Fn::GetAtt": ["AWSIAMRoleNodes", "Arn"]}`,
		"%JOIN%", `{"Fn::Join": [":", ["arn", {"Ref": "AWS::Partition"}, "s3", {"Ref": "AWS::Region"}]]}`,
	))
	out, err := c.Policies("", bootstrap.Terraform)
	require.NoError(t, err)
	golden.Assert(t, "terraform.golden.tf.json", string(out)+"\n")
	out, err = c.Policies(bootstrap.NodePolicy, bootstrap.Terraform)
	require.NoError(t, err)
	golden.Assert(t, "terraform-nodes.golden.tf.json", string(out)+"\n")
}

func TestTerraformRefused(t *testing.T) {
	_, err := load(t, terraform("%BOUNDARY%", `{"Fn::ImportValue": "x"}`, "%SUB%", `{"Ref": "Nope"}`)).Policies("", bootstrap.Terraform)
	require.ErrorContains(t, err, "an encoded Fn::ImportValue, which Terraform does not support: write its value instead")
	require.ErrorContains(t, err, "an encoded reference to Nope")
	old := strings.Replace(head, "v1beta1", "v1alpha1", 1) + "spec: {bootstrapUser: {enable: true}}\n"
	_, err = load(t, []byte(old)).Policies("", bootstrap.Terraform)
	require.ErrorContains(t, err, "set spec.bootstrapUser.groupName")
}

// TestTerraformHasAll: every resource of the template has a counterpart with the same
// name, and every reference is valid.
func TestTerraformHasAll(t *testing.T) {
	kinds := map[string]string{
		"AWS::IAM::Role": "aws_iam_role", "AWS::IAM::ManagedPolicy": "aws_iam_policy", "AWS::IAM::InstanceProfile": "aws_iam_instance_profile",
		"AWS::IAM::User": "aws_iam_user", "AWS::IAM::Group": "aws_iam_group",
	}
	rapid.Check(t, func(t *rapid.T) {
		_, file := iamconfig.Draw(t)
		c := load(t, file)
		if c.Spec.BootstrapUser.GroupName == "" {
			c.Spec.BootstrapUser.GroupName = "group"
		}
		got := policies(t, c, "", bootstrap.Terraform)
		attached := 0
		for id, r := range under(rendered(t, c), "Resources").(object) {
			kind := kinds[asText(under(r, "Type"))]
			require.NotNil(t, under(got, "resource", kind, id), id)
			properties := under(r, "Properties")
			if kind == "aws_iam_policy" {
				attached += len(items(properties, "Roles")) + len(items(properties, "Groups"))
				var document any
				require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(strings.ReplaceAll(
					asText(under(got, "resource", kind, id, "policy")), "$${", "${"), "%%{", "%{")), &document))
				assert.Empty(t, cmp.Diff(under(properties, "PolicyDocument"), document))
			}
			distinct := map[string]bool{}
			for _, arn := range items(properties, "ManagedPolicyArns") {
				text, err := json.Marshal(arn)
				require.NoError(t, err)
				distinct[string(text)] = true
			}
			attached += len(distinct)
		}
		found := 0
		for _, kind := range []string{"role", "group", "user"} {
			all, _ := under(got, "resource", "aws_iam_"+kind+"_policy_attachment").(object)
			found += len(all)
		}
		assert.Equal(t, attached, found)
	})
}
