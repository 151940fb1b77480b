package topology

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// network is the VPC with its subnets and gateways.
type network struct {
	vpc       *graph.Ref[ec2.VPCState]
	internet  *graph.Ref[ec2.InternetGatewayState] // nil in an existing VPC
	ipv6      bool
	subnets   []subnet                         // in CAPA's order: public before private, zone by zone
	addresses []*graph.Ref[ec2.ElasticIPState] // of the NAT gateways
	left      []string                         // addresses of NAT gateways of subnets that are not in the manifest any more
	remarks   []string                         // messages for the user
}

// subnet is one subnet of the cluster.
type subnet struct {
	ref        *graph.Ref[ec2.SubnetState]
	table      *graph.Ref[ec2.RouteTableState] // nil for an existing subnet
	name, zone string
	alias      string // id in the manifest of a listed subnet that is found by its block
	public     bool
	edge       bool   // it is in a Local Zone or a Wavelength Zone
	wavelength bool   // it is in a Wavelength Zone
	secondary  bool   // it is for pods only
	nat        bool   // a NAT gateway of this cluster leads to the internet
	only6      bool   // it has no IPv4 addresses
	parent     string // availability zone of an edge zone
	cidr       string
	ipv6       int    // index of its /64; 0: none
	ipv6CIDR   string // from the manifest
	path       string // in the manifest; "" if it is not there
	tags       cloud.Tags
}

// is reports whether the manifest refers to the subnet by a name.
func (s subnet) is(name string) bool { return s.name == name || s.alias != "" && s.alias == name }

// role is the role tag of the subnet.
func (s subnet) role() string {
	if s.public {
		return rolePublic
	}
	return rolePrivate
}

// loadBalancerTag is the tag by which the AWS cloud controller manager picks
// subnets for load balancers of Services; none in an edge zone, as in CAPA.
func (s subnet) loadBalancerTag() cloud.Tags {
	if s.edge {
		return nil
	}
	if s.public {
		return cloud.Tags{"kubernetes.io/role/elb": "1"}
	}
	return cloud.Tags{"kubernetes.io/role/internal-elb": "1"}
}

// egress are the resources that have to exist before machines in the subnet can reach the
// internet.
func (s subnet) egress() []graph.Edge { return graph.Awaits(s.table) }

// of returns a subnet by its resource.
func (n network) of(ref *graph.Ref[ec2.SubnetState]) subnet {
	for _, s := range n.subnets {
		if s.ref == ref {
			return s
		}
	}
	return subnet{}
}

// subnetsOfKind returns the public or the private subnets in availability zones, in order. As in
// CAPA, subnets in edge zones contain machines only if the manifest says so, and
// neither load balancers nor NAT gateways. Subnets for pods contain none of them.
func (n network) subnetsOfKind(public bool) (out []subnet) {
	for _, s := range n.subnets {
		if s.public == public && !s.edge && !s.secondary {
			out = append(out, s)
		}
	}
	return out
}

// first returns the first public or private subnet in a zone that is not for pods only; in
// any zone if it is "".
func (n network) first(public bool, zone string) (subnet, bool) {
	for _, s := range n.subnets {
		if s.public == public && !s.secondary && (zone == "" && !s.edge || s.zone == zone) {
			return s, true
		}
	}
	return subnet{}, false
}

// egress are the resources that have to exist before machines in a subnet can reach the
// internet.
func (n network) egress(of *graph.Ref[ec2.SubnetState]) []graph.Edge {
	return n.of(of).egress()
}

