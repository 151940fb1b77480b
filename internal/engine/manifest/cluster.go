// Package manifest turns the YAML people have into the one value the rest of
// the tool works with.
//
// A Cluster holds Cluster API's and CAPA's own types in their newest version,
// after the defaults and the validation an API server with its webhooks would
// have applied. Nothing downstream asks which version the file had, checks for
// a missing default, or looks up a reference.
package manifest

import (
	corev1 "k8s.io/api/core/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Cluster is everything the manifest says about one cluster.
type Cluster struct {
	Name      string // of the Cluster object; part of every name and tag in AWS
	Namespace string // "default" where the manifest has none
	Region    string // from AWSCluster or AWSManagedControlPlane, or the caller's when that is empty
	// Version is the Kubernetes version of the control plane, "v1.34.2". EKS
	// takes "v1.34" too, and its newest version when this is empty.
	Version string

	Object *clusterv1.Cluster
	// Infra is the AWSCluster. For EKS it is made of what the
	// AWSManagedControlPlane says about network, bastion, tags, images and
	// identity, with neither load balancer nor bucket, under the control plane's
	// name. InfraObject names the object that it comes from.
	Infra *infrav1.AWSCluster
	EKS   *EKS // nil for a self-managed cluster

	// ControlPlane is nil when EKS runs the control plane, and when it is made
	// of single Machines.
	ControlPlane *ControlPlane
	Deployments  []Deployment // in the order of the manifest
	Machines     []Machine    // stand-alone Machines, in the order of the manifest
	Pools        []Pool       // MachinePools, in the order of the manifest

	ResourceSets []ResourceSet // those whose selector matches the Cluster
	Identity     []Identity    // the chain of identities, the ambient one first; empty means ambient

	ConfigMaps map[string]*corev1.ConfigMap // by name
	Secrets    map[string]*corev1.Secret    // by name, data decoded (stringData merged)

	// Warnings are remarks that do not stop anything: a field that has no
	// effect yet, an object that acts only under a management cluster.
	Warnings []Problem

	infra string              // title of the object behind Infra
	where map[string]Position // "Kind/name" and "Kind/name spec.path" to place
}

// KubernetesName is what the cluster is called by what runs in it, and by the
// tags that go by that name.
func (c *Cluster) KubernetesName() string {
	if c.EKS != nil {
		return c.EKS.ControlPlane.Spec.EKSClusterName
	}
	return c.Name
}

// EKS is the control plane that EKS runs, and what of it has no nodes of ours.
type EKS struct {
	// Cluster is nil when infrastructureRef names the control plane itself.
	Cluster *infrav1.AWSManagedCluster
	// ControlPlane has a roleName in any case: the one that is given, the
	// generated one with EnableIAM, or the default one. So have node groups and
	// Fargate profiles.
	ControlPlane *ekscontrolplanev1.AWSManagedControlPlane
	Fargate      []*expinfrav1.AWSFargateProfile // in the order of the manifest
	// EnableIAM says that roles which are missing are made, and ours deleted.
	// Without it each must be there (docs/adr/0015-eks-roles.md).
	EnableIAM bool
}

// Pool is a MachinePool with what it is made of: exactly one of Managed (an
// EKS node group) and Scaling (an Auto Scaling group).
type Pool struct {
	Object    *clusterv1.MachinePool
	Managed   *expinfrav1.AWSManagedMachinePool
	Scaling   *expinfrav1.AWSMachinePool
	Bootstrap Bootstrap
}

// Bootstrap is what the machines of a pool boot with. At most one is set; none
// when the manifest names a dataSecretName, and when EKS writes the user data:
// for a node group without a launch template.
type Bootstrap struct {
	Kubeadm *bootstrapv1.KubeadmConfig
	EKS     *eksbootstrapv1.EKSConfig //nolint:staticcheck // deprecated, and what nodes of Amazon Linux 2 boot with
	Nodeadm *eksbootstrapv1.NodeadmConfig
}

// ControlPlane is a KubeadmControlPlane with the template of its machines.
type ControlPlane struct {
	Object   *controlplanev1.KubeadmControlPlane
	Template *infrav1.AWSMachineTemplate
}

// Deployment is a MachineDeployment with its templates. At most one of the
// three for bootstrapping is set, none when the manifest names a
// dataSecretName; those of EKS only in a cluster of EKS.
type Deployment struct {
	Object           *clusterv1.MachineDeployment
	Template         *infrav1.AWSMachineTemplate
	Bootstrap        *bootstrapv1.KubeadmConfigTemplate
	EKSBootstrap     *eksbootstrapv1.EKSConfigTemplate
	NodeadmBootstrap *eksbootstrapv1.NodeadmConfigTemplate
}

// InfraObject names the object that Infra comes from, for Origin:
// "AWSCluster/prod" or "AWSManagedControlPlane/prod". The fields that they
// share have the same paths.
func (c *Cluster) InfraObject() string { return c.infra }

// SetRegion moves the cluster to a region.
func (c *Cluster) SetRegion(region string) {
	c.Region = region
	c.Infra.Spec.Region = region
	if c.EKS != nil {
		c.EKS.ControlPlane.Spec.Region = region
	}
}

// Replicas returns how many control-plane machines there are to be.
func (c *ControlPlane) Replicas() int { return replicas(c.Object.Spec.Replicas) }

// Replicas returns how many machines there are to be.
func (d Deployment) Replicas() int { return replicas(d.Object.Spec.Replicas) }

// Replicas returns how many machines there are to be at first.
func (p Pool) Replicas() int { return replicas(p.Object.Spec.Replicas) }

// replicas is Cluster API's default where a number was left out.
func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

// Machine is a stand-alone Machine with its own AWSMachine. At most one of the
// three for bootstrapping is set, as in a Deployment.
type Machine struct {
	Object           *clusterv1.Machine
	Infra            *infrav1.AWSMachine
	Bootstrap        *bootstrapv1.KubeadmConfig
	EKSBootstrap     *eksbootstrapv1.EKSConfig //nolint:staticcheck // deprecated, and what nodes of Amazon Linux 2 boot with
	NodeadmBootstrap *eksbootstrapv1.NodeadmConfig
	ControlPlane     bool // carries the label cluster.x-k8s.io/control-plane
}

// Identity is one step in the chain of identities that the cluster is made
// with. Exactly one of Static and Role is set; the ambient identity is an
// empty chain.
type Identity struct {
	Origin string // "AWSClusterRoleIdentity/prod"
	Static *StaticIdentity
	Role   *infrav1.AWSClusterRoleIdentitySpec
}

// StaticIdentity is a pair of keys from a Secret of the manifest.
type StaticIdentity struct {
	AccessKeyID, SecretAccessKey, SessionToken string
}

// What is wrong with a manifest is told as it is of any file.
type (
	// Position is a place in the input.
	Position = input.Position
	// Problem is one thing that is wrong with the manifest, or worth a remark.
	Problem = input.Problem
	// InvalidError says that the input is wrong.
	InvalidError = input.InvalidError
)
