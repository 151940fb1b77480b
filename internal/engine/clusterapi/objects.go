// Package clusterapi builds the Cluster API objects of a cluster that exists: those that a
// management cluster has whose controllers made the same cluster. With them, controllers
// take the cluster over and change nothing in AWS.
//
// A manifest has only the objects that a user writes. Controllers add Machines, MachineSets,
// AWSMachines, bootstrap configurations and Secrets, and write the IDs of what they have
// made into the objects of the user.
package clusterapi

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// State has the existing parts of the cluster that objects mention.
type State struct {
	Endpoint   clusterv1.APIEndpoint // of the API server
	Balancer   string                // name in DNS of the load balancer of the API server; "" without one
	Services   string                // CIDR block that EKS has chosen for Services; "" if the cluster is self-managed
	Clients    []string              // CIDR blocks that may use the public endpoint of EKS; nil: as the manifest says
	VPC        *ec2.VPCState         // nil if somebody else owns the VPC
	Subnets    []Subnet              // that the cluster owns, in the order in which CAPA lists them
	Machines   []Machine             // without those of pools
	UserData   map[string][]byte     // of the launch templates of pools, by name of the MachinePool
	PKI        *boot.PKI             // nil on EKS
	Token      string                // the bootstrap token in the user data of pools, a secret; "" omits it
	Kubeconfig []byte                // of an administrator; nil on EKS, whose controller makes it
}

// Subnet is a subnet of the cluster's own VPC.
type Subnet struct {
	ec2.SubnetState
	Public bool
}

// Machine is one machine and the object that it was launched for.
type Machine struct {
	Group string // name of the KubeadmControlPlane, MachineDeployment or Machine
	ec2.InstanceState
}

// Item is an object, and the object that owns it.
type Item struct {
	manifest.Object
	Owner *Owner // nil if it has none
	// Status has the fields that a controller cannot derive from the rest; nil for most objects.
	Status map[string]any
}

// Owner is the owner of an object. It comes before the object in the list.
type Owner struct {
	manifest.Object
	Controller bool
}

// builder collects the items of a cluster.
type builder struct {
	m     *manifest.Cluster
	s     State
	items []Item

	cluster *clusterv1.Cluster
}

// Items returns the objects of a cluster, each after its owner.
func Items(m *manifest.Cluster, s State) ([]Item, error) {
	b := &builder{m: m, s: s, cluster: m.Object.DeepCopy()}
	b.addManifest()
	b.addDeployments()
	if err := b.addMachines(); err != nil {
		return nil, err
	}
	b.addPools()
	b.addSecrets()
	slices.SortStableFunc(b.items, func(x, y Item) int { return cmp.Compare(rank(x.Object), rank(y.Object)) })
	return b.items, nil
}

// add adds an object that the manifest does not have.
func (b *builder) add(x manifest.Object, owner *Owner) {
	x.SetNamespace(b.m.Namespace)
	b.items = append(b.items, Item{Object: x, Owner: owner})
}

// find returns the item of a kind and name; nil if there is none.
func (b *builder) find(kind, name string) *Item {
	for i, x := range b.items {
		if x.GetObjectKind().GroupVersionKind().Kind == kind && x.GetName() == name {
			return &b.items[i]
		}
	}
	return nil
}

// addManifest adds the objects of the manifest, with what controllers write into them.
func (b *builder) addManifest() {
	b.cluster.Spec.ControlPlaneEndpoint = b.s.Endpoint
	if services := &b.cluster.Spec.ClusterNetwork.Services; b.s.Services != "" {
		// CAPA tells nodes to use the first block, or 172.20.0.0/16: with a wrong one, they do
		// not find the DNS of the cluster.
		services.CIDRBlocks = []string{b.s.Services}
	}
	for _, from := range b.m.Objects() {
		x, _ := from.DeepCopyObject().(manifest.Object) // a copy has the type of the original
		switch o := x.(type) {
		case *clusterv1.Cluster:
			x = b.cluster
		case *infrav1.AWSCluster:
			b.fillNetwork(&o.Spec.NetworkSpec)
			o.Spec.Region, o.Spec.ControlPlaneEndpoint = b.m.Region, b.infraEndpoint()
		case *ekscontrolplanev1.AWSManagedControlPlane:
			b.fillNetwork(&o.Spec.NetworkSpec)
			o.Spec.Region = b.m.Region
			if len(b.s.Clients) > 0 { // CAPA writes those of the object, and would lock the nodes out
				o.Spec.EndpointAccess.PublicCIDRs = pointers(b.s.Clients)
			}
		}
		b.items = append(b.items, Item{Object: x})
	}
	for i, x := range b.items {
		b.items[i].Owner = b.ownerOf(x.Object)
	}
}

func pointers(all []string) (out []*string) {
	for _, s := range all {
		out = append(out, &s)
	}
	return out
}

// ownerOf returns the owner of an object of the manifest, as the controllers set it.
func (b *builder) ownerOf(x manifest.Object) *Owner {
	switch x.GetObjectKind().GroupVersionKind().Kind {
	case "AWSCluster", "AWSManagedCluster", "KubeadmControlPlane", "AWSManagedControlPlane":
		return &Owner{b.cluster, true}
	case "AWSMachineTemplate", "KubeadmConfigTemplate", "EKSConfigTemplate", "NodeadmConfigTemplate",
		"MachineDeployment", "MachinePool", "MachineHealthCheck", "AWSFargateProfile":
		return &Owner{b.cluster, false}
	case "Machine":
		return &Owner{b.cluster, false}
	}
	return nil
}

// rank orders kinds so that owners come before what they own.
func rank(x manifest.Object) int {
	order := []string{
		"Namespace",
		"AWSClusterControllerIdentity",
		"AWSClusterStaticIdentity",
		"AWSClusterRoleIdentity",
		"ConfigMap",
		"ClusterResourceSet",
		"HelmChartProxy",
		"Cluster",
		"AWSCluster",
		"AWSManagedControlPlane",
		"AWSManagedCluster",
		"AWSMachineTemplate",
		"KubeadmConfigTemplate",
		"EKSConfigTemplate",
		"NodeadmConfigTemplate",
		"KubeadmControlPlane",
		"MachineDeployment",
		"MachineSet",
		"MachinePool",
		"Machine",
		"MachineHealthCheck",
	}
	kind := x.GetObjectKind().GroupVersionKind().Kind
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}

// typeMeta sets the kind of an object.
func typeMeta(x manifest.Object, gv schema.GroupVersion, kind string) {
	x.GetObjectKind().SetGroupVersionKind(gv.WithKind(kind))
}

// reference refers to an object of another API group.
func reference(x manifest.Object) clusterv1.ContractVersionedObjectReference {
	gvk := x.GetObjectKind().GroupVersionKind()
	return clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: x.GetName()}
}

// clonedFrom are the annotations of an object that is a copy of a template. By them, a
// controller sees whether the template has been replaced.
func clonedFrom(template manifest.Object) map[string]string {
	gk := template.GetObjectKind().GroupVersionKind().GroupKind()
	return map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      template.GetName(),
		clusterv1.TemplateClonedFromGroupKindAnnotation: gk.String(),
	}
}

// meta returns the metadata of an object.
func meta(name string, labels, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}
}
