package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// InternetGateway is the internet gateway of a VPC.
type InternetGateway struct {
	VPC  *graph.Ref[VPCState]
	Tags cloud.Tags
}

// InternetGatewayState is an internet gateway, as AWS describes it.
type InternetGatewayState struct {
	identity.Object
	VPC   string   // "" if it is not attached
	Spare []string // IDs of gateways with the same identity that are not attached
}

var (
	_ graph.Managed[InternetGatewayState]   = (*InternetGateway)(nil)
	_ graph.Explained[InternetGatewayState] = (*InternetGateway)(nil)
)

// Needs implements graph.Desired.
func (g *InternetGateway) Needs() []graph.Edge { return graph.Exists(g.VPC) }

// Find implements graph.Desired.
func (g *InternetGateway) Find(ctx context.Context, c *cloud.Clients) (*InternetGatewayState, error) {
	s, spare, err := g.find(ctx, c)
	if s != nil {
		s.Spare = spare
	}
	return s, err
}

// Identify implements graph.Identified.
func (g *InternetGateway) Identify(ctx context.Context, c *cloud.Clients, _ *InternetGatewayState) (*InternetGatewayState, error) {
	s, _, err := g.find(ctx, c)
	return s, err
}

func (g *InternetGateway) find(ctx context.Context, c *cloud.Clients) (s *InternetGatewayState, spare []string, err error) {
	if _, ok := g.VPC.Found(); !ok {
		return nil, nil, nil
	}
	all, err := InternetGateways(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return identity.FindUsed(all, g.Tags, func(x InternetGatewayState) (bool, error) { return x.VPC != "", nil })
}

// Diff implements graph.Desired.
func (g *InternetGateway) Diff(have *InternetGatewayState) (d plan.Diff) {
	d.Set("vpc", have.VPC, g.VPC.CloudID())
	d.Set("duplicate", strings.Join(have.Spare, ", "), "")
	d.Tags(have.Tags, g.Tags)
	return d
}

// Create implements graph.Creator.
func (g *InternetGateway) Create(ctx context.Context, c *cloud.Clients) (*InternetGatewayState, error) {
	out, err := c.EC2.CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{
		TagSpecifications: g.Tags.On(types.ResourceTypeInternetGateway),
	}, cloud.SendOnce)
	if err != nil {
		return nil, err
	}
	return &InternetGatewayState{Object: identity.Object{ID: aws.ToString(out.InternetGateway.InternetGatewayId), Tags: g.Tags}}, nil
}

// Update implements graph.Updater.
func (g *InternetGateway) Update(ctx context.Context, c *cloud.Clients, have *InternetGatewayState, d plan.Diff) (*InternetGatewayState, error) {
	after := *have
	if d.Has("vpc") {
		if have.VPC != "" {
			if err := g.detach(ctx, c, have); err != nil {
				return nil, err
			}
		}
		vpc := g.VPC.CloudID()
		_, err := c.EC2.AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: &have.ID, VpcId: &vpc})
		if err != nil && !cloud.Is(err, "Resource.AlreadyAssociated") {
			return nil, err
		}
		after.VPC = vpc
	}
	for _, id := range have.Spare { // AWS refuses to delete a gateway that is attached
		if _, err := c.EC2.DeleteInternetGateway(ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: &id}); cloud.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("duplicate %s: %w", id, err)
		}
	}
	after.Spare = nil
	var err error
	if d.HasTags() {
		after.Object, err = changeTags(ctx, c, have.Object, g.Tags, d)
	}
	return &after, err
}

func (g *InternetGateway) detach(ctx context.Context, c *cloud.Clients, have *InternetGatewayState) error {
	_, err := c.EC2.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: &have.ID, VpcId: &have.VPC})
	if cloud.Is(err, "Gateway.NotAttached") {
		return nil
	}
	return err
}

// Delete implements graph.Deleter.
func (g *InternetGateway) Delete(ctx context.Context, c *cloud.Clients, have *InternetGatewayState) error {
	if have.VPC != "" {
		if err := g.detach(ctx, c, have); err != nil {
			return err
		}
	}
	_, err := c.EC2.DeleteInternetGateway(ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: &have.ID})
	return err
}

// Blockers implements graph.Explained.
func (g *InternetGateway) Blockers(ctx context.Context, c *cloud.Clients, have *InternetGatewayState) string {
	return blockingInterfaces(ctx, c, "vpc-id", have.VPC)
}

// InternetGateways lists the internet gateways of the cluster.
func InternetGateways(ctx context.Context, c *cloud.Clients) ([]InternetGatewayState, error) {
	return describeInternetGateways(ctx, c, "internet gateways", c.OwnedFilters())
}

