package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// NATGateway is a public NAT gateway.
type NATGateway struct {
	Thing
	VPC, Subnet, Address, Interface string
	Failed                          string    // "CODE: MESSAGE"; "" for a gateway that works
	Ready                           time.Time // available since
	Deleted                         time.Time // start of the deletion; zero: none
	Gone                            time.Time // end of the deletion
}

func (*NATGateway) kind() kind {
	return kind{
		prefix: "nat", name: "natGateway", missing: "NatGatewayNotFound", tags: types.ResourceTypeNatgateway, title: "NATGateway",
		simulate: (*Service).simulateNATGateways, settle: (*Service).settleNATGateways, route: natGatewayRoutes(),
	}
}

func (n *NATGateway) details(printer) []string {
	return []string{n.Subnet, n.Address, fmt.Sprintf("deleting %t", !n.Deleted.IsZero())}
}

func (n *NATGateway) over(now time.Time) bool { return n.dead(now) }

func (n *NATGateway) ending(now time.Time) string {
	if n.Deleted.IsZero() {
		return ""
	}
	return string(n.state(now))
}

func (svc *Service) simulateNATGateways() {
	core.On(svc.Account, svc.createNATGateway, "SubnetId", "AllocationId", "ConnectivityType", "ClientToken", "TagSpecifications")
	core.On(svc.Account, svc.describeNATGateways, "NatGatewayIds", "Filter", "NextToken", "MaxResults")
	core.On(svc.Account, svc.deleteNATGateway, "NatGatewayId")
}

func (n *NATGateway) state(now time.Time) types.NatGatewayState {
	switch {
	case !n.Gone.IsZero() && !n.Gone.After(now):
		return types.NatGatewayStateDeleted
	case !n.Deleted.IsZero():
		return types.NatGatewayStateDeleting
	case n.Ready.After(now):
		return types.NatGatewayStatePending
	case n.Failed != "":
		return types.NatGatewayStateFailed
	}
	return types.NatGatewayStateAvailable
}

// dead reports whether a gateway is deleted or has failed, although it may still be
// returned.
func (n *NATGateway) dead(now time.Time) bool {
	s := n.state(now)
	return s == types.NatGatewayStateDeleted || s == types.NatGatewayStateFailed
}

// createNATGateway creates a public NAT gateway. In a VPC without an internet gateway, it
// is accepted and fails later, as in AWS.
func (svc *Service) createNATGateway(in *ec2.CreateNatGatewayInput) (*ec2.CreateNatGatewayOutput, error) {
	s := svc.state
	return idempotent(svc, "CreateNatGateway", in.ClientToken, in, func() ([]string, error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeNatgateway)
		if err != nil {
			return nil, err
		}
		if in.ConnectivityType != "" && in.ConnectivityType != types.ConnectivityTypePublic {
			return nil, core.NotSimulated("a NAT gateway of connectivity type %s", in.ConnectivityType)
		}
		subnet, err := lookup(svc, s.Subnets, in.SubnetId)
		if err != nil {
			return nil, err
		}
		address, err := lookup(svc, s.Addresses, in.AllocationId)
		if err != nil {
			return nil, err
		}
		if address.Association != "" || svc.promised(address.ID) {
			return nil, core.Fail("Resource.AlreadyAssociated", "elastic IP address %s is already associated", address.ID)
		}
		if svc.natGatewaysIn(subnet.Zone) >= svc.Quotas().NATGatewaysPerZone {
			return nil, core.Fail("NatGatewayLimitExceeded", "the maximum number of NAT gateways in %s has been reached", subnet.Zone)
		}
		if subnet.CIDR == "" || svc.freeAddresses(subnet) < 1 {
			return nil, core.Fail("InsufficientFreeAddressesInSubnet", "the subnet %s has no free addresses", subnet.ID)
		}
		n := &NATGateway{Thing: svc.newThing("nat", tags), VPC: subnet.VPC, Subnet: subnet.ID, Address: address.ID}
		n.Failed = cmp.Or(s.NATGatewayFailure, svc.NATGatewayFailure)
		if svc.GatewayOf(subnet.VPC) == nil {
			n.Failed = "Gateway.NotAttached: Network " + n.VPC + " has no Internet gateway attached"
		}
		if n.Failed != "" {
			n.Ready = svc.Now().Add(NATGatewayFails)
		} else {
			n.Ready = svc.Now().Add(NATGatewayTakes)
			i := svc.NewInterface(subnet.ID, "Interface for NAT Gateway "+n.ID, string(types.NetworkInterfaceTypeNatGateway), n.ID, nil)
			n.Interface = i.ID
			svc.associate(address, i)
		}
		s.NATGateways[n.ID] = n
		return []string{n.ID}, nil
	}, func(ids []string) *ec2.CreateNatGatewayOutput {
		dead := func(t Thing) *NATGateway { return &NATGateway{Thing: t, Deleted: t.Born, Gone: t.Born.Add(1)} }
		out := svc.natGatewayOut(remembered(s.NATGateways, ids, dead)[0])
		return &ec2.CreateNatGatewayOutput{NatGateway: &out, ClientToken: in.ClientToken}
	})
}

// promised reports whether a gateway that is going to fail uses the address.
func (svc *Service) promised(address string) bool {
	for _, n := range svc.state.NATGateways {
		if n.Address == address && n.state(svc.Now()) == types.NatGatewayStatePending {
			return true
		}
	}
	return false
}

