package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// NATGateway is a public NAT gateway, for the private subnets of a zone.
type NATGateway struct {
	Subnet   *graph.Ref[SubnetState] // public
	Address  *graph.Ref[ElasticIPState]
	Internet *graph.Ref[InternetGatewayState] // attached before, and detached after
	Tags     cloud.Tags
}

// NATGatewayState is a NAT gateway, as AWS describes it.
type NATGatewayState struct {
	identity.Object
	VPC, Subnet, Address, PublicIP string
	Status                         types.NatGatewayState
	Failure                        string // "CODE: MESSAGE" of a failed gateway
}

var (
	_ graph.Managed[NATGatewayState]  = (*NATGateway)(nil)
	_ graph.Follower[NATGatewayState] = (*NATGateway)(nil)
	_ graph.Timed                     = (*NATGateway)(nil)
)

// Deleting implements graph.Deleting.
func (s NATGatewayState) Deleting() bool { return s.Status == types.NatGatewayStateDeleting }

// Needs implements graph.Desired.
func (n *NATGateway) Needs() []graph.Edge {
	return append(graph.Exists(n.Subnet, n.Address), graph.On(n.Internet)...)
}

// Takes implements graph.Timed.
func (n *NATGateway) Takes() (create, remove time.Duration) {
	return natGatewayCreateTime, natGatewayDeleteTime
}

// Find implements graph.Desired.
func (n *NATGateway) Find(ctx context.Context, c *cloud.Clients) (*NATGatewayState, error) {
	return n.Follow(ctx, c, &NATGatewayState{})
}

// Follow implements graph.Follower. A gateway that fails after this run has created it is
// an error; one that failed before is replaced.
func (n *NATGateway) Follow(ctx context.Context, c *cloud.Clients, last *NATGatewayState) (*NATGatewayState, error) {
	if _, ok := n.Subnet.Found(); !ok {
		return nil, nil
	}
	all, err := natGatewaysWithFailed(ctx, c)
	if err != nil {
		return nil, err
	}
	var here []NATGatewayState
	for _, x := range all {
		if x.Status == types.NatGatewayStateFailed {
			if x.ID == last.ID {
				return nil, &graph.FailedError{Reason: fmt.Sprintf("NAT gateway %s failed: %s", x.ID, x.Failure)}
			}
			continue
		}
		if x.Tags[cloud.ResourceTag] != "" || x.Subnet == n.Subnet.CloudID() { // CAPA gives all of them the same name
			here = append(here, x)
		}
	}
	return identity.Find(here, n.Tags)
}

// Diff implements graph.Desired.
func (n *NATGateway) Diff(have *NATGatewayState) (d plan.Diff) {
	d.Await("state", have.Status, types.NatGatewayStateAvailable)
	d.Fixed("subnet", have.Subnet, n.Subnet.CloudID())
	d.Fixed("address", have.Address, n.Address.CloudID())
	d.Tags(have.Tags, n.Tags)
	return d
}

// Create implements graph.Creator.
func (n *NATGateway) Create(ctx context.Context, c *cloud.Clients) (*NATGatewayState, error) {
	out, err := c.EC2.CreateNatGateway(ctx, &ec2.CreateNatGatewayInput{
		SubnetId:          aws.String(n.Subnet.CloudID()),
		AllocationId:      aws.String(n.Address.CloudID()),
		ClientToken:       c.Token("nat-gateway", n.Subnet.CloudID(), n.Address.CloudID()),
		TagSpecifications: n.Tags.On(types.ResourceTypeNatgateway),
	})
	if cloud.Is(err, "InvalidSubnet") {
		return nil, graph.NotYet(err) // the API may not know a new subnet yet
	}
	if err != nil {
		return nil, err
	}
	s := natGatewayState(*out.NatGateway)
	s.Tags, s.Address = n.Tags, n.Address.CloudID()
	return &s, nil
}

// Update implements graph.Updater.
func (n *NATGateway) Update(ctx context.Context, c *cloud.Clients, have *NATGatewayState, d plan.Diff) (*NATGatewayState, error) {
	after, err := *have, error(nil)
	after.Object, err = changeTags(ctx, c, have.Object, n.Tags, d)
	return &after, err
}

// Delete implements graph.Deleter.
func (n *NATGateway) Delete(ctx context.Context, c *cloud.Clients, have *NATGatewayState) error {
	_, err := c.EC2.DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: &have.ID})
	return err
}

