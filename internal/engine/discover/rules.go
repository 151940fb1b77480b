package discover

import (
	"fmt"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
)

// ruleLine is one rule of a security group, with one source.
type ruleLine struct{ protocol, ports, source, description string }

// lines lists the rules of the group of a role, without those that it has in every cluster:
// from the sources of the roles, at the ports.
func (s *SelfManaged) lines(role infrav1.SecurityGroupRole, usual map[string][]infrav1.SecurityGroupRole) (out []ruleLine) {
	for _, l := range ec2.PermissionLines(s.Groups[role].Ingress) {
		f := append(strings.SplitN(l, " ", 4), "")
		line := ruleLine{f[0], f[1], f[2], f[3]}
		roles := usual[line.protocol+" "+line.ports]
		if from := s.roleOf(line.source); from == "" || !slices.Contains(roles, from) {
			out = append(out, line)
		}
	}
	return out
}

// roleOf returns the role of a security group that was made with the cluster; "" for others.
func (s *SelfManaged) roleOf(id string) infrav1.SecurityGroupRole {
	for role, g := range s.Groups {
		if g.ID == id {
			return role
		}
	}
	return ""
}

// Shorter names of roles.
var (
	planeGroup   = infrav1.SecurityGroupControlPlane
	nodeGroup    = infrav1.SecurityGroupNode
	apiGroup     = infrav1.SecurityGroupAPIServerLB
	bastionGroup = infrav1.SecurityGroupBastion
)

// setRules sets the rules of security groups in spec.network that not every cluster has.
func (s *SelfManaged) setRules(network map[string]any) {
	ssh := []infrav1.SecurityGroupRole{bastionGroup}
	plane := s.lines(planeGroup, map[string][]infrav1.SecurityGroupRole{
		"tcp 22": ssh, "tcp 6443": {apiGroup, planeGroup, nodeGroup}, "tcp 2379": {planeGroup}, "tcp 2380": {planeGroup},
	})
	node := s.lines(nodeGroup, map[string][]infrav1.SecurityGroupRole{"tcp 22": ssh, "tcp 10250": {planeGroup, nodeGroup}})
	if _, own := s.Groups[planeGroup]; own {
		plane, node = s.setPodNetwork(network, plane, node)
	}
	if _, own := s.Groups[nodeGroup]; own {
		node = setNodePorts(network, node)
	}
	setList(network, "additionalControlPlaneIngressRules", s.rules(plane))
	setList(network, "additionalNodeIngressRules", s.rules(node))
}

// setPodNetwork sets the rules of the pod network: those that machines of the control plane
// and workers have for each other. It returns the other rules.
func (s *SelfManaged) setPodNetwork(network map[string]any, plane, node []ruleLine) (morePlane, moreNode []ruleLine) {
	from := func(l ruleLine, role infrav1.SecurityGroupRole) ruleLine {
		l.source = s.Groups[role].ID
		return l
	}
	_, ownNodes := s.Groups[nodeGroup]
	mutual := func(l ruleLine) bool {
		if role := s.roleOf(l.source); role != planeGroup && role != nodeGroup {
			return false
		}
		for _, role := range []infrav1.SecurityGroupRole{planeGroup, nodeGroup} {
			if _, own := s.Groups[role]; own && (!slices.Contains(plane, from(l, role)) || ownNodes && !slices.Contains(node, from(l, role))) {
				return false
			}
		}
		return true
	}
	var rules []any
	calico := map[string]bool{"tcp 179": false, "4 all": false}
	for _, l := range plane {
		if !mutual(l) {
			morePlane = append(morePlane, l)
			continue
		}
		if s.roleOf(l.source) != planeGroup {
			continue
		}
		if _, is := calico[l.protocol+" "+l.ports]; is {
			calico[l.protocol+" "+l.ports] = true
		}
		rules = append(rules, l.rule())
	}
	for _, l := range node {
		if !mutual(l) {
			moreNode = append(moreNode, l)
		}
	}
	if len(rules) != len(calico) || !calico["tcp 179"] || !calico["4 all"] {
		if rules == nil {
			rules = []any{}
		}
		network["cni"] = map[string]any{"cniIngressRules": rules}
	}
	return morePlane, moreNode
}

