package bootstrap

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"

	"github.com/awslabs/goformation/v7/cloudformation/iam"
	"github.com/awslabs/goformation/v7/cloudformation/tags"
	"github.com/awslabs/goformation/v7/intrinsics"
	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"
	"sigs.k8s.io/yaml"
)

// Logical IDs of the resources.
const (
	ControllersPolicy    = "AWSIAMManagedPolicyControllers"
	ControllersPolicyEKS = "AWSIAMManagedPolicyControllersEKS"
	ControlPlanePolicy   = "AWSIAMManagedPolicyCloudProviderControlPlane"
	NodePolicy           = "AWSIAMManagedPolicyCloudProviderNodes"
	CSIPolicy            = "AWSEBSCSIPolicyController"
	EKSConsolePolicy     = "AWSIAMManagedPolicyEKSConsole"

	bootstrapperUser  = "AWSIAMUserBootstrapper"
	bootstrapperGroup = "AWSIAMGroupBootstrapper"

	controlPlaneRole    = "AWSIAMRoleControlPlane"
	controllersRole     = "AWSIAMRoleControllers"
	nodesRole           = "AWSIAMRoleNodes"
	eksControlPlaneRole = "AWSIAMRoleEKSControlPlane"
	eksNodegroupRole    = "AWSIAMRoleEKSNodegroup"
	eksFargateRole      = "AWSIAMRoleEKSFargate"

	controlPlaneProfile = "AWSIAMInstanceProfileControlPlane"
	controllersProfile  = "AWSIAMInstanceProfileControllers"
	nodesProfile        = "AWSIAMInstanceProfileNodes"
)

// Resource is a resource type of goformation's package cloudformation/iam.
type Resource interface{ AWSCloudFormationType() string }

// Template is a CloudFormation template. In strings, intrinsic functions are encoded as
// in goformation, as base64 of their JSON; JSON and YAML decode them.
//
// goformation's own Template type is not used because it links the types of all AWS
// resources.
type Template struct {
	AWSTemplateFormatVersion string
	Resources                map[string]Resource // by logical ID
}

// Template returns the template of the configuration.
func (c *Config) Template() *Template {
	t := &Template{AWSTemplateFormatVersion: "2010-09-09", Resources: map[string]Resource{}}
	c.addUser(t)
	c.addPolicies(t)
	c.addRoles(t)
	if !c.Spec.EKS.Disable {
		c.addEKSRoles(t)
	}
	for _, p := range []struct{ profile, role, name string }{
		{controlPlaneProfile, controlPlaneRole, "control-plane"},
		{controllersProfile, controllersRole, "controllers"},
		{nodesProfile, nodesRole, "nodes"},
	} {
		t.Resources[p.profile] = &iam.InstanceProfile{InstanceProfileName: text(c.name(p.name)), Roles: []string{ref(p.role)}}
	}
	return t
}

// JSON returns the template as JSON for CloudFormation.
func (t *Template) JSON() ([]byte, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return intrinsics.ProcessJSON(raw, nil)
}

// YAML returns the template as YAML for CloudFormation. Dates are quoted, because in YAML
// 1.1 they would not be strings.
func (t *Template) YAML() ([]byte, error) {
	out, err := t.JSON()
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(out)
}

// addUser adds the user for the first management cluster. As in upstream, it has the
// policies of the control plane, and none of its own extraPolicyAttachments.
func (c *Config) addUser(t *Template) {
	user := c.Spec.BootstrapUser
	if !user.Enable {
		return
	}
	u := &iam.User{
		UserName:          text(user.UserName),
		Groups:            append([]string{ref(bootstrapperGroup)}, user.ExtraGroups...),
		ManagedPolicyArns: c.Spec.ControlPlane.ExtraPolicyAttachments,
		Tags:              tagList(user.Tags),
	}
	if user.ExtraStatements != nil {
		u.Policies = []iam.User_Policy{{PolicyName: c.Spec.StackName, PolicyDocument: document(user.ExtraStatements...)}}
	}
	t.Resources[bootstrapperUser] = u
	t.Resources[bootstrapperGroup] = &iam.Group{GroupName: text(user.GroupName)}
}

// document returns a policy document with the statements.
func document(statements ...iamv1.StatementEntry) *iamv1.PolicyDocument {
	return &iamv1.PolicyDocument{Version: iamv1.CurrentVersion, Statement: statements}
}

// ref returns a reference to a resource by its logical ID.
func ref(id string) string {
	return base64.StdEncoding.EncodeToString([]byte(`{ "Ref": "` + id + `" }`))
}

// text returns nil for an empty text, which omits a property.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func tagList(of map[string]string) (out []tags.Tag) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		out = append(out, tags.Tag{Key: key, Value: of[key]})
	}
	return out
}