// addNetwork adds the VPC and its parts, or looks up an existing VPC.
func addNetwork(g *graph.Graph, in inputs) (network, error) {
	spec := in.spec.NetworkSpec.VPC
	if spec.ID != "" {
		return addExistingNetwork(g, in), nil
	}
	n := network{ipv6: spec.IPv6 != nil}
	n.vpc = graph.Add(g, "vpc", &ec2.VPC{
		CIDR: vpcCIDR(spec), IPv6: n.ipv6, Tags: in.tags("vpc", in.m.Name+"-vpc", roleCommon),
	}, in.infra("spec.network.vpc"))
	blocks := addSecondaryBlocks(g, in, n.vpc)
	if spec.EmptyRoutesDefaultVPCSecurityGroup {
		graph.Add(g, "default-group", &ec2.DefaultGroup{VPC: n.vpc}, in.infra("spec.network.vpc.emptyRoutesDefaultVPCSecurityGroup"))
	}
	n.internet = graph.Add(g, "internet-gateway", &ec2.InternetGateway{
		VPC: n.vpc, Tags: in.tags("internet-gateway", in.m.Name+"-igw", roleCommon),
	}, in.infra("spec.network"))
	var egressOnly *graph.Ref[ec2.EgressOnlyGatewayState]
	if n.ipv6 {
		egressOnly = graph.Add(g, "egress-only-gateway", &ec2.EgressOnlyGateway{
			VPC: n.vpc, Tags: in.tags("egress-only-gateway", in.m.Name+"-eigw", roleCommon),
		}, in.infra("spec.network.vpc.ipv6"))
	}
	planned, err := in.plannedSubnets()
	if err != nil {
		return n, err
	}
	for _, s := range planned {
		s.ref = addSubnet(g, in, n.vpc, blocks, s)
		n.subnets = append(n.subnets, s)
	}
	gateways := addNATGateways(g, in, n)
	if err := in.checkEgress(n, gateways); err != nil {
		return n, err
	}
	for _, x := range gateways {
		n.addresses = append(n.addresses, x.address)
	}
	n.left = in.leftAddresses(gateways)
	n.subnets = addRouteTables(g, in, n, gateways, egressOnly, addCarrierGateway(g, in, n))
	addFlowLog(g, in, n.vpc)
	return n, nil
}

func vpcCIDR(spec infrav1.VPCSpec) string {
	if spec.CidrBlock == "" {
		return DefaultCIDR
	}
	return spec.CidrBlock
}

// addSecondaryBlocks adds the VPC's secondary blocks, in the order of the
// manifest.
func addSecondaryBlocks(g *graph.Graph, in inputs, vpc *graph.Ref[ec2.VPCState]) (out []*graph.Ref[ec2.VPCBlockState]) {
	spec := in.spec.NetworkSpec.VPC
	for i, block := range spec.SecondaryCidrBlocks {
		out = append(out, graph.Add(g, plan.ID("vpc-block/"+block.IPv4CidrBlock), &ec2.VPCBlock{
			VPC: vpc, CIDR: block.IPv4CidrBlock, ExistingVPC: spec.ID != "",
		}, in.infra(fmt.Sprintf("spec.network.vpc.secondaryCidrBlocks[%d]", i))))
	}
	return out
}