// NATGateways lists the NAT gateways of the cluster. It omits failed and deleted ones,
// which DescribeNatGateways returns for an hour.
func NATGateways(ctx context.Context, c *cloud.Clients) ([]NATGatewayState, error) {
	all, err := natGatewaysWithFailed(ctx, c)
	return slices.DeleteFunc(slices.Clone(all), func(s NATGatewayState) bool { return s.Status == types.NatGatewayStateFailed }), err
}

func natGatewaysWithFailed(ctx context.Context, c *cloud.Clients) ([]NATGatewayState, error) {
	return cloud.Remember(ctx, c, "NAT gateways", func(ctx context.Context) ([]NATGatewayState, error) {
		p := ec2.NewDescribeNatGatewaysPaginator(c.EC2, &ec2.DescribeNatGatewaysInput{
			Filter: c.OwnedFilters(cloud.Filter("state", "pending", "available", "deleting", "failed")),
		})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeNatGatewaysOutput) (out []NATGatewayState) {
			for _, x := range o.NatGateways {
				out = append(out, natGatewayState(x))
			}
			return out
		})
	})
}

func natGatewayState(x types.NatGateway) NATGatewayState {
	s := NATGatewayState{
		Object:  identity.Object{ID: aws.ToString(x.NatGatewayId), Tags: cloud.FromEC2(x.Tags)},
		VPC:     aws.ToString(x.VpcId),
		Subnet:  aws.ToString(x.SubnetId),
		Status:  x.State,
		Failure: strings.Trim(aws.ToString(x.FailureCode)+": "+aws.ToString(x.FailureMessage), ": "),
	}
	for _, a := range x.NatGatewayAddresses {
		s.Address, s.PublicIP = aws.ToString(a.AllocationId), aws.ToString(a.PublicIp)
	}
	return s
}

// How long AWS usually takes to create and to delete a NAT gateway.
const (
	natGatewayCreateTime = 100 * time.Second
	natGatewayDeleteTime = 60 * time.Second
)

// natGatewayKind declares NAT gateways.
func natGatewayKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: "nat-gateway", Rehearsed: true, Area: plan.AreaNetwork, Type: types.ResourceTypeNatgateway, IDPrefix: "nat-", Existing: existingNATGateways,
		ReadActions: []string{"ec2:DescribeNatGateways"}, Statement: kind.Network,
		Actions: []string{"ec2:CreateNatGateway", "ec2:CreateTags", "ec2:DeleteNatGateway", "ec2:DeleteTags"},
		Quota:   &kind.Quota{Service: "vpc", Code: "L-FE5A380F", Name: "NAT gateways", Default: 5, Takes: natGatewayZone, Used: countNATGateways},
	}, kind.Functions[NATGatewayState]{
		List: kind.Tagged(NATGateways), Delete: &NATGateway{},
		Refers: func(s NATGatewayState) []string { return []string{s.Subnet, s.Address, InternetGatewayAlias(s.VPC)} },
		Uses:   func(s NATGatewayState) []string { return []string{s.Address} },
		Status: func(s NATGatewayState) (state, detail string) { return string(s.Status), s.PublicIP },
	})
}

// Costs implements cost.Desired.
func (n *NATGateway) Costs(_ context.Context, _ *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	return cost.Same(have, natGatewayCost())
}

// Costs implements cost.Existing.
func (s NATGatewayState) Costs(context.Context, *cloud.Clients) ([]cost.Item, error) {
	return natGatewayCost(), nil
}

func natGatewayCost() []cost.Item {
	return []cost.Item{cost.Hourly("NAT gateways", "NAT gateway", cost.Product{
		Service: "AmazonEC2", Usage: "NatGateway-Hours", Attributes: "group=NGW:NatGateway\noperation=NatGateway",
	}, 1)}
}

// natGatewayZone returns the zone of a new NAT gateway: the quota is one for each zone.
func natGatewayZone(desired any) (n int, scope string) {
	g, ok := desired.(*NATGateway)
	if !ok {
		return 0, ""
	}
	if s, found := g.Subnet.Found(); found {
		return 1, s.Zone
	}
	if s, ok := g.Subnet.Desired().(*Subnet); ok {
		return 1, s.Zone
	}
	return 0, ""
}

