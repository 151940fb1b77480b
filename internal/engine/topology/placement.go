package topology

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
	"github.com/clusterawsadm/clusterawsadm/internal/regions"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// machineSubnet returns the subnet of a machine, and whether the manifest permits no
// other.
func machineSubnet(g *graph.Graph, in inputs, net network, x group, zone string, exists bool) (ref *graph.Ref[ec2.SubnetState], pinned bool, err error) {
	if given := x.spec.Subnet; given != nil {
		ref = namedSubnet(g, in, net, x, given, zone)
		return ref, true, in.checkFamily(x, net.of(ref))
	}
	public := net.usesPublic(x)
	if zone == "" { // Cluster API takes the first subnet; this is the first that offers the instance type, and that the load balancer forwards to
		for _, s := range net.subnetsOfKind(public) {
			if in.offered(x.spec.InstanceType, s.zone) && (!x.controlPlane || in.balanced(net, s.zone)) {
				return s.ref, false, in.checkFamily(x, s)
			}
		}
	}
	s, ok := net.first(public, zone)
	switch {
	case !ok:
		return nil, false, in.noSubnet(x, public, zone, exists)
	case !exists && !in.offered(x.spec.InstanceType, s.zone):
		return nil, false, in.notOffered(x, zone)
	}
	return s.ref, x.zone != "", in.checkFamily(x, s)
}

// noSubnet returns the error for a machine that needs a public or a private subnet where the manifest has none.
func (in inputs) noSubnet(x group, public bool, zone string, exists bool) error {
	kind := map[bool]string{true: "public", false: "private"}[public]
	switch {
	case zone == "":
		return fmt.Errorf("%s: the cluster has no %s subnet", x.origin, kind)
	case exists:
		return fmt.Errorf("%s: a machine of %s is in %s, and the manifest has no %s subnet there any more: a cluster keeps the zones of its machines. "+
			"Set the zones (such as vpc.availabilityZoneUsageLimit) or subnets back", in.m.Origin(in.m.InfraObject(), "spec.network"), x.name, zone, kind)
	}
	at := x.origin
	if x.zoneAt != "" && x.zone == zone {
		at = x.zoneAt
	}
	return fmt.Errorf("%s: the cluster has no %s subnet in %s%s", at, kind, zone, regionNote(zone))
}

// regionNote says that one of the names of zones is that of a region; "" if none is.
func regionNote(zones ...string) string {
	for _, zone := range zones {
		if slices.Contains(regions.All(), zone) {
			return fmt.Sprintf(": %s is a region, and its zones are %[1]sa, %[1]sb and so on", zone)
		}
	}
	return ""
}

// checkFamily returns an error for a machine of the control plane whose subnet has no IPv4 addresses, if Services have IPv4 addresses.
// kube-apiserver does not start with an address of another family than the first block of Services. Source:
// validatePublicIPServiceClusterIPRangeIPFamilies in cmd/kube-apiserver/app/options of Kubernetes.
func (in inputs) checkFamily(x group, s subnet) error {
	services := rules.Services(in.m)[0]
	if !x.controlPlane || !s.only6 || strings.Contains(services, ":") {
		return nil
	}
	return fmt.Errorf(
		"%s: the subnet %s has IPv6 addresses only, and Services have IPv4 addresses (%s): kube-apiserver does not start: use another subnet, or put an IPv6 block of Services first",
		x.origin,
		s.name,
		services,
	)
}

// usesPublic reports whether a group's machines are in public subnets.
func (n network) usesPublic(x group) bool {
	return x.spec.PublicIP != nil && *x.spec.PublicIP || len(n.subnetsOfKind(false)) == 0
}

// addPlacementGroup adds the lookup of the placement group of a machine to launch. A
// machine on a dedicated host has none.
func addPlacementGroup(g *graph.Graph, in inputs, x group) []graph.Edge {
	name := x.spec.PlacementGroupName
	if name == "" || x.spec.HostID != nil {
		return nil
	}
	return graph.Awaits(lookup(g, in, plan.ID("placement-group/"+name), ec2.PlacementGroupByName(name), x.specAt, x.specPath+".placementGroupName"))
}

// notOffered returns an error that lists the zones which offer the instance type of a
// group.
func (in inputs) notOffered(x group, zone string) error {
	where, zones := zone, in.inv.Types[x.spec.InstanceType].Zones
	if zone == "" {
		where = "any zone of the cluster"
	}
	but := "nor in any other of " + in.m.Region
	if len(zones) > 0 {
		but = "but in " + strings.Join(zones, ", ")
	}
	return fmt.Errorf("%s: instance type %s is not offered in %s, %s", in.m.Origin(x.specAt, x.specPath+".instanceType"), x.spec.InstanceType, where, but)
}

// offersAll reports whether a zone offers the instance types of all machines.
func (in inputs) offersAll(zone string) bool {
	for _, t := range in.inv.Types {
		if len(t.Zones) > 0 && !slices.Contains(t.Zones, zone) {
			return false
		}
	}
	return true
}

// namedSubnet returns the subnet that a machine's spec names: one of the cluster's, or an
// existing one.
func namedSubnet(g *graph.Graph, in inputs, net network, x group, given *infrav1.AWSResourceReference, zone string) *graph.Ref[ec2.SubnetState] {
	if given.ID != nil {
		for _, s := range net.subnets {
			if s.is(*given.ID) {
				return s.ref
			}
		}
		return lookupInVPC(g, in, net.vpc, plan.ID("subnet/"+*given.ID), ec2.SubnetByID(net.vpc, *given.ID), x.specAt, "spec")
	}
	for _, s := range net.subnets {
		if (zone == "" || s.zone == zone) && s.matches(given.Filters) {
			return s.ref // it may not exist yet
		}
	}
	return lookupInVPC(
		g,
		in,
		net.vpc,
		plan.ID(strings.TrimSuffix("subnet/of/"+x.name+"/"+zone, "/")),
		ec2.SubnetByFilters(net.vpc, filterMap(given.Filters), zone),
		x.specAt,
		"spec",
	)
}

