package discover

import (
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
)

// annotations returns the annotations of the control plane, for settings that CAPA has no field for.
func (e *EKS) annotations() map[string]any {
	c, out := e.Cluster, map[string]any{}
	for name, on := range map[string]bool{"deletion-protection": c.DeletionProtection, "zonal-shift": c.ZonalShift} {
		if on {
			out["clusterawsadm/"+name] = "true"
		}
	}
	if c.Auto.Enabled {
		out["clusterawsadm/auto-mode"] = "none"
		if len(c.Auto.NodePools) > 0 {
			out["clusterawsadm/auto-mode"] = strings.Join(c.Auto.NodePools, ",")
			out["clusterawsadm/auto-mode-role"] = roleName(c.Auto.Role)
		}
	}
	if c.Tier != "standard" {
		set(out, "clusterawsadm/control-plane-tier", c.Tier, "")
	}
	set(out, "clusterawsadm/remote-node-networks", strings.Join(c.Remote.Nodes, ","), "")
	set(out, "clusterawsadm/remote-pod-networks", strings.Join(c.Remote.Pods, ","), "")
	var identities []map[string]any
	for _, p := range e.PodIdentities {
		if p.RoleARN == e.KarpenterRole {
			out["clusterawsadm/karpenter"] = p.Namespace + "/" + p.ServiceAccount
		} else if p.Owner == "" { // otherwise an add-on has made it
			identities = append(identities, e.withRole(map[string]any{"namespace": p.Namespace, "serviceAccount": p.ServiceAccount}, p.RoleARN))
		}
	}
	if text, err := yaml.Marshal(identities); err == nil && len(identities) > 0 {
		out["clusterawsadm/pod-identity-associations"] = string(text)
	}
	var ofAddons []map[string]any
	for _, a := range e.Addons {
		for _, p := range e.AddonIdentities[a.Name] {
			ofAddons = append(ofAddons, e.withRole(map[string]any{"addon": a.Name, "serviceAccount": p.ServiceAccount}, p.RoleARN))
		}
	}
	if text, err := yaml.Marshal(ofAddons); err == nil && len(ofAddons) > 0 {
		out["clusterawsadm/addon-pod-identities"] = string(text)
	}
	maps.Copy(out, e.flowLogAnnotations())
	return out
}

// withRole adds the role of an association: its policies, if a run has made it, or else its ARN.
func (e *EKS) withRole(association map[string]any, arn string) map[string]any {
	if policies := e.PodPolicies[arn]; len(policies) > 0 {
		association["policyARNs"] = policies
	} else {
		association["roleARN"] = arn
	}
	return association
}

// nodeGroupAnnotations returns the annotations of a node group.
func nodeGroupAnnotations(g eks.NodeGroupState) map[string]any {
	out := map[string]any{}
	if len(g.InstanceTypes) > 1 {
		out["clusterawsadm/instance-types"] = strings.Join(g.InstanceTypes, ",")
	}
	if g.Strategy != "DEFAULT" {
		set(out, "clusterawsadm/update-strategy", strings.ToLower(g.Strategy), "")
	}
	set(out, "clusterawsadm/node-repair-max-unhealthy", g.RepairLimits.MaxUnhealthy.String(), "")
	set(out, "clusterawsadm/node-repair-max-parallel", g.RepairLimits.MaxParallel.String(), "")
	return out
}
