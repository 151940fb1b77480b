package ec2

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// VPC returns the VPC of an ID, or nil.
func (svc *Service) VPC(id string) *VPC { return svc.state.VPCs[id] }

// Subnet returns the subnet of an ID, or nil.
func (svc *Service) Subnet(id string) *Subnet { return svc.state.Subnets[id] }

// Address returns the elastic IP address of an allocation ID, or nil.
func (svc *Service) Address(id string) *Address { return svc.state.Addresses[id] }

// SecurityGroup returns the security group of an ID, or nil.
func (svc *Service) SecurityGroup(id string) *SecurityGroup { return svc.state.SecurityGroups[id] }

// SecurityGroups returns all security groups, in the order of their IDs.
func (svc *Service) SecurityGroups() []*SecurityGroup { return core.ByKey(svc.state.SecurityGroups) }

// RemoveSecurityGroup removes a security group. It does not look who uses it.
func (svc *Service) RemoveSecurityGroup(g *SecurityGroup) { delete(svc.state.SecurityGroups, g.ID) }

// Interface returns the network interface of an ID, or nil.
func (svc *Service) Interface(id string) *Interface { return svc.state.Interfaces[id] }

// InterfacesOf returns the network interfaces that serve an owner, in the
// order of their IDs.
func (svc *Service) InterfacesOf(owner string) []*Interface {
	return slices.DeleteFunc(core.ByKey(svc.state.Interfaces), func(n *Interface) bool { return n.Owner != owner })
}

// Instance returns the instance of an ID, or nil.
func (svc *Service) Instance(id string) *Instance { return svc.state.Instances[id] }

// Instances returns all instances that are described, in no order.
func (svc *Service) Instances() iter.Seq[*Instance] { return maps.Values(svc.state.Instances) }

// Terminate begins the termination of an instance, unless it has begun.
func (svc *Service) Terminate(id string) {
	if i := svc.Instance(id); i != nil && i.Terminating.IsZero() {
		i.Terminating = svc.Now()
		i.Terminated = i.Terminating.Add(InstanceStops)
	}
}

// Volume returns the volume of an ID, or nil.
func (svc *Service) Volume(id string) *Volume { return svc.state.Volumes[id] }

// AddVolume puts a volume with tags into the account.
func (svc *Service) AddVolume(v *Volume, tags map[string]string) *Volume {
	v.Thing = svc.made("vol", tags)
	svc.state.Volumes[v.ID] = v
	return v
}

// RemoveVolume removes a volume.
func (svc *Service) RemoveVolume(v *Volume) { delete(svc.state.Volumes, v.ID) }

// Image returns the image of an ID in the account's region, or nil.
func (svc *Service) Image(id string) *Image { return svc.state.Images[id] }

// LaunchTemplate returns the launch template of an ID, or nil.
func (svc *Service) LaunchTemplate(id string) *LaunchTemplate { return svc.state.LaunchTemplates[id] }

// HasKeyPair reports whether there is a key pair of a name.
func (svc *Service) HasKeyPair(name string) bool { return svc.state.KeyPairs[name] }

// Quotas are the account's quotas.
func (svc *Service) Quotas() Limits { return svc.state.Limits }

// Launch launches instances as RunInstances does.
func (svc *Service) Launch(in *ec2.RunInstancesInput) (launched []*Instance, err error) {
	l, err := svc.prepared(in)
	if err != nil {
		return nil, err
	}
	if err := svc.checkCount(l); err != nil {
		return nil, err
	}
	for _, id := range svc.start(l) {
		launched = append(launched, svc.Instance(id))
	}
	return launched, nil
}

// CheckLaunch returns the error that RunInstances would refuse a call with,
// other than for the account's quotas and for a lack of addresses.
func (svc *Service) CheckLaunch(in *ec2.RunInstancesInput) error {
	_, err := svc.prepared(in)
	return err
}

func (svc *Service) ImageNamed(name string) (string, bool) {
	for _, i := range core.ByKey(svc.state.Images) {
		if i.Name == name {
			return i.ID, true
		}
	}
	return "", false
}

// Known reports whether the services beside EC2 know a thing of EC2 by now.
func (svc *Service) Known(t Thing) bool { return svc.Now().Sub(t.Born) >= svc.LagRefs }

// DefaultGroup returns the default security group of a VPC, if it has one.
func (svc *Service) DefaultGroup(vpc string) []string {
	for _, g := range core.ByKey(svc.state.SecurityGroups) {
		if g.VPC == vpc && g.Name == "default" {
			return []string{g.ID}
		}
	}
	return nil
}

// Regroup puts the interfaces of an owner into security groups.
func (svc *Service) Regroup(owner string, groups []string) {
	for _, i := range svc.state.Interfaces {
		if i.Owner == owner && i.Dies.IsZero() {
			i.Groups = slices.Clone(groups)
		}
	}
}

// InstanceRuns reports whether an instance is running.
func (svc *Service) InstanceRuns(i *Instance) bool {
	return i != nil && !i.Running.IsZero() && !svc.Now().Before(i.Running) && i.Terminating.IsZero() && i.Terminated.IsZero()
}

// InstanceGone reports whether an instance has terminated.
func (svc *Service) InstanceGone(id string) bool {
	i, ok := svc.state.Instances[id]
	return !ok || !i.Terminated.IsZero() && !svc.Now().Before(i.Terminated)
}

// ZoneOf returns the zone of a subnet.
func (svc *Service) ZoneOf(subnet string) string {
	if s, ok := svc.state.Subnets[subnet]; ok {
		return s.Zone
	}
	return ""
}

// Called says what a thing of EC2 is, without its ID.
func (svc *Service) Called(id string) string {
	e := svc.state
	if s, ok := e.Subnets[id]; ok {
		return s.Zone + "/" + s.CIDR
	}
	if g, ok := e.SecurityGroups[id]; ok {
		return g.Name
	}
	if v, ok := e.VPCs[id]; ok {
		return cmp.Or(v.Tags["Name"], v.CIDR)
	}
	if i, ok := e.Instances[id]; ok {
		return cmp.Or(i.Tags["Name"], i.Type)
	}
	return "unknown"
}

// AllCalled says what things of EC2 are, in order.
func (svc *Service) AllCalled(ids []string) string {
	list := make([]string, 0, len(ids))
	for _, id := range ids {
		list = append(list, svc.Called(id))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// LeadsToInternetGateway reports whether a subnet's own route table leads to an internet
// gateway.
func (svc *Service) LeadsToInternetGateway(s *Subnet) bool {
	for _, t := range svc.state.RouteTables {
		own := slices.Contains(slices.Collect(maps.Values(t.Associations)), s.ID)
		if own && slices.ContainsFunc(t.Routes, func(r Route) bool { return kindOf(r.Target).prefix == "igw" }) {
			return true
		}
	}
	return false
}
