package awssim

import (
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func (a *AWS) simulateAddresses() {
	on(a, a.allocateAddress, "Domain", "TagSpecifications")
	on(a, a.describeAddresses, "AllocationIds", "PublicIps", "Filters")
	on(a, a.associateAddress, "AllocationId", "InstanceId", "NetworkInterfaceId", "AllowReassociation")
	on(a, a.disassociateAddress, "AssociationId")
	on(a, a.releaseAddress, "AllocationId")
}

// publicIP is a public IPv4 address that nothing else has.
func (a *AWS) publicIP() string {
	n := a.nextSerial()
	return netip.AddrFrom4([4]byte{54, byte(160 + n>>16&63), byte(n >> 8), byte(n)}).String() //nolint:gosec // bytes of a number
}

// allocateAddress makes an elastic IP. AWS knows no client token here.
func (a *AWS) allocateAddress(in *ec2.AllocateAddressInput) (*ec2.AllocateAddressOutput, error) {
	s := &a.state.EC2
	tags, err := tagged(in.TagSpecifications, types.ResourceTypeElasticIp)
	if err != nil {
		return nil, err
	}
	if in.Domain != "" && in.Domain != types.DomainTypeVpc {
		return nil, fail("InvalidParameterValue", "invalid domain: %s", in.Domain)
	}
	if len(s.Addresses) >= s.Limits.Addresses {
		return nil, fail("AddressLimitExceeded", "the maximum number of addresses has been reached")
	}
	e := &Address{Thing: a.made("eipalloc", tags), PublicIP: a.publicIP()}
	s.Addresses[e.ID] = e
	return &ec2.AllocateAddressOutput{
		AllocationId: aws.String(e.ID), PublicIp: aws.String(e.PublicIP), Domain: types.DomainTypeVpc,
		NetworkBorderGroup: aws.String(a.o.Region), PublicIpv4Pool: aws.String("amazon"),
	}, nil
}

func (a *AWS) addressOut(e *Address) types.Address {
	out := types.Address{
		AllocationId: aws.String(e.ID), PublicIp: aws.String(e.PublicIP), Domain: types.DomainTypeVpc, AssociationId: text(e.Association),
		NetworkInterfaceId: text(e.Interface), InstanceId: text(e.Instance), NetworkBorderGroup: aws.String(a.o.Region),
		PublicIpv4Pool: aws.String("amazon"), Tags: tagsOut(e.Tags),
	}
	if n := a.state.EC2.Interfaces[e.Interface]; n != nil {
		out.PrivateIpAddress, out.NetworkInterfaceOwnerId = text(n.PrivateIP), aws.String(Account)
	}
	return out
}

// describeAddresses has no pages.
func (a *AWS) describeAddresses(in *ec2.DescribeAddressesInput) (*ec2.DescribeAddressesOutput, error) {
	s := &a.state.EC2
	ids := in.AllocationIds
	for _, ip := range in.PublicIps {
		known := false
		for id, e := range s.Addresses {
			if e.PublicIP == ip {
				known, ids = true, append(ids[:len(ids):len(ids)], id)
			}
		}
		if !known {
			return nil, fail("InvalidAddress.NotFound", "address '%s' not found", ip)
		}
	}
	found, err := find(a, s.Addresses, "eipalloc", query{ids: ids, filters: in.Filters}, fields[*Address]{
		"allocation-id":        func(e *Address) []string { return []string{e.ID} },
		"association-id":       func(e *Address) []string { return one(e.Association) },
		"instance-id":          func(e *Address) []string { return one(e.Instance) },
		"network-interface-id": func(e *Address) []string { return one(e.Interface) },
		"public-ip":            func(e *Address) []string { return []string{e.PublicIP} },
		"private-ip-address":   func(e *Address) []string { return one(aws.ToString(a.addressOut(e).PrivateIpAddress)) },
		"domain":               func(*Address) []string { return []string{"vpc"} },
	})
	return &ec2.DescribeAddressesOutput{Addresses: each(found, a.addressOut)}, err
}

// associateAddress gives an address to an interface. Asking for what is so
// already is no error.
func (a *AWS) associateAddress(in *ec2.AssociateAddressInput) (*ec2.AssociateAddressOutput, error) {
	s := &a.state.EC2
	e, err := lookup(a, s.Addresses, "eipalloc", in.AllocationId)
	if err != nil {
		return nil, err
	}
	if err := exactly(in.InstanceId != nil, in.NetworkInterfaceId != nil); err != nil {
		return nil, err
	}
	target := in.NetworkInterfaceId
	if in.InstanceId != nil {
		i, err := lookup(a, s.Instances, "i", in.InstanceId)
		if err != nil {
			return nil, err
		}
		if i.state(a.now()) != types.InstanceStateNameRunning {
			return nil, fail("InvalidInstanceID", "the %s instance '%s' is not in a valid state for this operation", i.state(a.now()), i.ID)
		}
		if len(i.Interfaces) > 1 {
			return nil, fail("InvalidInstanceID", "there are multiple interfaces attached to instance '%s': please specify an interface ID", i.ID)
		}
		target = &i.Interfaces[0]
	}
	n, err := lookup(a, s.Interfaces, "eni", target)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Interface == n.ID:
		return &ec2.AssociateAddressOutput{AssociationId: aws.String(e.Association)}, nil
	case n.Managed:
		return nil, fail("AuthFailure", "you do not have permission to access the specified resource")
	case a.gatewayOf(n.VPC) == nil:
		return nil, fail("Gateway.NotAttached", "network %s is not attached to any internet gateway", n.VPC)
	case e.Interface != "" && !aws.ToBool(in.AllowReassociation):
		return nil, fail("Resource.AlreadyAssociated", "resource %s is already associated with %s", e.ID, e.Association)
	}
	for _, other := range s.Addresses {
		if other.Interface != n.ID {
			continue
		}
		if !aws.ToBool(in.AllowReassociation) {
			return nil, fail("Resource.AlreadyAssociated", "resource %s is already associated with %s", n.ID, other.Association)
		}
		a.takeOff(other)
	}
	a.takeOff(e)
	a.give(e, n)
	return &ec2.AssociateAddressOutput{AssociationId: aws.String(e.Association)}, nil
}

