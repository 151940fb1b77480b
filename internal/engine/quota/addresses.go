package quota

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// use is what a step of a plan needs of subnets.
type use struct {
	ec2.AddressUse
	step plan.Step
}

// Addresses returns why a plan does not find enough free IPv4 addresses in its subnets: EC2 answers
// InsufficientFreeAddressesInSubnet when some of its resources exist already. It makes no call.
func Addresses(g *graph.Graph, p plan.Plan) (reasons []error) {
	var uses []use
	for _, s := range p.Steps {
		if s.Action != plan.Create && s.Action != plan.Update {
			continue
		}
		r := g.Resource(s.Resource)
		if user, ok := r.Desired().(ec2.AddressUser); ok {
			if a := user.Addresses(s, r.Observed()); a.Takes > 0 || a.Each > 0 {
				uses = append(uses, use{a, s})
			}
		}
	}
	// Who has no choice comes first.
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(len(a.Subnets), len(b.Subnets)) })
	s := &subnets{free: map[plan.ID]int{}, takers: map[plan.ID][]plan.Step{}}
	for _, u := range uses {
		reasons = append(reasons, s.take(u)...)
	}
	return reasons
}

// subnets counts the free addresses of subnets.
type subnets struct {
	free   map[plan.ID]int
	takers map[plan.ID][]plan.Step
}

// take takes the addresses of a step. It returns why there are too few.
func (s *subnets) take(u use) (reasons []error) {
	left, unlimited := 0, false
	for _, subnet := range u.Subnets {
		free, limited := ec2.FreeAddresses(subnet)
		if !limited {
			unlimited = true
			continue
		}
		if _, known := s.free[subnet.ID()]; !known {
			s.free[subnet.ID()] = free
		}
		if free < u.Each {
			reasons = append(reasons, lacks(u.step, fmt.Sprintf("AWS demands %d free addresses in each subnet, and %s has %d", u.Each, nameOf(subnet), free)))
		}
		left += max(0, s.free[subnet.ID()])
	}
	if len(reasons) > 0 || unlimited {
		return reasons
	}
	before := u.Takes
	for need := u.Takes; need > 0; need-- {
		at := slices.MaxFunc(u.Subnets, func(a, b *graph.Ref[ec2.SubnetState]) int { return cmp.Compare(s.free[a.ID()], s.free[b.ID()]) })
		s.free[at.ID()]--
		s.takers[at.ID()] = append(s.takers[at.ID()], u.step)
	}
	if before <= left {
		return nil
	}
	subnet := u.Subnets[0]
	if len(u.Subnets) == 1 && s.free[subnet.ID()] < -1 { // reported already
		return nil
	}
	total, _ := ec2.FreeAddresses(subnet)
	what := fmt.Sprintf("%s has %d free addresses, and the plan needs more of them", nameOf(subnet), total)
	if len(u.Subnets) > 1 {
		var names []string
		for _, x := range u.Subnets {
			names = append(names, nameOf(x))
		}
		what = fmt.Sprintf("%s have %d free addresses, and it needs %d", strings.Join(names, ", "), left, u.Takes)
	}
	return append(reasons, lacks(u.step, what))
}

// lacks says that a step does not find enough addresses, and why.
func lacks(step plan.Step, what string) error {
	return &plan.ResourceError{
		Resource: step.Resource,
		Origin:   step.Origin,
		Err:      errors.New("not enough free IP addresses: " + what + ": use another or a larger subnet, or fewer machines"),
	}
}

// nameOf returns the ID of a subnet in AWS, or in the graph if it does not exist yet.
func nameOf(subnet *graph.Ref[ec2.SubnetState]) string {
	if id := subnet.CloudID(); id != plan.Unknown {
		return id
	}
	return string(subnet.ID())
}
