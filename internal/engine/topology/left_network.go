package topology

import (
	"fmt"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	words "github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// LeftNetwork has the parts of a network that runs have made. Some may not be in the manifest any more.
type LeftNetwork struct {
	Groups      []ec2.SecurityGroupState
	NATGateways []ec2.NATGatewayState
	Addresses   []ec2.ElasticIPState
	Tables      []ec2.RouteTableState
	Users       []string // what uses the subnets that are not in the manifest, as text
}

// UnlistedSubnets returns the subnets of a cluster that its manifest does not list any more.
func UnlistedSubnets(m *manifest.Cluster, all []ec2.SubnetState) (out []ec2.SubnetState) {
	spec := &m.Infra.Spec.NetworkSpec
	if spec.VPC.ID != "" {
		return nil
	}
	pods := m.EKS != nil && m.EKS.ControlPlane.Spec.SecondaryCidrBlock != nil
	for _, s := range all {
		path, is := strings.CutPrefix(s.Tags[cloud.ResourceTag], "subnet/")
		role, name, _ := strings.Cut(path, "/")
		listed := slices.ContainsFunc(spec.Subnets, func(x infrav1.SubnetSpec) bool { return x.ID == name })
		switch {
		case !is || listed: // or it was not made by a run
		case role == "secondary" && !pods, role != "secondary" && len(spec.Subnets) > 0:
			out = append(out, s)
		}
	}
	return out
}

// OwnBalancers lists the names of the network load balancers of the manifest.
func OwnBalancers(m *manifest.Cluster) (names []string) {
	in := inputs{m: m, spec: &m.Infra.Spec}
	for _, lb := range in.networkLoadBalancers() {
		names = append(names, in.balancerName(lb))
	}
	return names
}

// keepsLeft reports whether the subnets that are not in the manifest stay, because something uses them.
func (in inputs) keepsLeft() bool { return len(in.inv.Left.Users) > 0 }

// leftAddresses lists the addresses of the NAT gateways that stay because subnets stay that are not in the manifest. gateways are those of the
// manifest.
func (in inputs) leftAddresses(gateways []natGateway) (out []string) {
	if !in.keepsLeft() {
		return nil
	}
	for _, x := range in.inv.Left.NATGateways {
		zone, is := strings.CutPrefix(x.Tags[cloud.ResourceTag], "nat-gateway/")
		if is && natGatewayIn(zone, gateways) == nil && x.PublicIP != "" {
			out = append(out, x.PublicIP)
		}
	}
	return out
}

// leftRemarks says why subnets stay that are not in the manifest.
func (in inputs) leftRemarks() []string {
	if !in.keepsLeft() {
		return nil
	}
	var names []string
	for _, s := range UnlistedSubnets(in.m, in.inv.Subnets) {
		names = append(names, s.ID+" ("+s.Tags.Printable("Name")+")")
	}
	return []string{fmt.Sprintf(
		"%s: the subnets %s are not in the manifest any more, but %s: they stay, with their NAT gateways, until a run finds them empty",
		in.m.Origin(in.m.InfraObject(), "spec.network.subnets"), strings.Join(names, ", "), words.Several(in.inv.Left.Users)+" use them",
	)}
}

// retireSubnets retires subnets that are not in the manifest any more, and then the NAT gateways, addresses and route tables that no
// other subnet needs, if nothing uses the subnets.
func retireSubnets(g *graph.Graph, in inputs) {
	if in.spec.NetworkSpec.VPC.ID != "" || in.keepsLeft() {
		return
	}
	users := graph.Awaits(desiredOf(g, elb.LoadBalancerKind, elb.ClassicLoadBalancerKind, "eks-cluster", "node-group", "auto-scaling-group", "fargate-profile")...)
	tables := graph.Awaits(desiredOf(g, "route-table")...)
	var inside, outside []ec2.SubnetState
	for _, s := range UnlistedSubnets(in.m, in.inv.Subnets) {
		if s.Tags[cloud.RoleTag] == rolePublic {
			outside = append(outside, s)
		} else {
			inside = append(inside, s)
		}
	}
	private := retireTagged(g, inside, "subnet", ec2.Subnets, &ec2.Subnet{}, users)
	gateways := retireTagged(g, in.inv.Left.NATGateways, "nat-gateway", ec2.NATGateways, &ec2.NATGateway{}, append(tables, graph.Awaits(private...)...))
	retireTagged(g, in.inv.Left.Addresses, "elastic-ip", ec2.Addresses, &ec2.ElasticIP{}, graph.Awaits(gateways...))
	public := retireTagged(g, outside, "subnet", ec2.Subnets, &ec2.Subnet{}, append(users, graph.Awaits(gateways...)...))
	retireTagged(g, in.inv.Left.Tables, "route-table", ec2.RouteTables, &ec2.RouteTable{}, graph.Awaits(append(private, public...)...))
}

// retireTagged retires resources of a kind that the graph does not have, or for which the manifest names an existing one now. It leaves out
// those without the identity tag of a run.
func retireTagged[S interface {
	graph.State
	ResourceTags() cloud.Tags
}](g *graph.Graph, all []S, of string, list kind.Listing[S], deleter graph.Deleter[S], after []graph.Edge) (out []graph.Resource) {
	for _, s := range all {
		id := plan.ID(s.ResourceTags()[cloud.ResourceTag])
		if id.Kind() != of {
			continue
		}
		find := kind.Listed(list, s.CloudID())
		switch successor := g.Resource(id); {
		case successor == nil:
			out = append(out, kind.Retire(g, id, find, deleter, after))
		case successor.Role() == graph.RoleExisting:
			out = append(out, kind.Retire(g, "retired/"+id, find, deleter, after, graph.Label(id)))
		}
	}
	return out
}
