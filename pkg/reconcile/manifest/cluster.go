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
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"clusterawsadm/internal/input"
)

// Cluster is everything the manifest says about one cluster.
type Cluster struct {
	Name      string // of the Cluster object; part of every name and tag in AWS
	Namespace string // "default" where the manifest has none
	Region    string // from AWSCluster, or the caller's when that is empty
	Version   string // Kubernetes version of the control plane, "v1.34.2"

	Object *clusterv1.Cluster
	Infra  *infrav1.AWSCluster

	// ControlPlane is nil when the control plane is made of single Machines.
	ControlPlane *ControlPlane
	Deployments  []Deployment // in the order of the manifest
	Machines     []Machine    // stand-alone Machines, in the order of the manifest

	ResourceSets []ResourceSet // those whose selector matches the Cluster
	Identity     []Identity    // the chain of identities, the ambient one first; empty means ambient

	ConfigMaps map[string]*corev1.ConfigMap // by name
	Secrets    map[string]*corev1.Secret    // by name, data decoded (stringData merged)

	// Warnings are remarks that do not stop anything: a field that has no
	// effect yet, an object that acts only under a management cluster.
	Warnings []Problem

	where map[string]Position // "Kind/name" and "Kind/name spec.path" to place
}

// ControlPlane is a KubeadmControlPlane with the template of its machines.
type ControlPlane struct {
	Object   *controlplanev1.KubeadmControlPlane
	Template *infrav1.AWSMachineTemplate
}

// Deployment is a MachineDeployment with its templates.
type Deployment struct {
	Object    *clusterv1.MachineDeployment
	Template  *infrav1.AWSMachineTemplate
	Bootstrap *bootstrapv1.KubeadmConfigTemplate // nil when the manifest names a dataSecretName
}

// Replicas returns how many control-plane machines there are to be.
func (c *ControlPlane) Replicas() int { return replicas(c.Object.Spec.Replicas) }

// Replicas returns how many machines there are to be.
func (d Deployment) Replicas() int { return replicas(d.Object.Spec.Replicas) }

// replicas is Cluster API's default where a number was left out.
func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

// Machine is a stand-alone Machine with its own AWSMachine.
type Machine struct {
	Object       *clusterv1.Machine
	Infra        *infrav1.AWSMachine
	Bootstrap    *bootstrapv1.KubeadmConfig // nil when the manifest names a dataSecretName
	ControlPlane bool                       // carries the label cluster.x-k8s.io/control-plane
}

// ResourceSet is a ClusterResourceSet with the YAML it brings, one object per
// document, in the order Cluster API applies them: resource by resource, key
// by key in alphabetical order, and within a key what others need first.
type ResourceSet struct {
	Object    *addonsv1.ClusterResourceSet
	Documents []string
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
