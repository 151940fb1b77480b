// Package assume puts into a simulated account what a manifest takes for granted, plausibly: an existing VPC has subnets
// with routes, a role has the policies that roles of its service usually have.
package assume

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elbv2 "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/kms"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Put adds to the account what a manifest takes for granted and the account lacks. It returns what it has added, in words.
func Put(ctx context.Context, sim *awssim.AWS, all []cluster.Assumed) (told []string, err error) {
	p := sim.Process()
	zones, err := zonesOf(ctx, p.Config())
	if err != nil {
		return nil, err
	}
	if all, err = withoutImages(ctx, p.Config(), all); err != nil {
		return nil, err
	}
	assumed := assumption{region: p.Config().Region, zones: zones, now: sim.Clock().Now(), used: map[string]int{}, trusts: map[string][]string{}}
	sim.Edit(func(s *awssim.State) {
		assumed.State = s
		for _, x := range all {
			if put := assumed.byKind()[x.Kind]; put != nil {
				if what := put(x); what != "" {
					told = append(told, fmt.Sprintf("%s %s (%s)", x.Kind, what, x.Origin))
				}
			}
		}
		assumed.completeVPCs()
	})
	for _, x := range all {
		if x.Kind != cluster.AssumedLoadBalancer {
			continue
		}
		made, err := loadBalancer(ctx, sim, x)
		if err != nil {
			return told, fmt.Errorf("%s %s: %w", x.Kind, x.ID, err)
		}
		if made {
			told = append(told, fmt.Sprintf("%s %s (%s)", x.Kind, x.ID, x.Origin))
		}
	}
	return told, nil
}

