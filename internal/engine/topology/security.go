package topology

import (
	"fmt"
	"net/netip"
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// apiPort is the port at which the API server listens on its machine.
const apiPort = 6443

// securityGroups adds the groups of every role, and then the rules in which
// they name each other (facts B.9).
func (b *builder) securityGroups() {
	b.groups = map[infrav1.SecurityGroupRole]*graph.Ref[ec2.SecurityGroupState]{}
	roles := []infrav1.SecurityGroupRole{infrav1.SecurityGroupAPIServerLB, infrav1.SecurityGroupLB, infrav1.SecurityGroupControlPlane, infrav1.SecurityGroupNode}
	if b.m.EKS != nil {
		roles = []infrav1.SecurityGroupRole{infrav1.SecurityGroupEKSNodeAdditional}
	}
	if b.spec.Bastion.Enabled {
		roles = append(roles, infrav1.SecurityGroupBastion)
	}
	var sweep []*graph.Ref[ec2.SecurityGroupState]
	for _, role := range roles {
		b.groups[role] = b.group(role)
		if b.spec.NetworkSpec.SecurityGroupOverrides[role] == "" { // what is in somebody else's group is somebody else's
			sweep = append(sweep, b.groups[role])
		}
	}
	for _, role := range roles {
		if b.spec.NetworkSpec.SecurityGroupOverrides[role] != "" {
			continue // somebody else's group has somebody else's rules
		}
		id := graph.ID("security-group-rules/" + string(role))
		graph.Add(b.Graph, id, &ec2.SecurityGroupRules{
			Group: b.groups[role], Rules: unique(b.rules(role)), Shared: role == infrav1.SecurityGroupLB,
		}, b.infra("spec.network"))
	}
	// Load balancers leave network interfaces behind, which keep groups and
	// subnets from being deleted: they go after the load balancers and before
	// those.
	var beneath []graph.Resource
	for _, s := range b.net.subnets {
		beneath = append(beneath, s.ref)
	}
	sweepNode := graph.Sweep(b.Graph, "network-interfaces", &ec2.NetworkInterfaces{VPC: b.net.vpc, Groups: sweep}, graph.With(graph.Exists(beneath...), graph.Exists(asNode(b.net.internet))))
	b.lb.leftovers = sweepNode
}

func asNode[S graph.State](r *graph.Ref[S]) graph.Resource { return r }

// group adds the group of a role, or looks up the one that the manifest brings.
func (b *builder) group(role infrav1.SecurityGroupRole) *graph.Ref[ec2.SecurityGroupState] {
	id := graph.ID("security-group/" + string(role))
	if given := b.spec.NetworkSpec.SecurityGroupOverrides[role]; given != "" {
		return graph.Use(b.Graph, id, ec2.SecurityGroupByID(b.net.vpc, given), graph.With(graph.On(b.net.vpc)), b.infra("spec.network.securityGroupOverrides"))
	}
	name := fmt.Sprintf("%s-%s", b.m.Name, role)
	if len(name) > 3 && name[:3] == "sg-" {
		name = "@" + name // AWS keeps the prefix for IDs
	}
	more := cloud.Tags{}
	if role == infrav1.SecurityGroupLB {
		more = b.cloudProvider(cloud.Owned)
	}
	return graph.Add(b.Graph, id, &ec2.SecurityGroup{
		VPC: b.net.vpc, Name: name, Description: fmt.Sprintf("Kubernetes cluster %s: %s", b.m.Name, role),
		Tags: b.tags(id, name, string(role), more),
	}, b.infra("spec.network"))
}

// rules lists what a role's group lets in.
func (b *builder) rules(role infrav1.SecurityGroupRole) (out []ec2.IngressRule) {
	add := func(protocol string, first, last int32, description string, from ...infrav1.SecurityGroupRole) {
		for _, f := range from {
			if g := b.groups[f]; g != nil {
				out = append(out, ec2.IngressRule{Protocol: protocol, First: first, Last: last, From: g, Description: description})
			}
		}
	}
	cp, node := infrav1.SecurityGroupControlPlane, infrav1.SecurityGroupNode
	cni := func() {
		if b.spec.NetworkSpec.CNI == nil {
			return
		}
		for _, r := range b.spec.NetworkSpec.CNI.CNIIngressRules {
			add(string(r.Protocol), int32(r.FromPort), int32(r.ToPort), r.Description, cp, node) //nolint:gosec // ports
		}
	}
	ssh := func() { add("tcp", 22, 22, "SSH", infrav1.SecurityGroupBastion) }
	switch role {
	case infrav1.SecurityGroupControlPlane:
		cni()
		add("tcp", apiPort, apiPort, "Kubernetes API", infrav1.SecurityGroupAPIServerLB, cp, node)
		add("tcp", 2379, 2379, "etcd", cp)
		add("tcp", 2380, 2380, "etcd peer", cp)
		ssh()
		out = append(out, b.expand(b.spec.NetworkSpec.AdditionalControlPlaneIngressRules)...)
	case infrav1.SecurityGroupNode:
		cni()
		out = append(out, b.nodePorts()...)
		add("tcp", 10250, 10250, "Kubelet API", cp, node)
		ssh()
		out = append(out, b.expand(b.spec.NetworkSpec.AdditionalNodeIngressRules)...)
	case infrav1.SecurityGroupBastion:
		if !b.spec.Bastion.DisableIngressRules {
			out = b.blocksIn("tcp", 22, 22, "SSH", b.spec.Bastion.AllowedCIDRBlocks)
		}
	case infrav1.SecurityGroupAPIServerLB:
		out = b.apiServerRules()
	case infrav1.SecurityGroupLB:
		out = b.networkLoadBalancerRules()
	case infrav1.SecurityGroupEKSNodeAdditional:
		ssh()
		out = append(out, b.expand(b.spec.NetworkSpec.AdditionalControlPlaneIngressRules)...)
	}
	return out
}

// blocksIn lets blocks in; those of IPv6 only where the VPC has IPv6.
func (b *builder) blocksIn(protocol string, first, last int32, description string, blocks []string) (out []ec2.IngressRule) {
	for _, block := range blocks {
		if p, err := netip.ParsePrefix(block); err == nil && p.Addr().Is6() && !b.net.ipv6 {
			continue
		}
		out = append(out, ec2.IngressRule{Protocol: protocol, First: first, Last: last, CIDR: block, Description: description})
	}
	return out
}

func (b *builder) nodePorts() []ec2.IngressRule {
	blocks := b.spec.NetworkSpec.NodePortIngressRuleCidrBlocks
	if len(blocks) == 0 {
		blocks = infrav1.CidrBlocks{"0.0.0.0/0", "::/0"}
	}
	return b.blocksIn("tcp", 30000, 32767, "Node Port Services", blocks)
}

// apiServerRules lets clients, and the cluster's own NAT gateways, reach the
// load balancer of the API server.
func (b *builder) apiServerRules() (out []ec2.IngressRule) {
	port := b.endpointPort()
	rule := ec2.IngressRule{Protocol: "tcp", First: port, Last: port, Description: "Kubernetes API"}
	primary := b.spec.ControlPlaneLoadBalancer
	if primary != nil && primary.Scheme != nil && *primary.Scheme == infrav1.ELBSchemeInternal {
		out = append(out, b.wholeVPC(rule)...)
	} else {
		for _, a := range b.net.nat {
			rule.Address = a
			out = append(out, rule)
		}
		rule.Address = nil
		for _, ip := range b.inv.NATAddresses {
			rule.CIDR = ip + "/32"
			out = append(out, rule)
		}
	}
	var given []infrav1.IngressRule
	for _, lb := range []*infrav1.AWSLoadBalancerSpec{b.spec.ControlPlaneLoadBalancer, b.spec.SecondaryControlPlaneLoadBalancer} {
		if lb != nil {
			given = append(given, lb.IngressRules...)
		}
	}
	if len(given) > 0 {
		return append(out, b.expand(given)...)
	}
	return append(out, b.anybody(rule)...)
}

// anybody lets every address in.
func (b *builder) anybody(rule ec2.IngressRule) []ec2.IngressRule {
	rule.CIDR = "0.0.0.0/0"
	out := []ec2.IngressRule{rule}
	if b.net.ipv6 {
		rule.CIDR, rule.Description = "::/0", rule.Description+" IPv6"
		out = append(out, rule)
	}
	return out
}

// wholeVPC lets every address of the VPC in.
func (b *builder) wholeVPC(rule ec2.IngressRule) []ec2.IngressRule {
	rule.VPC = b.net.vpc
	out := []ec2.IngressRule{rule}
	if b.net.ipv6 {
		rule.IPv6, rule.Description = true, rule.Description+" IPv6"
		out = append(out, rule)
	}
	return out
}

// networkLoadBalancerRules lets network load balancers reach the machines they
// send to: their packets carry the client's address or one of the VPC's.
func (b *builder) networkLoadBalancerRules() (out []ec2.IngressRule) {
	for _, lb := range b.networkLoadBalancers() {
		from := b.wholeVPC
		if lb.PreserveClientIP {
			from = b.anybody
		}
		out = append(out, from(ec2.IngressRule{Protocol: "tcp", First: apiPort, Last: apiPort, Description: "Allow NLB traffic to the control plane instances."})...)
		for _, l := range lb.AdditionalListeners {
			port := int32(l.Port) //nolint:gosec // a port
			out = append(out, from(ec2.IngressRule{
				Protocol: "tcp", First: port, Last: port, Description: fmt.Sprintf("Allow NLB traffic to the control plane instances on port %d.", port),
			})...)
		}
	}
	return out
}

// expand turns the rules of a manifest into one rule for each source. A rule
// without any source means the control plane.
func (b *builder) expand(given []infrav1.IngressRule) (out []ec2.IngressRule) {
	for _, g := range given {
		base := ec2.IngressRule{Protocol: string(g.Protocol), First: int32(g.FromPort), Last: int32(g.ToPort), Description: g.Description} //nolint:gosec // ports
		before := len(out)
		add := func(set func(*ec2.IngressRule)) {
			r := base
			set(&r)
			out = append(out, r)
		}
		for _, block := range slices.Concat(g.CidrBlocks, g.IPv6CidrBlocks) {
			add(func(r *ec2.IngressRule) { r.CIDR = block })
		}
		for _, id := range g.SourceSecurityGroupIDs {
			add(func(r *ec2.IngressRule) { r.FromID = id })
		}
		for _, role := range g.SourceSecurityGroupRoles {
			if b.groups[role] != nil {
				add(func(r *ec2.IngressRule) { r.From = b.groups[role] })
			}
		}
		if g.NatGatewaysIPsSource {
			for _, a := range b.net.nat {
				add(func(r *ec2.IngressRule) { r.Address = a })
			}
			for _, ip := range b.inv.NATAddresses {
				add(func(r *ec2.IngressRule) { r.CIDR = ip + "/32" })
			}
			continue
		}
		if own := b.groups[infrav1.SecurityGroupControlPlane]; len(out) == before && own != nil {
			add(func(r *ec2.IngressRule) { r.From = own })
		}
	}
	return out
}

// unique drops rules that differ from an earlier one in their description
// alone: AWS refuses them.
func unique(rules []ec2.IngressRule) (out []ec2.IngressRule) {
	seen := map[string]bool{}
	for _, r := range rules {
		if key := r.Source(); !seen[key] {
			seen[key] = true
			out = append(out, r)
		}
	}
	return out
}

// within reports whether a block lies in another.
func within(inner, outer string) bool {
	in, err1 := netip.ParsePrefix(inner)
	out, err2 := netip.ParsePrefix(outer)
	return err1 == nil && err2 == nil && out.Overlaps(in) && out.Bits() <= in.Bits()
}
