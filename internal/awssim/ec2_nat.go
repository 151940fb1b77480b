package awssim

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func (a *AWS) simulateNATGateways() {
	on(a, a.createNATGateway, "SubnetId", "AllocationId", "ConnectivityType", "ClientToken", "TagSpecifications")
	on(a, a.describeNATGateways, "NatGatewayIds", "Filter", "NextToken", "MaxResults")
	on(a, a.deleteNATGateway, "NatGatewayId")
}

func (n *NATGateway) state(now time.Time) types.NatGatewayState {
	switch {
	case !n.Gone.IsZero() && !n.Gone.After(now):
		return types.NatGatewayStateDeleted
	case !n.Deleted.IsZero():
		return types.NatGatewayStateDeleting
	case n.Ready.After(now):
		return types.NatGatewayStatePending
	case n.Failed:
		return types.NatGatewayStateFailed
	}
	return types.NatGatewayStateAvailable
}

// dead reports whether a gateway is one no more, though it may be described.
func (n *NATGateway) dead(now time.Time) bool {
	s := n.state(now)
	return s == types.NatGatewayStateDeleted || s == types.NatGatewayStateFailed
}

// createNATGateway makes a public NAT gateway. In a VPC without an internet
// gateway it is accepted and fails a little later, as with AWS.
func (a *AWS) createNATGateway(in *ec2.CreateNatGatewayInput) (*ec2.CreateNatGatewayOutput, error) {
	s := &a.state.EC2
	return once(a, "CreateNatGateway", in.ClientToken, in, func() ([]string, error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeNatgateway)
		if err != nil {
			return nil, err
		}
		if in.ConnectivityType != "" && in.ConnectivityType != types.ConnectivityTypePublic {
			return nil, notSimulated("a NAT gateway of connectivity type %s", in.ConnectivityType)
		}
		subnet, err := lookup(a, s.Subnets, "subnet", in.SubnetId)
		if err != nil {
			return nil, err
		}
		address, err := lookup(a, s.Addresses, "eipalloc", in.AllocationId)
		if err != nil {
			return nil, err
		}
		if address.Association != "" || a.promised(address.ID) {
			return nil, fail("Resource.AlreadyAssociated", "elastic IP address %s is already associated", address.ID)
		}
		if a.natGatewaysIn(subnet.Zone) >= NATGatewaysPerZone {
			return nil, fail("NatGatewayLimitExceeded", "the maximum number of NAT gateways in %s has been reached", subnet.Zone)
		}
		if subnet.CIDR == "" || a.freeAddresses(subnet) < 1 {
			return nil, fail("InsufficientFreeAddressesInSubnet", "the subnet %s has no free addresses", subnet.ID)
		}
		n := &NATGateway{Thing: a.made("nat", tags), VPC: subnet.VPC, Subnet: subnet.ID, Address: address.ID}
		if a.gatewayOf(subnet.VPC) == nil {
			n.Failed, n.Ready = true, a.now().Add(NATGatewayFails)
		} else {
			n.Ready = a.now().Add(NATGatewayTakes)
			i := a.newInterface(subnet.ID, "Interface for NAT Gateway "+n.ID, string(types.NetworkInterfaceTypeNatGateway), n.ID, nil)
			n.Interface = i.ID
			a.give(address, i)
		}
		s.NATGateways[n.ID] = n
		return []string{n.ID}, nil
	}, func(ids []string) *ec2.CreateNatGatewayOutput {
		dead := func(t Thing) *NATGateway { return &NATGateway{Thing: t, Deleted: t.Born, Gone: t.Born.Add(1)} }
		out := a.natGatewayOut(remembered(s.NATGateways, ids, dead)[0])
		return &ec2.CreateNatGatewayOutput{NatGateway: &out, ClientToken: in.ClientToken}
	})
}

// promised reports whether a gateway that is about to fail has the address.
func (a *AWS) promised(address string) bool {
	for _, n := range a.state.EC2.NATGateways {
		if n.Address == address && n.state(a.now()) == types.NatGatewayStatePending {
			return true
		}
	}
	return false
}

func (a *AWS) natGatewaysIn(zone string) (count int) {
	for _, n := range a.state.EC2.NATGateways {
		if s := a.state.EC2.Subnets[n.Subnet]; s != nil && s.Zone == zone && !n.dead(a.now()) {
			count++
		}
	}
	return count
}

func (a *AWS) natGatewayOut(n *NATGateway) types.NatGateway {
	state := n.state(a.now())
	out := types.NatGateway{
		NatGatewayId: aws.String(n.ID), VpcId: text(n.VPC), SubnetId: text(n.Subnet), State: state, Tags: tagsOut(n.Tags),
		ConnectivityType: types.ConnectivityTypePublic, CreateTime: aws.Time(n.Born),
	}
	if !n.Gone.IsZero() && !n.Gone.After(a.now()) {
		out.DeleteTime = aws.Time(n.Gone)
	}
	if state == types.NatGatewayStateFailed {
		out.FailureCode = aws.String("Gateway.NotAttached")
		out.FailureMessage = aws.String("Network " + n.VPC + " has no Internet gateway attached")
	}
	address := types.NatGatewayAddress{AllocationId: text(n.Address), IsPrimary: aws.Bool(true), NetworkInterfaceId: text(n.Interface)}
	if i := a.state.EC2.Interfaces[n.Interface]; i != nil {
		address.PrivateIp = text(i.PrivateIP)
	}
	// A pending gateway does not tell its public address yet.
	if e := a.state.EC2.Addresses[n.Address]; e != nil && e.Interface == n.Interface && state != types.NatGatewayStatePending {
		address.PublicIp, address.AssociationId = aws.String(e.PublicIP), text(e.Association)
	}
	if n.Address != "" {
		out.NatGatewayAddresses = []types.NatGatewayAddress{address}
	}
	return out
}

func (a *AWS) describeNATGateways(in *ec2.DescribeNatGatewaysInput) (*ec2.DescribeNatGatewaysOutput, error) {
	gateways, next, err := describe(a, a.state.EC2.NATGateways, "nat",
		query{in.NatGatewayIds, in.Filter, in.NextToken, in.MaxResults}, fields[*NATGateway]{
			"nat-gateway-id": func(n *NATGateway) []string { return []string{n.ID} },
			"state":          func(n *NATGateway) []string { return []string{string(n.state(a.now()))} },
			"subnet-id":      func(n *NATGateway) []string { return one(n.Subnet) },
			"vpc-id":         func(n *NATGateway) []string { return one(n.VPC) },
		}, a.natGatewayOut)
	return &ec2.DescribeNatGatewaysOutput{NatGateways: gateways, NextToken: next}, err
}

// deleteNATGateway begins the deletion of a gateway. Its interface stays, and
// its address is in use, until it is over. Routes to it do not keep it.
func (a *AWS) deleteNATGateway(in *ec2.DeleteNatGatewayInput) (*ec2.DeleteNatGatewayOutput, error) {
	n, err := lookup(a, a.state.EC2.NATGateways, "nat", in.NatGatewayId)
	if err != nil {
		return nil, err
	}
	if n.state(a.now()) == types.NatGatewayStateDeleted {
		return nil, kindOf("nat").notFound(n.ID)
	}
	if n.Deleted.IsZero() {
		takes := between(NATGatewayDeletes, NATGatewayDeletesMost, n.ID)
		n.Deleted = a.now()
		n.Gone = n.Deleted.Add(takes)
		a.releaseInterfaces(n.ID, takes)
	}
	return &ec2.DeleteNatGatewayOutput{NatGatewayId: in.NatGatewayId}, nil
}
