// Package topology decides which resources a cluster consists of. It turns the
// manifest, and what was observed of the account, into a graph. It makes no call.
//
// Each stage is a function: it adds resources to the graph and returns what the
// next stages refer to.
package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Inventory is what has to be known of the account before the graph can be
// built. The zero value is an empty account of which nothing is known.
type Inventory struct {
	Now          time.Time                   // when it was taken; zero: no machine is old
	Zones        []string                    // that can be used, in order of name
	Subnets      []ec2.SubnetState           // of the cluster
	Machines     []ec2.InstanceState         // of the cluster
	Types        map[string]ec2.InstanceType // of the machines that are still to be launched
	Account      string                      // its number; only where a bucket's policy needs it
	NATAddresses []string                    // of NAT gateways in existing subnets
	Balancers    map[string]bool             // names of existing load balancers
	Initialized  bool                        // a machine has been launched to initialize the control plane
	EKS          eks.Parts                   // of an EKS cluster
	NodeRoles    map[string]string           // ARNs of the roles of EKS nodes, by name of their instance profile
	Templates    []ec2.LaunchTemplateState   // of the cluster, without their content
}

// Cluster is the graph of a cluster, and the resources that its users ask for.
type Cluster struct {
	*graph.Graph
	Endpoint bootdata.Endpoint
	Machines []Machine
	Remarks  []string // what the user should know, though it is no error
	// Joinable says that machines which are added later can join: this run, the
	// control plane or EKS keeps a join token valid.
	Joinable bool
}

// Machine is one machine of the cluster.
type Machine struct {
	Group        string // name of the KubeadmControlPlane, the MachineDeployment or the Machine
	ControlPlane bool
	External     bool // a cloud controller manager sets the provider ID of its Node
	Instance     *graph.Ref[ec2.InstanceState]

	labels map[string]string // that its Node is to have
	rolls  bool              // a rollout replaces machines of its group
}

// place is its group and number: "md-0/2".
func (m Machine) place() string { return strings.TrimPrefix(string(m.Instance.ID()), "machine/") }

// UnsupportedError says that a manifest asks for what is not supported yet.
type UnsupportedError struct{ Object, What string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: %s are not supported yet", e.Object, e.What)
}

// NamespaceError says that another cluster has the name already.
type NamespaceError struct{ Region, Name, Namespace string }

func (e *NamespaceError) Error() string {
	return fmt.Sprintf("%s has a cluster of the name %s in the namespace %s: choose another name", e.Region, e.Name, e.Namespace)
}

// Options say what is wanted beside the manifest.
type Options struct {
	Wait  Wait // how far the cluster is to be when a run ends
	Drain bool // drain the nodes of machines before they are terminated
}

// Wait is how far a cluster has to be before a run that creates it ends.
type Wait string

// How far a cluster can be. The zero value waits for AWS alone.
const (
	Infrastructure Wait = "infrastructure" // AWS runs the machines
	APIServer      Wait = "api"            // the API server answers, and all machines of the control plane have joined
	NodesReady     Wait = "nodes"          // all machines are Nodes, and ready
)

// Build returns the graph of everything that the manifest wants. The error is
// the first problem that only the account could show.
func Build(m *manifest.Cluster, inv Inventory, o Options) (Cluster, error) {
	in := inputs{m: m, spec: &m.Infra.Spec, inv: inv, o: o}
	g := graph.New()
	built, err := build(g, in)
	built.Graph = g
	return built, err
}

func build(g *graph.Graph, in inputs) (Cluster, error) {
	net, err := addNetwork(g, in)
	if err != nil {
		return Cluster{}, err
	}
	b := base{inputs: in, net: net}
	b.groups, b.interfaces = addSecurityGroups(g, in, net)
	var (
		p       platform
		plane   eksPlane
		lbs     loadBalancers
		bastion bool
	)
	if in.m.EKS != nil {
		bastion = addBastion(g, b)
		plane, err = addEKS(g, b)
		p = plane.platform
	} else {
		if lbs, err = addLoadBalancers(g, b); err != nil {
			return Cluster{}, err
		}
		p = platform{base: b, endpoint: lbs.endpoint, bucket: addBucket(g, in)}
		bastion = addBastion(g, b)
	}
	if err != nil {
		return Cluster{}, err
	}
	if err := in.checkNamespace(); err != nil {
		return Cluster{}, err
	}
	if in.m.EKS == nil {
		p.keys = addCertificates(g, in)
	}
	addBootstrapSecrets(g, in)
	plan := planMachines(in, in.groupsOfMachines(p.eks), bastion)
	machines, remarks, err := addMachines(g, p, lbs, plan, plane.mappings)
	return Cluster{
		Endpoint: p.endpoint,
		Machines: machines,
		Remarks:  slices.Concat(plane.remarks, plan.remarks, remarks),
		Joinable: in.m.EKS != nil || in.asks() || plan.keepsToken,
	}, err
}