// plannedSubnets lists the desired subnets: those of the manifest, or CAPA's split over
// the zones.
func (in inputs) plannedSubnets() (out []subnet, err error) {
	for i, s := range in.spec.NetworkSpec.Subnets {
		ipv6 := 0
		if s.IsIPv6 && s.IPv6CidrBlock == "" {
			ipv6 = i + 1
		}
		path := fmt.Sprintf("spec.network.subnets[%d]", i)
		zone, err := in.zoneOf(s, path+".availabilityZone")
		if err != nil {
			return nil, err
		}
		if s.IsIPv6 && zone.IsEdge() {
			return nil, fmt.Errorf("%s: Local Zones and Wavelength Zones have no IPv6", in.m.Origin(in.m.InfraObject(), path+".isIpv6"))
		}
		out = append(out, subnet{
			name: s.ID, zone: s.AvailabilityZone, public: s.IsPublic, edge: zone.IsEdge(), wavelength: zone.IsWavelength(), parent: zone.Parent,
			secondary: isSecondary(cloud.Tags(s.Tags)), only6: s.CidrBlock == "", cidr: s.CidrBlock, ipv6: ipv6, ipv6CIDR: s.IPv6CidrBlock,
			path: path, tags: cloud.Tags(s.Tags),
		})
	}
	if len(out) > 0 {
		pods, err := in.podSubnets(zonesOf(out))
		pods = slices.DeleteFunc(pods, func(s subnet) bool { // listed, as in CAPA, which finds it by its block
			return slices.ContainsFunc(out, func(listed subnet) bool { return overlap(s.cidr, listed.cidr) })
		})
		return append(out, pods...), err
	}
	spec := in.spec.NetworkSpec.VPC
	zones := pickZones(&spec, in.m.Name, in.inv.Zones, in.usedZones(), in.offersAll)
	if len(zones) == 0 {
		return nil, fmt.Errorf("region %s shows no availability zone that can be used", in.m.Region)
	}
	preferPublic := spec.SubnetSchema != nil && *spec.SubnetSchema == infrav1.SubnetSchemaPreferPublic
	public, private, err := Split(vpcCIDR(spec), len(zones), preferPublic)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.m.Origin(in.m.InfraObject(), "spec.network.vpc.cidrBlock"), err)
	}
	for i, zone := range zones {
		// The preferred kind counts its /64s from 2; the other kind continues from there.
		preferred, residual := 0, 0
		if spec.IPv6 != nil {
			preferred, residual = 2+i, 2+len(zones)+i
		}
		pub := subnet{name: "public-" + zone, zone: zone, public: true, cidr: public[i], ipv6: residual, path: "spec.network.subnets"}
		prv := subnet{name: "private-" + zone, zone: zone, cidr: private[i], ipv6: preferred, path: "spec.network.subnets"}
		if preferPublic {
			pub.ipv6, prv.ipv6 = prv.ipv6, pub.ipv6
		}
		out = append(out, pub, prv)
	}
	pods, err := in.podSubnets(zones)
	return append(out, pods...), err
}

// zonesOf lists the availability zones of subnets, sorted.
func zonesOf(subnets []subnet) []string {
	zones := map[string]bool{}
	for _, s := range subnets {
		if !s.edge {
			zones[s.zone] = true
		}
	}
	return slices.Sorted(maps.Keys(zones))
}

// zoneOf returns the kind of the zone of a subnet in the manifest. What AWS says counts more
// than zoneType and parentZoneName.
func (in inputs) zoneOf(s infrav1.SubnetSpec, path string) (ec2.ZoneInfo, error) {
	zone, known := in.inv.ZoneInfo[s.AvailabilityZone]
	switch {
	case zone.Closed != "":
		return zone, fmt.Errorf(
			"%s: the account has not opted in to %s, which contains the zone %s: run aws ec2 modify-availability-zone-group --region %s --group-name %s --opt-in-status opted-in",
			in.m.Origin(in.m.InfraObject(), path),
			zone.Closed,
			s.AvailabilityZone,
			in.m.Region,
			zone.Closed,
		)
	case known:
		return zone, nil
	case in.inv.ZoneInfo != nil && s.AvailabilityZone != "":
		return zone, fmt.Errorf("%s: region %s has no zone %s", in.m.Origin(in.m.InfraObject(), path), in.m.Region, s.AvailabilityZone)
	}
	switch { // without an account, the name has to tell
	case s.ZoneType != nil:
		zone.Type = string(*s.ZoneType)
	case IsUnusualZone(in.m.Region, s.AvailabilityZone) && strings.Contains(s.AvailabilityZone, "-wl"):
		zone.Type = string(infrav1.ZoneTypeWavelengthZone)
	case IsUnusualZone(in.m.Region, s.AvailabilityZone):
		zone.Type = string(infrav1.ZoneTypeLocalZone)
	}
	zone.Parent = text(s.ParentZoneName)
	return zone, nil
}

// IsUnusualZone reports whether a zone does not have the name of an availability zone, which
// is that of its region and a letter. It may be a Local Zone or a Wavelength Zone.
func IsUnusualZone(region, zone string) bool {
	letter, ok := strings.CutPrefix(zone, region)
	return zone != "" && (!ok || len(letter) != 1)
}

// usedZones lists the zones in which the cluster has subnets already.
func (in inputs) usedZones() []string {
	return in.zonesWith(func(s ec2.SubnetState) bool { return !isSecondary(s.Tags) })
}

