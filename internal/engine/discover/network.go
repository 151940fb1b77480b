package discover

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// Network is the VPC of a cluster with its subnets.
type Network struct {
	VPC     ec2.VPCState
	Subnets []ec2.SubnetState // of the VPC; if the cluster owns it, only those of the cluster
	Public  map[string]bool   // IDs of subnets with a route to the internet
	Owned   bool              // the VPC was made with the cluster, and is deleted with it
	FlowLog *ec2.FlowLogState // of the cluster; nil for none
}

// readNetwork reads the VPC of a cluster.
func readNetwork(ctx context.Context, c *cloud.Clients, id string) (n Network, err error) {
	vpc, err := ec2.VPCByID(id)(ctx, c)
	switch {
	case err != nil:
		return n, fmt.Errorf("VPC: %w", err)
	case vpc == nil:
		return n, fmt.Errorf("VPC %s of the cluster does not exist", id)
	}
	n.VPC, n.Owned = *vpc, vpc.IsOwned(c)
	if n.Subnets, err = ec2.SubnetsOf(ctx, c, vpc.ID); err != nil {
		return n, fmt.Errorf("subnets of %s: %w", vpc.ID, err)
	}
	if n.Owned {
		n.Subnets = slices.DeleteFunc(slices.Clone(n.Subnets), func(s ec2.SubnetState) bool { return !s.IsOwned(c) })
	}
	if n.Public, err = ec2.PublicSubnets(ctx, c, vpc.ID, n.Subnets); err != nil {
		return n, fmt.Errorf("route tables of %s: %w", vpc.ID, err)
	}
	logs, err := ec2.FlowLogs(ctx, c)
	if err != nil {
		return n, fmt.Errorf("flow logs: %w", err)
	}
	for _, f := range logs {
		if f.VPC == vpc.ID {
			n.FlowLog = &f
		}
	}
	return n, nil
}

// flowLogAnnotations returns the annotations of the object with the network, for its flow log.
func (n *Network) flowLogAnnotations() map[string]any {
	if n.FlowLog == nil {
		return nil
	}
	return manifest.FlowLogs{
		LogGroup: n.FlowLog.Destination.LogGroup, Role: n.FlowLog.Destination.Role, Bucket: n.FlowLog.Destination.Bucket, Traffic: n.FlowLog.Traffic,
	}.Annotations()
}

