package enginetest

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// Tamper changes a resource outside of a run.
type Tamper func(s *awssim.State, id, field string)

// Tampers has a change for every field that can be restored, by kind of resource and
// field. The part of a field after a space (which tag, which route) is not part of the
// key.
func Tampers() map[string]Tamper {
	all := map[string]Tamper{
		"vpc dnsHostnames": func(s *awssim.State, id, _ string) { s.EC2.VPCs[id].DNSHostnames = false },
		"vpc dnsSupport":   func(s *awssim.State, id, _ string) { s.EC2.VPCs[id].DNSSupport = false },
		"subnet mapPublicIP": func(s *awssim.State, id, _ string) {
			s.EC2.Subnets[id].MapPublicIP = !s.EC2.Subnets[id].MapPublicIP
		},
		"subnet assignIPv6":    func(s *awssim.State, id, _ string) { s.EC2.Subnets[id].AssignIPv6 = false },
		"subnet hostnameType":  func(s *awssim.State, id, _ string) { s.EC2.Subnets[id].HostnameType = "ip-name" },
		"internet-gateway vpc": func(s *awssim.State, id, _ string) { s.EC2.InternetGateways[id].VPC = "" },
		"route-table route": func(s *awssim.State, id, field string) {
			t, to := s.EC2.RouteTables[id], strings.TrimPrefix(field, "route ")
			t.Routes = slices.DeleteFunc(t.Routes, func(r awssim.Route) bool { return r.Destination == to })
		},
		"route-table subnet": func(s *awssim.State, id, _ string) { clear(s.EC2.RouteTables[id].Associations) },
		"vpc-endpoint routeTable": func(s *awssim.State, id, _ string) {
			s.EC2.Endpoints[id].RouteTables = s.EC2.Endpoints[id].RouteTables[1:]
		},
		"flow-log vpc":                 func(s *awssim.State, id, _ string) { s.EC2.FlowLogs[id].VPC = "vpc-00000000000000009" },
		"flow-log destination":         func(s *awssim.State, id, _ string) { s.EC2.FlowLogs[id].LogGroup = "elsewhere" },
		"flow-log role":                func(s *awssim.State, id, _ string) { s.EC2.FlowLogs[id].Role = "arn:aws:iam::123456789012:role/other" },
		"flow-log traffic":             func(s *awssim.State, id, _ string) { s.EC2.FlowLogs[id].Traffic = "ACCEPT" },
		"security-group-rules ingress": func(s *awssim.State, id, _ string) { rewrite(s.EC2.SecurityGroups[id]) },
		"machine securityGroup":        regroupMachine,
		"bastion securityGroup":        regroupMachine,
		"machine metadata":             func(s *awssim.State, id, _ string) { s.EC2.Instances[id].Metadata.HopLimit = 7 },
		"bucket policy": func(s *awssim.State, id, _ string) {
			s.S3.Buckets[id].Policy = `{"Version":"2012-10-17","Statement":[]}`
		},
	}
	maps.Copy(all, balancerTampers())
	maps.Copy(all, EKSTampers())
	maps.Copy(all, poolTampers())
	for _, kind := range []string{
		"vpc", "subnet", "internet-gateway", "egress-only-gateway", "carrier-gateway", "elastic-ip", "nat-gateway", "route-table", "vpc-endpoint", "flow-log", "security-group",
		"machine", "bastion", "load-balancer", "classic-load-balancer", "target-group", "listener", "bucket", "subnet-tags", "launch-template",
	} {
		all[kind+" tag"] = retag
	}
	return all
}

