package loader

import (
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	"sigs.k8s.io/cluster-api-provider-aws/v2/pkg/eks"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
)

// nameRoles sets the roles that the manifest does not name: those that CAPA would use, so
// that a management cluster that takes over the cluster finds them. See
// docs/adr/0015-eks-roles.md.
func (l *loader) nameRoles() {
	e := l.cluster.EKS
	if e == nil {
		return
	}
	if e.ControlPlane.Spec.RoleName == nil {
		name := ekscontrolplanev1.DefaultEKSControlPlaneRole
		if e.EnableIAM {
			name = l.cluster.Name + "-iam-service-role"
		}
		e.ControlPlane.Spec.RoleName = &name
	}
	if m := e.AutoMode; m != nil && len(m.NodePools) > 0 && m.Role == "" {
		if m.Role = manifest.DefaultAutoModeRole; e.EnableIAM {
			m.Role = e.PodRoleName(l.cluster.Region, "auto-node")
		}
	}
	for _, f := range e.Fargate {
		if f.Spec.RoleName == "" {
			f.Spec.RoleName = l.roleName(expinfrav1.DefaultEKSFargateRole, "fargate", l.cluster.Name+"-"+f.Spec.ProfileName)
		}
	}
	for _, p := range l.cluster.Pools {
		if m := p.Managed; m != nil && m.Spec.RoleName == "" {
			m.Spec.RoleName = l.roleName(expinfrav1.DefaultEKSNodegroupRole, "nodegroup-iam-service-role",
				e.ControlPlane.Spec.EKSClusterName+"-"+m.Spec.EKSNodegroupName)
		}
	}
}

// roleName returns the default role, or a generated name if roles are created.
func (l *loader) roleName(standard, purpose, owner string) string {
	if !l.cluster.EKS.EnableIAM {
		return standard
	}
	name, err := eks.GenerateEKSName(purpose, owner, rules.LongestRoleName)
	if err != nil {
		return standard // unreachable: only an invalid hash length fails
	}
	return name
}