// zonesWith lists the zones that have an existing subnet for which a condition is true, sorted.
func (in inputs) zonesWith(condition func(ec2.SubnetState) bool) []string {
	zones := map[string]bool{}
	for _, s := range in.inv.Subnets {
		if condition(s) {
			zones[s.Zone] = true
		}
	}
	return slices.Sorted(maps.Keys(zones))
}

// isSecondary reports whether a subnet with these tags is for pods only (CAPA: NonCni
// subnets are the others).
func isSecondary(tags cloud.Tags) bool { return tags[association] == "secondary" }

// association is the tag of subnets for pods (CAPA: NameAWSSubnetAssociation).
const association = "sigs.k8s.io/cluster-api-provider-aws/association"

func addSubnet(g *graph.Graph, in inputs, vpc *graph.Ref[ec2.VPCState], blocks []*graph.Ref[ec2.VPCBlockState], s subnet) *graph.Ref[ec2.SubnetState] {
	spec := in.spec.NetworkSpec
	id, name := plan.ID("subnet/"+s.role()+"/"+s.zone), fmt.Sprintf("%s-subnet-%s-%s", in.m.Name, s.role(), s.zone)
	switch {
	case s.path == podSubnetPath:
		id, name = plan.ID("subnet/secondary/"+s.zone), s.name
	case len(spec.Subnets) > 0:
		id, name = plan.ID("subnet/"+s.role()+"/"+s.name), s.name // as in CAPA
	}
	r := &ec2.Subnet{
		VPC: vpc, CIDR: s.cidr, Zone: s.zone, Public: s.public && !s.wavelength, // a Wavelength Zone has carrier addresses instead of public ones
		Tags: in.tags(id, name, s.role(), in.cloudProvider(cloud.Owned), s.loadBalancerTag(), in.discoveryTag(s), s.tags),
	}
	if len(spec.Subnets) == 0 || s.path == podSubnetPath {
		r.Advice = in.blockAdvice()
	}
	if spec.VPC.IPv6 != nil {
		r.IPv6Index, r.IPv6CIDR = s.ipv6, s.ipv6CIDR
	}
	if t := spec.VPC.PrivateDNSHostnameTypeOnLaunch; t != nil {
		r.HostnameType = *t
	}
	opts := []graph.Option{in.infra(s.path)}
	for i, block := range spec.VPC.SecondaryCidrBlocks {
		if within(s.cidr, block.IPv4CidrBlock) {
			opts = append(opts, graph.With(graph.On(blocks[i])))
		}
	}
	return graph.Add(g, id, r, opts...)
}

// blockAdvice says what to do if the block of a subnet that the manifest does not list would be another one.
func (in inputs) blockAdvice() string {
	const limit, list = "spec.network.vpc.availabilityZoneUsageLimit", "list the subnets that exist in spec.network.subnets, or create another cluster"
	spec := &in.spec.NetworkSpec.VPC
	if have := len(in.usedZones()); have != min(ZoneLimit(spec), max(have, len(in.inv.Zones))) {
		return fmt.Sprintf("the cluster has subnets in %d zones, and their blocks depend on that number: set %s to %[1]d, %s", have, limit, list)
	}
	return "the manifest does not list the subnets, so their blocks follow from the number of zones and from the blocks of the VPC: set spec.network.vpc back, " + list
}

// overlap reports whether two blocks have an address in common.
func overlap(x, y string) bool {
	a, err1 := netip.ParsePrefix(x)
	b, err2 := netip.ParsePrefix(y)
	return err1 == nil && err2 == nil && a.Overlaps(b)
}

// within reports whether a block is inside another.
func within(inner, outer string) bool {
	in, err1 := netip.ParsePrefix(inner)
	out, err2 := netip.ParsePrefix(outer)
	return err1 == nil && err2 == nil && out.Overlaps(in) && out.Bits() <= in.Bits()
}

// natGateway is the NAT gateway of a zone.
type natGateway struct {
	ref     *graph.Ref[ec2.NATGatewayState]
	address *graph.Ref[ec2.ElasticIPState]
	zone    string
}