// withoutImages returns what is assumed, without the images found by name that the account has.
func withoutImages(ctx context.Context, cfg aws.Config, all []cluster.Assumed) (out []cluster.Assumed, err error) {
	c := awsec2.NewFromConfig(cfg)
	filter := func(name, value string) ec2types.Filter { return ec2types.Filter{Name: &name, Values: []string{value}} }
	for _, x := range all {
		if x.Pattern != "" {
			found, err := c.DescribeImages(ctx, &awsec2.DescribeImagesInput{
				Filters: []ec2types.Filter{filter("owner-id", x.Owner), filter("name", x.Pattern), filter("architecture", x.Detail)},
			})
			if err != nil {
				return nil, err
			}
			if len(found.Images) > 0 {
				continue
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// zonesOf lists the availability zones of a region.
func zonesOf(ctx context.Context, cfg aws.Config) (names []string, err error) {
	out, err := awsec2.NewFromConfig(cfg).DescribeAvailabilityZones(ctx, &awsec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return nil, err
	}
	for _, z := range out.AvailabilityZones {
		if aws.ToString(z.ZoneType) == "availability-zone" {
			names = append(names, aws.ToString(z.ZoneName))
		}
	}
	slices.Sort(names)
	return names, nil
}

// assumption adds what is assumed to the state of an account.
type assumption struct {
	*awssim.State
	region string
	zones  []string
	now    time.Time
	used   map[string]int      // number of subnets that have got their zone here: of public and private ones
	vpcs   []string            // that were added
	trusts map[string][]string // services that assume the roles that were added
}

// byKind returns how to add something of each kind. The results say what was added; "" if it was there.
func (a *assumption) byKind() map[string]func(cluster.Assumed) string {
	return map[string]func(cluster.Assumed) string{
		cluster.AssumedVPC:              a.vpc,
		cluster.AssumedSubnet:           a.subnet,
		cluster.AssumedSecurityGroup:    a.securityGroup,
		cluster.AssumedInternetGateway:  a.internetGateway,
		cluster.AssumedNetworkInterface: a.networkInterface,
		cluster.AssumedKeyPair:          a.keyPair,
		cluster.AssumedImage:            a.image,
		cluster.AssumedPlacementGroup:   a.placementGroup,
		cluster.AssumedReservation:      a.reservation,
		cluster.AssumedHost:             a.host,
		cluster.AssumedKMSKey:           a.kmsKey,
		cluster.AssumedRole:             a.role,
		cluster.AssumedUser:             a.user,
		cluster.AssumedInstanceProfile:  a.instanceProfile,
		cluster.AssumedPolicy:           a.policy,
	}
}

// reservation adds a capacity reservation, which may be a Capacity Block.
func (a *assumption) reservation(x cluster.Assumed) string {
	return add(a.EC2.Reservations, x.ID, &awssim.Reservation{Block: x.Detail != ""})
}

// host adds a Dedicated Host. If the manifest names no host, the new one accepts machines by auto-placement.
func (a *assumption) host(x cluster.Assumed) string {
	return add(a.EC2.Hosts, x.ID, &awssim.Host{AutoPlacement: x.Detail != ""})
}

// add adds something by its name. It returns the name, or "" if the account has it already.
func add[T any](all map[string]T, name string, x T) string {
	if _, has := all[name]; has {
		return ""
	}
	all[name] = x
	return name
}

// thing is what all resources of EC2 have.
func (a *assumption) thing(prefix string, x cluster.Assumed) awssim.Thing {
	tags := maps.Clone(x.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	delete(tags, "group-name")
	return awssim.Thing{ID: cmp.Or(x.ID, ec2.GivenID(prefix, a.region, fmt.Sprint(x.VPC, x.Tags))), Tags: tags, Born: a.now.Add(-24 * time.Hour)}
}

// part is a resource that belongs to an assumed one, such as a route table.
func (a *assumption) part(prefix, of, name string) awssim.Thing {
	return awssim.Thing{ID: ec2.GivenID(prefix, a.region, of+" "+name), Tags: map[string]string{"Name": name}, Born: a.now.Add(-24 * time.Hour)}
}

// defaultBlock is the block of a VPC if the manifest does not say it.
const defaultBlock = "10.0.0.0/16"

func (a *assumption) vpc(x cluster.Assumed) string {
	if a.EC2.VPCs[x.ID] != nil {
		return ""
	}
	v := &awssim.VPC{Thing: a.thing("vpc", x), CIDR: cmp.Or(x.CIDR, defaultBlock), Tenancy: "default", DNSHostnames: true, DNSSupport: true}
	if x.IPv6 != "" {
		block := x.IPv6
		if block == cluster.AnyIPv6 {
			block = "2600:1f18:ffff::/56"
		}
		v.IPv6 = &awssim.Association{ID: ec2.GivenID("vpc-cidr-assoc", a.region, x.ID), CIDR: block, Born: v.Born}
	}
	a.EC2.VPCs[x.ID] = v
	a.vpcs = append(a.vpcs, x.ID)
	main := a.part("rtb", x.ID, "main")
	a.EC2.RouteTables[main.ID] = &awssim.RouteTable{Thing: main, VPC: x.ID, Main: ec2.GivenID("rtbassoc", a.region, x.ID), Associations: map[string]string{}}
	group := a.part("sg", x.ID, "default")
	a.EC2.SecurityGroups[group.ID] = &awssim.SecurityGroup{
		Thing: group, VPC: x.ID, Name: "default", Description: "default VPC security group", Egress: []awssim.Rule{a.everything(group.ID)},
		Ingress: []awssim.Rule{{ID: ec2.GivenID("sgr", a.region, group.ID), Protocol: "-1", From: -1, To: -1, Group: group.ID}},
	}
	return x.ID + " with " + v.CIDR + " and DNS host names"
}

// everything is the rule that allows all traffic of a group to go out.
func (a *assumption) everything(group string) awssim.Rule {
	return awssim.Rule{ID: ec2.GivenID("sgr", a.region, "all of "+group), Protocol: "-1", From: -1, To: -1, CIDR: "0.0.0.0/0"}
}

// completeVPCs gives VPCs without a block in the manifest those of their subnets.
func (a *assumption) completeVPCs() {
	for _, id := range a.vpcs {
		v := a.EC2.VPCs[id]
		for _, s := range a.EC2.Subnets {
			block, err := netip.ParsePrefix(s.CIDR)
			if err != nil || s.VPC != id || covers(v, block) {
				continue
			}
			around := netip.PrefixFrom(block.Addr(), min(block.Bits(), 16)).Masked().String()
			v.Secondary = append(v.Secondary, awssim.Association{ID: ec2.GivenID("vpc-cidr-assoc", a.region, id+around), CIDR: around, Born: v.Born})
		}
	}
}

// covers reports whether a block is in one of the VPC.
func covers(v *awssim.VPC, block netip.Prefix) bool {
	own := []string{v.CIDR}
	for _, s := range v.Secondary {
		own = append(own, s.CIDR)
	}
	return slices.ContainsFunc(own, func(cidr string) bool {
		p, err := netip.ParsePrefix(cidr)
		return err == nil && p.Contains(block.Addr()) && p.Bits() <= block.Bits()
	})
}

// subnetBits is the size of a subnet whose block the manifest does not say: 1,019 addresses.
const subnetBits = 22

func (a *assumption) subnet(x cluster.Assumed) string {
	v := a.EC2.VPCs[x.VPC]
	if v == nil || a.hasSubnet(x) {
		return ""
	}
	s := &awssim.Subnet{Thing: a.thing("subnet", x), VPC: x.VPC, Zone: cmp.Or(x.Zone, a.zone(x)), MapPublicIP: x.Public, HostnameType: "ip-name", Next: 16}
	s.CIDR = cmp.Or(x.CIDR, a.freeBlock(v))
	if x.IPv6 != "" && v.IPv6 != nil {
		s.IPv6CIDR, s.AssignIPv6 = x.IPv6, true
		if x.IPv6 == cluster.AnyIPv6 {
			s.IPv6CIDR = a.freeBlock6(v)
		}
	}
	a.EC2.Subnets[s.ID] = s
	table := a.part("rtb", s.ID, "of "+s.ID)
	routes := &awssim.RouteTable{Thing: table, VPC: x.VPC, Associations: map[string]string{ec2.GivenID("rtbassoc", a.region, s.ID): s.ID}}
	a.EC2.RouteTables[table.ID] = routes
	kind := "private"
	switch {
	case x.Public:
		kind = "public"
		routes.Routes = []awssim.Route{{Destination: "0.0.0.0/0", Target: a.gatewayOf(x.VPC)}}
	default:
		routes.Routes = []awssim.Route{{Destination: "0.0.0.0/0", Target: a.natOf(v, s.Zone)}}
	}
	if s.IPv6CIDR != "" {
		target := a.gatewayOf(x.VPC)
		if !x.Public {
			target = a.egressOnlyOf(x.VPC)
		}
		routes.Routes = append(routes.Routes, awssim.Route{Destination: "::/0", Target: target})
	}
	return fmt.Sprintf("%s, %s in %s with %s", s.ID, kind, s.Zone, s.CIDR)
}

// hasSubnet reports whether the account has a subnet, by its ID, its block or its tags.
func (a *assumption) hasSubnet(x cluster.Assumed) bool {
	if x.ID != "" {
		return a.EC2.Subnets[x.ID] != nil
	}
	for _, s := range a.EC2.Subnets {
		if s.VPC == x.VPC && (x.CIDR != "" && s.CIDR == x.CIDR || x.CIDR == "" && hasTags(s.Tags, x.Tags) && (x.Zone == "" || x.Zone == s.Zone)) {
			return true
		}
	}
	return false
}

func hasTags(have, want map[string]string) bool {
	for name, value := range want {
		if got, ok := have[name]; !ok || value != "" && got != value {
			return false
		}
	}
	return len(want) > 0
}

// zone is the next availability zone for public or private subnets.
func (a *assumption) zone(x cluster.Assumed) string {
	key := fmt.Sprint(x.VPC, x.Public)
	n := a.used[key]
	a.used[key]++
	return a.zones[n%min(3, len(a.zones))]
}

// freeBlock returns a block of a VPC that no subnet has.
func (a *assumption) freeBlock(v *awssim.VPC) string {
	all, err := netip.ParsePrefix(v.CIDR)
	if err != nil {
		return ""
	}
	bits := max(min(all.Bits()+6, 28), subnetBits)
	at := all.Addr()
	for {
		block := netip.PrefixFrom(at, bits)
		if !slices.ContainsFunc(slices.Collect(maps.Values(a.EC2.Subnets)), func(s *awssim.Subnet) bool {
			p, err := netip.ParsePrefix(s.CIDR)
			return err == nil && s.VPC == v.ID && p.Overlaps(block)
		}) {
			return block.String()
		}
		if at = after(block); !all.Contains(at) {
			return block.String() // the VPC is full
		}
	}
}

// after is the first IPv4 address after a block.
func after(block netip.Prefix) netip.Addr {
	four := block.Addr().As4()
	n := uint32(four[0])<<24 | uint32(four[1])<<16 | uint32(four[2])<<8 | uint32(four[3])
	n += 1 << (32 - block.Bits())
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) //nolint:gosec // bytes of a number
}

// freeBlock6 returns an IPv6 block of a VPC that no subnet has.
func (a *assumption) freeBlock6(v *awssim.VPC) string {
	all, err := netip.ParsePrefix(v.IPv6.CIDR)
	if err != nil {
		return ""
	}
	bytes := all.Addr().As16()
	for n := range 256 {
		bytes[7] = byte(n)
		block := netip.PrefixFrom(netip.AddrFrom16(bytes), 64).String()
		if !slices.ContainsFunc(slices.Collect(maps.Values(a.EC2.Subnets)), func(s *awssim.Subnet) bool { return s.IPv6CIDR == block }) {
			return block
		}
	}
	return ""
}

// gatewayOf returns the internet gateway of a VPC, and adds one if it has none.
func (a *assumption) gatewayOf(vpc string) string {
	for id, g := range a.EC2.InternetGateways {
		if g.VPC == vpc {
			return id
		}
	}
	t := a.part("igw", vpc, "of "+vpc)
	a.EC2.InternetGateways[t.ID] = &awssim.InternetGateway{Thing: t, VPC: vpc}
	return t.ID
}

// egressOnlyOf returns the egress-only internet gateway of a VPC, and adds one if it has none.
func (a *assumption) egressOnlyOf(vpc string) string {
	for id, g := range a.EC2.EgressOnlyGateways {
		if g.VPC == vpc {
			return id
		}
	}
	t := a.part("eigw", vpc, "of "+vpc)
	a.EC2.EgressOnlyGateways[t.ID] = &awssim.EgressOnlyGateway{Thing: t, VPC: vpc}
	return t.ID
}

// natOf returns the ID of a NAT gateway of the VPC, preferably one in the zone. If the VPC has no NAT
// gateway, natOf adds one to a public subnet, and adds that subnet too if the VPC has no public subnet.
func (a *assumption) natOf(v *awssim.VPC, zone string) string {
	found := ""
	for _, id := range slices.Sorted(maps.Keys(a.EC2.NATGateways)) {
		g := a.EC2.NATGateways[id]
		if s := a.EC2.Subnets[g.Subnet]; g.VPC == v.ID && s != nil && (found == "" || s.Zone == zone) {
			found = id
		}
	}
	if found != "" {
		return found
	}
	public := a.publicSubnet(v, zone)
	nat, address, nic := a.part("nat", v.ID, "of "+v.ID), a.part("eipalloc", v.ID, "of "+v.ID), a.part("eni", v.ID, "of "+v.ID)
	block, err := netip.ParsePrefix(public.CIDR)
	if err != nil {
		return ""
	}
	a.EC2.Interfaces[nic.ID] = &awssim.Interface{
		Thing: nic, VPC: v.ID, Subnet: public.ID, Description: "Interface for NAT Gateway " + nat.ID, Type: "nat_gateway",
		PrivateIP: block.Addr().Next().Next().Next().Next().String(), Owner: nat.ID, Managed: true,
	}
	a.EC2.Addresses[address.ID] = &awssim.Address{
		Thing: address, PublicIP: fmt.Sprintf("198.51.100.%d", 1+len(a.EC2.Addresses)%250), Association: ec2.GivenID("eipassoc", a.region, v.ID), Interface: nic.ID,
	}
	a.EC2.NATGateways[nat.ID] = &awssim.NATGateway{Thing: nat, VPC: v.ID, Subnet: public.ID, Address: address.ID, Interface: nic.ID, Ready: nat.Born}
	return nat.ID
}

// publicSubnet returns a public subnet of the VPC, preferably one in the zone. If the VPC has none, it is
// added.
func (a *assumption) publicSubnet(v *awssim.VPC, zone string) (found *awssim.Subnet) {
	for _, id := range slices.Sorted(maps.Keys(a.EC2.Subnets)) {
		if s := a.EC2.Subnets[id]; s.VPC == v.ID && s.MapPublicIP && (found == nil || s.Zone == zone) {
			found = s
		}
	}
	if found == nil {
		a.subnet(cluster.Assumed{VPC: v.ID, Zone: zone, Public: true, Tags: map[string]string{"Name": "nat"}})
		return a.publicSubnet(v, zone)
	}
	return found
}

func (a *assumption) securityGroup(x cluster.Assumed) string {
	for id, g := range a.EC2.SecurityGroups {
		wanted := maps.Clone(x.Tags)
		delete(wanted, "group-name")
		if id == x.ID || x.ID == "" && (x.Tags["group-name"] == "" || x.Tags["group-name"] == g.Name) && (len(wanted) == 0 || hasTags(g.Tags, wanted)) {
			return ""
		}
	}
	vpc := x.VPC
	for id, v := range a.EC2.VPCs {
		if vpc == "" && v.Default {
			vpc = id
		}
	}
	g := &awssim.SecurityGroup{Thing: a.thing("sg", x), VPC: vpc}
	g.Name = cmp.Or(x.Tags["group-name"], x.Tags["Name"], "assumed-"+g.ID)
	g.Description = g.Name
	g.Egress = []awssim.Rule{a.everything(g.ID)}
	a.EC2.SecurityGroups[g.ID] = g
	return g.ID + ", which allows nothing in and everything out"
}

func (a *assumption) internetGateway(x cluster.Assumed) string {
	if a.EC2.InternetGateways[x.ID] != nil {
		return ""
	}
	for id, g := range a.EC2.InternetGateways { // a VPC has one: that of its routes is renamed
		if g.VPC != x.VPC {
			continue
		}
		delete(a.EC2.InternetGateways, id)
		for _, t := range a.EC2.RouteTables {
			for i := range t.Routes {
				if t.Routes[i].Target == id {
					t.Routes[i].Target = x.ID
				}
			}
		}
	}
	a.EC2.InternetGateways[x.ID] = &awssim.InternetGateway{Thing: a.thing("igw", x), VPC: x.VPC}
	return x.ID
}

func (a *assumption) networkInterface(x cluster.Assumed) string {
	if a.EC2.Interfaces[x.ID] != nil {
		return ""
	}
	for _, id := range slices.Sorted(maps.Keys(a.EC2.Subnets)) {
		s := a.EC2.Subnets[id]
		if block, err := netip.ParsePrefix(s.CIDR); err == nil {
			address := block.Addr()
			for range 10 + len(a.EC2.Interfaces) {
				address = address.Next()
			}
			a.EC2.Interfaces[x.ID] = &awssim.Interface{Thing: a.thing("eni", x), VPC: s.VPC, Subnet: id, Type: "interface", PrivateIP: address.String()}
			return x.ID + " in " + id
		}
	}
	return ""
}

func (a *assumption) keyPair(x cluster.Assumed) string { return add(a.EC2.KeyPairs, x.ID, true) }

func (a *assumption) placementGroup(x cluster.Assumed) string {
	if a.EC2.PlacementGroups[x.ID] != "" {
		return ""
	}
	a.EC2.PlacementGroups[x.ID] = cmp.Or(x.Detail, "partition")
	return x.ID + " with the strategy " + a.EC2.PlacementGroups[x.ID]
}

func (a *assumption) image(x cluster.Assumed) string {
	name := ""
	if x.Pattern != "" {
		name, x.ID = x.ID, ec2.GivenID("ami", a.region, x.Owner+x.ID+x.Detail)
	}
	if a.EC2.Images[x.ID] != nil {
		return ""
	}
	i := &awssim.Image{
		Thing: a.thing("ami", x), Name: cmp.Or(name, strings.TrimRight("assumed-"+x.ID+"-"+x.Version, "-")), Owner: cmp.Or(x.Owner, a.Number, awssim.Account),
		Architecture: cmp.Or(x.Detail, "x86_64"), RootDevice: "/dev/sda1", RootSize: 8,
	}
	i.Description, i.Created, i.Ready = i.Name, i.Born, i.Born
	a.EC2.Images[x.ID] = i
	return strings.TrimSpace(cmp.Or(name, x.ID) + " for " + i.Architecture + " " + x.Version)
}

func (a *assumption) kmsKey(x cluster.Assumed) string {
	head := "arn:" + a.partition() + ":kms:" + a.region + ":" + cmp.Or(a.Number, awssim.Account) + ":"
	arn := x.ID
	if !strings.HasPrefix(x.ID, "arn:") {
		arn = head + "key/" + strings.TrimPrefix(x.ID, "key/")
	}
	_, name, _ := strings.Cut(arn, ":key/")
	if strings.Contains(x.ID, "alias/") {
		alias := x.ID
		if !strings.HasPrefix(x.ID, "arn:") {
			alias = head + x.ID
		}
		if strings.Contains(x.ID, "alias/aws/") || a.KMS.Aliases[alias] != "" {
			return "" // AWS has its own
		}
		_, short, _ := strings.Cut(alias, "alias/")
		name = ec2.GivenID("key", a.region, alias)[4:]
		arn = strings.Split(alias, ":alias/")[0] + ":key/" + name
		a.KMS.Aliases[alias] = arn
		a.EC2.Keys[name] = "alias/" + short
	} else if a.KMS.Keys[arn] != nil {
		return ""
	}
	a.KMS.Keys[arn] = &kms.Key{}
	if _, ok := a.EC2.Keys[name]; !ok {
		a.EC2.Keys[name] = ""
	}
	return x.ID
}

// policiesOf returns the policies of AWS that a role for a service usually has.
func policiesOf(service string) []string {
	switch service {
	case "eks.amazonaws.com":
		return []string{
			"AmazonEKSClusterPolicy", "AmazonEKSComputePolicy", "AmazonEKSBlockStoragePolicy", "AmazonEKSLoadBalancingPolicy", "AmazonEKSNetworkingPolicy",
		}
	case "eks-fargate-pods.amazonaws.com":
		return []string{"AmazonEKSFargatePodExecutionRolePolicy"}
	case "ec2.amazonaws.com":
		return []string{"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryReadOnly", "AmazonEKS_CNI_Policy"}
	case "autoscaling.amazonaws.com":
		return []string{"service-role/AutoScalingNotificationAccessRole"}
	}
	return []string{"AdministratorAccess"}
}

// managedPolicies lists the ARNs of the policies that roles of a service usually have.
func (a *assumption) managedPolicies(service string) (arns []string) {
	for _, p := range policiesOf(service) {
		arns = append(arns, "arn:"+a.partition()+":iam::aws:policy/"+p)
	}
	return arns
}

// trustPolicy lets services assume a role with session tags.
func trustPolicy(services []string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":["` + strings.Join(services, `","`) +
		`"]},"Action":["sts:AssumeRole","sts:TagSession"]}]}`
}

func (a *assumption) role(x cluster.Assumed) string {
	path, name := pathOf(x.ID, ":role")
	if services := a.trusts[name]; len(services) > 0 && !slices.Contains(services, cmp.Or(x.Service, services[0])) { // one role for several purposes
		a.trusts[name] = append(services, x.Service)
		a.IAM.Roles[name].Trust = trustPolicy(a.trusts[name])
		return x.ID + " for " + x.Service
	}
	if r := a.IAM.Roles[name]; r != nil && x.Service == "" && len(r.Attached)+len(r.Inline) == 0 {
		r.Attached = a.managedPolicies(x.Service) // a role of the stack, which has no policies here
		return x.ID + ", which may do everything"
	}
	if name == "" || a.IAM.Roles[name] != nil {
		return ""
	}
	r := &awssim.Role{Name: name, Path: path, Service: x.Service, Born: a.now.Add(-24 * time.Hour)}
	a.trusts[name] = []string{cmp.Or(x.Service, "ec2.amazonaws.com")}
	if x.Service == "eks.amazonaws.com" { // what EKS Auto Mode needs, too
		r.Trust = trustPolicy(a.trusts[name])
	}
	r.Attached = a.managedPolicies(x.Service)
	a.IAM.Roles[name] = r
	if x.Service != "" {
		return x.ID + " for " + x.Service
	}
	return x.ID
}

func (a *assumption) user(x cluster.Assumed) string {
	_, name := pathOf(x.ID, ":user")
	if !strings.Contains(x.ID, ":user/") || a.IAM.Users[name] != nil {
		return ""
	}
	a.IAM.Users[name] = &iam.User{Name: name}
	return x.ID
}

// pathOf splits the ARN or the name of an object of IAM into its path and its name.
func pathOf(id, kind string) (path, name string) {
	if _, rest, ok := strings.Cut(id, kind+"/"); ok {
		id = rest
	}
	if i := strings.LastIndex(id, "/"); i >= 0 {
		return "/" + strings.Trim(id[:i], "/") + "/", id[i+1:]
	}
	return "/", id
}

func (a *assumption) instanceProfile(x cluster.Assumed) string {
	path, name := pathOf(x.ID, ":instance-profile")
	if a.IAM.Profiles[name] != nil {
		return ""
	}
	if a.IAM.Roles[name] == nil {
		a.IAM.Roles[name] = &awssim.Role{
			Name: name, Service: "ec2.amazonaws.com", Born: a.now.Add(-24 * time.Hour),
			Holder: iam.Holder{Attached: []string{"arn:" + a.partition() + ":iam::aws:policy/AdministratorAccess"}},
		}
	}
	a.IAM.Profiles[name] = &iam.InstanceProfile{Name: name, Role: name, Path: path, Born: a.now.Add(-24 * time.Hour)}
	return name + ", with a role that may do everything"
}

func (a *assumption) policy(x cluster.Assumed) string {
	path, name := pathOf(x.ID, ":policy")
	if a.IAM.Policies[name] != nil {
		return ""
	}
	born := a.now.Add(-24 * time.Hour)
	a.IAM.Policies[name] = &iam.Policy{
		Name:    name,
		Path:    path,
		Default: "v1",
		Last:    1,
		Born:    born,
		Changed: born,
		Versions: []*iam.PolicyVersion{
			{ID: "v1", Document: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:ListAllMyBuckets","Resource":"*"}]}`},
		},
	}
	return x.ID
}

// partition is the partition of the region.
func (a *assumption) partition() string {
	switch {
	case strings.HasPrefix(a.region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(a.region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// loadBalancer adds an active network load balancer in the public subnets of a VPC, whose listener forwards
// the port of the API server to an empty target group.
func loadBalancer(ctx context.Context, sim *awssim.AWS, x cluster.Assumed) (made bool, err error) {
	c := elbv2.NewFromConfig(sim.Config())
	if have, err := c.DescribeLoadBalancers(ctx, &elbv2.DescribeLoadBalancersInput{Names: []string{x.ID}}); err == nil && len(have.LoadBalancers) > 0 {
		return false, nil
	}
	subnets := map[string]string{} // by zone
	sim.Edit(func(s *awssim.State) {
		for id, n := range s.EC2.Subnets {
			if n.VPC == x.VPC && n.MapPublicIP {
				subnets[n.Zone] = max(subnets[n.Zone], id)
			}
		}
	})
	if len(subnets) == 0 {
		return false, nil
	}
	lb, err := c.CreateLoadBalancer(ctx, &elbv2.CreateLoadBalancerInput{
		Name: &x.ID, Type: elbtypes.LoadBalancerTypeEnumNetwork, Subnets: slices.Sorted(maps.Values(subnets)),
	})
	if err != nil {
		return false, err
	}
	group, err := c.CreateTargetGroup(ctx, &elbv2.CreateTargetGroupInput{
		Name: aws.String("assumed-api"), VpcId: &x.VPC, Port: aws.Int32(6443), Protocol: elbtypes.ProtocolEnumTcp, TargetType: elbtypes.TargetTypeEnumInstance,
	})
	if err != nil {
		return false, err
	}
	arn := lb.LoadBalancers[0].LoadBalancerArn
	_, err = c.CreateListener(ctx, &elbv2.CreateListenerInput{
		LoadBalancerArn: arn, Port: aws.Int32(6443), Protocol: elbtypes.ProtocolEnumTcp,
		DefaultActions: []elbtypes.Action{{Type: elbtypes.ActionTypeEnumForward, TargetGroupArn: group.TargetGroups[0].TargetGroupArn}},
	})
	sim.Edit(func(s *awssim.State) {
		if lb := s.ELB.LoadBalancers[aws.ToString(arn)]; lb != nil {
			lb.Ready = sim.Clock().Now()
		}
	})
	return true, err
}
