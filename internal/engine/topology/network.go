package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// network is what the rest of a cluster is built on.
type network struct {
	vpc      *graph.Ref[ec2.VPCState]
	internet *graph.Ref[ec2.InternetGatewayState] // nil in a VPC that is somebody else's
	ipv6     bool
	subnets  []subnet                                   // in CAPA's order: public before private, zone by zone
	egress   map[string][]graph.Edge                    // by zone: what must stand before a private subnet has internet
	tables   map[string]*graph.Ref[ec2.RouteTableState] // by subnet name
	nat      []*graph.Ref[ec2.ElasticIPState]
}

// subnet is one subnet of the cluster, ours or somebody else's.
type subnet struct {
	ref          *graph.Ref[ec2.SubnetState]
	name, zone   string
	public, ours bool
	cidr         string
	ipv6         int    // index of its /64; 0: none
	ipv6CIDR     string // as the manifest says
	path         string // where the manifest says so
	tags         cloud.Tags
}

// of returns the subnets of one kind, in order.
func (n *network) of(public bool) (out []subnet) {
	for _, s := range n.subnets {
		if s.public == public {
			out = append(out, s)
		}
	}
	return out
}

// first returns the first subnet of a kind in a zone; any zone if it is "".
func (n *network) first(public bool, zone string) (subnet, bool) {
	for _, s := range n.of(public) {
		if zone == "" || s.zone == zone {
			return s, true
		}
	}
	return subnet{}, false
}

// managed reports whether the network is ours to make.
func (b *builder) managed() bool { return b.spec.NetworkSpec.VPC.ID == "" }

func (b *builder) network() {
	b.net = network{egress: map[string][]graph.Edge{}, tables: map[string]*graph.Ref[ec2.RouteTableState]{}}
	if !b.managed() {
		b.foreignNetwork()
		return
	}
	spec := b.spec.NetworkSpec.VPC
	b.net.ipv6 = spec.IPv6 != nil
	vpc := graph.Add(b.Graph, "vpc", &ec2.VPC{
		CIDR: blockOf(spec), IPv6: b.net.ipv6, Tags: b.tags("vpc", b.m.Name+"-vpc", roleCommon),
	}, b.infra("spec.network.vpc"))
	b.net.vpc = vpc
	b.blocks()
	if spec.EmptyRoutesDefaultVPCSecurityGroup {
		graph.Add(b.Graph, "default-group", &ec2.DefaultGroup{VPC: vpc}, b.infra("spec.network.vpc.emptyRoutesDefaultVPCSecurityGroup"))
	}
	b.net.internet = graph.Add(b.Graph, "internet-gateway", &ec2.InternetGateway{
		VPC: vpc, Tags: b.tags("internet-gateway", b.m.Name+"-igw", roleCommon),
	}, b.infra("spec.network"))
	var egressOnly *graph.Ref[ec2.EgressOnlyGatewayState]
	if b.net.ipv6 {
		egressOnly = graph.Add(b.Graph, "egress-only-gateway", &ec2.EgressOnlyGateway{
			VPC: vpc, Tags: b.tags("egress-only-gateway", b.m.Name+"-eigw", roleCommon),
		}, b.infra("spec.network.vpc.ipv6"))
	}
	for i := range b.plannedSubnets() {
		b.ownSubnet(&b.net.subnets[i])
	}
	b.routes(b.natGateways(), egressOnly)
	b.endpoints()
}

func blockOf(spec infrav1.VPCSpec) string {
	if spec.CidrBlock == "" {
		return defaultCIDR
	}
	return spec.CidrBlock
}

// blocks adds the VPC's secondary blocks.
func (b *builder) blocks() {
	for i, block := range b.spec.NetworkSpec.VPC.SecondaryCidrBlocks {
		graph.Add(b.Graph, graph.ID("vpc-block/"+block.IPv4CidrBlock), &ec2.VPCBlock{
			VPC: b.net.vpc, CIDR: block.IPv4CidrBlock, Foreign: !b.managed(),
		}, b.infra(fmt.Sprintf("spec.network.vpc.secondaryCidrBlocks[%d]", i)))
	}
}