// placed returns what is known of the subnet of a machine: one of the cluster's, or an existing one that the spec of the machine names.
func (in inputs) placed(net network, x group, ref *graph.Ref[ec2.SubnetState], zone string) subnet {
	s, given := net.of(ref), x.spec.Subnet
	if s.ref != nil || given == nil {
		return s
	}
	all := slices.SortedFunc(slices.Values(in.inv.Subnets), func(a, b ec2.SubnetState) int { return cmp.Compare(a.ID, b.ID) }) // as ec2.SubnetByFilters
	for _, o := range all {
		matches := given.ID != nil && *given.ID == o.ID
		if given.ID == nil {
			matches = (zone == "" || o.Zone == zone) && matchFilters(given.Filters, o.Tags, map[string]string{
				"availability-zone": o.Zone, "availabilityZone": o.Zone, "cidr-block": o.CIDR, "cidrBlock": o.CIDR, "cidr": o.CIDR,
				"subnet-id": o.ID, "vpc-id": o.VPC,
			})
		}
		if !matches {
			continue
		}
		if listed, is := net.named(o.ID); is {
			return listed
		}
		return subnet{name: o.ID, zone: o.Zone}
	}
	return subnet{}
}

// misplaced returns an error for a machine that cannot be in its subnet, or is of no use there. CAPA does not launch a machine in another zone
// than its failure domain, and none with a public address in a private subnet (findSubnet in pkg/cloud/services/ec2/instances.go of v2.13.0).
func (in inputs) misplaced(net network, x group, s subnet) error {
	at := func(field string) string { return in.m.Origin(x.specAt, x.specPath+"."+field) }
	switch given := x.spec.Subnet; {
	case given != nil && x.zone != "" && s.zone != "" && s.zone != x.zone:
		return fmt.Errorf("%s: the subnet %s is in %s, and the failureDomain is %s: choose a subnet in %[4]s, or remove the failureDomain",
			at("subnet"), s.name, s.zone, x.zone)
	case given != nil && x.spec.PublicIP != nil && *x.spec.PublicIP && s.ref != nil && !s.public:
		return fmt.Errorf("%s: the subnet %s is private, and a public address is of no use there: choose a public subnet, or remove publicIP",
			at("publicIP"), s.name)
	}
	if err := in.unfit(x, s.zone); err != nil {
		return err
	}
	return in.unbalanced(net, x, s.zone)
}

// matches reports whether the subnet, if this program creates it, will match filters of
// DescribeSubnets.
func (s subnet) matches(filters []infrav1.Filter) bool {
	made, is := s.ref.Desired().(*ec2.Subnet)
	return is && matchFilters(filters, made.Tags, map[string]string{
		"availability-zone": s.zone, "availabilityZone": s.zone, "cidr-block": s.cidr, "cidrBlock": s.cidr, "cidr": s.cidr,
	})
}

// matchFilters reports whether a resource with these tags and properties matches EC2 filters.
// It does not match a filter by another property.
func matchFilters(filters []infrav1.Filter, tags cloud.Tags, properties map[string]string) bool {
	for _, f := range filters {
		values := []string{properties[f.Name]}
		switch key, tag := strings.CutPrefix(f.Name, "tag:"); {
		case tag:
			values = []string{tags[key]}
		case f.Name == "tag-key":
			values = slices.Collect(maps.Keys(tags))
		}
		if !slices.ContainsFunc(values, func(value string) bool {
			return value != "" && slices.ContainsFunc(f.Values, func(pattern string) bool { return like(value, pattern) })
		}) {
			return false
		}
	}
	return len(filters) > 0
}

// like reports whether a value matches a pattern of an EC2 filter, in which * stands for any
// text and ? for any character.
func like(value, pattern string) bool {
	text := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("^" + text + "$").MatchString(value)
}

func filterMap(filters []infrav1.Filter) map[string][]string {
	out := map[string][]string{}
	for _, f := range filters {
		out[f.Name] = f.Values
	}
	return out
}

// spread returns the zone of the i-th control-plane machine: the zones that have a suitable
// subnet, offer the instance type and, if the manifest lists the subnets of the load balancer,
// have one of them, take turns.
func (in inputs) spread(net network, x group, i int) string {
	var zones []string
	for _, s := range net.subnetsOfKind(net.usesPublic(x)) {
		if !slices.Contains(zones, s.zone) && in.offered(x.spec.InstanceType, s.zone) && in.balanced(net, s.zone) {
			zones = append(zones, s.zone)
		}
	}
	if len(zones) == 0 {
		return ""
	}
	return zones[i%len(zones)]
}

// balanced reports whether the load balancer of the API server may have a subnet in a zone.
func (in inputs) balanced(net network, zone string) bool {
	lb := in.spec.ControlPlaneLoadBalancer
	if lb == nil || in.m.External || in.existsAlready(lb) {
		return true
	}
	zones, known := net.balancerZones(lb)
	return !known || slices.Contains(zones, zone)
}

// offered reports whether a zone offers the instance type. A type that is not in the
// inventory counts as offered, and so does each type in the unknown zone of a subnet that
// does not exist: the plan says that.
func (in inputs) offered(instanceType, zone string) bool {
	t, ok := in.inv.Types[instanceType]
	return !ok || zone == "" || t.Zones == nil || slices.Contains(t.Zones, zone)
}
