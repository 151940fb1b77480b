package discover

import (
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// network returns spec.network of the control plane.
func (e *EKS) network() map[string]any {
	if !e.ownsVPC() {
		return e.existingNetwork()
	}
	vpc := map[string]any{}
	set(vpc, "cidrBlock", e.VPC.CIDR, topology.DefaultCIDR)
	if e.VPC.IPv6CIDR != "" {
		vpc["ipv6"] = map[string]any{}
	}
	network := map[string]any{}
	if len(e.Subnets) > 0 && e.Subnets[0].HostnameType == "resource-name" {
		vpc["privateDnsHostnameTypeOnLaunch"] = "resource-name"
	}
	if zones, schema, ok := e.splitByCAPA(); ok {
		if zones != defaultZones {
			vpc["availabilityZoneUsageLimit"] = zones
		}
		set(vpc, "subnetSchema", schema, "")
	} else {
		network["subnets"] = e.listedSubnets()
	}
	if blocks := slices.Sorted(maps.Keys(e.VPC.Blocks)); len(blocks) > 0 && len(e.podSubnets()) == 0 {
		var all []any
		for _, b := range blocks {
			all = append(all, map[string]any{"ipv4CidrBlock": b})
		}
		vpc["secondaryCidrBlocks"] = all
	}
	setMap(network, "vpc", vpc)
	return network
}

// defaultZones is the default of spec.network.vpc.availabilityZoneUsageLimit.
const defaultZones = 3

// podSubnets lists the subnets for pods.
func (e *EKS) podSubnets() (out []ec2.SubnetState) {
	for _, s := range e.Subnets {
		if strings.HasPrefix(s.Tags[cloud.ResourceTag], "subnet/secondary/") {
			out = append(out, s)
		}
	}
	return out
}

// splitByCAPA reports whether the subnets are those that CAPA makes without a list in the
// manifest: a public and a private one in each zone, with the blocks of topology.Split.
func (e *EKS) splitByCAPA() (zones int, schema string, ok bool) {
	var public, private []string
	used := map[string]bool{}
	pods := e.podSubnets()
	for _, s := range e.Subnets {
		switch {
		case slices.ContainsFunc(pods, func(p ec2.SubnetState) bool { return p.ID == s.ID }):
			continue
		case e.Public[s.ID]:
			public = append(public, s.CIDR)
		default:
			private = append(private, s.CIDR)
		}
		used[s.Zone] = true
	}
	for _, schema := range []infrav1.SubnetSchemaType{infrav1.SubnetSchemaPreferPrivate, infrav1.SubnetSchemaPreferPublic} {
		preferPublic := schema == infrav1.SubnetSchemaPreferPublic
		wantPublic, wantPrivate, err := topology.Split(e.VPC.CIDR, len(used), preferPublic)
		if err == nil && same(public, wantPublic) && same(private, wantPrivate) {
			if preferPublic {
				return len(used), string(schema), true
			}
			return len(used), "", true
		}
	}
	return 0, "", false
}

// same reports whether two lists have the same elements.
func same(x, y []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y)))
}

// listedSubnets lists the cluster's own subnets by their names.
func (e *EKS) listedSubnets() (out []any) {
	for _, s := range e.byZone(e.Subnets) {
		x := map[string]any{"id": s.Tags["Name"], "availabilityZone": s.Zone}
		set(x, "cidrBlock", s.CIDR, "")
		if e.Public[s.ID] {
			x["isPublic"] = true
		}
		if s.IPv6CIDR != "" {
			x["isIpv6"], x["ipv6CidrBlock"] = true, s.IPv6CIDR
		}
		out = append(out, x)
	}
	return out
}

// existingNetwork returns a VPC and subnets that are not the cluster's own.
func (e *EKS) existingNetwork() map[string]any {
	network := map[string]any{"vpc": map[string]any{"id": e.VPC.ID}}
	var subnets []any
	for _, s := range e.byZone(e.Subnets) {
		if !slices.Contains(e.Cluster.Subnets, s.ID) {
			continue
		}
		x := map[string]any{"id": s.ID, "availabilityZone": s.Zone}
		if e.Public[s.ID] {
			x["isPublic"] = true
		}
		subnets = append(subnets, x)
	}
	network["subnets"] = subnets
	if len(e.Cluster.Groups) > 0 && !e.Owned {
		network["securityGroupOverrides"] = map[string]any{string(infrav1.SecurityGroupEKSNodeAdditional): e.Cluster.Groups[0]}
	}
	return network
}

// byZone sorts subnets: the public ones first, each by zone.
func (e *EKS) byZone(all []ec2.SubnetState) []ec2.SubnetState {
	return slices.SortedStableFunc(slices.Values(all), func(x, y ec2.SubnetState) int {
		if e.Public[x.ID] != e.Public[y.ID] {
			if e.Public[x.ID] {
				return -1
			}
			return 1
		}
		return strings.Compare(x.Zone, y.Zone)
	})
}

// privateSubnets lists the IDs of the private subnets of the cluster, in which nodes are
// without a list in the manifest.
func (e *EKS) privateSubnets() (ids []string) {
	for _, s := range e.Subnets {
		if !e.Public[s.ID] && (e.ownsVPC() || slices.Contains(e.Cluster.Subnets, s.ID)) && !strings.HasPrefix(s.Tags[cloud.ResourceTag], "subnet/secondary/") {
			ids = append(ids, s.ID)
		}
	}
	return ids
}