// plannedSubnets lists the subnets that are wanted: those of the manifest, or
// CAPA's split over the zones.
func (b *builder) plannedSubnets() []subnet {
	for i, s := range b.spec.NetworkSpec.Subnets {
		ipv6 := 0
		if s.IsIPv6 && s.IPv6CidrBlock == "" {
			ipv6 = i + 1
		}
		b.net.subnets = append(b.net.subnets, subnet{
			name: s.ID, zone: s.AvailabilityZone, public: s.IsPublic, ours: true, cidr: s.CidrBlock, ipv6: ipv6, ipv6CIDR: s.IPv6CidrBlock,
			path: fmt.Sprintf("spec.network.subnets[%d]", i), tags: cloud.Tags(s.Tags),
		})
	}
	if len(b.net.subnets) > 0 {
		return b.net.subnets
	}
	spec := b.spec.NetworkSpec.VPC
	zones := pickZones(&spec, b.m.Name, b.inv.Zones, b.usedZones())
	if len(zones) == 0 {
		b.fail("region %s shows no availability zone that can be used", b.m.Region)
		return nil
	}
	preferPublic := spec.SubnetSchema != nil && *spec.SubnetSchema == infrav1.SubnetSchemaPreferPublic
	public, private, err := Split(blockOf(spec), len(zones), preferPublic)
	if err != nil {
		b.fail("%s: %w", b.m.Origin(b.m.InfraObject(), "spec.network.vpc.cidrBlock"), err)
		return nil
	}
	for i, zone := range zones {
		// The preferred kind counts its /64s from 2, the other from where that ends.
		preferred, residual := 0, 0
		if b.net.ipv6 {
			preferred, residual = 2+i, 2+len(zones)+i
		}
		pub := subnet{name: "public-" + zone, zone: zone, public: true, ours: true, cidr: public[i], ipv6: residual, path: "spec.network.subnets"}
		prv := subnet{name: "private-" + zone, zone: zone, ours: true, cidr: private[i], ipv6: preferred, path: "spec.network.subnets"}
		if preferPublic {
			pub.ipv6, prv.ipv6 = prv.ipv6, pub.ipv6
		}
		b.net.subnets = append(b.net.subnets, pub, prv)
	}
	return b.net.subnets
}

// usedZones lists the zones in which the cluster has subnets already.
func (b *builder) usedZones() []string {
	zones := map[string]bool{}
	for _, s := range b.inv.Subnets {
		if s.Tags["sigs.k8s.io/cluster-api-provider-aws/association"] != "secondary" {
			zones[s.Zone] = true
		}
	}
	return slices.Sorted(maps.Keys(zones))
}

// ownSubnet adds a subnet that is ours.
func (b *builder) ownSubnet(s *subnet) {
	kind, elb := rolePrivate, "kubernetes.io/role/internal-elb"
	if s.public {
		kind, elb = rolePublic, "kubernetes.io/role/elb"
	}
	id := graph.ID("subnet/" + kind + "/" + s.zone)
	if b.Resource(id) != nil || len(b.spec.NetworkSpec.Subnets) > 0 {
		id = graph.ID("subnet/" + kind + "/" + s.name)
	}
	name := fmt.Sprintf("%s-subnet-%s-%s", b.m.Name, kind, s.zone)
	r := &ec2.Subnet{
		VPC: b.net.vpc, CIDR: s.cidr, Zone: s.zone, Public: s.public,
		Tags: b.tags(id, name, kind, b.cloudProvider(cloud.Owned), cloud.Tags{elb: "1"}, s.tags),
	}
	if b.net.ipv6 {
		r.IPv6Index, r.IPv6CIDR = s.ipv6, s.ipv6CIDR
	}
	if t := b.spec.NetworkSpec.VPC.PrivateDNSHostnameTypeOnLaunch; t != nil {
		r.HostnameType = *t
	}
	opts := []graph.Option{b.infra(s.path)}
	for i, block := range b.spec.NetworkSpec.VPC.SecondaryCidrBlocks {
		if within(s.cidr, block.IPv4CidrBlock) {
			opts = append(opts, graph.With(graph.On(b.Resource(graph.ID("vpc-block/"+b.spec.NetworkSpec.VPC.SecondaryCidrBlocks[i].IPv4CidrBlock)))))
		}
	}
	s.ref = graph.Add(b.Graph, id, r, opts...)
}

// natGateways adds an address and a NAT gateway in each zone that has a
// private subnet and a public one to stand in.
func (b *builder) natGateways() map[string]*graph.Ref[ec2.NATGatewayState] {
	made := map[string]*graph.Ref[ec2.NATGatewayState]{}
	for _, s := range b.net.of(false) {
		public, ok := b.net.first(true, s.zone)
		if made[s.zone] != nil || !ok {
			continue
		}
		ip, nat := graph.ID("elastic-ip/"+s.zone), graph.ID("nat-gateway/"+s.zone)
		address := graph.Add(b.Graph, ip, &ec2.ElasticIP{Subnet: public.ref, Tags: b.tags(ip, b.m.Name+"-eip-common", roleCommon)}, b.infra("spec.network"))
		made[s.zone] = graph.Add(b.Graph, nat, &ec2.NATGateway{
			Subnet: public.ref, Address: address, Internet: b.net.internet, Tags: b.tags(nat, b.m.Name+"-nat", roleCommon),
		}, b.infra("spec.network"))
		b.net.nat = append(b.net.nat, address)
	}
	return made
}