// rule returns the rule of a manifest without a source.
func (l ruleLine) rule() map[string]any {
	first, last := int64(-1), int64(-1)
	switch n, _ := fmt.Sscanf(l.ports, "%d-%d", &first, &last); {
	case n == 1:
		last = first
	case n == 0:
		first, last = -1, 65535
		if l.protocol != "4" {
			last = -1
		}
	}
	out := map[string]any{"protocol": l.protocol, "fromPort": first, "toPort": last}
	out["description"] = l.description
	return out
}

// setNodePorts sets the sources that reach Services at ports of nodes. It returns the other
// rules.
func setNodePorts(network map[string]any, node []ruleLine) (others []ruleLine) {
	var blocks []string
	for _, l := range node {
		if l.protocol+" "+l.ports != "tcp 30000-32767" || strings.HasPrefix(l.source, "sg-") {
			others = append(others, l)
			continue
		}
		blocks = append(blocks, l.source)
	}
	if slices.ContainsFunc(blocks, func(b string) bool { return b != ec2.AnywhereIPv4 && b != anywhereIPv6 }) {
		network["nodePortIngressRuleCidrBlocks"] = anys(blocks)
	}
	return others
}

const anywhereIPv6 = "::/0"

// apiServerRules lists the rules for clients of the API server, if not all may reach it.
func (s *SelfManaged) apiServerRules() []any {
	_, own := s.Groups[apiGroup]
	if !own {
		return nil
	}
	port, anybody := fmt.Sprint(s.port()), false
	var lines []ruleLine
	for _, l := range s.lines(apiGroup, nil) {
		api := l.protocol == "tcp" && l.ports == port
		switch {
		case api && (l.source == ec2.AnywhereIPv4 || l.source == anywhereIPv6):
			anybody = true
		case api && (s.isAddress(l.source) || l.source == s.VPC.CIDR || l.source == s.VPC.IPv6CIDR) && strings.HasPrefix(l.description, "Kubernetes API"):
			continue // every cluster has it
		}
		lines = append(lines, l)
	}
	if anybody && !slices.ContainsFunc(lines, func(l ruleLine) bool {
		return l.source != ec2.AnywhereIPv4 && l.source != anywhereIPv6 || l.ports != port
	}) {
		return nil
	}
	return s.rules(lines)
}

// isAddress reports whether a block is the address of a NAT gateway.
func (s *SelfManaged) isAddress(block string) bool {
	address, whole := strings.CutSuffix(block, "/32")
	return whole && slices.Contains(s.Addresses, address)
}

// rules combines lines that differ only in their source. Blocks, IDs and roles are sources of
// different rules, because a manifest cannot have them in one.
func (s *SelfManaged) rules(lines []ruleLine) (out []any) {
	made := map[string]map[string]any{}
	for _, l := range lines {
		field, value := "cidrBlocks", l.source
		switch role := s.roleOf(l.source); {
		case role != "":
			field, value = "sourceSecurityGroupRoles", string(role)
		case strings.HasPrefix(l.source, "sg-"):
			field = "sourceSecurityGroupIds"
		case s.isAddress(l.source):
			field = "natGatewaysIPsSource"
		case strings.Contains(l.source, ":"):
			field = "ipv6CidrBlocks"
		}
		key := strings.Join([]string{l.protocol, l.ports, l.description, strings.Replace(field, "ipv6CidrBlocks", "cidrBlocks", 1)}, " ")
		if made[key] == nil {
			made[key] = l.rule()
			out = append(out, made[key])
		}
		if field == "natGatewaysIPsSource" {
			made[key][field] = true
			continue
		}
		list, _ := made[key][field].([]any)
		made[key][field] = append(list, value)
	}
	return out
}

// setBastion sets the bastion host of an AWSCluster.
func (s *SelfManaged) setBastion(spec map[string]any) {
	for _, m := range s.Machines {
		if m.Tags[cloud.ResourceTag] != bastionRole && m.Tags["Name"] != s.Name+"-bastion" {
			continue
		}
		bastion := map[string]any{"enabled": true, "instanceType": m.Type}
		var blocks []string
		for _, l := range s.lines(bastionGroup, nil) {
			blocks = append(blocks, l.source)
		}
		if len(blocks) == 0 {
			bastion["disableIngressRules"] = true
		} else if slices.ContainsFunc(blocks, func(b string) bool { return b != ec2.AnywhereIPv4 && b != anywhereIPv6 }) {
			bastion["allowedCIDRBlocks"] = anys(blocks)
		}
		spec["bastion"] = bastion
	}
}