// natGatewayIn returns the NAT gateway of a zone; nil for none.
func natGatewayIn(zone string, all []natGateway) *graph.Ref[ec2.NATGatewayState] {
	for _, x := range all {
		if x.zone == zone {
			return x.ref
		}
	}
	return nil
}

// natGatewayFor returns the NAT gateway through which a private subnet reaches the
// internet: that of its zone; in an edge zone, as in CAPA, that of the parent zone, or else
// the first one.
func natGatewayFor(s subnet, all []natGateway) *graph.Ref[ec2.NATGatewayState] {
	if !s.edge {
		return natGatewayIn(s.zone, all)
	}
	if nat := natGatewayIn(s.parent, all); nat != nil || len(all) == 0 {
		return nat
	}
	return slices.MinFunc(all, func(x, y natGateway) int { return strings.Compare(x.zone, y.zone) }).ref
}

// addNATGateways adds an address and a NAT gateway in each zone that has a
// private subnet, and a public one for the gateway.
func addNATGateways(g *graph.Graph, in inputs, n network) (out []natGateway) {
	for _, s := range n.subnetsOfKind(false) {
		public, ok := n.first(true, s.zone)
		if !ok || natGatewayIn(s.zone, out) != nil {
			continue
		}
		ip, nat := plan.ID("elastic-ip/"+s.zone), plan.ID("nat-gateway/"+s.zone)
		address := graph.Add(g, ip, &ec2.ElasticIP{Subnet: public.ref, Tags: in.tags(ip, in.m.Name+"-eip-common", roleCommon)}, in.infra("spec.network"))
		gateway := graph.Add(g, nat, &ec2.NATGateway{
			Subnet: public.ref, Address: address, Internet: n.internet, Tags: in.tags(nat, in.m.Name+"-nat", roleCommon),
		}, in.infra("spec.network"))
		out = append(out, natGateway{gateway, address, s.zone})
	}
	return out
}

// checkEgress checks that there is a NAT gateway for every private subnet, as CAPA does.
func (in inputs) checkEgress(n network, gateways []natGateway) error {
	for _, s := range n.subnets {
		if !s.public && natGatewayFor(s, gateways) == nil {
			return fmt.Errorf(
				"%s: the private subnet %s has no way to the internet: add a public subnet in %s, for a NAT gateway",
				in.m.Origin(in.m.InfraObject(), s.path),
				s.name,
				s.zone,
			)
		}
	}
	return nil
}

// addCarrierGateway adds the carrier gateway if there is a public subnet in a
// Wavelength Zone. Its name is that of the internet gateway, as in CAPA.
func addCarrierGateway(g *graph.Graph, in inputs, n network) *graph.Ref[ec2.CarrierGatewayState] {
	if !slices.ContainsFunc(n.subnets, func(s subnet) bool { return s.public && s.wavelength }) {
		return nil
	}
	return graph.Add(g, "carrier-gateway", &ec2.CarrierGateway{
		VPC: n.vpc, Tags: in.tags("carrier-gateway", in.m.Name+"-igw", roleCommon),
	}, in.infra("spec.network"))
}

// addRouteTables adds a route table for each subnet. It returns the subnets
// with their tables.
func addRouteTables(
	g *graph.Graph,
	in inputs,
	n network,
	gateways []natGateway,
	egressOnly *graph.Ref[ec2.EgressOnlyGatewayState],
	carrier *graph.Ref[ec2.CarrierGatewayState],
) (out []subnet) {
	for _, s := range n.subnets {
		var routes []ec2.Route
		switch nat := natGatewayFor(s, gateways); {
		case s.public && s.wavelength:
			routes = append(routes, ec2.Route{To: "0.0.0.0/0", Via: carrier})
		case s.public:
			routes = append(routes, ec2.Route{To: "0.0.0.0/0", Via: n.internet})
			if n.ipv6 {
				routes = append(routes, ec2.Route{To: "::/0", Via: n.internet})
			}
		case nat != nil:
			s.nat = true
			routes = append(routes, ec2.Route{To: "0.0.0.0/0", Via: nat})
			if s.cidr == "" {
				routes = append(routes, ec2.Route{To: "64:ff9b::/96", Via: nat}) // NAT64
			}
		}
		if !s.public && n.ipv6 {
			routes = append(routes, ec2.Route{To: "::/0", Via: egressOnly})
		}
		id := plan.ID("route-table/" + strings.TrimPrefix(string(s.ref.ID()), "subnet/"))
		s.table = graph.Add(g, id, &ec2.RouteTable{
			VPC: n.vpc, Subnet: s.ref, Routes: routes,
			Tags: in.tags(id, fmt.Sprintf("%s-rt-%s-%s", in.m.Name, s.role(), s.zone), roleCommon, in.cloudProvider(cloud.Owned)),
		}, in.infra(s.path))
		out = append(out, s)
	}
	return out
}

