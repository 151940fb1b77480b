package bootstrap

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1beta1"
	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"

	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// remark warns about settings that have no effect in the template, and about those that
// AWS rejects. It does not change the template.
func (l *loader) remark(c *Config) {
	spec := c.Spec
	l.unused("spec.controlPlane", spec.ControlPlane.AWSIAMRoleSpec, "disable")
	l.unused("spec.clusterAPIControllers", spec.ClusterAPIControllers.AWSIAMRoleSpec, "disable", "extraPolicyAttachments", "path", "permissionsBoundary")
	l.unused("spec.nodes", spec.Nodes.AWSIAMRoleSpec, "disable", "path", "permissionsBoundary")
	for name, role := range map[string]*bootstrapv1.AWSIAMRoleSpec{
		"defaultControlPlaneRole": &spec.EKS.DefaultControlPlaneRole,
		"managedMachinePool":      spec.EKS.ManagedMachinePool,
		"fargate":                 spec.EKS.Fargate,
	} {
		l.unused("spec.eks."+name, *role, "extraStatements", "trustStatements", "path", "permissionsBoundary")
	}
	if len(spec.BootstrapUser.ExtraPolicyAttachments) > 0 {
		l.warn("spec.bootstrapUser.extraPolicyAttachments", "the field has no effect",
			"the user has spec.controlPlane.extraPolicyAttachments and spec.bootstrapUser.extraStatements")
	}
	l.remarkLists(spec)
	l.remarkStatements("spec.controlPlane", spec.ControlPlane.AWSIAMRoleSpec)
	l.remarkStatements("spec.clusterAPIControllers", spec.ClusterAPIControllers.AWSIAMRoleSpec)
	l.remarkStatements("spec.nodes", spec.Nodes.AWSIAMRoleSpec)
	if spec.BootstrapUser.Enable {
		l.permissions("spec.bootstrapUser.extraStatements", spec.BootstrapUser.ExtraStatements)
	}
	l.remarkTags(spec)
}

// unused warns about fields of a role that are set but have no effect.
func (l *loader) unused(path string, role bootstrapv1.AWSIAMRoleSpec, names ...string) {
	set := map[string]bool{
		"disable": role.Disable, "extraPolicyAttachments": len(role.ExtraPolicyAttachments) > 0,
		"extraStatements": len(role.ExtraStatements) > 0, "trustStatements": len(role.TrustStatements) > 0,
		"path": role.Path != "", "permissionsBoundary": role.PermissionsBoundary != "",
	}
	for _, name := range names {
		if !set[name] {
			continue
		}
		fix := ""
		switch {
		case name == "disable":
			fix = "the role is always created"
		case strings.HasPrefix(path, "spec.eks."):
		case name == "extraPolicyAttachments":
			fix = "use " + path + ".extraStatements"
		default:
			fix = "spec.controlPlane." + name + " applies to this role, too"
		}
		l.warn(path+"."+name, "the field has no effect", fix)
	}
}

// remarkLists warns about lists that AWS rejects if they are empty or invalid.
func (l *loader) remarkLists(spec bootstrapv1.AWSIAMConfigurationSpec) {
	if p := spec.ClusterAPIControllers.AllowedEC2InstanceProfiles; p != nil && len(p) == 0 {
		l.refuse("spec.clusterAPIControllers.allowedEC2InstanceProfiles", "an empty list results in a statement without Resource",
			"remove the field, or name a role")
	}
	backends := []string{string(infrav1.SecretBackendSecretsManager), string(infrav1.SecretBackendSSMParameterStore)}
	for i, b := range spec.SecureSecretsBackends {
		path, what := fmt.Sprintf("spec.secureSecretBackends[%d]", i), fmt.Sprintf("unknown secret backend %q", b)
		switch {
		case slices.Contains(backends, string(b)):
		case spec.Nodes.DisableCloudProviderPolicy:
			l.warn(path, what, suggest.DidYouMean(string(b), backends))
		default:
			l.refuse(path, what+", which results in an empty statement", suggest.DidYouMean(string(b), backends))
		}
	}
}

// refuse warns that AWS will reject a value.
func (l *loader) refuse(path, what, fix string) {
	l.warn(path, "AWS will reject the template: "+what, fix)
}

func (l *loader) remarkStatements(path string, role bootstrapv1.AWSIAMRoleSpec) {
	l.permissions(path+".extraStatements", role.ExtraStatements)
	for i, s := range role.TrustStatements {
		below := l.statement(path+".trustStatements", i, s)
		if len(s.Principal)+len(s.NotPrincipal) == 0 {
			l.refuse(below, "a trust statement needs a Principal", "")
		}
		if len(s.Resource) > 0 {
			l.refuse(below+".Resource", "a trust statement must not have a Resource", "remove it")
		}
	}
}

// permissions checks the statements of a policy of a role or of a user.
func (l *loader) permissions(path string, statements []iamv1.StatementEntry) {
	if statements != nil && len(statements) == 0 {
		l.refuse(path, "an empty list results in a policy without statements", "remove the field")
	}
	for i, s := range statements {
		below := l.statement(path, i, s)
		if len(s.Resource) == 0 {
			l.refuse(below, "the statement has no Resource", "")
		}
		if len(s.Principal)+len(s.NotPrincipal) > 0 {
			l.refuse(below, "only trust statements may have a Principal", "")
		}
	}
}

// statement checks the fields that all statements have, and returns the path of this one.
func (l *loader) statement(path string, i int, s iamv1.StatementEntry) string {
	below := path + "[" + strconv.Itoa(i) + "]"
	switch {
	case s.Effect == "":
		l.refuse(below, "the statement has no Effect", "add Effect: Allow or Deny; field names begin with a capital letter")
	case s.Effect != iamv1.EffectAllow && s.Effect != iamv1.EffectDeny:
		l.refuse(below+".Effect", fmt.Sprintf("the Effect is %q", s.Effect), "write Allow or Deny")
	}
	if len(s.Action) == 0 {
		l.refuse(below, "the statement has no Action", "")
	}
	return below
}

// remarkTags warns about tags without a value, which the template omits.
func (l *loader) remarkTags(spec bootstrapv1.AWSIAMConfigurationSpec) {
	for path, tags := range map[string]map[string]string{
		"spec.controlPlane.tags":                spec.ControlPlane.Tags,
		"spec.clusterAPIControllers.tags":       spec.ClusterAPIControllers.Tags,
		"spec.nodes.tags":                       spec.Nodes.Tags,
		"spec.bootstrapUser.tags":               spec.BootstrapUser.Tags,
		"spec.eks.defaultControlPlaneRole.tags": spec.EKS.DefaultControlPlaneRole.Tags,
		"spec.eks.managedMachinePool.tags":      spec.EKS.ManagedMachinePool.Tags,
		"spec.eks.fargate.tags":                 spec.EKS.Fargate.Tags,
	} {
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			if tags[key] == "" {
				l.refuse(join(path, key), "the tag has no value", "set a value")
			}
		}
	}
}
