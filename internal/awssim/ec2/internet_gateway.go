package ec2

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// InternetGateway is an internet gateway.
type InternetGateway struct {
	Thing
	VPC string // "" if detached
}

func (*InternetGateway) kind() kind {
	return kind{
		prefix: "igw", name: "internetGateway", missing: "InvalidInternetGatewayID.NotFound", tags: types.ResourceTypeInternetGateway, title: "InternetGateway",
		simulate: (*Service).simulateInternetGateways, route: internetGatewayRoutes(),
	}
}

func (g *InternetGateway) keepsVPC() string { return g.VPC }

func (g *InternetGateway) details(printer) []string {
	return []string{"attached to " + g.VPC, "egress-only false"}
}

func (svc *Service) simulateInternetGateways() {
	core.On(svc.Account, svc.createInternetGateway, "TagSpecifications")
	core.On(svc.Account, svc.describeInternetGateways, "InternetGatewayIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.attachInternetGateway, "InternetGatewayId", "VpcId")
	core.On(svc.Account, svc.detachInternetGateway, "InternetGatewayId", "VpcId")
	core.On(svc.Account, svc.deleteInternetGateway, "InternetGatewayId")
}

func (svc *Service) createInternetGateway(in *ec2.CreateInternetGatewayInput) (*ec2.CreateInternetGatewayOutput, error) {
	s := svc.state
	tags, err := tagged(in.TagSpecifications, types.ResourceTypeInternetGateway)
	if err != nil {
		return nil, err
	}
	if len(s.InternetGateways) >= s.Limits.VPCs {
		return nil, core.Fail("InternetGatewayLimitExceeded", "the maximum number of internet gateways has been reached")
	}
	g := &InternetGateway{Thing: svc.newThing("igw", tags)}
	s.InternetGateways[g.ID] = g
	out := svc.internetGatewayOut(g)
	return &ec2.CreateInternetGatewayOutput{InternetGateway: &out}, nil
}

// attachments returns the attachment of a gateway to a VPC, if it has one.
func attachments(vpc string, state types.AttachmentStatus) []types.InternetGatewayAttachment {
	if vpc == "" {
		return nil
	}
	return []types.InternetGatewayAttachment{{VpcId: aws.String(vpc), State: state}}
}

// internetGatewayRoutes permits routes to an internet gateway.
func internetGatewayRoutes() *routeTarget {
	return &routeTarget{
		parameter: "GatewayId",
		id:        func(in *ec2.CreateRouteInput) *string { return in.GatewayId },
		show:      func(out *types.Route) **string { return &out.GatewayId },
		vpc: func(svc *Service, id *string, _ string) (string, error) {
			g, err := lookup(svc, svc.state.InternetGateways, id)
			if err != nil {
				return "", recoded(err, "InvalidGatewayID.NotFound")
			}
			return g.VPC, nil
		},
		leads: func(svc *Service, t *RouteTable, id string) bool {
			g := svc.state.InternetGateways[id]
			return g != nil && g.VPC == t.VPC
		},
	}
}

func (svc *Service) internetGatewayOut(g *InternetGateway) types.InternetGateway {
	return types.InternetGateway{
		// AWS returns "available" here, which is not among the constants of the SDK.
		InternetGatewayId: aws.String(g.ID), OwnerId: aws.String(svc.Number()), Attachments: attachments(g.VPC, "available"), Tags: tagsOut(g.Tags),
	}
}

func (svc *Service) describeInternetGateways(in *ec2.DescribeInternetGatewaysInput) (*ec2.DescribeInternetGatewaysOutput, error) {
	gateways, next, err := describe(svc, svc.state.InternetGateways,
		query{in.InternetGatewayIds, in.Filters, in.NextToken, in.MaxResults}, fields[*InternetGateway]{
			"internet-gateway-id": func(g *InternetGateway) []string { return []string{g.ID} },
			"attachment.vpc-id":   func(g *InternetGateway) []string { return oneValue(g.VPC) },
			"attachment.state": func(g *InternetGateway) []string {
				if g.VPC == "" {
					return nil
				}
				return []string{"available"}
			},
			"owner-id": func(*InternetGateway) []string { return []string{svc.Number()} },
		}, svc.internetGatewayOut)
	return &ec2.DescribeInternetGatewaysOutput{InternetGateways: gateways, NextToken: next}, err
}

// GatewayOf returns the internet gateway that is attached to a VPC.
func (svc *Service) GatewayOf(vpc string) *InternetGateway {
	for _, g := range svc.state.InternetGateways {
		if g.VPC == vpc {
			return g
		}
	}
	return nil
}

func (svc *Service) attachInternetGateway(in *ec2.AttachInternetGatewayInput) (*ec2.AttachInternetGatewayOutput, error) {
	g, err := lookup(svc, svc.state.InternetGateways, in.InternetGatewayId)
	if err != nil {
		return nil, err
	}
	v, err := lookup(svc, svc.state.VPCs, in.VpcId)
	if err != nil {
		return nil, err
	}
	if g.VPC != "" {
		return nil, core.Fail("Resource.AlreadyAssociated", "resource %s is already attached to network %s", g.ID, g.VPC)
	}
	if svc.GatewayOf(v.ID) != nil {
		return nil, core.Fail("InvalidParameterValue", "network %s already has an internet gateway attached", v.ID)
	}
	g.VPC = v.ID
	return &ec2.AttachInternetGatewayOutput{}, nil
}

// detachInternetGateway detaches a gateway from a VPC, unless the VPC has public
// addresses. Routes to the gateway become blackholes.
func (svc *Service) detachInternetGateway(in *ec2.DetachInternetGatewayInput) (*ec2.DetachInternetGatewayOutput, error) {
	g, err := lookup(svc, svc.state.InternetGateways, in.InternetGatewayId)
	if err != nil {
		return nil, err
	}
	v, err := lookup(svc, svc.state.VPCs, in.VpcId)
	if err != nil {
		return nil, err
	}
	if g.VPC != v.ID {
		return nil, core.Fail("Gateway.NotAttached", "resource %s is not attached to network %s", g.ID, v.ID)
	}
	for _, n := range svc.state.Interfaces {
		if n.VPC == v.ID && n.PublicIP != "" {
			return nil, core.Fail(
				"DependencyViolation",
				"network %s has some mapped public address(es): please unmap those before detaching the gateway: %s",
				v.ID,
				n.ID,
			)
		}
	}
	g.VPC = ""
	return &ec2.DetachInternetGatewayOutput{}, nil
}

func (svc *Service) deleteInternetGateway(in *ec2.DeleteInternetGatewayInput) (*ec2.DeleteInternetGatewayOutput, error) {
	g, err := lookup(svc, svc.state.InternetGateways, in.InternetGatewayId)
	if err != nil {
		return nil, err
	}
	if g.VPC != "" {
		return nil, core.Fail("DependencyViolation", "the internetGateway '%s' has dependencies and cannot be deleted: it is attached to %s", g.ID, g.VPC)
	}
	delete(svc.state.InternetGateways, g.ID)
	return &ec2.DeleteInternetGatewayOutput{}, nil
}