// s3Endpoint is the ID of the gateway endpoint of S3.
const s3Endpoint plan.ID = "vpc-endpoint/s3"

// addGatewayEndpoint adds the gateway endpoint of S3 where machines load their
// Ignition configuration from a bucket.
//
// It comes after the bucket: a run whose manifest has no bucket any more finds the endpoint by that of the cluster.
func addGatewayEndpoint(g *graph.Graph, in inputs, n network, bucket *graph.Ref[s3.BucketState]) {
	if bucket == nil {
		return
	}
	var tables []*graph.Ref[ec2.RouteTableState]
	for _, s := range n.subnets {
		tables = append(tables, s.table)
	}
	graph.Add(g, s3Endpoint, &ec2.GatewayEndpoint{
		VPC: n.vpc, Service: "com.amazonaws." + in.m.Region + ".s3", RouteTables: tables,
		Tags: in.tags(s3Endpoint, in.m.Name+"-endpoint-s3", roleCommon),
	}, in.infra("spec.s3Bucket"), graph.With(graph.Exists(bucket)))
}

// addFlowLog adds the flow log of the VPC, or deletes the one of an earlier run, as the annotations
// say.
func addFlowLog(g *graph.Graph, in inputs, vpc *graph.Ref[ec2.VPCState]) {
	f, id := in.m.FlowLogs, plan.ID(ec2.FlowLogKind)
	if f == nil {
		return
	}
	from := graph.From(in.m.Origin(in.m.InfraObject(), manifest.AnnotationPath(manifest.AnnotationFlowLogs)))
	desired := &ec2.FlowLog{
		VPC: vpc, Destination: ec2.FlowLogDestination{LogGroup: f.LogGroup, Role: f.Role, Bucket: f.Bucket}, Traffic: f.Traffic,
		Tags: in.tags(id, in.m.Name+"-flow-log", roleCommon),
	}
	if f.Removed {
		graph.Retire(g, id, desired, from)
		return
	}
	graph.Add(g, id, desired, from)
}

// addExistingNetwork looks up an existing VPC and its subnets. It follows these rules of CAPA:
// only secondary blocks and the tags of subnets are changed. A subnet is public if its route
// table has a route to the internet, or if it has the role tag for public subnets; the field
// isPublic of the manifest does not change that.
func addExistingNetwork(g *graph.Graph, in inputs) (n network) {
	spec := in.spec.NetworkSpec
	n.vpc = graph.Use(g, "vpc", ec2.VPCByID(spec.VPC.ID), in.infra("spec.network.vpc.id"))
	if !in.m.External {
		addSecondaryBlocks(g, in, n.vpc)
	}
	addFlowLog(g, in, n.vpc)
	for i, given := range spec.Subnets {
		find, id := in.existingSubnet(n.vpc, given)
		s := subnet{
			name: id, alias: given.ID, zone: given.AvailabilityZone, public: given.IsPublic, edge: given.IsEdge(), wavelength: given.IsEdgeWavelength(),
			path: fmt.Sprintf("spec.network.subnets[%d]", i), tags: cloud.Tags(given.Tags), secondary: isSecondary(cloud.Tags(given.Tags)),
		}
		if seen, ok := in.observedSubnet(id); ok {
			if given.AvailabilityZone != "" && given.AvailabilityZone != seen.Zone {
				n.remarks = append(
					n.remarks,
					fmt.Sprintf("%s: subnet %s is in %s, not in %s", in.m.Origin(in.m.InfraObject(), s.path+".availabilityZone"), id, seen.Zone, given.AvailabilityZone),
				)
			}
			s.zone, s.secondary, s.only6 = seen.Zone, s.secondary || isSecondary(seen.Tags), seen.CIDR == "" && seen.IPv6CIDR != ""
			if zone, ok := in.inv.ZoneInfo[seen.Zone]; ok {
				s.edge, s.wavelength = zone.IsEdge(), zone.IsWavelength()
			}
			s.public = in.inv.Public[id] || seen.Tags[cloud.RoleTag] == rolePublic
			n.remarks = append(n.remarks, in.otherRoutes(s, given.IsPublic)...)
		}
		s.ref = graph.Use(g, plan.ID("subnet/"+s.role()+"/"+id), find, graph.With(graph.On(n.vpc)), in.infra(s.path))
		if !in.m.External {
			graph.Add(g, plan.ID("subnet-tags/"+id), &ec2.SubnetTags{
				Subnet: s.ref, Tags: in.existingTags(s),
			}, in.infra(s.path))
		}
		n.subnets = append(n.subnets, s)
	}
	return n
}