// Conflicts has a change for every field that AWS does not permit to change. Such a field can have another value if somebody has deleted the
// resource and created it again.
func Conflicts() map[string]Tamper {
	all := map[string]Tamper{
		"vpc cidr":                func(s *awssim.State, id, _ string) { s.EC2.VPCs[id].CIDR = "172.20.0.0/16" },
		"subnet cidr":             func(s *awssim.State, id, _ string) { s.EC2.Subnets[id].CIDR = "10.99.0.0/24" },
		"subnet zone":             func(s *awssim.State, id, _ string) { s.EC2.Subnets[id].Zone = "us-east-1f" },
		"subnet ipv6":             func(s *awssim.State, id, _ string) { s.EC2.Subnets[id].IPv6CIDR = "2001:db8::/64" },
		"egress-only-gateway vpc": func(s *awssim.State, id, _ string) { s.EC2.EgressOnlyGateways[id].VPC = "vpc-00000000000000009" },
		"carrier-gateway vpc":     func(s *awssim.State, id, _ string) { s.EC2.CarrierGateways[id].VPC = "vpc-00000000000000009" },
		"nat-gateway subnet":      func(s *awssim.State, id, _ string) { s.EC2.NATGateways[id].Subnet = "subnet-00000000000000009" },
		"nat-gateway address":     func(s *awssim.State, id, _ string) { s.EC2.NATGateways[id].Address = "eipalloc-00000000000000009" },
		"vpc-endpoint service":    func(s *awssim.State, id, _ string) { s.EC2.Endpoints[id].Service = "com.amazonaws.us-east-1.dynamodb" },
		"security-group description": func(s *awssim.State, id, _ string) {
			s.EC2.SecurityGroups[id].Description = "tampered"
		},
		"init-marker pods":          func(s *awssim.State, _, _ string) { remark(s, "pods", "10.99.0.0/16") },
		"init-marker services":      func(s *awssim.State, _, _ string) { remark(s, "services", "10.98.0.0/16") },
		"init-marker endpoint":      func(s *awssim.State, _, _ string) { remark(s, "endpoint", "elsewhere.example.com:6443") },
		"init-marker serviceDomain": func(s *awssim.State, _, _ string) { remark(s, "domain", "tampered") },
		"machine instanceType":      func(s *awssim.State, id, _ string) { s.EC2.Instances[id].Type = "t3.small" },
		"machine profile":           func(s *awssim.State, id, _ string) { s.EC2.Instances[id].Profile = "tampered" },
		"bastion instanceType":      func(s *awssim.State, id, _ string) { s.EC2.Instances[id].Type = "t3.small" },
		"load-balancer internal": func(s *awssim.State, id, _ string) {
			b := s.ELB.LoadBalancers[id]
			b.Scheme = map[string]string{"internal": "internet-facing", "internet-facing": "internal"}[b.Scheme]
		},
		"classic-load-balancer listener": func(s *awssim.State, id, _ string) { s.ELB.Classic[id].Listeners[0].InstancePort = 8443 },
		"target-group port":              func(s *awssim.State, id, _ string) { s.ELB.TargetGroups[id].Port = 8443 },
		"target-group ipAddressType":     func(s *awssim.State, id, _ string) { s.ELB.TargetGroups[id].IPType = "tampered" },
	}
	maps.Copy(all, eksConflicts())
	return all
}

// remark changes a value of the init marker.
func remark(s *awssim.State, name, value string) {
	for path, p := range s.SSM.Parameters {
		if strings.HasSuffix(path, "/init") {
			p.Value = regexp.MustCompile(`"`+name+`":"[^"]*"`).ReplaceAllString(p.Value, `"`+name+`":"`+value+`"`)
		}
	}
}