// countNATGateways returns the number of NAT gateways of the region by zone. Gateways that
// are being deleted count ("Amazon VPC quotas").
func countNATGateways(ctx context.Context, c *cloud.Clients) (map[string]int, error) {
	return cloud.Remember(ctx, c, "NAT gateways by zone", func(ctx context.Context) (map[string]int, error) {
		p := ec2.NewDescribeNatGatewaysPaginator(
			c.EC2,
			&ec2.DescribeNatGatewaysInput{Filter: []types.Filter{cloud.Filter("state", "pending", "available", "deleting")}},
		)
		subnets, err := cloud.Pages(ctx, p, func(o *ec2.DescribeNatGatewaysOutput) (out []string) {
			for _, x := range o.NatGateways {
				out = append(out, aws.ToString(x.SubnetId))
			}
			return out
		})
		if err != nil || len(subnets) == 0 {
			return nil, err
		}
		zones, err := zonesOfSubnets(ctx, c)
		used := map[string]int{}
		for _, s := range subnets {
			used[zones[s]]++
		}
		return used, err
	})
}

func existingNATGateways(ctx context.Context, c *cloud.Clients, tagged types.Filter) ([]string, error) {
	p := ec2.NewDescribeNatGatewaysPaginator(
		c.EC2,
		&ec2.DescribeNatGatewaysInput{Filter: []types.Filter{tagged, cloud.Filter("state", "pending", "available", "deleting")}},
	)
	return cloud.Pages(ctx, p, func(o *ec2.DescribeNatGatewaysOutput) (out []string) {
		for _, x := range o.NatGateways {
			out = append(out, aws.ToString(x.NatGatewayId))
		}
		return out
	})
}

// WaysOut lists the public addresses from which existing subnets call the internet: those of the NAT gateways in their default
// routes. The gateways may be in other subnets. A gateway uses all of its addresses.
func WaysOut(ctx context.Context, c *cloud.Clients, vpc string, subnets []string) (out []string, err error) {
	tables, err := routeTablesOf(ctx, c, vpc)
	var gateways []string
	for _, s := range subnets {
		if table := tableOf(tables, s); table != nil && strings.HasPrefix(table.Routes[AnywhereIPv4], "nat-") && !table.Dead[AnywhereIPv4] {
			gateways = append(gateways, table.Routes[AnywhereIPv4])
		}
	}
	if len(gateways) == 0 || err != nil {
		return nil, err
	}
	slices.Sort(gateways)
	all, err := usableNATGateways(ctx, c, cloud.Filter("nat-gateway-id", slices.Compact(gateways)...))
	for _, n := range all {
		for _, a := range n.NatGatewayAddresses {
			if ip := aws.ToString(a.PublicIp); ip != "" {
				out = append(out, ip)
			}
		}
	}
	return out, err
}

// usableNATGateways lists the NAT gateways that a filter finds, and that are pending or available.
func usableNATGateways(ctx context.Context, c *cloud.Clients, filter types.Filter) ([]types.NatGateway, error) {
	p := ec2.NewDescribeNatGatewaysPaginator(c.EC2, &ec2.DescribeNatGatewaysInput{Filter: []types.Filter{filter, cloud.Filter("state", "pending", "available")}})
	return cloud.Pages(ctx, p, func(o *ec2.DescribeNatGatewaysOutput) []types.NatGateway { return o.NatGateways })
}

// natGatewaysIn lists the NAT gateways of a VPC that are pending or available, whoever owns them.
func natGatewaysIn(ctx context.Context, c *cloud.Clients, vpc string) ([]types.NatGateway, error) {
	return cloud.Remember(ctx, c, "NAT gateways in "+vpc, func(ctx context.Context) ([]types.NatGateway, error) {
		return usableNATGateways(ctx, c, cloud.Filter("vpc-id", vpc))
	})
}

// NATAddresses lists the public IP addresses of the NAT gateways in existing subnets.
func NATAddresses(ctx context.Context, c *cloud.Clients, subnets []string) (out []string, err error) {
	all, err := usableNATGateways(ctx, c, cloud.Filter("subnet-id", subnets...))
	for _, n := range all {
		if ip := natGatewayState(n).PublicIP; ip != "" {
			out = append(out, ip)
		}
	}
	slices.Sort(out)
	return out, err
}
