package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// apiPort is the port of the API server on its machine.
const apiPort = manifest.DefaultAPIPort

// securityGroups are the security groups of the cluster, by role.
type securityGroups map[infrav1.SecurityGroupRole]*graph.Ref[ec2.SecurityGroupState]

// addSecurityGroups adds the security group of every role, and then the rules, which
// refer to each other's groups. It also returns the network interfaces that load
// balancers leave behind, which prevent the deletion of groups and subnets. They are
// deleted after the load balancers and before the groups.
func addSecurityGroups(g *graph.Graph, in inputs, n network) (securityGroups, graph.Resource) {
	groups := securityGroups{}
	if in.m.External { // machines have the groups of their own spec only
		return groups, nil
	}
	roles := []infrav1.SecurityGroupRole{infrav1.SecurityGroupAPIServerLB, infrav1.SecurityGroupLB, infrav1.SecurityGroupControlPlane, infrav1.SecurityGroupNode}
	if in.m.EKS != nil {
		roles = []infrav1.SecurityGroupRole{infrav1.SecurityGroupEKSNodeAdditional}
	}
	if in.spec.Bastion.Enabled {
		roles = append(roles, infrav1.SecurityGroupBastion)
	}
	var managed []*graph.Ref[ec2.SecurityGroupState]
	for _, role := range roles {
		groups[role] = addSecurityGroup(g, in, n, role)
		if in.spec.NetworkSpec.SecurityGroupOverrides[role] == "" { // interfaces in an existing group are left alone
			managed = append(managed, groups[role])
		}
	}
	rules := securityGroupRules{in, n, groups}
	for _, role := range roles {
		if in.spec.NetworkSpec.SecurityGroupOverrides[role] != "" {
			continue // an existing group keeps its rules
		}
		graph.Add(g, plan.ID("security-group-rules/"+string(role)), &ec2.SecurityGroupRules{
			Group: groups[role], Rules: unique(rules.ingress(role)), Shared: role == infrav1.SecurityGroupLB, Own: forTargets,
		}, in.infra("spec.network"))
	}
	var subnets []graph.Resource
	for _, s := range n.subnets {
		subnets = append(subnets, s.ref)
	}
	return groups, graph.Sweep(g, "network-interfaces", &ec2.NetworkInterfaces{VPC: n.vpc, Groups: managed, EKS: in.eksName()},
		graph.With(graph.Exists(subnets...), graph.Exists(n.internet)))
}

// addSecurityGroup adds the group of a role, or looks up the existing one that
// the manifest names.
func addSecurityGroup(g *graph.Graph, in inputs, n network, role infrav1.SecurityGroupRole) *graph.Ref[ec2.SecurityGroupState] {
	id := plan.ID("security-group/" + string(role))
	if given := in.spec.NetworkSpec.SecurityGroupOverrides[role]; given != "" {
		return graph.Use(g, id, ec2.SecurityGroupByID(n.vpc, given), graph.With(graph.On(n.vpc)), in.infra("spec.network.securityGroupOverrides"))
	}
	name := fmt.Sprintf("%s-%s", in.m.Name, role)
	if strings.HasPrefix(name, "sg-") {
		name = "@" + name // AWS reserves the prefix for IDs
	}
	more := cloud.Tags{}
	if role == infrav1.SecurityGroupLB {
		more = in.cloudProvider(cloud.Owned)
	}
	return graph.Add(g, id, &ec2.SecurityGroup{
		VPC: n.vpc, Name: name, Description: fmt.Sprintf("Kubernetes cluster %s: %s", in.m.Name, role),
		Tags: in.tags(id, name, string(role), more),
	}, in.infra("spec.network"))
}

// securityGroupRules builds the rules of security groups.
type securityGroupRules struct {
	in     inputs
	net    network
	groups securityGroups
}