// balancerTampers are the changes to load balancers.
func balancerTampers() map[string]Tamper {
	return map[string]Tamper{
		"load-balancer ipAddressType": func(s *awssim.State, id, _ string) {
			b := s.ELB.LoadBalancers[id]
			b.IPType = map[string]string{"ipv4": "dualstack", "dualstack": "ipv4"}[b.IPType]
		},
		"load-balancer crossZone": func(s *awssim.State, id, _ string) {
			s.ELB.LoadBalancers[id].Attributes["load_balancing.cross_zone.enabled"] = "false"
		},
		"load-balancer subnet": leaveSubnet,
		"load-balancer securityGroup": func(s *awssim.State, id, _ string) {
			b := s.ELB.LoadBalancers[id]
			b.Groups = append(slices.Clone(b.Groups), defaultGroup(s, b.VPC))
		},
		"classic-load-balancer crossZone":   func(s *awssim.State, id, _ string) { s.ELB.Classic[id].CrossZone = !s.ELB.Classic[id].CrossZone },
		"classic-load-balancer idleTimeout": func(s *awssim.State, id, _ string) { s.ELB.Classic[id].IdleTimeout = 61 },
		"classic-load-balancer healthCheck": func(s *awssim.State, id, _ string) { s.ELB.Classic[id].Check.Timeout = 2 },
		"classic-load-balancer subnet":      leaveSubnet,
		"classic-load-balancer securityGroup": func(s *awssim.State, id, _ string) {
			c := s.ELB.Classic[id]
			c.Groups = []string{defaultGroup(s, c.VPC)}
		},
		"target-group healthCheck": func(s *awssim.State, id, _ string) { s.ELB.TargetGroups[id].Check.Unhealthy = 9 },
		"target-group attribute": func(s *awssim.State, id, field string) {
			s.ELB.TargetGroups[id].Attributes[strings.TrimPrefix(field, "attribute ")] = "tampered"
		},
		"listener target": func(s *awssim.State, id, _ string) {
			l := s.ELB.Listeners[id]
			other := *s.ELB.TargetGroups[l.TargetGroup]
			other.ARN, other.Name, other.Tags = other.ARN+tampered, tampered, map[string]string{}
			s.ELB.TargetGroups[other.ARN], l.TargetGroup = &other, other.ARN
		},
		"targets target": func(s *awssim.State, id, _ string) {
			s.ELB.TargetGroups[id].Targets = s.ELB.TargetGroups[id].Targets[1:]
		},
		"classic-targets target": func(s *awssim.State, id, _ string) { clear(s.ELB.Classic[id].Instances) },
	}
}

const tampered = "-tampered"

// Tidy removes what tampers have added to the cluster.
func Tidy(s *awssim.State) {
	maps.DeleteFunc(s.ELB.TargetGroups, func(arn string, _ *awssim.TargetGroup) bool { return strings.HasSuffix(arn, tampered) })
}

// rewrite removes a rule from a group, adds another, and changes the description of a
// third. The group of load balancers may have rules of others, so only its description
// changes.
func rewrite(g *awssim.SecurityGroup) {
	g.Ingress = slices.Clone(g.Ingress)
	if strings.HasSuffix(g.Name, "-lb") && !strings.HasSuffix(g.Name, "-apiserver-lb") {
		g.Ingress[0].Description = "tampered"
		return
	}
	if len(g.Ingress) > 1 {
		g.Ingress[1].Description = "tampered"
	}
	g.Ingress = append(g.Ingress[1:], awssim.Rule{ID: "sgr-0000000000000000d", Protocol: "udp", From: 53, To: 53, CIDR: "192.0.2.0/24"})
}

func regroupMachine(s *awssim.State, id, _ string) {
	i := s.EC2.Instances[id]
	s.EC2.Interfaces[i.Interfaces[0]].Groups = []string{defaultGroup(s, i.VPC)}
}

func defaultGroup(s *awssim.State, vpc string) string {
	for id, g := range s.EC2.SecurityGroups {
		if g.VPC == vpc && g.Name == "default" {
			return id
		}
	}
	return ""
}

// leaveSubnet removes a load balancer from a subnet.
func leaveSubnet(s *awssim.State, id, _ string) {
	var owner string
	if c := s.ELB.Classic[id]; c != nil {
		owner, c.Subnets = c.Subnets[0], c.Subnets[1:]
	} else {
		b := s.ELB.LoadBalancers[id]
		owner, b.Zones = b.Zones[0].Subnet, b.Zones[1:]
	}
	maps.DeleteFunc(s.EC2.Interfaces, func(_ string, n *awssim.Interface) bool {
		return strings.HasSuffix(n.Owner, id+" "+owner)
	})
}

// retag changes a tag; it removes an identity tag.
func retag(s *awssim.State, id, field string) {
	key, tags := strings.TrimPrefix(field, "tag "), TagsOf(s, id)
	if key == "clusterawsadm/resource" {
		delete(tags, key)
	} else {
		tags[key] = "tampered"
	}
}
