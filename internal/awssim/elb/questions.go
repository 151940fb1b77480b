package elb

import (
	"iter"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// SchemeOf returns the scheme of the load balancer with a DNS name, and whether it
// exists.
func (svc *Service) SchemeOf(host string) (scheme string, exists bool) {
	for _, b := range svc.state.LoadBalancers {
		if b.DNSName == host {
			return b.Scheme, true
		}
	}
	for _, b := range svc.state.Classic {
		if b.DNSName == host {
			return b.Scheme, true
		}
	}
	return "", false
}

// Resolves reports whether a name leads to an address. AWS makes and removes the names of load balancers (DNSName in both versions of the ELB API
// reference); other names are somebody's, who is taken to have made them.
func (svc *Service) Resolves(host string) bool {
	_, exists := svc.SchemeOf(host)
	return exists || !regex.Of(`(?i)\.elb(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?$`).MatchString(host)
}

// Forwards reports whether the load balancer with a DNS name, if it exists, forwards to
// an instance for which serves returns true, and since when.
func (svc *Service) Forwards(host string, serves func(instance string) bool) (from time.Time, ok, exists bool) {
	for _, b := range svc.state.LoadBalancers {
		if b.DNSName != host {
			continue
		}
		subnets := make([]string, 0, len(b.Zones))
		for _, z := range b.Zones {
			subnets = append(subnets, z.Subnet)
		}
		if !svc.reachable(b.Scheme, subnets) {
			return b.Ready, false, true
		}
		for _, l := range svc.state.Listeners {
			g := svc.state.TargetGroups[l.TargetGroup]
			passes := slices.ContainsFunc(b.Zones, func(z LoadBalancerZone) bool { return svc.ec2.PassesClients(z.Subnet, l.Port) })
			if l.LoadBalancer == b.ARN && g != nil && passes && slices.ContainsFunc(g.Targets, func(t *Target) bool {
				return t.Drained.IsZero() && svc.inZoneOf(subnets, t.ID) && serves(t.ID)
			}) {
				return b.Ready, true, true
			}
		}
		return b.Ready, false, true
	}
	for _, b := range svc.state.Classic {
		if b.DNSName != host {
			continue
		}
		for id := range b.Instances {
			if svc.reachable(b.Scheme, b.Subnets) && svc.inZoneOf(b.Subnets, id) && serves(id) {
				return b.Born, true, true
			}
		}
		return b.Born, false, true
	}
	return from, false, false
}

// reachable reports whether clients reach a load balancer: the subnets of an internet-facing one need a route to an internet gateway ("For
// internet-facing load balancers, the subnets must have a route to an internet gateway", "Create a Network Load Balancer", Elastic Load
// Balancing user guide).
func (svc *Service) reachable(scheme string, subnets []string) bool {
	return scheme == "internal" || slices.ContainsFunc(subnets, func(id string) bool {
		s := svc.ec2.Subnet(id)
		return s != nil && svc.ec2.IsPublic(s)
	})
}

// inZoneOf reports whether an instance is in one of the zones of a load balancer. A load balancer does not forward to other zones
// (Target.NotInUse in TargetHealth, API reference; "Add or remove Availability Zones", user guide of Classic Load Balancers).
func (svc *Service) inZoneOf(subnets []string, instance string) bool {
	i := svc.ec2.Instance(instance)
	return i != nil && slices.ContainsFunc(subnets, func(s string) bool { return svc.ec2.ZoneOf(s) == i.Zone })
}

// TargetIDs returns the instances that are targets of load balancers, except for those of Services in a cluster.
func (svc *Service) TargetIDs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, g := range svc.state.TargetGroups {
			for _, t := range g.Targets {
				if t.Drained.IsZero() && !yield(t.ID) {
					return
				}
			}
		}
		for _, b := range svc.state.Classic {
			if _, service := b.Tags["kubernetes.io/service-name"]; service {
				continue
			}
			for id := range b.Instances {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// ClassicNamed returns the Classic Load Balancer with that name, or nil.
func (svc *Service) ClassicNamed(name string) *ClassicLoadBalancer { return svc.state.Classic[name] }
