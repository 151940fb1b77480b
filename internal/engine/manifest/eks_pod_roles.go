package manifest

import "github.com/clusterawsadm/clusterawsadm/internal/engine/podrole"

// IsEmpty reports whether it names neither a role nor policies.
func (r PodRole) IsEmpty() bool { return r.RoleARN == "" && len(r.PolicyARNs) == 0 }

// PodRoles are the roles that are made for the pods of the cluster: their policies by their names.
func (e *EKS) PodRoles(region string) map[string][]string {
	roles := map[string][]string{}
	for _, p := range e.PodIdentities {
		if p.RoleARN == "" {
			roles[e.PodRoleName(region, p.Purpose())] = p.PolicyARNs
		}
	}
	for _, all := range e.AddonIdentities {
		for _, p := range all {
			if p.RoleARN == "" {
				roles[e.PodRoleName(region, p.Purpose())] = p.PolicyARNs
			}
		}
	}
	return roles
}

// Purpose is what the role is for, in its name.
func (p PodIdentity) Purpose() string { return p.Namespace + "." + p.ServiceAccount }

// Purpose is what the role is for, in its name.
func (p AddonIdentity) Purpose() string { return p.ServiceAccount }

// PodRolePath is the path of the roles that are made for the pods of the cluster.
func (e *EKS) PodRolePath(region string) string {
	return podrole.Path(e.ControlPlane.Spec.EKSClusterName, region)
}

// PodRoleName is the name of such a role, for what it is for.
func (e *EKS) PodRoleName(region, purpose string) string {
	return podrole.Name(e.ControlPlane.Spec.EKSClusterName, region, purpose)
}
