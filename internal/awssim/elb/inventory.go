package elb

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// title identifies a target group by its load balancer, because its own name is random.
func (g *TargetGroup) title(user *LoadBalancer) string {
	name := "unattached"
	if user != nil {
		name = user.Name
	}
	return fmt.Sprintf("TargetGroup %s %s %d", name, g.Protocol, g.Port)
}

func (svc *Service) listenerTitle(l *Listener) string {
	return fmt.Sprintf("Listener %s %s %d", svc.state.LoadBalancers[l.LoadBalancer].Name, l.Protocol, l.Port)
}

// Inventory lists the resources of Elastic Load Balancing.
func (svc *Service) Inventory() (lines []string) {
	for _, b := range svc.state.LoadBalancers {
		lines = append(lines, "LoadBalancer "+b.Name)
	}
	for _, g := range svc.state.TargetGroups {
		lines = append(lines, g.title(svc.userOf(g)))
	}
	for _, l := range svc.state.Listeners {
		lines = append(lines, svc.listenerTitle(l))
	}
	for _, c := range svc.state.Classic {
		lines = append(lines, "ClassicLoadBalancer "+c.Name)
	}
	slices.Sort(lines)
	return lines
}

// Detailed is Inventory with the attributes of the resources.
func (svc *Service) Detailed() (lines []string) {
	for _, b := range svc.state.LoadBalancers {
		var subnets, addresses []string
		for _, z := range b.Zones {
			subnets = append(subnets, z.Subnet)
			if z.Allocation != "" {
				addresses = append(addresses, z.Zone)
			}
		}
		lines = append(lines, core.LineOf(
			"LoadBalancer "+b.Name,
			"type",
			b.Type,
			"scheme",
			b.Scheme,
			"ip",
			b.IPType,
			"vpc",
			svc.ec2.Label(b.VPC),
			"subnets",
			svc.ec2.Labels(subnets),
			"addresses",
			strings.Join(addresses, ","),
			"groups",
			svc.ec2.Labels(b.Groups),
			"attributes",
			core.Flat(b.Attributes),
			"tags",
			core.Flat(b.Tags),
		))
	}
	for _, g := range svc.state.TargetGroups {
		var targets []string
		for _, t := range g.Targets {
			if t.Drained.IsZero() {
				targets = append(targets, fmt.Sprintf("%s:%d", svc.ec2.Label(t.ID), t.Port))
			}
		}
		slices.Sort(targets)
		lines = append(lines, core.LineOf(g.title(svc.userOf(g)), "ip", g.IPType, "vpc", svc.ec2.Label(g.VPC), "check", fmt.Sprintf("%+v", g.Check),
			"targets", strings.Join(targets, ","), "attributes", core.Flat(g.Attributes), "tags", core.Flat(g.Tags)))
	}
	for _, l := range svc.state.Listeners {
		g := svc.state.TargetGroups[l.TargetGroup]
		lines = append(lines, core.LineOf(svc.listenerTitle(l), "forwards", fmt.Sprintf("%s:%d", g.Protocol, g.Port), "tags", core.Flat(l.Tags)))
	}
	lines = append(lines, svc.detailedClassic()...)
	slices.Sort(lines)
	return lines
}

func (svc *Service) detailedClassic() (lines []string) {
	for _, c := range svc.state.Classic {
		lines = append(lines, core.LineOf("ClassicLoadBalancer "+c.Name, "scheme", c.Scheme, "vpc", svc.ec2.Label(c.VPC), "subnets", svc.ec2.Labels(c.Subnets),
			"groups", svc.ec2.Labels(c.Groups), "listeners", fmt.Sprintf("%+v", c.Listeners), "check", fmt.Sprintf("%+v", c.Check),
			"attributes", fmt.Sprintf("{crosszone:%t draining:%t/%d idle:%d}", c.CrossZone, c.Draining, c.DrainingTimeout, c.IdleTimeout),
			"instances", svc.ec2.Labels(slices.Collect(maps.Keys(c.Instances))), "tags", core.Flat(c.Tags)))
	}
	return lines
}
