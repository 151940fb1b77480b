// Package topology builds the graph of a cluster from the manifest and the inventory of
// the account. It makes no call.
//
// Each stage is a function that adds resources to the graph and returns what the next
// stages refer to. Its parameters are all that it reads: the manifest and the inventory
// (inputs), and the resources of earlier stages. What follows from the manifest and the
// inventory alone is a method of inputs.
package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Inventory has the parts of the account that are read before the graph is built. The zero value is
// an empty account.
type Inventory struct {
	Now          time.Time                    // time of the inventory; zero: no machine is old
	Zones        []string                     // available zones, in order of name
	ZoneInfo     map[string]ec2.ZoneInfo      // zones of the manifest that may be Local Zones or Wavelength Zones, by name
	Subnets      []ec2.SubnetState            // of the cluster
	Public       map[string]bool              // IDs of subnets of an existing VPC with a route to the internet
	PoolSubnets  map[string][]ec2.SubnetState // of the VPC, that match the filters of an AWSMachinePool, by its name
	Machines     []ec2.InstanceState          // of the cluster, without those that are being terminated
	Terminating  []ec2.InstanceState          // machines that are being terminated
	Types        map[string]ec2.InstanceType  // of machines to launch
	Account      string                       // account ID; only if a bucket policy needs it
	NATAddresses []string                     // of NAT gateways in existing subnets
	WaysOut      []string                     // addresses of the NAT gateways to which the routes of existing private subnets lead
	Left         LeftNetwork                  // parts of the network, also those that are not in the manifest any more
	Balancers    map[string]bool              // names of existing load balancers
	TargetGroups []elb.TargetGroupState       // of the cluster
	Unlisted     []elb.LoadBalancerState      // load balancers of the cluster that are not in the manifest
	Bucket       string                       // name of the bucket of the cluster, if it is not in the manifest; "" for none
	Initialized  bool                         // a machine has been launched to run kubeadm init
	Restore      *secrets.RestoreState        // the last restore of etcd; nil for none
	InitMachine  string                       // that machine's ID
	NeverRan     bool                         // AWS could not launch that machine: there was no etcd
	EtcdSince    time.Time                    // when a new etcd was begun after another one was lost; zero: never
	EKS          eks.Parts                    // of an EKS cluster
	OtherEKS     string                       // name of an EKS cluster that belongs to this cluster, and that the manifest does not name; "": none
	NodeRoles    map[string]string            // ARNs of the roles of EKS nodes, by name of their instance profile
	MissingRoles map[string]bool              // ARNs of roles of EKS add-ons that do not exist
	Templates    []ec2.LaunchTemplateState    // launch templates of the cluster, without user data
	LostMembers  []string                     // signs that a member of etcd has no machine (FindLostMembers)
	TagKeys      secrets.TagKeys              // of tags that runs have set
	BootSecrets  []string                     // prefixes of the names of secrets with boot data that runs may have stored
	Unhealthy    map[string]string            // IDs of machines that are to be replaced, and why (CheckHealth)
}

// Cluster is the graph of a cluster, and the resources that callers refer to.
type Cluster struct {
	*graph.Graph
	Endpoint bootdata.Endpoint
	API      *incluster.API // nil if the run does not use the API server
	Machines []Machine
	VPC      *graph.Ref[ec2.VPCState]
	Subnets  []Subnet // in the order in which CAPA lists them
	Remarks  []string // messages for the user
	// Joinable says that machines which are added later can join: this run, the control
	// plane or EKS keeps a join token valid.
	Joinable bool
	TagKeys  secrets.TagKeys // of the tags that the manifest wants
	// Members is how many members etcd should have on machines of the control plane; 0 if no etcd was
	// begun there, or the run does not use the API server.
	Members int
}

// Subnet is one subnet of the cluster.
type Subnet struct {
	*graph.Ref[ec2.SubnetState]
	Public bool
}

// Machine is one machine of the cluster.
type Machine struct {
	Group        string // name of the KubeadmControlPlane, the MachineDeployment or the Machine
	ControlPlane bool
	External     bool // a cloud controller manager sets the provider ID of its Node
	Instance     *graph.Ref[ec2.InstanceState]

	name        string            // with which its group launches it
	routes      []graph.Edge      // that it waits for by itself, after it is launched
	labels      map[string]string // labels of its Node
	rolls       bool              // a rollout replaces machines of its group
	replaceable bool              // the run may replace it
}