// otherRoutes returns a warning if the field isPublic of an existing subnet contradicts the routes of the subnet.
func (in inputs) otherRoutes(s subnet, isPublic bool) []string {
	what := "has no route to an internet gateway: it is used as a private subnet"
	if s.public {
		what = "has a route to an internet gateway, or the role tag of public subnets: it is used as a public subnet"
	}
	path := s.path + ".isPublic"
	if s.public == isPublic || !in.m.Sets(in.m.InfraObject(), path) {
		return nil
	}
	return []string{fmt.Sprintf("%s: subnet %s %s", in.m.Origin(in.m.InfraObject(), path), s.name, what)}
}

// existingTags returns the tags that a run sets on a listed subnet of an existing VPC.
func (in inputs) existingTags(s subnet) cloud.Tags {
	if in.m.External || in.spec.NetworkSpec.VPC.ID == "" {
		return nil
	}
	return cloud.Tags(in.spec.AdditionalTags).With(s.loadBalancerTag()).With(in.discoveryTag(s)).With(in.cloudProvider("shared")).With(s.tags)
}

// existingSubnet returns how a listed subnet of an existing VPC is looked up, and its ID: in CAPA
// (FindEqual), the manifest names its ID or its block. The ID is the name in the manifest if
// there is no subnet with the block.
func (in inputs) existingSubnet(vpc *graph.Ref[ec2.VPCState], given infrav1.SubnetSpec) (graph.Lookup[ec2.SubnetState], string) {
	if id := ExistingSubnetID(given, in.inv.Subnets); id != "" {
		return ec2.SubnetByID(vpc, id), id
	}
	return ec2.SubnetByBlock(vpc, given.CidrBlock, given.IPv6CidrBlock), cmp.Or(given.ID, given.CidrBlock, given.IPv6CidrBlock)
}

// ExistingSubnetID returns the ID of a listed subnet of an existing VPC, or "" if the VPC has no
// subnet with its block.
func ExistingSubnetID(given infrav1.SubnetSpec, all []ec2.SubnetState) string {
	if id := given.GetResourceID(); strings.HasPrefix(id, "subnet-") {
		return id
	}
	for _, s := range all {
		if s.HasBlock(given.CidrBlock, given.IPv6CidrBlock) {
			return s.ID
		}
	}
	return ""
}

// observedSubnet returns a subnet of the inventory.
func (in inputs) observedSubnet(id string) (ec2.SubnetState, bool) {
	i := slices.IndexFunc(in.inv.Subnets, func(s ec2.SubnetState) bool { return s.ID == id })
	if i < 0 {
		return ec2.SubnetState{}, false
	}
	return in.inv.Subnets[i], true
}

// list returns the subnets for callers of Build.
func (n network) list() (out []Subnet) {
	for _, s := range n.subnets {
		out = append(out, Subnet{s.ref, s.public})
	}
	return out
}
