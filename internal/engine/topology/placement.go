package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// placed returns the subnet of a machine (facts C.3), and whether the manifest
// allows no other.
func (b *builder) placed(g group, zone string, exists bool) (*graph.Ref[ec2.SubnetState], bool) {
	if !exists {
		b.placementGroup(g)
	}
	if given := g.spec.Subnet; given != nil {
		return b.namedSubnet(g, given, zone), true
	}
	public := b.wantsPublic(g) || len(b.net.of(false)) == 0
	if zone == "" { // Cluster API takes the first one; we take the first that can run the machine
		for _, s := range b.net.of(public) {
			if b.offered(g.spec.InstanceType, s.zone) {
				return s.ref, false
			}
		}
	}
	s, ok := b.net.first(public, zone)
	kind := map[bool]string{true: "public", false: "private"}[public]
	switch {
	case !ok && zone != "":
		b.fail("%s: the cluster has no %s subnet in %s", g.origin, kind, zone)
	case !ok:
		b.fail("%s: the cluster has no %s subnet", g.origin, kind)
	case !exists && !b.offered(g.spec.InstanceType, s.zone):
		b.notOffered(g, zone)
	}
	return s.ref, g.zone != ""
}

// placementGroup adds the lookup of the placement group of a machine that is to
// be made. A host says all there is to say of its place.
func (b *builder) placementGroup(g group) {
	name := g.spec.PlacementGroupName
	id := graph.ID("placement-group/" + name)
	if name == "" || g.spec.HostID != nil || b.Resource(id) != nil {
		return
	}
	graph.Use(b.Graph, id, ec2.PlacementGroupByName(name), graph.From(b.m.Origin(g.specAt, g.specPath+".placementGroupName")))
}

// notOffered says where the type of a machine can be had.
func (b *builder) notOffered(g group, zone string) {
	where, zones := zone, b.inv.Types[g.spec.InstanceType].Zones
	if zone == "" {
		where = "any zone of the cluster"
	}
	but := "nor in any other of " + b.m.Region
	if len(zones) > 0 {
		but = "but in " + strings.Join(zones, ", ")
	}
	b.fail("%s: instance type %s is not offered in %s, %s", b.m.Origin(g.specAt, g.specPath+".instanceType"), g.spec.InstanceType, where, but)
}

// namedSubnet returns the subnet that a machine's spec names: one of the
// cluster's, or another.
func (b *builder) namedSubnet(g group, given *infrav1.AWSResourceReference, zone string) *graph.Ref[ec2.SubnetState] {
	if given.ID != nil {
		for _, s := range b.net.subnets {
			if s.name == *given.ID {
				return s.ref
			}
		}
		return use(b, graph.ID("subnet/"+*given.ID), ec2.SubnetByID(b.net.vpc, *given.ID), g.specAt, "spec")
	}
	filters := filterMap(given.Filters)
	return use(b, graph.ID("subnet/of/"+g.name+zone), ec2.SubnetByFilters(b.net.vpc, filters, zone), g.specAt, "spec")
}

// use adds a lookup once.
func use[S graph.State](b *builder, id graph.ID, find graph.Lookup[S], at, path string) *graph.Ref[S] {
	if n, ok := b.Resource(id).(*graph.Ref[S]); ok {
		return n
	}
	return graph.Use(b.Graph, id, find, graph.With(graph.On(b.net.vpc)), graph.From(b.m.Origin(at, path)))
}

func filterMap(filters []infrav1.Filter) map[string][]string {
	out := map[string][]string{}
	for _, f := range filters {
		out[f.Name] = f.Values
	}
	return out
}

// machineGroup returns the security group of a role for a machine, which may
// override the cluster's.
func (b *builder) machineGroup(g group, role infrav1.SecurityGroupRole) *graph.Ref[ec2.SecurityGroupState] {
	given := g.spec.SecurityGroupOverrides[role]
	if given == "" {
		return b.groups[role]
	}
	return use(b, graph.ID("security-group/"+given), ec2.SecurityGroupByID(b.net.vpc, given), g.specAt, "spec")
}

func (b *builder) filteredGroup(g group, n int, filters []infrav1.Filter) *graph.Ref[ec2.SecurityGroupState] {
	return use(b, graph.ID(fmt.Sprintf("security-group/of/%s/%d", g.name, n)), ec2.SecurityGroupByFilters(b.net.vpc, filterMap(filters)), g.specAt, "spec")
}

// keyOf returns the key pair of a machine: its own, the cluster's, or the one
// named default; the empty name means none.
func (b *builder) keyOf(own *string) string {
	switch {
	case own != nil:
		return *own
	case b.spec.SSHKeyName != nil:
		return *b.spec.SSHKeyName
	}
	return "default"
}

// keyPair adds the lookup of a key pair.
func (b *builder) keyPair(name string) []graph.Edge {
	if name == "" {
		return nil
	}
	return graph.Awaits(use(b, graph.ID("key-pair/"+name), ec2.KeyPairByName(name, b.keyNames()), b.m.InfraObject(), "spec"))
}

// keyNames lists all key pairs in use, so that they are asked for at once.
func (b *builder) keyNames() []string {
	names := map[string]bool{b.keyOf(nil): b.spec.Bastion.Enabled}
	for _, g := range b.groupsAndPools() {
		names[b.keyOf(g.spec.SSHKeyName)] = true
	}
	maps.DeleteFunc(names, func(name string, used bool) bool { return name == "" || !used })
	return slices.Sorted(maps.Keys(names))
}

// profile adds the lookup of an instance profile.
func (b *builder) profile(name string) []graph.Edge {
	if name == "" {
		return nil
	}
	return graph.Awaits(use(b, graph.ID("instance-profile/"+name), ec2.ProfileByName(name), b.m.InfraObject(), "spec"))
}

func (b *builder) subnetName(ref *graph.Ref[ec2.SubnetState]) string {
	for _, s := range b.net.subnets {
		if s.ref == ref {
			return s.name
		}
	}
	return ""
}

// nothing stands for a machine that cannot be placed.
func nothing(context.Context, *cloud.Clients) (*ec2.InstanceState, error) {
	return nil, nil
}