// place is the group and number of the machine: "md-0/2".
func (m Machine) place() string { return strings.TrimPrefix(string(m.Instance.ID()), "machine/") }

// NamespaceError says that a cluster with this name exists in another namespace.
type NamespaceError struct{ Region, Name, Namespace string }

func (e *NamespaceError) Error() string {
	return fmt.Sprintf("%s has a cluster of the name %s in the namespace %s: choose another name", e.Region, e.Name, e.Namespace)
}

// Options are the settings of a run that affect the graph.
type Options struct {
	Wait  plan.Wait // what the run waits for
	Drain bool      // drain the nodes of machines before they are terminated
	// NetworkFirst launches machines after the NAT gateways, not beside them.
	NetworkFirst bool
	// Adopt assumes that the cluster owns an EKS cluster without the owned tag, and that existing
	// machines were launched from the templates of the manifest: a run changes only their tags.
	Adopt bool
	// Restore is the snapshot with which the control plane begins again; nil for none.
	Restore *Restore
	// NewEtcd permits to begin a new, empty etcd if the cluster has lost its control plane.
	NewEtcd bool
	// TakesBack says that controllers have worked on the cluster: the join token of the account may
	// not be in it any more.
	TakesBack bool
}

// Build returns the graph of all resources that the manifest describes. It returns the
// first problem that depends on the account.
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
	groups, interfaces := addSecurityGroups(g, in, net)
	p := platform{net: net, groups: groups}
	var (
		plane   eksPlane
		lbs     loadBalancers
		bastion bool
	)
	if in.m.EKS != nil {
		bastion = addBastion(g, in, net, groups)
		if p.eks, err = addEKSCluster(g, in, net, groups, interfaces); err != nil {
			return Cluster{}, err
		}
		p.boot.endpoint = bootdata.Endpoint{EKS: p.eks, Port: eksPort}
	} else {
		if lbs, err = addLoadBalancers(g, in, balancerPlace{net, groups[infrav1.SecurityGroupAPIServerLB], interfaces}); err != nil {
			return Cluster{}, err
		}
		p.boot.endpoint, p.boot.bucket = lbs.endpoint, addBucket(g, in)
		addGatewayEndpoint(g, in, net, p.boot.bucket)
		bastion = addBastion(g, in, net, groups)
	}
	if err := in.checkNamespace(); err != nil {
		return Cluster{}, err
	}
	if err := in.checkControlPlane(); err != nil {
		return Cluster{}, err
	}
	if in.m.EKS == nil {
		addDeletionProtection(g, in)
		p.boot.keys = addCertificates(g, in)
	}
	plan := planMachines(in, in.groupsOfMachines(p.eks), bastion)
	api := newAPI(in, p.boot, p.eks, plan)
	if in.m.EKS != nil {
		if plane, err = addEKSParts(g, in, p, api, in.machinesJoin(p.eks)); err != nil {
			return Cluster{}, err
		}
		p.podNetwork = plane.podNetwork
	}
	p.boot.record = addBootstrapSecrets(g, in)
	if err := in.checkRestore(); err != nil {
		return Cluster{}, err
	}
	p.boot.restore = addRestore(g, in, p.boot)
	machines, remarks, err := addMachines(g, in, p, lbs, kubernetes{api: api, server: plane.server}, plan, plane.mappings)
	if in.m.EKS != nil {
		retireEKS(g, in, p.eks, plane.access.roles)
		addIdentityProvider(g, in, p.eks)
	}
	if !in.o.Adopt { // an import deletes nothing
		retireNetwork(g, in, net)
		retireSubnets(g, in)
	}
	keys := removeFormerTags(g, in)
	return Cluster{
		TagKeys:  keys,
		Endpoint: p.boot.endpoint,
		API:      api,
		Machines: machines,
		VPC:      net.vpc,
		Subnets:  net.list(),
		Remarks:  slices.Concat(net.remarks, in.leftRemarks(), plane.remarks, plan.remarks, in.restoreRemarks(), remarks),
		Joinable: in.m.EKS != nil || in.usesAPIServer() || plan.keepsToken,
		Members:  in.members(),
	}, err
}
