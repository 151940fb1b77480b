package awssim

import (
	"maps"
	"slices"
	"strings"
)

func (a *AWS) imageNamed(name string) (string, bool) {
	for _, i := range byKey(a.state.EC2.Images) {
		if i.Name == name {
			return i.ID, true
		}
	}
	return "", false
}

// known reports whether the services beside EC2 know a thing of EC2 by now.
func (a *AWS) known(t Thing) bool { return a.now().Sub(t.Born) >= a.o.LagRefs }

// defaultGroup returns the default security group of a VPC, if it has one.
func (a *AWS) defaultGroup(vpc string) []string {
	for _, g := range byKey(a.state.EC2.SecurityGroups) {
		if g.VPC == vpc && g.Name == "default" {
			return []string{g.ID}
		}
	}
	return nil
}

// regroup puts the interfaces of an owner into security groups.
func (a *AWS) regroup(owner string, groups []string) {
	for _, i := range a.state.EC2.Interfaces {
		if i.Owner == owner && i.Dies.IsZero() {
			i.Groups = slices.Clone(groups)
		}
	}
}

// instanceRuns reports whether an instance is running.
func (a *AWS) instanceRuns(i *Instance) bool {
	return i != nil && !i.Running.IsZero() && !a.now().Before(i.Running) && i.Terminating.IsZero() && i.Terminated.IsZero()
}

// instanceGone reports whether an instance has terminated.
func (a *AWS) instanceGone(id string) bool {
	i, ok := a.state.EC2.Instances[id]
	return !ok || !i.Terminated.IsZero() && !a.now().Before(i.Terminated)
}

// zoneOf returns the zone of a subnet.
func (a *AWS) zoneOf(subnet string) string {
	if s, ok := a.state.EC2.Subnets[subnet]; ok {
		return s.Zone
	}
	return ""
}

// called says what a thing of EC2 is, without its ID.
func (a *AWS) called(id string) string {
	e := a.state.EC2
	if s, ok := e.Subnets[id]; ok {
		return s.Zone + "/" + s.CIDR
	}
	if g, ok := e.SecurityGroups[id]; ok {
		return g.Name
	}
	if v, ok := e.VPCs[id]; ok {
		return first(v.Tags["Name"], v.CIDR)
	}
	if i, ok := e.Instances[id]; ok {
		return first(i.Tags["Name"], i.Type)
	}
	return "unknown"
}

// allCalled says what things of EC2 are, in order.
func (a *AWS) allCalled(ids []string) string {
	list := make([]string, 0, len(ids))
	for _, id := range ids {
		list = append(list, a.called(id))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// public reports whether a subnet's own route table leads to an internet
// gateway.
func (a *AWS) public(s *Subnet) bool {
	for _, t := range a.state.EC2.RouteTables {
		own := slices.Contains(slices.Collect(maps.Values(t.Associations)), s.ID)
		if own && slices.ContainsFunc(t.Routes, func(r Route) bool { return kindOf(r.Target).prefix == "igw" }) {
			return true
		}
	}
	return false
}
