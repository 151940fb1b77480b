package rules

import (
	"fmt"
	"slices"
	"strings"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// LongestRoleName is IAM's limit.
const LongestRoleName = 64

// checkRoleName rejects a role name that is too long. A generated one contains the name
// of the cluster.
func (c *checks) checkRoleName(o *manifest.Entry, name string) {
	c.checkIAMName(o, "spec.roleName", name, "a role")
	if len(name) > LongestRoleName {
		c.fail(
			o.Problem("spec.roleName", fmt.Sprintf("the generated role name %s is too long: IAM permits at most %d characters", name, LongestRoleName), "set roleName"),
		)
	}
}

// roleUser are nodes or pods whose role is in the manifest.
type roleUser struct {
	o    *manifest.Entry
	role string
	kind ekscontrolplanev1.AccessEntryType // of the access entry that they need
}

// roleUsers lists the node groups and Fargate profiles.
func (c *checks) roleUsers() (users []roleUser) {
	for _, p := range c.cluster.Pools {
		if p.Managed == nil {
			continue
		}
		kind := ekscontrolplanev1.AccessEntryTypeEC2Linux
		if isWindows(&p.Managed.Spec) {
			kind = ekscontrolplanev1.AccessEntryTypeEC2Windows
		}
		users = append(users, roleUser{c.lookup(manifest.KindManagedPool, p.Managed.Name), p.Managed.Spec.RoleName, kind})
	}
	for _, f := range c.cluster.EKS.Fargate {
		users = append(users, roleUser{c.lookup(manifest.KindFargateProfile, f.Name), f.Spec.RoleName, ekscontrolplanev1.AccessEntryTypeFargateLinux})
	}
	return users
}

// checkRolesOfNodes finds access entries and mappings that lock out nodes: EKS lets nodes and
// pods on Fargate in by an entry of their own type ("Create access entries", EKS user guide), or
// by a mapping to the groups of nodes ("Grant IAM users access to Kubernetes with a ConfigMap").
func (c *checks) checkRolesOfNodes(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	for _, u := range c.roleUsers() {
		for i, e := range plane.AccessEntries {
			kind := e.Type
			if kind == "" {
				kind = ekscontrolplanev1.AccessEntryTypeStandard
			}
			if isRole(e.PrincipalARN, u.role) && kind != u.kind {
				c.refuse(c.infra.Problem(
					fmt.Sprintf("spec.accessEntries[%d]", i),
					fmt.Sprintf(
						"%s is the role of %s (%s), which EKS lets in only by an entry of the type %s, and this one has the type %s",
						e.PrincipalARN,
						u.o.Title(),
						u.o.Position(""),
						u.kind,
						kind,
					),
					fmt.Sprintf("set type: %s, or name another principal", u.kind),
				))
			}
		}
		if plane.IAMAuthenticatorConfig == nil {
			continue
		}
		for i, m := range plane.IAMAuthenticatorConfig.RoleMappings {
			if isRole(m.RoleARN, u.role) && (!slices.Contains(m.Groups, "system:nodes") || !slices.Contains(m.Groups, "system:bootstrappers")) {
				c.fail(c.infra.Problem(
					fmt.Sprintf("spec.iamAuthenticatorConfig.mapRoles[%d]", i),
					fmt.Sprintf(
						"%s is the role of %s (%s), whose mapping EKS writes: without the groups system:bootstrappers and system:nodes, they are locked out",
						m.RoleARN,
						u.o.Title(),
						u.o.Position(""),
					),
					"remove the mapping, or name another role",
				))
			}
		}
	}
}

// isRole reports whether an ARN is that of a role with a name.
func isRole(arn, name string) bool {
	_, path, ok := strings.Cut(arn, ":role/")
	return ok && path[strings.LastIndex(path, "/")+1:] == name
}

// warnNoEffectOnRole warns about settings of a role that this program does not create.
func (c *checks) warnNoEffectOnRole(o *manifest.Entry, path, boundary string, policies int) {
	if c.cluster.EKS.EnableIAM {
		return
	}
	const what, fix = "has no effect: this program does not change existing roles", "set CAPA_EKS_IAM=true to create roles"
	if path != "" {
		c.warn(o.Problem("spec.rolePath", what, fix))
	}
	if boundary != "" {
		c.warn(o.Problem("spec.rolePermissionsBoundary", what, fix))
	}
	if policies > 0 {
		c.warn(o.Problem("spec.roleAdditionalPolicies", what, fix))
	}
}
