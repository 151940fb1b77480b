package ec2

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// CarrierGateway connects the Wavelength Zones of a VPC to the carrier's network.
type CarrierGateway struct {
	Thing
	VPC     string
	Deleted time.Time // zero: it exists
}

// How long AWS takes to create and to delete a carrier gateway. AWS publishes no
// durations, and these are not measured.
const (
	CarrierGatewayTakes   = 5 * time.Second
	CarrierGatewayDeletes = 5 * time.Second
)

func (*CarrierGateway) kind() kind {
	return kind{
		prefix: "cagw", name: "carrierGateway", missing: "InvalidCarrierGatewayID.NotFound", tags: types.ResourceTypeCarrierGateway, title: "CarrierGateway",
		simulate: (*Service).simulateCarrierGateways, settle: (*Service).settleCarrierGateways, route: carrierGatewayRoutes(),
	}
}

// keepsVPC returns the VPC also while the gateway is being deleted.
func (g *CarrierGateway) keepsVPC() string { return g.VPC }

func (g *CarrierGateway) details(printer) []string { return []string{"of " + g.VPC} }

func (svc *Service) simulateCarrierGateways() {
	core.On(svc.Account, svc.createCarrierGateway, "VpcId", "ClientToken", "TagSpecifications")
	core.On(svc.Account, svc.describeCarrierGateways, "CarrierGatewayIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.deleteCarrierGateway, "CarrierGatewayId")
}

// settleCarrierGateways removes gateways after their deletion.
func (svc *Service) settleCarrierGateways() {
	for id, g := range svc.state.CarrierGateways {
		if !g.Deleted.IsZero() && svc.Now().Sub(g.Deleted) >= CarrierGatewayDeletes {
			delete(svc.state.CarrierGateways, id)
		}
	}
}

// carrierGatewayRoutes permits routes to a carrier gateway for subnets in Wavelength
// Zones and IPv4.
func carrierGatewayRoutes() *routeTarget {
	return &routeTarget{
		parameter: "CarrierGatewayId",
		id:        func(in *ec2.CreateRouteInput) *string { return in.CarrierGatewayId },
		show:      func(out *types.Route) **string { return &out.CarrierGatewayId },
		vpc: func(svc *Service, id *string, destination string) (string, error) {
			g, err := lookup(svc, svc.state.CarrierGateways, id)
			if err != nil {
				return "", err
			}
			if prefix(destination).Addr().Is6() {
				return "", core.Fail("InvalidParameterValue", "a carrier gateway takes IPv4 only")
			}
			return g.VPC, nil
		},
		leads: func(svc *Service, _ *RouteTable, id string) bool {
			g := svc.state.CarrierGateways[id]
			return g != nil && g.Deleted.IsZero()
		},
	}
}

func (svc *Service) createCarrierGateway(in *ec2.CreateCarrierGatewayInput) (*ec2.CreateCarrierGatewayOutput, error) {
	s := svc.state
	return idempotent(svc, "CreateCarrierGateway", in.ClientToken, in, func() ([]string, error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeCarrierGateway)
		if err != nil {
			return nil, err
		}
		v, err := lookup(svc, s.VPCs, in.VpcId)
		if err != nil {
			return nil, err
		}
		for _, g := range s.CarrierGateways {
			if g.VPC == v.ID { // "You can create one carrier gateway per VPC" (AWS Wavelength Developer Guide); the code is not verified
				return nil, core.Fail("CarrierGatewayLimitExceeded", "the vpc '%s' has a carrier gateway already", v.ID)
			}
		}
		g := &CarrierGateway{Thing: svc.newThing("cagw", tags), VPC: v.ID}
		s.CarrierGateways[g.ID] = g
		return []string{g.ID}, nil
	}, func(ids []string) *ec2.CreateCarrierGatewayOutput {
		out := svc.carrierGatewayOut(remembered(s.CarrierGateways, ids, func(t Thing) *CarrierGateway { return &CarrierGateway{Thing: t} })[0])
		return &ec2.CreateCarrierGatewayOutput{CarrierGateway: &out}
	})
}

func (svc *Service) carrierGatewayState(g *CarrierGateway) types.CarrierGatewayState {
	switch {
	case !g.Deleted.IsZero():
		return types.CarrierGatewayStateDeleting
	case svc.Now().Sub(g.Born) < CarrierGatewayTakes:
		return types.CarrierGatewayStatePending
	}
	return types.CarrierGatewayStateAvailable
}

func (svc *Service) carrierGatewayOut(g *CarrierGateway) types.CarrierGateway {
	return types.CarrierGateway{
		CarrierGatewayId: aws.String(g.ID), VpcId: aws.String(g.VPC), OwnerId: aws.String(svc.Number()), State: svc.carrierGatewayState(g), Tags: tagsOut(g.Tags),
	}
}

func (svc *Service) describeCarrierGateways(in *ec2.DescribeCarrierGatewaysInput) (*ec2.DescribeCarrierGatewaysOutput, error) {
	gateways, next, err := describe(svc, svc.state.CarrierGateways, query{in.CarrierGatewayIds, in.Filters, in.NextToken, in.MaxResults}, fields[*CarrierGateway]{
		"carrier-gateway-id": func(g *CarrierGateway) []string { return []string{g.ID} },
		"state":              func(g *CarrierGateway) []string { return []string{string(svc.carrierGatewayState(g))} },
		"vpc-id":             func(g *CarrierGateway) []string { return []string{g.VPC} },
	}, svc.carrierGatewayOut)
	return &ec2.DescribeCarrierGatewaysOutput{CarrierGateways: gateways, NextToken: next}, err
}

// deleteCarrierGateway deletes a gateway. Routes to it become blackholes.
func (svc *Service) deleteCarrierGateway(in *ec2.DeleteCarrierGatewayInput) (*ec2.DeleteCarrierGatewayOutput, error) {
	g, err := lookup(svc, svc.state.CarrierGateways, in.CarrierGatewayId)
	if err != nil {
		return nil, err
	}
	if g.Deleted.IsZero() {
		g.Deleted = svc.Now()
	}
	out := svc.carrierGatewayOut(g)
	return &ec2.DeleteCarrierGatewayOutput{CarrierGateway: &out}, nil
}