// internetGatewayIn lists the internet gateway of a VPC.
func internetGatewayIn(ctx context.Context, c *cloud.Clients, vpc string) ([]InternetGatewayState, error) {
	return describeInternetGateways(ctx, c, "internet gateway of "+vpc, []types.Filter{cloud.Filter("attachment.vpc-id", vpc)})
}

// NoInternetGateway says that an existing VPC has no internet gateway; "" if it has one, or if the VPC does not exist yet.
func NoInternetGateway(ctx context.Context, c *cloud.Clients, vpc *graph.Ref[VPCState]) (string, error) {
	id := KnownVPC(vpc)
	if id == "" {
		return "", nil
	}
	tables, err := routeTablesOf(ctx, c, id)
	if err != nil || slices.ContainsFunc(tables, RouteTableState.leadsOut) {
		return "", err
	}
	gateways, err := internetGatewayIn(ctx, c, id)
	if err != nil || len(gateways) > 0 {
		return "", err
	}
	return fmt.Sprintf(
		"the VPC %s has no internet gateway, which AWS requires of a load balancer that is not internal: attach one, or set scheme: internal",
		id,
	), nil
}

// Unreachable returns why clients on the internet cannot reach a load balancer in an existing subnet: the subnet has no default route, or its
// default route leads to a NAT gateway ("For internet-facing load balancers, the subnets must have a route to an internet gateway", Elastic
// Load Balancing user guide). A default route to a firewall is accepted, because it may lead to an internet gateway.
func Unreachable(ctx context.Context, c *cloud.Clients, subnet *graph.Ref[SubnetState]) (string, error) {
	state, ok := subnet.Found()
	if !ok || subnet.Desired() != nil {
		return "", nil
	}
	table, err := RouteTableOf(ctx, c, state.VPC, state.ID)
	if table == nil || err != nil || table.toInternet() {
		return "", err
	}
	why := "has no default route"
	switch to := table.Routes[AnywhereIPv4]; {
	case strings.HasPrefix(to, "nat-"):
		why = "leads to the NAT gateway " + to
	case to != "":
		return "", nil
	}
	return fmt.Sprintf("clients do not reach an internet-facing load balancer in the subnet %s, whose route table %s %s: list subnets with a route to an "+
		"internet gateway, or set scheme: internal", state.ID, table.ID, why), nil
}

// leadsOut reports whether a table has a route to an internet gateway that is attached.
func (s RouteTableState) leadsOut() bool {
	for to, target := range s.Routes {
		if strings.HasPrefix(target, "igw-") && !s.Dead[to] {
			return true
		}
	}
	return false
}

func describeInternetGateways(ctx context.Context, c *cloud.Clients, what string, filters []types.Filter) ([]InternetGatewayState, error) {
	return cloud.Remember(ctx, c, what, func(ctx context.Context) ([]InternetGatewayState, error) {
		p := ec2.NewDescribeInternetGatewaysPaginator(c.EC2, &ec2.DescribeInternetGatewaysInput{Filters: filters})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeInternetGatewaysOutput) (out []InternetGatewayState) {
			for _, x := range o.InternetGateways {
				s := InternetGatewayState{Object: identity.Object{ID: aws.ToString(x.InternetGatewayId), Tags: cloud.FromEC2(x.Tags)}}
				for _, a := range x.Attachments {
					s.VPC = aws.ToString(a.VpcId)
				}
				out = append(out, s)
			}
			return out
		})
	})
}

// internetGatewayKind declares internet gateways.
func internetGatewayKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        "internet-gateway",
		Rehearsed:   true,
		Area:        plan.AreaNetwork,
		Type:        types.ResourceTypeInternetGateway,
		ReadActions: []string{"ec2:DescribeInternetGateways"},
		Statement:   kind.Network,
		Actions: []string{
			"ec2:AttachInternetGateway",
			"ec2:CreateInternetGateway",
			"ec2:CreateTags",
			"ec2:DeleteInternetGateway",
			"ec2:DeleteTags",
			"ec2:DetachInternetGateway",
		},
	}, kind.Functions[InternetGatewayState]{
		List: kind.Tagged(InternetGateways), InVPC: internetGatewayIn, Delete: &InternetGateway{},
		Refers:  func(s InternetGatewayState) []string { return []string{s.VPC} },
		Aliases: func(s InternetGatewayState) []string { return []string{InternetGatewayAlias(s.VPC)} },
	})
}

// InternetGatewayAlias returns the alias of the internet gateway of a VPC. Resources with
// a public IP address refer to it: AWS does not detach the gateway before they are
// deleted.
func InternetGatewayAlias(vpc string) string { return "internet of " + vpc }
