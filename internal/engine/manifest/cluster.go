// Package manifest is what a Cluster API manifest says: one validated value, Cluster, and the lines of its fields.
// Package loader reads it, and package rules has the rules that AWS and Kubernetes apply to it.
//
// A Cluster holds the types of Cluster API and CAPA in their newest API version, with the
// defaults and validation of an API server and its webhooks applied, and with references
// resolved. Other packages need not check API versions, defaults or references.
package manifest

import (
	"cmp"

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

// Cluster is the content of a manifest.
type Cluster struct {
	Name      string // of the Cluster object; part of every name and tag in AWS
	Namespace string // "default" if the manifest sets none
	Region    string // from AWSCluster or AWSManagedControlPlane, otherwise Options.Region
	// Version is the Kubernetes version of the control plane: "v1.34.2". For EKS it may
	// be "v1.34", or empty for the newest version.
	Version string

	Object   *clusterv1.Cluster
	Topology *clusterv1.Topology // that the objects are made of; nil if they are in the manifest
	// Infra is the AWSCluster. For EKS, Load creates it from the network, bastion, tags,
	// images and identity of the AWSManagedControlPlane, with the control plane's name
	// and without load balancer or bucket. InfraObject returns the object it comes from.
	Infra *infrav1.AWSCluster
	EKS   *EKS // nil for a self-managed cluster
	// External says that somebody else manages what the AWSCluster describes (annotation
	// cluster.x-k8s.io/managed-by): it is looked up and never changed. Only the machines are
	// managed.
	External bool

	// ControlPlane is nil if EKS runs the control plane, or if it consists of stand-alone
	// Machines.
	ControlPlane *ControlPlane
	Deployments  []Deployment // in the order of the manifest
	Machines     []Machine    // stand-alone Machines, in the order of the manifest
	Pools        []Pool       // MachinePools, in the order of the manifest

	HealthChecks []*clusterv1.MachineHealthCheck // that have an effect, in the order of the manifest

	ResourceSets []ResourceSet // those whose selector matches the Cluster
	Charts       []Chart       // of the HelmChartProxies whose selector matches the Cluster
	ChartObjects int           // the number of all HelmChartProxies
	ChartsOnce   []string      // names of HelmChartProxies whose releases stay when they do not match any more
	Identity     []Identity    // the chain of identities to assume, from the first; empty means the caller's own credentials

	ConfigMaps map[string]*corev1.ConfigMap // by name
	Secrets    map[string]*corev1.Secret    // by name, with stringData merged into the decoded data

	// Warnings do not prevent anything: fields that have no effect yet, or objects that
	// need a management cluster.
	Warnings []Problem

	// DeletionProtection says whether deletions of a self-managed cluster are refused, from an annotation; nil: it stays as it
	// is. EKS has one of its own.
	DeletionProtection *bool

	// FlowLogs is the flow log of the VPC, from annotations; nil for none.
	FlowLogs *FlowLogs

	// Variables are the values of the ${VARIABLES} that were replaced; "" for the default.
	Variables map[string]string

	infra   string // title of the object behind Infra
	objects []Object
	where   map[string]Position // "Kind/name" or "Kind/name spec.path" -> position
	scalars map[string][]scalar // the fields that the manifest sets, by "Kind/name"
	refers  map[string][]string // "Kind/name" of the objects that an object refers to
}

// NewCluster returns an empty Cluster, for a loader to fill.
func NewCluster() *Cluster {
	return &Cluster{
		ConfigMaps: map[string]*corev1.ConfigMap{},
		Secrets:    map[string]*corev1.Secret{},
		Variables:  map[string]string{},
		where:      map[string]Position{},
	}
}

// KubernetesName is the cluster's name in Kubernetes, and in the tags of controllers in
// the cluster.
func (c *Cluster) KubernetesName() string {
	if c.EKS != nil {
		return c.EKS.ControlPlane.Spec.EKSClusterName
	}
	return c.Name
}

// DefaultAPIPort is the port of the API server on its machine, and of its load balancer if the manifest sets none.
const DefaultAPIPort = 6443

// APIPort is the port at which clients reach the API server.
func (c *Cluster) APIPort() int32 {
	return cmp.Or(c.Infra.Spec.ControlPlaneEndpoint.Port, c.Object.Spec.ClusterNetwork.APIServerPort, DefaultAPIPort)
}

// EKS is a control plane that EKS runs.
type EKS struct {
	// Cluster is nil if infrastructureRef names the control plane itself.
	Cluster *infrav1.AWSManagedCluster
	// ControlPlane always has a roleName: that of the manifest, otherwise the generated
	// one (with EnableIAM) or the default one. The same applies to node groups and
	// Fargate profiles.
	ControlPlane *ekscontrolplanev1.AWSManagedControlPlane
	Fargate      []*expinfrav1.AWSFargateProfile // in the order of the manifest
	// EnableIAM creates missing roles, and deletes them with the cluster. Without it, all
	// roles must exist (docs/adr/0015-eks-roles.md).
	EnableIAM bool
	EKSSettings
}

// Pool is a MachinePool. Exactly one of Managed (an EKS node group) and Scaling (an Auto
// Scaling group) is set.
type Pool struct {
	Object    *clusterv1.MachinePool
	Managed   *expinfrav1.AWSManagedMachinePool
	Scaling   *expinfrav1.AWSMachinePool
	Bootstrap Bootstrap
	NodeGroupSettings
}

// Bootstrap is the bootstrap configuration of a pool's machines. At most one field is
// set. None is set if the manifest has a dataSecretName, or if EKS writes the user data,
// for a node group without launch template.
type Bootstrap struct {
	Kubeadm *bootstrapv1.KubeadmConfig
	EKS     *eksbootstrapv1.EKSConfig //nolint:staticcheck // deprecated, and what nodes of Amazon Linux 2 boot with
	Nodeadm *eksbootstrapv1.NodeadmConfig
}

// ControlPlane is a KubeadmControlPlane and the template of its machines.
type ControlPlane struct {
	Object   *controlplanev1.KubeadmControlPlane
	Template *infrav1.AWSMachineTemplate
}

// Deployment is a MachineDeployment and its templates. At most one of the three bootstrap
// fields is set, and none if the manifest has a dataSecretName. Those of EKS are set in
// EKS clusters only.
type Deployment struct {
	Object           *clusterv1.MachineDeployment
	Template         *infrav1.AWSMachineTemplate
	Bootstrap        *bootstrapv1.KubeadmConfigTemplate
	EKSBootstrap     *eksbootstrapv1.EKSConfigTemplate
	NodeadmBootstrap *eksbootstrapv1.NodeadmConfigTemplate
}

// InfraObject returns the object that Infra comes from, for Origin: "AWSCluster/prod" or
// "AWSManagedControlPlane/prod". Their common fields have the same paths.
func (c *Cluster) InfraObject() string { return c.infra }

// KeyPair returns the name of the key pair of a machine: its own, the cluster's, or "default"; the empty
// name means none. In externally managed infrastructure there is no default, as in CAPA. inherited reports
// that the name is the cluster's.
func (c *Cluster) KeyPair(own *string) (name string, inherited bool) {
	switch cluster := c.Infra.Spec.SSHKeyName; {
	case own != nil:
		return *own, false
	case cluster != nil:
		return *cluster, true
	case c.External:
		return "", false
	}
	return "default", false
}

// SetInfra sets Infra, and the object that it comes from.
func (c *Cluster) SetInfra(infra *infrav1.AWSCluster, from *Entry) {
	c.Infra, c.infra = infra, from.Title()
}

// SetRegion changes the region of the cluster.
func (c *Cluster) SetRegion(region string) {
	c.Region = region
	c.Infra.Spec.Region = region
	if c.EKS != nil {
		c.EKS.ControlPlane.Spec.Region = region
	}
}

// Replicas returns the desired number of control-plane machines.
func (c *ControlPlane) Replicas() int { return replicas(c.Object.Spec.Replicas) }

// Replicas returns the desired number of machines.
func (d Deployment) Replicas() int { return replicas(d.Object.Spec.Replicas) }

// Replicas returns the initial number of machines.
func (p Pool) Replicas() int { return replicas(p.Object.Spec.Replicas) }

// replicas returns n, or Cluster API's default of 1.
func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

// Machine is a stand-alone Machine and its AWSMachine. At most one of the three bootstrap
// fields is set, as in Deployment.
type Machine struct {
	Object           *clusterv1.Machine
	Infra            *infrav1.AWSMachine
	Bootstrap        *bootstrapv1.KubeadmConfig
	EKSBootstrap     *eksbootstrapv1.EKSConfig //nolint:staticcheck // deprecated, and what nodes of Amazon Linux 2 boot with
	NodeadmBootstrap *eksbootstrapv1.NodeadmConfig
	ControlPlane     bool // has the label cluster.x-k8s.io/control-plane
}

// Identity is one step in the chain of identities with which the cluster is created.
// Exactly one of Static and Role is set. The caller's own credentials are an empty chain.
type Identity struct {
	Origin string // "AWSClusterRoleIdentity/prod"
	Static *StaticIdentity
	Role   *infrav1.AWSClusterRoleIdentitySpec
}

// StaticIdentity is an access key from a Secret of the manifest.
type StaticIdentity struct {
	AccessKeyID, SecretAccessKey, SessionToken string
}

// Problems of a manifest have the same types as those of other input files.
type (
	// Position is a position in an input file.
	Position = input.Position
	// Problem is one error or warning about the manifest.
	Problem = input.Problem
	// InvalidError says that the input is invalid.
	InvalidError = input.InvalidError
)

// Authorities are the Secrets with the user's certificates, as Cluster API names them after the cluster.
func Authorities() []string { return []string{"ca", "etcd", "proxy", "sa", "apiserver-etcd-client"} }
