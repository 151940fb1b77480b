package ec2

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// EgressOnlyGateway is an egress-only internet gateway.
type EgressOnlyGateway struct {
	Thing
	VPC string
}

func (*EgressOnlyGateway) kind() kind {
	return kind{
		prefix:   "eigw",
		name:     "egressOnlyInternetGateway",
		missing:  "InvalidEgressOnlyInternetGatewayID.NotFound",
		tags:     types.ResourceTypeEgressOnlyInternetGateway,
		title:    "InternetGateway",
		simulate: (*Service).simulateEgressOnlyGateways,
		route:    egressOnlyGatewayRoutes(),
	}
}

func (g *EgressOnlyGateway) keepsVPC() string { return g.VPC }

func (g *EgressOnlyGateway) details(printer) []string {
	return []string{"attached to " + g.VPC, "egress-only true"}
}

func (svc *Service) simulateEgressOnlyGateways() {
	core.On(svc.Account, svc.createEgressOnlyInternetGateway, "VpcId", "ClientToken", "TagSpecifications")
	core.On(svc.Account, svc.describeEgressOnlyInternetGateways, "EgressOnlyInternetGatewayIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.deleteEgressOnlyInternetGateway, "EgressOnlyInternetGatewayId")
}

// egressOnlyGatewayRoutes permits routes to an egress-only gateway.
func egressOnlyGatewayRoutes() *routeTarget {
	return &routeTarget{
		parameter: "EgressOnlyInternetGatewayId",
		id:        func(in *ec2.CreateRouteInput) *string { return in.EgressOnlyInternetGatewayId },
		show:      func(out *types.Route) **string { return &out.EgressOnlyInternetGatewayId },
		vpc: func(svc *Service, id *string, destination string) (string, error) {
			g, err := lookup(svc, svc.state.EgressOnlyGateways, id)
			if err != nil {
				return "", recoded(err, "InvalidGatewayID.NotFound")
			}
			if !prefix(destination).Addr().Is6() {
				return "", core.Fail("InvalidParameterValue", "an egress-only internet gateway takes IPv6 only")
			}
			return g.VPC, nil
		},
		leads: func(svc *Service, _ *RouteTable, id string) bool { return svc.state.EgressOnlyGateways[id] != nil },
	}
}

func (svc *Service) createEgressOnlyInternetGateway(in *ec2.CreateEgressOnlyInternetGatewayInput) (*ec2.CreateEgressOnlyInternetGatewayOutput, error) {
	s := svc.state
	return idempotent(svc, "CreateEgressOnlyInternetGateway", in.ClientToken, in, func() ([]string, error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeEgressOnlyInternetGateway)
		if err != nil {
			return nil, err
		}
		v, err := lookup(svc, s.VPCs, in.VpcId)
		if err != nil {
			return nil, err
		}
		if len(s.EgressOnlyGateways) >= s.Limits.VPCs {
			return nil, core.Fail("EgressOnlyInternetGatewayLimitExceeded", "the maximum number of egress-only internet gateways has been reached")
		}
		g := &EgressOnlyGateway{Thing: svc.newThing("eigw", tags), VPC: v.ID}
		s.EgressOnlyGateways[g.ID] = g
		return []string{g.ID}, nil
	}, func(ids []string) *ec2.CreateEgressOnlyInternetGatewayOutput {
		out := egressOnlyOut(remembered(s.EgressOnlyGateways, ids, func(t Thing) *EgressOnlyGateway { return &EgressOnlyGateway{Thing: t} })[0])
		return &ec2.CreateEgressOnlyInternetGatewayOutput{EgressOnlyInternetGateway: &out, ClientToken: in.ClientToken}
	})
}

func egressOnlyOut(g *EgressOnlyGateway) types.EgressOnlyInternetGateway {
	return types.EgressOnlyInternetGateway{
		EgressOnlyInternetGatewayId: aws.String(g.ID), Attachments: attachments(g.VPC, types.AttachmentStatusAttached), Tags: tagsOut(g.Tags),
	}
}

// describeEgressOnlyInternetGateways supports only tag filters, as the API reference
// says.
func (svc *Service) describeEgressOnlyInternetGateways(in *ec2.DescribeEgressOnlyInternetGatewaysInput) (*ec2.DescribeEgressOnlyInternetGatewaysOutput, error) {
	gateways, next, err := describe(svc, svc.state.EgressOnlyGateways,
		query{in.EgressOnlyInternetGatewayIds, in.Filters, in.NextToken, in.MaxResults}, nil, egressOnlyOut)
	return &ec2.DescribeEgressOnlyInternetGatewaysOutput{EgressOnlyInternetGateways: gateways, NextToken: next}, err
}

// deleteEgressOnlyInternetGateway deletes a gateway. Routes to it become blackholes.
func (svc *Service) deleteEgressOnlyInternetGateway(in *ec2.DeleteEgressOnlyInternetGatewayInput) (*ec2.DeleteEgressOnlyInternetGatewayOutput, error) {
	g, err := lookup(svc, svc.state.EgressOnlyGateways, in.EgressOnlyInternetGatewayId)
	if err != nil {
		return nil, err
	}
	delete(svc.state.EgressOnlyGateways, g.ID)
	return &ec2.DeleteEgressOnlyInternetGatewayOutput{ReturnCode: aws.Bool(true)}, nil
}
