package awssim

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// VPC returns the VPC of an ID, or nil.
func (a *AWS) VPC(id string) *VPC { return a.state.EC2.VPCs[id] }

// Subnet returns the subnet of an ID, or nil.
func (a *AWS) Subnet(id string) *Subnet { return a.state.EC2.Subnets[id] }

// Address returns the elastic IP address of an allocation ID, or nil.
func (a *AWS) Address(id string) *Address { return a.state.EC2.Addresses[id] }

// SecurityGroup returns the security group of an ID, or nil.
func (a *AWS) SecurityGroup(id string) *SecurityGroup { return a.state.EC2.SecurityGroups[id] }

// SecurityGroups returns all security groups, in the order of their IDs.
func (a *AWS) SecurityGroups() []*SecurityGroup { return byKey(a.state.EC2.SecurityGroups) }

// RemoveSecurityGroup removes a security group. It does not look who uses it.
func (a *AWS) RemoveSecurityGroup(g *SecurityGroup) { delete(a.state.EC2.SecurityGroups, g.ID) }

// Interface returns the network interface of an ID, or nil.
func (a *AWS) Interface(id string) *Interface { return a.state.EC2.Interfaces[id] }

// InterfacesOf returns the network interfaces that serve an owner, in the
// order of their IDs.
func (a *AWS) InterfacesOf(owner string) []*Interface {
	return slices.DeleteFunc(byKey(a.state.EC2.Interfaces), func(n *Interface) bool { return n.Owner != owner })
}

// Instance returns the instance of an ID, or nil.
func (a *AWS) Instance(id string) *Instance { return a.state.EC2.Instances[id] }

// Instances returns all instances that are described, in no order.
func (a *AWS) Instances() iter.Seq[*Instance] { return maps.Values(a.state.EC2.Instances) }

// State is the state of an instance at a time.
func (i *Instance) State(now time.Time) types.InstanceStateName { return i.state(now) }

// Terminate begins the termination of an instance, unless it has begun.
func (a *AWS) Terminate(id string) {
	if i := a.Instance(id); i != nil && i.Terminating.IsZero() {
		i.Terminating = a.now()
		i.Terminated = i.Terminating.Add(InstanceStops)
	}
}

// Volume returns the volume of an ID, or nil.
func (a *AWS) Volume(id string) *Volume { return a.state.EC2.Volumes[id] }

// AddVolume puts a volume with tags into the account.
func (a *AWS) AddVolume(v *Volume, tags map[string]string) *Volume {
	v.Thing = a.made("vol", tags)
	a.state.EC2.Volumes[v.ID] = v
	return v
}

// RemoveVolume removes a volume.
func (a *AWS) RemoveVolume(v *Volume) { delete(a.state.EC2.Volumes, v.ID) }

// Image returns the image of an ID in the account's region, or nil.
func (a *AWS) Image(id string) *Image { return a.state.EC2.Images[id] }

// LaunchTemplate returns the launch template of an ID, or nil.
func (a *AWS) LaunchTemplate(id string) *LaunchTemplate { return a.state.EC2.LaunchTemplates[id] }

// HasKeyPair reports whether there is a key pair of a name.
func (a *AWS) HasKeyPair(name string) bool { return a.state.EC2.KeyPairs[name] }

// Quotas are the account's quotas.
func (a *AWS) Quotas() Limits { return a.state.EC2.Limits }

// Launch launches instances as RunInstances does.
func (a *AWS) Launch(in *ec2.RunInstancesInput) (launched []*Instance, err error) {
	l, err := a.prepared(in)
	if err != nil {
		return nil, err
	}
	if err := a.checkCount(l); err != nil {
		return nil, err
	}
	for _, id := range a.start(l) {
		launched = append(launched, a.Instance(id))
	}
	return launched, nil
}

// CheckLaunch returns the error that RunInstances would refuse a call with,
// other than for the account's quotas and for a lack of addresses.
func (a *AWS) CheckLaunch(in *ec2.RunInstancesInput) error {
	_, err := a.prepared(in)
	return err
}

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
