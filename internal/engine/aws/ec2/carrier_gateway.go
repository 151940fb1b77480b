package ec2

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// CarrierGateway connects subnets in Wavelength Zones to the network of the
// telecommunication carrier and to the internet.
type CarrierGateway struct {
	VPC  *graph.Ref[VPCState]
	Tags cloud.Tags
}

// CarrierGatewayState is a carrier gateway, as AWS describes it.
type CarrierGatewayState struct {
	identity.Object
	VPC    string
	Status types.CarrierGatewayState
}

// Deleting implements graph.Deleting.
func (s CarrierGatewayState) Deleting() bool { return s.Status == types.CarrierGatewayStateDeleting }

var _ graph.Managed[CarrierGatewayState] = (*CarrierGateway)(nil)

// carrierGatewayTime is how long AWS usually takes to create or delete a carrier gateway.
// It is an estimate: AWS does not document it.
const carrierGatewayTime = 5 * time.Second

// Needs implements graph.Desired.
func (g *CarrierGateway) Needs() []graph.Edge { return graph.Exists(g.VPC) }

// Takes implements graph.Timed.
func (g *CarrierGateway) Takes() (create, remove time.Duration) {
	return carrierGatewayTime, carrierGatewayTime
}

// Find implements graph.Desired.
func (g *CarrierGateway) Find(ctx context.Context, c *cloud.Clients) (*CarrierGatewayState, error) {
	if _, ok := g.VPC.Found(); !ok {
		return nil, nil
	}
	return identity.FindListed(ctx, c, CarrierGateways, g.Tags)
}

// Diff implements graph.Desired.
func (g *CarrierGateway) Diff(have *CarrierGatewayState) (d plan.Diff) {
	d.Fixed("vpc", have.VPC, g.VPC.CloudID())
	d.Await("state", have.Status, types.CarrierGatewayStateAvailable)
	d.Tags(have.Tags, g.Tags)
	return d
}

// Create implements graph.Creator.
func (g *CarrierGateway) Create(ctx context.Context, c *cloud.Clients) (*CarrierGatewayState, error) {
	vpc := g.VPC.CloudID()
	out, err := c.EC2.CreateCarrierGateway(ctx, &ec2.CreateCarrierGatewayInput{
		VpcId:             &vpc,
		ClientToken:       c.Token("carrier-gateway", vpc),
		TagSpecifications: g.Tags.On(types.ResourceTypeCarrierGateway),
	})
	if err != nil {
		return nil, err
	}
	s := carrierGatewayState(*out.CarrierGateway)
	s.Tags = g.Tags
	return &s, nil
}

// Update implements graph.Updater.
func (g *CarrierGateway) Update(ctx context.Context, c *cloud.Clients, have *CarrierGatewayState, d plan.Diff) (*CarrierGatewayState, error) {
	after, err := *have, error(nil)
	after.Object, err = changeTags(ctx, c, have.Object, g.Tags, d)
	return &after, err
}

// Delete implements graph.Deleter. DeleteCarrierGateway does not delete routes to the
// gateway; they become blackholes.
func (g *CarrierGateway) Delete(ctx context.Context, c *cloud.Clients, have *CarrierGatewayState) error {
	if have.Deleting() {
		return nil
	}
	_, err := c.EC2.DeleteCarrierGateway(ctx, &ec2.DeleteCarrierGatewayInput{CarrierGatewayId: &have.ID})
	return err
}

// CarrierGateways lists the carrier gateways of the cluster. EC2 still describes deleted
// ones.
func CarrierGateways(ctx context.Context, c *cloud.Clients) ([]CarrierGatewayState, error) {
	return describeCarrierGateways(ctx, c, "carrier gateways", c.OwnedFilters())
}

// carrierGatewaysIn lists the carrier gateways of a VPC, which has at most one.
func carrierGatewaysIn(ctx context.Context, c *cloud.Clients, vpc string) ([]CarrierGatewayState, error) {
	return describeCarrierGateways(ctx, c, "carrier gateways of "+vpc, []types.Filter{cloud.Filter("vpc-id", vpc)})
}

func describeCarrierGateways(ctx context.Context, c *cloud.Clients, what string, filters []types.Filter) ([]CarrierGatewayState, error) {
	return cloud.Remember(ctx, c, what, func(ctx context.Context) ([]CarrierGatewayState, error) {
		p := ec2.NewDescribeCarrierGatewaysPaginator(c.EC2, &ec2.DescribeCarrierGatewaysInput{Filters: filters})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeCarrierGatewaysOutput) (out []CarrierGatewayState) {
			for _, x := range o.CarrierGateways {
				if x.State != types.CarrierGatewayStateDeleted {
					out = append(out, carrierGatewayState(x))
				}
			}
			return out
		})
	})
}

func carrierGatewayState(x types.CarrierGateway) CarrierGatewayState {
	return CarrierGatewayState{
		Object: identity.Object{ID: aws.ToString(x.CarrierGatewayId), Tags: cloud.FromEC2(x.Tags)}, VPC: aws.ToString(x.VpcId), Status: x.State,
	}
}

// carrierGatewayKind declares carrier gateways.
func carrierGatewayKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: "carrier-gateway", Area: plan.AreaNetwork, Type: types.ResourceTypeCarrierGateway,
		ReadActions: []string{"ec2:DescribeCarrierGateways"}, Statement: kind.Network,
		Actions: []string{"ec2:CreateCarrierGateway", "ec2:CreateTags", "ec2:DeleteCarrierGateway", "ec2:DeleteTags"},
	}, kind.Functions[CarrierGatewayState]{
		List: kind.Tagged(CarrierGateways), InVPC: carrierGatewaysIn, Delete: &CarrierGateway{},
		Refers: func(s CarrierGatewayState) []string { return []string{s.VPC} },
		Status: func(s CarrierGatewayState) (state, detail string) { return string(s.Status), "" },
	})
}