func (svc *Service) natGatewaysIn(zone string) (count int) {
	for _, n := range svc.state.NATGateways {
		if s := svc.state.Subnets[n.Subnet]; s != nil && s.Zone == zone && !n.dead(svc.Now()) {
			count++
		}
	}
	return count
}

func (svc *Service) natGatewayOut(n *NATGateway) types.NatGateway {
	state := n.state(svc.Now())
	out := types.NatGateway{
		NatGatewayId: aws.String(n.ID), VpcId: core.Text(n.VPC), SubnetId: core.Text(n.Subnet), State: state, Tags: tagsOut(n.Tags),
		ConnectivityType: types.ConnectivityTypePublic, CreateTime: aws.Time(n.Born),
	}
	if !n.Gone.IsZero() && !n.Gone.After(svc.Now()) {
		out.DeleteTime = aws.Time(n.Gone)
	}
	if state == types.NatGatewayStateFailed {
		code, message, _ := strings.Cut(n.Failed, ": ")
		out.FailureCode, out.FailureMessage = &code, &message
	}
	address := types.NatGatewayAddress{AllocationId: core.Text(n.Address), IsPrimary: aws.Bool(true), NetworkInterfaceId: core.Text(n.Interface)}
	if i := svc.state.Interfaces[n.Interface]; i != nil {
		address.PrivateIp = core.Text(i.PrivateIP)
	}
	// For a pending gateway, AWS does not return the public address.
	if e := svc.state.Addresses[n.Address]; e != nil && e.Interface == n.Interface && state != types.NatGatewayStatePending {
		address.PublicIp, address.AssociationId = aws.String(e.PublicIP), core.Text(e.Association)
	}
	if n.Address != "" {
		out.NatGatewayAddresses = []types.NatGatewayAddress{address}
	}
	return out
}

func (svc *Service) describeNATGateways(in *ec2.DescribeNatGatewaysInput) (*ec2.DescribeNatGatewaysOutput, error) {
	gateways, next, err := describe(svc, svc.state.NATGateways,
		query{in.NatGatewayIds, in.Filter, in.NextToken, in.MaxResults}, fields[*NATGateway]{
			"nat-gateway-id": func(n *NATGateway) []string { return []string{n.ID} },
			"state":          func(n *NATGateway) []string { return []string{string(n.state(svc.Now()))} },
			"subnet-id":      func(n *NATGateway) []string { return oneValue(n.Subnet) },
			"vpc-id":         func(n *NATGateway) []string { return oneValue(n.VPC) },
		}, svc.natGatewayOut)
	return &ec2.DescribeNatGatewaysOutput{NatGateways: gateways, NextToken: next}, err
}

// deleteNATGateway starts the deletion of a gateway. Until it ends, the interface exists
// and the address is in use. Routes to the gateway do not prevent it.
func (svc *Service) deleteNATGateway(in *ec2.DeleteNatGatewayInput) (*ec2.DeleteNatGatewayOutput, error) {
	n, err := lookup(svc, svc.state.NATGateways, in.NatGatewayId)
	if err != nil {
		return nil, err
	}
	if n.state(svc.Now()) == types.NatGatewayStateDeleted {
		return nil, n.kind().notFound(n.ID)
	}
	if n.Deleted.IsZero() {
		takes := core.Between(NATGatewayDeletes, NATGatewayDeletesMost, n.ID)
		n.Deleted = svc.Now()
		n.Gone = n.Deleted.Add(takes)
		svc.ReleaseInterfaces(n.ID, takes)
	}
	return &ec2.DeleteNatGatewayOutput{NatGatewayId: in.NatGatewayId}, nil
}

// settleNATGateways removes deleted and failed gateways after an hour.
func (svc *Service) settleNATGateways() {
	maps.DeleteFunc(svc.state.NATGateways, func(_ string, n *NATGateway) bool {
		over := n.Gone
		if over.IsZero() && n.Failed != "" {
			over = n.Ready
		}
		return !over.IsZero() && svc.Now().Sub(over) >= NATGatewayShown
	})
}

// natGatewayRoutes permits routes to a NAT gateway that is available: for another one,
// AWS returns that it does not exist.
func natGatewayRoutes() *routeTarget {
	return &routeTarget{
		parameter: "NatGatewayId",
		id:        func(in *ec2.CreateRouteInput) *string { return in.NatGatewayId },
		show:      func(out *types.Route) **string { return &out.NatGatewayId },
		vpc: func(svc *Service, id *string, destination string) (string, error) {
			n, err := lookup(svc, svc.state.NATGateways, id)
			if err == nil && n.state(svc.Now()) != types.NatGatewayStateAvailable {
				err = n.kind().notFound(n.ID)
			}
			if err != nil {
				return "", recoded(err, "InvalidNatGatewayID.NotFound")
			}
			if prefix(destination).Addr().Is6() && destination != nat64 {
				return "", core.Fail("InvalidParameterValue", "a NAT gateway takes IPv4, and of IPv6 only %s", nat64)
			}
			return n.VPC, nil
		},
		leads: func(svc *Service, _ *RouteTable, id string) bool {
			n := svc.state.NATGateways[id]
			return n != nil && n.state(svc.Now()) == types.NatGatewayStateAvailable
		},
	}
}
