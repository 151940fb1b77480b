package manifest

import (
	"slices"
	"strings"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
)

// IsManaged reports whether EKS runs the control plane. EKS is nil then, too, if it is invalid.
func (c *Cluster) IsManaged() bool {
	infra := c.Object.Spec.InfrastructureRef.Kind
	return c.Object.Spec.ControlPlaneRef.Kind == KindManagedPlane || infra == KindManagedCluster || infra == KindManagedPlane
}

// HasVPCCNI reports whether EKS installs the VPC CNI, by itself or as an add-on, and the
// manifest does not disable it.
func (c *Cluster) HasVPCCNI() bool {
	plane := &c.EKS.ControlPlane.Spec
	return !plane.VpcCni.Disable && (plane.BootstrapSelfManagedAddons || c.VPCCNI() != nil)
}

// VPCCNI returns the add-on vpc-cni, or nil.
func (c *Cluster) VPCCNI() *ekscontrolplanev1.Addon { return c.EKS.Addon("vpc-cni") }

// HasKubeProxy reports whether EKS installs kube-proxy, by itself or as an add-on, and the manifest does not disable it.
func (c *Cluster) HasKubeProxy() bool {
	plane := &c.EKS.ControlPlane.Spec
	return !plane.KubeProxy.Disable && (plane.BootstrapSelfManagedAddons || c.EKS.Addon("kube-proxy") != nil)
}

// HasServices reports whether the manifest of an EKS cluster has something by which pods on its nodes reach Services: kube-proxy, or what takes its place,
// as a pod network instead of the VPC CNI usually does.
func (c *Cluster) HasServices() bool {
	const proxy = "kube-proxy"
	chart := slices.ContainsFunc(c.Charts, func(h Chart) bool { return h.HasPodNetwork() || h.Title == proxy })
	set := slices.ContainsFunc(c.ResourceSets, func(s ResourceSet) bool {
		return s.HasPodNetwork() || slices.ContainsFunc(s.Documents, func(d *Document) bool {
			return d.Kind() == "DaemonSet" && strings.Contains(d.Metadata("name"), proxy)
		})
	})
	return c.HasKubeProxy() || !c.HasVPCCNI() || chart || set
}

// HasPodIdentityAgent reports whether the manifest installs the add-on that gives pods the credentials of their pod identity
// associations.
func (e *EKS) HasPodIdentityAgent() bool { return e.Addon("eks-pod-identity-agent") != nil }

// EncryptionKey is the ARN of the KMS key that encrypts Secrets; "" if the control plane names no key, or no
// resources to encrypt: CAPA ignores the one without the other.
func (e *EKS) EncryptionKey() string {
	c := e.ControlPlane.Spec.EncryptionConfig
	if c == nil || len(c.Resources) == 0 {
		return ""
	}
	return Deref(c.Provider)
}

// Addon returns the EKS add-on with a name, or nil.
func (e *EKS) Addon(name string) *ekscontrolplanev1.Addon {
	addons := e.ControlPlane.Spec.Addons
	if addons == nil {
		return nil
	}
	i := slices.IndexFunc(*addons, func(a ekscontrolplanev1.Addon) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &(*addons)[i]
}

// EKSSettings are the settings of a control plane of EKS that its annotations have. A nil or empty
// field is not set, and is not changed.
type EKSSettings struct {
	DeletionProtection, ZonalShift *bool
	ForceUpgrade                   bool   // upgrade although EKS has an insight with an error
	Tier                           string // of the control plane: "standard", "tier-xl", …
	// NATAddresses adds the addresses of the NAT gateways to endpointAccess.publicCIDRs.
	NATAddresses  bool
	Remote        *RemoteNetworks
	AutoMode      *AutoMode
	Karpenter     *Karpenter
	PodIdentities []PodIdentity // in the order of the manifest
	// AddonIdentities are the pod identity associations of add-ons, by the name of the add-on; nil if the manifest does not set
	// them.
	AddonIdentities map[string][]AddonIdentity
}

// AddonIdentity associates a service account of an add-on with an IAM role.
type AddonIdentity struct {
	ServiceAccount string
	PodRole
}

// PodRole is the role of the pods with a service account: an existing one, or one that is made for the cluster with these
// managed policies.
type PodRole struct {
	RoleARN    string   `json:"roleARN"`
	PolicyARNs []string `json:"policyARNs"`
}

// RemoteNetworks are the CIDR blocks of hybrid nodes and of their pods, sorted.
type RemoteNetworks struct{ Nodes, Pods []string }

// PodIdentity associates a service account with an IAM role.
type PodIdentity struct {
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
	PodRole
}

// NodeGroupSettings are the settings of a node group that its annotations have.
type NodeGroupSettings struct {
	// ForceUpdate says that EKS replaces nodes even if pods cannot be evicted.
	ForceUpdate    bool
	InstanceTypes  []string // EKS chooses between them
	UpdateStrategy string   // "DEFAULT", "MINIMAL" or ""
	// RepairMaxUnhealthy and RepairMaxParallel are limits of node repair; nil if the manifest has none.
	RepairMaxUnhealthy, RepairMaxParallel *Share
}

// Share is a limit on the nodes of a group: either a number of nodes or a percentage of the group.
type Share struct{ Count, Percentage int32 }
