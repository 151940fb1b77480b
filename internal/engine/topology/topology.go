// Package topology says what a cluster is made of: it turns the manifest, and
// what an inventory has found, into a graph of resources. It talks to nobody.
package topology

import (
	"fmt"
	"strings"
	"time"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Inventory is what has to be known of the account before the graph can be
// built. The zero value is an empty account of which nothing is known.
type Inventory struct {
	Now          time.Time                   // when it was taken; zero: no machine is old
	Zones        []string                    // that can be used, in order of name
	Subnets      []ec2.SubnetState           // of the cluster
	Machines     []ec2.InstanceState         // of the cluster
	Types        map[string]ec2.InstanceType // of the machines that are still to be made
	Account      string                      // its number; only where a bucket's policy needs it
	NATAddresses []string                    // of NAT gateways in subnets that are somebody else's
	Foreign      map[string]bool             // load balancers of that name that are somebody else's
	Initialized  bool                        // a machine has been launched to begin the control plane
	EKS          eks.Parts                   // of a cluster of EKS
	NodeRoles    map[string]string           // ARNs of the roles of instance profiles of nodes of EKS, by name
	Templates    []ec2.LaunchTemplateState   // of the cluster, without their content
}

// Cluster is the graph of a cluster, and the nodes that its users ask for.
type Cluster struct {
	*graph.Graph
	Endpoint bootdata.Endpoint
	Machines []Machine
	Remarks  []string // what the user should know, and does nothing wrong about
	// Joinable says that machines which are added late can join: the run sees to
	// their token, or the control plane does.
	Joinable bool
}

// Machine is one machine of the cluster.
type Machine struct {
	Group        string // name of the KubeadmControlPlane, the MachineDeployment or the Machine
	ControlPlane bool
	External     bool // a cloud controller manager has to tell its node which machine it is
	Instance     *graph.Ref[ec2.InstanceState]

	labels map[string]string // that its node is to have
}

// place is its group and number: "md-0/2".
func (m Machine) place() string { return strings.TrimPrefix(string(m.Instance.ID()), "machine/") }

// UnsupportedError says that a manifest asks for what cannot be made yet.
type UnsupportedError struct{ Object, What string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: %s are not supported yet", e.Object, e.What)
}

// Options say what is wanted beside the manifest.
type Options struct {
	Wait  Wait // how far the cluster is to be when a run ends
	Drain bool // machines leave a living cluster in good order; else they are only terminated
}

// Build returns the graph of everything that the manifest wants.
func Build(m *manifest.Cluster, inv Inventory, o Options) (Cluster, error) {
	b := &builder{Graph: graph.New(), m: m, spec: &m.Infra.Spec, inv: inv, o: o}
	b.network()
	b.securityGroups()
	if m.EKS == nil {
		b.loadBalancers()
		b.bucket()
	}
	b.bastion()
	if m.EKS != nil {
		b.eks()
	}
	b.machines()
	return Cluster{b.Graph, b.endpoint, b.made, b.remarks, b.m.EKS != nil || b.kept || o.Wait.asks()}, b.err
}

// builder holds what parts of the graph hand on to each other.
type builder struct {
	*graph.Graph
	m    *manifest.Cluster
	spec *infrav1.AWSClusterSpec
	inv  Inventory
	o    Options
	err  error // the first problem: something that only the account could tell

	net      network
	groups   map[infrav1.SecurityGroupRole]*graph.Ref[ec2.SecurityGroupState]
	lb       loadBalancers
	endpoint bootdata.Endpoint
	store    *graph.Ref[s3.BucketState]
	keys     *graph.Ref[secrets.PKIState]
	plane    *graph.Ref[eks.ClusterState]
	roles    map[string]*graph.Ref[iam.RoleState] // of EKS, by name
	entered  map[string]bool                      // ARNs of the roles of nodes that have an access entry of ours
	made     []Machine
	mappings []incluster.Mapping // of EKS: who is let in by the ConfigMap aws-auth
	rollouts []rollout
	untold   []string                                 // names of machines that do not say what they were made from
	config   *graph.Ref[incluster.KubeadmConfigState] // nil where kubeadm keeps none, or nobody looks
	api      *incluster.API                           // nil where the run does not wait for it
	server   *graph.Ref[incluster.APIServerState]
	renewal  *incluster.JoinToken // nil unless machines join later
	token    *graph.Ref[incluster.JoinTokenState]
	kept     bool // a machine of the control plane keeps the token valid
	remarks  []string
}

// fail notes the first problem.
func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// remark notes what the user should know.
func (b *builder) remark(format string, args ...any) {
	b.remarks = append(b.remarks, fmt.Sprintf(format, args...))
}

// infra returns an option that names a part of the AWSCluster as the origin.
func (b *builder) infra(path string) graph.Option {
	return graph.From(b.m.Origin(b.m.InfraObject(), path))
}

// tags returns the tags of a thing, in the order in which CAPA builds them
// (facts B.2): its name, what the user adds, whose it is and what for. The
// node tag, its identity to us, comes on top.
func (b *builder) tags(node graph.ID, name, role string, more ...cloud.Tags) cloud.Tags {
	tags := cloud.Tags{"Name": name}.With(cloud.Tags(b.spec.AdditionalTags))
	for _, t := range more {
		tags = tags.With(t)
	}
	tags[cloud.ClusterTagPrefix+b.m.Name] = cloud.Owned
	tags[cloud.RoleTag] = role
	tags[cloud.ResourceTag] = string(node)
	return tags
}

// cloudProvider is the tag by which the AWS cloud controller manager finds
// what it may use.
func (b *builder) cloudProvider(value string) cloud.Tags {
	return cloud.Tags{cloud.CloudProviderTagPrefix + b.m.KubernetesName(): value}
}

// Values of the role tag.
const (
	roleCommon    = "common"
	rolePublic    = "public"
	rolePrivate   = "private"
	roleAPIServer = "apiserver"
	roleBastion   = "bastion"
)

// partition returns the partition of ARNs in the region.
func partition(spec *infrav1.AWSClusterSpec, region string) string {
	switch {
	case spec.Partition != "":
		return spec.Partition
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	case strings.HasPrefix(region, "us-iso-"):
		return "aws-iso"
	case strings.HasPrefix(region, "us-isob-"):
		return "aws-iso-b"
	}
	return "aws"
}