// ownNetwork returns spec.network of a cluster that owns its VPC.
func (n *Network) ownNetwork() map[string]any {
	vpc := map[string]any{}
	set(vpc, "cidrBlock", n.VPC.CIDR, topology.DefaultCIDR)
	if n.VPC.IPv6CIDR != "" {
		vpc["ipv6"] = map[string]any{}
	}
	network := map[string]any{}
	if len(n.Subnets) > 0 && n.Subnets[0].HostnameType == "resource-name" {
		vpc["privateDnsHostnameTypeOnLaunch"] = "resource-name"
	}
	if zones, schema, ok := n.splitByCAPA(); ok {
		if zones != defaultZones {
			vpc["availabilityZoneUsageLimit"] = zones
		}
		set(vpc, "subnetSchema", schema, "")
	} else {
		network["subnets"] = n.listedSubnets()
	}
	if blocks := slices.Sorted(maps.Keys(n.VPC.Blocks)); len(blocks) > 0 && len(n.podSubnets()) == 0 {
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
func (n *Network) podSubnets() (out []ec2.SubnetState) {
	for _, s := range n.Subnets {
		if strings.HasPrefix(s.Tags[cloud.ResourceTag], "subnet/secondary/") {
			out = append(out, s)
		}
	}
	return out
}

// splitByCAPA reports whether the subnets are those that CAPA makes without a list in the
// manifest: a public and a private one in each zone, with the blocks of topology.Split.
func (n *Network) splitByCAPA() (zones int, schema string, ok bool) {
	var public, private []string
	used := map[string]bool{}
	pods := n.podSubnets()
	for _, s := range n.Subnets {
		switch {
		case slices.ContainsFunc(pods, func(p ec2.SubnetState) bool { return p.ID == s.ID }):
			continue
		case n.Public[s.ID]:
			public = append(public, s.CIDR)
		default:
			private = append(private, s.CIDR)
		}
		used[s.Zone] = true
	}
	for _, schema := range []infrav1.SubnetSchemaType{infrav1.SubnetSchemaPreferPrivate, infrav1.SubnetSchemaPreferPublic} {
		preferPublic := schema == infrav1.SubnetSchemaPreferPublic
		wantPublic, wantPrivate, err := topology.Split(n.VPC.CIDR, len(used), preferPublic)
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
func (n *Network) listedSubnets() (out []any) {
	for _, s := range n.byZone(n.Subnets) {
		name := listedName(s)
		x := map[string]any{"id": name, "availabilityZone": s.Zone}
		set(x, "cidrBlock", s.CIDR, "")
		setMap(x, "tags", n.subnetTags(s, name))
		if n.Public[s.ID] {
			x["isPublic"] = true
		}
		if s.IPv6CIDR != "" {
			x["isIpv6"], x["ipv6CidrBlock"] = true, s.IPv6CIDR
		}
		out = append(out, x)
	}
	return out
}

// listedName returns the name of a subnet that a manifest lists: that in its identity tag, or its
// tag Name.
func listedName(s ec2.SubnetState) string {
	for _, kind := range []string{"subnet/public/", "subnet/private/"} {
		if name, ok := strings.CutPrefix(s.Tags[cloud.ResourceTag], kind); ok {
			return name
		}
	}
	return s.Tags["Name"]
}

// subnetTags returns the tags of the user that a subnet has, and the VPC does not.
func (n *Network) subnetTags(s ec2.SubnetState, name string) map[string]any {
	out := map[string]any{}
	set(out, "Name", s.Tags["Name"], name)
	for k, v := range s.Tags {
		if byUser(k) && n.VPC.Tags[k] != v && !strings.HasPrefix(k, "kubernetes.io/role/") {
			out[k] = v
		}
	}
	return out
}

// existingNetwork returns spec.network of a cluster that does not own its VPC. used are the IDs
// of the subnets that the cluster uses.
func (n *Network) existingNetwork(used []string) map[string]any {
	var subnets []any
	for _, s := range n.byZone(n.Subnets) {
		if !slices.Contains(used, s.ID) {
			continue
		}
		x := map[string]any{"id": s.ID, "availabilityZone": s.Zone}
		if n.Public[s.ID] {
			x["isPublic"] = true
		}
		subnets = append(subnets, x)
	}
	return map[string]any{"vpc": map[string]any{"id": n.VPC.ID}, "subnets": subnets}
}

// network returns spec.network of the control plane.
func (e *EKS) network() map[string]any {
	network := e.Workers.network(e.Cluster.Subnets)
	setList(network, "additionalControlPlaneIngressRules", e.Workers.additionalRules())
	if !e.ownsVPC() && len(e.Cluster.Groups) > 0 && !e.Owned {
		network["securityGroupOverrides"] = map[string]any{string(infrav1.SecurityGroupEKSNodeAdditional): e.Cluster.Groups[0]}
	}
	return network
}

// byZone sorts subnets: the public ones first, each by zone, and those in secondary blocks of
// the VPC last.
func (n *Network) byZone(all []ec2.SubnetState) []ec2.SubnetState {
	return slices.SortedStableFunc(slices.Values(all), func(x, y ec2.SubnetState) int {
		if n.Public[x.ID] != n.Public[y.ID] {
			if n.Public[x.ID] {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(x.Zone, y.Zone), rank(n.isSecondary(x))-rank(n.isSecondary(y)))
	})
}

// isSecondary reports whether a subnet is in a secondary block of the VPC.
func (n *Network) isSecondary(s ec2.SubnetState) bool {
	first, err := netip.ParsePrefix(s.CIDR)
	for block := range n.VPC.Blocks {
		if b, wrong := netip.ParsePrefix(block); err == nil && wrong == nil && b.Contains(first.Addr()) {
			return true
		}
	}
	return false
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