// give associates an address with an interface.
func (a *AWS) give(e *Address, n *Interface) {
	e.Association, e.Interface, n.PublicIP = a.id("eipassoc"), n.ID, e.PublicIP
	if i := a.state.EC2.Instances[n.Owner]; i != nil {
		e.Instance = i.ID
	}
}

// takeOff ends the association of an address, if it has one.
func (a *AWS) takeOff(e *Address) {
	if n := a.state.EC2.Interfaces[e.Interface]; n != nil && n.PublicIP == e.PublicIP {
		n.PublicIP = ""
	}
	e.Association, e.Interface, e.Instance = "", "", ""
}

func (a *AWS) disassociateAddress(in *ec2.DisassociateAddressInput) (*ec2.DisassociateAddressOutput, error) {
	for _, e := range a.state.EC2.Addresses {
		if e.Association == "" || e.Association != aws.ToString(in.AssociationId) {
			continue
		}
		if n := a.state.EC2.Interfaces[e.Interface]; n != nil && n.Managed {
			return nil, fail("AuthFailure", "you do not have permission to access the specified resource")
		}
		a.takeOff(e)
		return &ec2.DisassociateAddressOutput{}, nil
	}
	return nil, fail("InvalidAssociationID.NotFound", "the association ID '%s' does not exist", aws.ToString(in.AssociationId))
}

func (a *AWS) releaseAddress(in *ec2.ReleaseAddressInput) (*ec2.ReleaseAddressOutput, error) {
	e, err := lookup(a, a.state.EC2.Addresses, "eipalloc", in.AllocationId)
	if err != nil {
		return nil, err
	}
	if e.Association != "" {
		return nil, fail("InvalidIPAddress.InUse", "address %s is in use", e.PublicIP)
	}
	delete(a.state.EC2.Addresses, e.ID)
	return &ec2.ReleaseAddressOutput{}, nil
}
