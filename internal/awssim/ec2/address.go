package ec2

import (
	"cmp"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Address is an elastic IP address.
type Address struct {
	Thing
	PublicIP, Association, Interface, Instance string
}

func (*Address) kind() kind {
	return kind{
		prefix: "eipalloc", name: "allocation", missing: "InvalidAllocationID.NotFound", tags: types.ResourceTypeElasticIp, title: "Address",
		simulate: (*Service).simulateAddresses,
	}
}

func (e *Address) details(d printer) []string {
	used := ""
	if n := d.aws.state.Interfaces[e.Interface]; n != nil {
		used = cmp.Or(n.Owner, n.ID)
	}
	return []string{"used by " + used}
}

func (svc *Service) simulateAddresses() {
	core.On(svc.Account, svc.allocateAddress, "Domain", "TagSpecifications")
	core.On(svc.Account, svc.describeAddresses, "AllocationIds", "PublicIps", "Filters")
	core.On(svc.Account, svc.associateAddress, "AllocationId", "InstanceId", "NetworkInterfaceId", "AllowReassociation")
	core.On(svc.Account, svc.disassociateAddress, "AssociationId")
	core.On(svc.Account, svc.releaseAddress, "AllocationId")
}

// PublicIP returns an unused public IPv4 address.
func (svc *Service) PublicIP() string {
	n := svc.NextSerial()
	return netip.AddrFrom4([4]byte{54, byte(160 + n>>16&63), byte(n >> 8), byte(n)}).String() //nolint:gosec // bytes of a number
}

// allocateAddress creates an elastic IP. The call has no client token.
func (svc *Service) allocateAddress(in *ec2.AllocateAddressInput) (*ec2.AllocateAddressOutput, error) {
	s := svc.state
	tags, err := tagged(in.TagSpecifications, types.ResourceTypeElasticIp)
	if err != nil {
		return nil, err
	}
	if in.Domain != "" && in.Domain != types.DomainTypeVpc {
		return nil, core.Fail("InvalidParameterValue", "invalid domain: %s", in.Domain)
	}
	if len(s.Addresses) >= s.Limits.Addresses {
		return nil, core.Fail("AddressLimitExceeded", "the maximum number of addresses has been reached")
	}
	e := &Address{Thing: svc.newThing("eipalloc", tags), PublicIP: svc.PublicIP()}
	s.Addresses[e.ID] = e
	return &ec2.AllocateAddressOutput{
		AllocationId: aws.String(e.ID), PublicIp: aws.String(e.PublicIP), Domain: types.DomainTypeVpc,
		NetworkBorderGroup: aws.String(svc.Region), PublicIpv4Pool: aws.String("amazon"),
	}, nil
}

func (svc *Service) addressOut(e *Address) types.Address {
	out := types.Address{
		AllocationId: aws.String(e.ID), PublicIp: aws.String(e.PublicIP), Domain: types.DomainTypeVpc, AssociationId: core.Text(e.Association),
		NetworkInterfaceId: core.Text(e.Interface), InstanceId: core.Text(e.Instance), NetworkBorderGroup: aws.String(svc.Region),
		PublicIpv4Pool: aws.String("amazon"), Tags: tagsOut(e.Tags),
	}
	if n := svc.state.Interfaces[e.Interface]; n != nil {
		out.PrivateIpAddress, out.NetworkInterfaceOwnerId = core.Text(n.PrivateIP), aws.String(svc.Number())
	}
	return out
}

// describeAddresses has no pagination.
func (svc *Service) describeAddresses(in *ec2.DescribeAddressesInput) (*ec2.DescribeAddressesOutput, error) {
	s := svc.state
	ids := in.AllocationIds
	for _, ip := range in.PublicIps {
		known := false
		for id, e := range s.Addresses {
			if e.PublicIP == ip {
				known, ids = true, append(ids[:len(ids):len(ids)], id)
			}
		}
		if !known {
			return nil, core.Fail("InvalidAddress.NotFound", "address '%s' not found", ip)
		}
	}
	found, err := find(svc, s.Addresses, query{ids: ids, filters: in.Filters}, fields[*Address]{
		"allocation-id":        func(e *Address) []string { return []string{e.ID} },
		"association-id":       func(e *Address) []string { return oneValue(e.Association) },
		"instance-id":          func(e *Address) []string { return oneValue(e.Instance) },
		"network-interface-id": func(e *Address) []string { return oneValue(e.Interface) },
		"public-ip":            func(e *Address) []string { return []string{e.PublicIP} },
		"private-ip-address":   func(e *Address) []string { return oneValue(aws.ToString(svc.addressOut(e).PrivateIpAddress)) },
		"domain":               func(*Address) []string { return []string{"vpc"} },
	})
	return &ec2.DescribeAddressesOutput{Addresses: core.Each(found, svc.addressOut)}, err
}

// associateAddress associates an address with an interface. An existing association is
// not an error.
func (svc *Service) associateAddress(in *ec2.AssociateAddressInput) (*ec2.AssociateAddressOutput, error) {
	s := svc.state
	e, err := lookup(svc, s.Addresses, in.AllocationId)
	if err != nil {
		return nil, err
	}
	if err := core.Exactly(in.InstanceId != nil, in.NetworkInterfaceId != nil); err != nil {
		return nil, err
	}
	target := in.NetworkInterfaceId
	if in.InstanceId != nil {
		i, err := lookup(svc, s.Instances, in.InstanceId)
		if err != nil {
			return nil, err
		}
		if i.State(svc.Now()) != types.InstanceStateNameRunning {
			return nil, core.Fail("InvalidInstanceID", "the %s instance '%s' is not in a valid state for this operation", i.State(svc.Now()), i.ID)
		}
		if len(i.Interfaces) > 1 {
			return nil, core.Fail("InvalidInstanceID", "there are multiple interfaces attached to instance '%s': please specify an interface ID", i.ID)
		}
		target = &i.Interfaces[0]
	}
	n, err := lookup(svc, s.Interfaces, target)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Interface == n.ID:
		return &ec2.AssociateAddressOutput{AssociationId: aws.String(e.Association)}, nil
	case n.Managed:
		return nil, core.Fail("AuthFailure", "you do not have permission to access the specified resource")
	case svc.GatewayOf(n.VPC) == nil:
		return nil, core.Fail("Gateway.NotAttached", "network %s is not attached to any internet gateway", n.VPC)
	case e.Interface != "" && !aws.ToBool(in.AllowReassociation):
		return nil, core.Fail("Resource.AlreadyAssociated", "resource %s is already associated with %s", e.ID, e.Association)
	}
	for _, other := range s.Addresses {
		if other.Interface != n.ID {
			continue
		}
		if !aws.ToBool(in.AllowReassociation) {
			return nil, core.Fail("Resource.AlreadyAssociated", "resource %s is already associated with %s", n.ID, other.Association)
		}
		svc.disassociate(other)
	}
	svc.disassociate(e)
	svc.associate(e, n)
	return &ec2.AssociateAddressOutput{AssociationId: aws.String(e.Association)}, nil
}

