package discover

import (
	"fmt"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
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

// setRules sets the rules of security groups in spec.network that not every cluster has.
func (s *SelfManaged) setRules(network map[string]any) {
	cp, worker := infrav1.SecurityGroupControlPlane, infrav1.SecurityGroupNode
	ssh := []infrav1.SecurityGroupRole{infrav1.SecurityGroupBastion}
	plane := s.lines(cp, map[string][]infrav1.SecurityGroupRole{
		"tcp 22": ssh, "tcp 6443": {infrav1.SecurityGroupAPIServerLB, cp, worker}, "tcp 2379": {cp}, "tcp 2380": {cp},
	})
	node := s.lines(worker, map[string][]infrav1.SecurityGroupRole{"tcp 22": ssh, "tcp 10250": {cp, worker}})
	if _, own := s.Groups[cp]; own {
		plane, node = s.setPodNetwork(network, plane, node)
	}
	if _, own := s.Groups[worker]; own {
		node = setNodePorts(network, node)
	}
	setList(network, "additionalControlPlaneIngressRules", s.rules(plane))
	setList(network, "additionalNodeIngressRules", s.rules(node))
}

// additionalRules lists the rules of the additional security group of the nodes of EKS.
func (s *SelfManaged) additionalRules() []any {
	return s.rules(s.lines(infrav1.SecurityGroupEKSNodeAdditional, map[string][]infrav1.SecurityGroupRole{"tcp 22": {infrav1.SecurityGroupBastion}}))
}

// setPodNetwork writes spec.network.cni. A rule belongs to the pod network if it opens the same
// ports between control plane and workers, in all directions. The other rules are returned.
func (s *SelfManaged) setPodNetwork(network map[string]any, plane, node []ruleLine) (morePlane, moreNode []ruleLine) {
	rules, kinds := []any{}, map[string]bool{}
	for _, l := range plane {
		switch {
		case !s.mutual(l, plane, node):
			morePlane = append(morePlane, l)
		case s.roleOf(l.source) == infrav1.SecurityGroupControlPlane:
			rules, kinds[l.protocol+" "+l.ports] = append(rules, l.rule()), true
		}
	}
	for _, l := range node {
		if !s.mutual(l, plane, node) {
			moreNode = append(moreNode, l)
		}
	}
	if len(rules) != 2 || !kinds["tcp 179"] || !kinds["4 all"] { // not those of Calico, the default
		network["cni"] = map[string]any{"cniIngressRules": rules}
	}
	return morePlane, moreNode
}

// mutual reports whether machines of the control plane and workers have a rule for each other.
func (s *SelfManaged) mutual(l ruleLine, plane, node []ruleLine) bool {
	roles := []infrav1.SecurityGroupRole{infrav1.SecurityGroupControlPlane, infrav1.SecurityGroupNode}
	if !slices.Contains(roles, s.roleOf(l.source)) {
		return false
	}
	_, ownNodes := s.Groups[infrav1.SecurityGroupNode]
	for _, role := range roles {
		g, own := s.Groups[role]
		l.source = g.ID
		if own && (!slices.Contains(plane, l) || ownNodes && !slices.Contains(node, l)) {
			return false
		}
	}
	return true
}

// rule returns the rule of a manifest without a source.
func (l ruleLine) rule() map[string]any {
	first, last := int64(-1), int64(-1)
	switch n, _ := fmt.Sscanf(l.ports, "%d-%d", &first, &last); n {
	case 1:
		last = first
	case 0:
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
	if slices.ContainsFunc(blocks, func(b string) bool { return !ec2.IsAnywhere(b) }) {
		network["nodePortIngressRuleCidrBlocks"] = anys(blocks)
	}
	return others
}

// apiServerRules lists the rules for clients of the API server, if not all may reach it.
func (s *SelfManaged) apiServerRules() []any {
	_, own := s.Groups[infrav1.SecurityGroupAPIServerLB]
	if !own {
		return nil
	}
	port, anybody := fmt.Sprint(s.port()), false
	var lines []ruleLine
	for _, l := range s.lines(infrav1.SecurityGroupAPIServerLB, nil) {
		api := l.protocol == "tcp" && l.ports == port
		switch {
		case api && ec2.IsAnywhere(l.source):
			anybody = true
		case api && (s.isAddress(l.source) || l.source == s.VPC.CIDR || l.source == s.VPC.IPv6CIDR) && strings.HasPrefix(l.description, "Kubernetes API"):
			continue // every cluster has it
		}
		lines = append(lines, l)
	}
	if anybody && !slices.ContainsFunc(lines, func(l ruleLine) bool {
		return !ec2.IsAnywhere(l.source) || l.ports != port
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

// setBastion sets the bastion host of an AWSCluster or an AWSManagedControlPlane.
func (s *SelfManaged) setBastion(spec map[string]any) {
	for _, m := range s.Machines {
		if m.Tags[cloud.ResourceTag] != topology.RoleBastion && m.Tags["Name"] != s.Name+"-bastion" {
			continue
		}
		bastion := map[string]any{"enabled": true, "instanceType": m.Type}
		var blocks []string
		for _, l := range s.lines(infrav1.SecurityGroupBastion, nil) {
			blocks = append(blocks, l.source)
		}
		if len(blocks) == 0 {
			bastion["disableIngressRules"] = true
		} else if slices.ContainsFunc(blocks, func(b string) bool { return !ec2.IsAnywhere(b) }) {
			bastion["allowedCIDRBlocks"] = anys(blocks)
		}
		spec["bastion"] = bastion
	}
}