// routes adds a route table for each subnet.
func (b *builder) routes(nats map[string]*graph.Ref[ec2.NATGatewayState], egressOnly *graph.Ref[ec2.EgressOnlyGatewayState]) {
	for _, s := range b.net.subnets {
		kind := rolePrivate
		var routes []ec2.Route
		switch nat := nats[s.zone]; {
		case s.public:
			kind = rolePublic
			routes = append(routes, ec2.Route{To: "0.0.0.0/0", Via: b.net.internet})
			if b.net.ipv6 {
				routes = append(routes, ec2.Route{To: "::/0", Via: b.net.internet})
			}
		case nat != nil:
			routes = append(routes, ec2.Route{To: "0.0.0.0/0", Via: nat})
			if s.cidr == "" {
				routes = append(routes, ec2.Route{To: "64:ff9b::/96", Via: nat}) // NAT64
			}
		}
		if !s.public && b.net.ipv6 {
			routes = append(routes, ec2.Route{To: "::/0", Via: egressOnly})
		}
		id := graph.ID("route-table/" + strings.TrimPrefix(string(s.ref.ID()), "subnet/"))
		table := graph.Add(b.Graph, id, &ec2.RouteTable{
			VPC: b.net.vpc, Subnet: s.ref, Routes: routes,
			Tags: b.tags(id, fmt.Sprintf("%s-rt-%s-%s", b.m.Name, kind, s.zone), roleCommon, b.cloudProvider(cloud.Owned)),
		}, b.infra(s.path))
		b.net.tables[s.name] = table
		b.net.egress[s.name] = graph.Awaits(table)
	}
}

// endpoints adds the gateway endpoint of S3 where machines load from there.
func (b *builder) endpoints() {
	if b.spec.S3Bucket == nil {
		return
	}
	var tables []*graph.Ref[ec2.RouteTableState]
	for _, s := range b.net.subnets {
		tables = append(tables, b.net.tables[s.name])
	}
	graph.Add(b.Graph, "vpc-endpoint/s3", &ec2.GatewayEndpoint{
		VPC: b.net.vpc, Service: "com.amazonaws." + b.m.Region + ".s3", RouteTables: tables,
		Tags: b.tags("vpc-endpoint/s3", b.m.Name+"-endpoint-s3", roleCommon),
	}, b.infra("spec.s3Bucket"))
}

// foreignNetwork looks up a VPC that somebody else made, and its subnets. They
// are used as they are, but for the tags that CAPA puts on subnets (facts
// B.13), and secondary blocks.
func (b *builder) foreignNetwork() {
	spec := b.spec.NetworkSpec
	b.net.vpc = graph.Use(b.Graph, "vpc", ec2.VPCByID(spec.VPC.ID), b.infra("spec.network.vpc.id"))
	b.blocks()
	for i, given := range spec.Subnets {
		id := given.ResourceID
		if id == "" {
			id = given.ID
		}
		s := subnet{name: id, zone: given.AvailabilityZone, public: given.IsPublic, path: fmt.Sprintf("spec.network.subnets[%d]", i)}
		if seen, ok := b.seen(id); ok {
			s.zone = seen.Zone
			s.public = s.public || seen.MapPublicIP || seen.Tags[cloud.RoleTag] == rolePublic
		}
		kind, elb := rolePrivate, "kubernetes.io/role/internal-elb"
		if s.public {
			kind, elb = rolePublic, "kubernetes.io/role/elb"
		}
		node := graph.ID("subnet/" + kind + "/" + id)
		s.ref = graph.Use(b.Graph, node, ec2.SubnetByID(b.net.vpc, id), graph.With(graph.On(b.net.vpc)), b.infra(s.path))
		graph.Add(b.Graph, graph.ID("subnet-tags/"+id), &ec2.SubnetTags{
			Subnet: s.ref, Tags: b.cloudProvider("shared").With(cloud.Tags{elb: "1", cloud.RoleTag: kind}),
		}, b.infra(s.path))
		b.net.subnets = append(b.net.subnets, s)
	}
}

// seen returns a subnet of the inventory.
func (b *builder) seen(id string) (ec2.SubnetState, bool) {
	i := slices.IndexFunc(b.inv.Subnets, func(s ec2.SubnetState) bool { return s.ID == id })
	if i < 0 {
		return ec2.SubnetState{}, false
	}
	return b.inv.Subnets[i], true
}