// associate associates an address with an interface.
func (svc *Service) associate(e *Address, n *Interface) {
	e.Association, e.Interface, n.PublicIP = svc.ID("eipassoc"), n.ID, e.PublicIP
	if i := svc.state.Instances[n.Owner]; i != nil {
		e.Instance = i.ID
	}
}

// disassociate ends the association of an address, if it has one.
func (svc *Service) disassociate(e *Address) {
	if n := svc.state.Interfaces[e.Interface]; n != nil && n.PublicIP == e.PublicIP {
		n.PublicIP = ""
	}
	e.Association, e.Interface, e.Instance = "", "", ""
}

func (svc *Service) disassociateAddress(in *ec2.DisassociateAddressInput) (*ec2.DisassociateAddressOutput, error) {
	for _, e := range svc.state.Addresses {
		if e.Association == "" || e.Association != aws.ToString(in.AssociationId) {
			continue
		}
		if n := svc.state.Interfaces[e.Interface]; n != nil && n.Managed {
			return nil, core.Fail("AuthFailure", "you do not have permission to access the specified resource")
		}
		svc.disassociate(e)
		return &ec2.DisassociateAddressOutput{}, nil
	}
	return nil, core.Fail("InvalidAssociationID.NotFound", "the association ID '%s' does not exist", aws.ToString(in.AssociationId))
}

func (svc *Service) releaseAddress(in *ec2.ReleaseAddressInput) (*ec2.ReleaseAddressOutput, error) {
	e, err := lookup(svc, svc.state.Addresses, in.AllocationId)
	if err != nil {
		return nil, err
	}
	if e.Association != "" {
		return nil, core.Fail("InvalidIPAddress.InUse", "address %s is in use", e.PublicIP)
	}
	delete(svc.state.Addresses, e.ID)
	return &ec2.ReleaseAddressOutput{}, nil
}

// Address returns the elastic IP with an allocation ID, or nil.
func (svc *Service) Address(id string) *Address { return svc.state.Addresses[id] }