// ingress lists the ingress rules of a role's group.
func (s securityGroupRules) ingress(role infrav1.SecurityGroupRole) (out []ec2.IngressRule) {
	add := func(protocol string, first, last int32, description string, from ...infrav1.SecurityGroupRole) {
		for _, f := range from {
			if g := s.groups[f]; g != nil {
				out = append(out, ec2.IngressRule{Protocol: protocol, First: first, Last: last, From: g, Description: description})
			}
		}
	}
	cp, node := infrav1.SecurityGroupControlPlane, infrav1.SecurityGroupNode
	cni := func() {
		if s.in.spec.NetworkSpec.CNI == nil {
			return
		}
		for _, r := range s.in.spec.NetworkSpec.CNI.CNIIngressRules {
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
		out = append(out, s.expand(s.in.spec.NetworkSpec.AdditionalControlPlaneIngressRules)...)
	case infrav1.SecurityGroupNode:
		cni()
		out = append(out, s.nodePorts()...)
		add("tcp", 10250, 10250, "Kubelet API", cp, node)
		ssh()
		out = append(out, s.expand(s.in.spec.NetworkSpec.AdditionalNodeIngressRules)...)
	case infrav1.SecurityGroupBastion:
		if !s.in.spec.Bastion.DisableIngressRules {
			out = s.blocksIn("tcp", 22, 22, "SSH", s.in.spec.Bastion.AllowedCIDRBlocks)
		}
	case infrav1.SecurityGroupAPIServerLB:
		out = s.apiServerRules()
	case infrav1.SecurityGroupLB:
		out = s.networkLoadBalancerRules()
	case infrav1.SecurityGroupEKSNodeAdditional:
		ssh()
		out = append(out, s.expand(s.in.spec.NetworkSpec.AdditionalControlPlaneIngressRules)...)
	}
	return out
}

// blocksIn permits blocks; those of IPv6 only if the VPC has IPv6.
func (s securityGroupRules) blocksIn(protocol string, first, last int32, description string, blocks []string) (out []ec2.IngressRule) {
	for _, block := range blocks {
		if p, err := netip.ParsePrefix(block); err == nil && p.Addr().Is6() && !s.net.ipv6 {
			continue
		}
		out = append(out, ec2.IngressRule{Protocol: protocol, First: first, Last: last, CIDR: block, Description: description})
	}
	return out
}

func (s securityGroupRules) nodePorts() []ec2.IngressRule {
	blocks := s.in.spec.NetworkSpec.NodePortIngressRuleCidrBlocks
	if len(blocks) == 0 {
		blocks = infrav1.CidrBlocks{"0.0.0.0/0", "::/0"}
	}
	return s.blocksIn("tcp", 30000, 32767, "Node Port Services", blocks)
}

// apiServerRules permit clients, and the cluster's own NAT gateways, to reach the load
// balancer of the API server.
func (s securityGroupRules) apiServerRules() (out []ec2.IngressRule) {
	port := s.in.m.APIPort()
	rule := ec2.IngressRule{Protocol: "tcp", First: port, Last: port, Description: "Kubernetes API"}
	primary := s.in.spec.ControlPlaneLoadBalancer
	if primary != nil && primary.Scheme != nil && *primary.Scheme == infrav1.ELBSchemeInternal {
		out = append(out, s.wholeVPC(rule)...)
	} else {
		for _, a := range s.net.addresses {
			rule.Address = a
			out = append(out, rule)
		}
		rule.Address = nil
		for _, ip := range slices.Concat(s.in.inv.NATAddresses, s.net.left) {
			rule.CIDR = ip + "/32"
			out = append(out, rule)
		}
	}
	var given []infrav1.IngressRule
	for _, lb := range []*infrav1.AWSLoadBalancerSpec{s.in.spec.ControlPlaneLoadBalancer, s.in.spec.SecondaryControlPlaneLoadBalancer} {
		if lb != nil {
			given = append(given, lb.IngressRules...)
		}
	}
	if len(given) > 0 {
		return append(out, s.expand(given)...)
	}
	return append(out, s.anybody(rule)...)
}

// anybody permits all addresses.
func (s securityGroupRules) anybody(rule ec2.IngressRule) []ec2.IngressRule {
	rule.CIDR = "0.0.0.0/0"
	out := []ec2.IngressRule{rule}
	if s.net.ipv6 {
		rule.CIDR, rule.Description = "::/0", rule.Description+" IPv6"
		out = append(out, rule)
	}
	return out
}

// wholeVPC permits all addresses of the VPC.
func (s securityGroupRules) wholeVPC(rule ec2.IngressRule) []ec2.IngressRule {
	rule.VPC = s.net.vpc
	out := []ec2.IngressRule{rule}
	if s.net.ipv6 {
		rule.IPv6, rule.Description = true, rule.Description+" IPv6"
		out = append(out, rule)
	}
	return out
}

// forTargets is the beginning of the descriptions of these rules, as in CAPA. Rules that controllers add to the same group have others.
const forTargets = "Allow NLB traffic to the control plane instances"

// networkLoadBalancerRules permit network load balancers to reach their targets: packets
// have the client's address or one of the VPC's.
func (s securityGroupRules) networkLoadBalancerRules() (out []ec2.IngressRule) {
	add := func(anybody bool, port int32, description string) {
		from := s.wholeVPC
		if anybody {
			from = s.anybody
		}
		for _, rule := range from(ec2.IngressRule{Protocol: "tcp", First: port, Last: port}) {
			rule.Description = description // the same for both IP versions
			out = append(out, rule)
		}
	}
	all := s.in.networkLoadBalancers()
	if len(all) > 0 {
		anybody := slices.ContainsFunc(all, func(lb *infrav1.AWSLoadBalancerSpec) bool { return lb.PreserveClientIP })
		add(anybody, apiPort, forTargets+".")
	}
	for _, lb := range all {
		for _, l := range lb.AdditionalListeners {
			port := int32(l.Port) //nolint:gosec // a port
			add(lb.PreserveClientIP, port, fmt.Sprintf("%s on port %d.", forTargets, port))
		}
	}
	return out
}

// expand converts the rules of a manifest to one rule for each source. A rule without a
// source means the control plane.
func (s securityGroupRules) expand(given []infrav1.IngressRule) (out []ec2.IngressRule) {
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
			if s.groups[role] != nil {
				add(func(r *ec2.IngressRule) { r.From = s.groups[role] })
			}
		}
		if g.NatGatewaysIPsSource {
			for _, a := range s.net.addresses {
				add(func(r *ec2.IngressRule) { r.Address = a })
			}
			for _, ip := range slices.Concat(s.in.inv.NATAddresses, s.net.left) {
				add(func(r *ec2.IngressRule) { r.CIDR = ip + "/32" })
			}
			continue
		}
		if own := s.groups[infrav1.SecurityGroupControlPlane]; len(out) == before && own != nil {
			add(func(r *ec2.IngressRule) { r.From = own })
		}
	}
	return out
}

// unique removes rules that differ from an earlier one only in their description: AWS
// rejects them.
func unique(rules []ec2.IngressRule) (out []ec2.IngressRule) {
	seen := map[string]bool{}
	for _, r := range rules {
		if key := r.DuplicateKey(); !seen[key] {
			seen[key] = true
			out = append(out, r)
		}
	}
	return out
}
