package awssim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// title names a target group by its load balancer, since its own name is made
// up.
func (g *TargetGroup) title(user *LoadBalancer) string {
	name := "unattached"
	if user != nil {
		name = user.Name
	}
	return fmt.Sprintf("TargetGroup %s %s %d", name, g.Protocol, g.Port)
}

func (a *AWS) listenerTitle(l *Listener) string {
	return fmt.Sprintf("Listener %s %s %d", a.state.ELB.LoadBalancers[l.LoadBalancer].Name, l.Protocol, l.Port)
}

// inventoryELB lists what Elastic Load Balancing holds.
func (a *AWS) inventoryELB() (lines []string) {
	for _, b := range a.state.ELB.LoadBalancers {
		lines = append(lines, "LoadBalancer "+b.Name)
	}
	for _, g := range a.state.ELB.TargetGroups {
		lines = append(lines, g.title(a.userOf(g)))
	}
	for _, l := range a.state.ELB.Listeners {
		lines = append(lines, a.listenerTitle(l))
	}
	for _, c := range a.state.ELB.Classic {
		lines = append(lines, "ClassicLoadBalancer "+c.Name)
	}
	slices.Sort(lines)
	return lines
}

// detailedELB is inventoryELB with what the things are like.
func (a *AWS) detailedELB() (lines []string) {
	for _, b := range a.state.ELB.LoadBalancers {
		var subnets, addresses []string
		for _, z := range b.Zones {
			subnets = append(subnets, z.Subnet)
			if z.Allocation != "" {
				addresses = append(addresses, z.Zone)
			}
		}
		lines = append(lines, lineOf("LoadBalancer "+b.Name, "type", b.Type, "scheme", b.Scheme, "ip", b.IPType, "vpc", a.called(b.VPC),
			"subnets", a.allCalled(subnets), "addresses", strings.Join(addresses, ","), "groups", a.allCalled(b.Groups), "attributes", flat(b.Attributes), "tags", flat(b.Tags)))
	}
	for _, g := range a.state.ELB.TargetGroups {
		var targets []string
		for _, t := range g.Targets {
			if t.Drained.IsZero() {
				targets = append(targets, fmt.Sprintf("%s:%d", a.called(t.ID), t.Port))
			}
		}
		slices.Sort(targets)
		lines = append(lines, lineOf(g.title(a.userOf(g)), "ip", g.IPType, "vpc", a.called(g.VPC), "check", fmt.Sprintf("%+v", g.Check),
			"targets", strings.Join(targets, ","), "attributes", flat(g.Attributes), "tags", flat(g.Tags)))
	}
	for _, l := range a.state.ELB.Listeners {
		g := a.state.ELB.TargetGroups[l.TargetGroup]
		lines = append(lines, lineOf(a.listenerTitle(l), "forwards", fmt.Sprintf("%s:%d", g.Protocol, g.Port), "tags", flat(l.Tags)))
	}
	lines = append(lines, a.detailedClassic()...)
	slices.Sort(lines)
	return lines
}

func (a *AWS) detailedClassic() (lines []string) {
	for _, c := range a.state.ELB.Classic {
		lines = append(lines, lineOf("ClassicLoadBalancer "+c.Name, "scheme", c.Scheme, "vpc", a.called(c.VPC), "subnets", a.allCalled(c.Subnets),
			"groups", a.allCalled(c.Groups), "listeners", fmt.Sprintf("%+v", c.Listeners), "check", fmt.Sprintf("%+v", c.Check),
			"attributes", fmt.Sprintf("{crosszone:%t draining:%t/%d idle:%d}", c.CrossZone, c.Draining, c.DrainingTimeout, c.IdleTimeout),
			"instances", a.allCalled(slices.Collect(maps.Keys(c.Instances))), "tags", flat(c.Tags)))
	}
	return lines
}
