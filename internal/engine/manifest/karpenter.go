package manifest

import "github.com/clusterawsadm/clusterawsadm/internal/engine/podrole"

// Karpenter is the service account of Karpenter's controller, for which the annotation of an AWSManagedControlPlane makes what Karpenter
// needs in AWS.
type Karpenter struct{ Namespace, ServiceAccount string }

// KarpenterRole is the name of the role of its controller.
func (e *EKS) KarpenterRole(region string) string { return e.PodRoleName(region, podrole.Karpenter) }

// KarpenterNodeRole is the name of the role of its nodes, which an EC2NodeClass has as spec.role.
func (e *EKS) KarpenterNodeRole(region string) string {
	return e.PodRoleName(region, podrole.KarpenterNode)
}

// HasKarpenter reports whether the manifest makes what Karpenter needs.
func (e *EKS) HasKarpenter() bool { return e != nil && e.Karpenter != nil }

// HasPodIdentities reports whether the manifest defines pod identity associations other than those of add-ons.
func (e *EKS) HasPodIdentities() bool { return len(e.PodIdentities) > 0 || e.HasKarpenter() }
