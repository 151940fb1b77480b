package ec2

import (
	"cmp"
	"context"
	"maps"
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

// RouteTable is the route table of one subnet. Routes that are not in the manifest are
// not changed.
type RouteTable struct {
	VPC    *graph.Ref[VPCState]
	Subnet *graph.Ref[SubnetState]
	Routes []Route
	Tags   cloud.Tags
}

// Route sends traffic for a destination to a gateway.
type Route struct {
	To  string         // an IPv4 or IPv6 block
	Via graph.Resource // an internet, NAT, egress-only or carrier gateway
}

// RouteTableState is a route table, as AWS describes it.
type RouteTableState struct {
	identity.Object
	VPC          string
	Main         bool              // the main table of the VPC
	Routes       map[string]string // target by destination; without the local route
	Dead         map[string]bool   // destinations whose target does not exist or does not work
	Associations map[string]string // association ID by subnet ID
}

var _ graph.Managed[RouteTableState] = (*RouteTable)(nil)

// Needs implements graph.Desired.
func (r *RouteTable) Needs() []graph.Edge {
	needs := append(graph.Exists(r.VPC), graph.Outlives(r.Subnet)...) // deleting a subnet deletes its association
	for _, route := range r.Routes {
		needs = append(needs, graph.Awaits(route.Via)...) // a route without its gateway becomes a blackhole, which is harmless during deletion
	}
	return needs
}

// Find implements graph.Desired.
func (r *RouteTable) Find(ctx context.Context, c *cloud.Clients) (*RouteTableState, error) {
	if _, ok := r.VPC.Found(); !ok {
		return nil, nil
	}
	all, err := RouteTables(ctx, c)
	if err != nil {
		return nil, err
	}
	associated := func(x RouteTableState) bool { return x.Associations[r.Subnet.CloudID()] != "" }
	return identity.Find(identity.PreferMatching(all, associated), r.Tags)
}

// Diff implements graph.Desired.
func (r *RouteTable) Diff(have *RouteTableState) (d plan.Diff) {
	for _, route := range r.Routes {
		d.Set("route "+route.To, have.Routes[route.To], route.Via.CloudID())
	}
	subnet := r.Subnet.CloudID()
	associated := ""
	if _, ok := have.Associations[subnet]; ok {
		associated = subnet
	}
	d.Set("subnet", associated, subnet)
	d.Tags(have.Tags, r.Tags)
	return d
}

// Create implements graph.Creator.
func (r *RouteTable) Create(ctx context.Context, c *cloud.Clients) (*RouteTableState, error) {
	vpc := r.VPC.CloudID()
	out, err := c.EC2.CreateRouteTable(ctx, &ec2.CreateRouteTableInput{
		VpcId:             &vpc,
		ClientToken:       c.Token("route-table", vpc, r.Tags[cloud.ResourceTag]),
		TagSpecifications: r.Tags.On(types.ResourceTypeRouteTable),
	})
	if err != nil {
		return nil, err
	}
	return &RouteTableState{
		Object: identity.Object{ID: aws.ToString(out.RouteTable.RouteTableId), Tags: r.Tags}, VPC: vpc,
		Routes: map[string]string{}, Associations: map[string]string{},
	}, nil
}

// Update implements graph.Updater.
func (r *RouteTable) Update(ctx context.Context, c *cloud.Clients, have *RouteTableState, d plan.Diff) (*RouteTableState, error) {
	after := *have
	after.Routes, after.Associations = cloud.Tags(have.Routes).With(nil), cloud.Tags(have.Associations).With(nil)
	for _, route := range r.Routes {
		if !d.Has("route " + route.To) {
			continue
		}
		if err := route.createOrReplace(ctx, c, have.ID, have.Routes[route.To] != ""); err != nil {
			return nil, err
		}
		after.Routes[route.To] = route.Via.CloudID()
	}
	if d.Has("subnet") {
		id, err := r.associate(ctx, c, have.ID)
		if err != nil {
			return nil, err
		}
		after.Associations[r.Subnet.CloudID()] = id
	}
	var err error
	if d.HasTags() {
		after.Object, err = changeTags(ctx, c, have.Object, r.Tags, d)
	}
	return &after, err
}

// associate associates the table with the subnet. An association with another table is
// replaced.
func (r *RouteTable) associate(ctx context.Context, c *cloud.Clients, id string) (string, error) {
	subnet := r.Subnet.CloudID()
	out, err := c.EC2.AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: &id, SubnetId: &subnet})
	if err == nil {
		return aws.ToString(out.AssociationId), nil
	}
	taken := err
	if !cloud.Is(taken, "Resource.AlreadyAssociated") {
		return "", err
	}
	there, err := c.EC2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: []types.Filter{cloud.Filter("association.subnet-id", subnet)}})
	if err != nil {
		return "", err
	}
	for _, x := range there.RouteTables {
		if association := routeTableState(x).Associations[subnet]; association != "" {
			out, err := c.EC2.ReplaceRouteTableAssociation(ctx, &ec2.ReplaceRouteTableAssociationInput{AssociationId: &association, RouteTableId: &id})
			if err != nil {
				return "", err
			}
			return aws.ToString(out.NewAssociationId), nil
		}
	}
	return "", graph.NotYet(taken) // DescribeRouteTables does not return the association yet
}

// createOrReplace creates the route, or replaces the one with the same destination.
func (r Route) createOrReplace(ctx context.Context, c *cloud.Clients, table string, replace bool) error {
	via := r.Via.CloudID()
	create, change := &ec2.CreateRouteInput{RouteTableId: &table}, &ec2.ReplaceRouteInput{RouteTableId: &table}
	switch {
	case strings.HasPrefix(via, "nat-"):
		create.NatGatewayId, change.NatGatewayId = &via, &via
	case strings.HasPrefix(via, "cagw-"):
		create.CarrierGatewayId, change.CarrierGatewayId = &via, &via
	case strings.HasPrefix(via, "eigw-"):
		create.EgressOnlyInternetGatewayId, change.EgressOnlyInternetGatewayId = &via, &via
	default:
		create.GatewayId, change.GatewayId = &via, &via
	}
	if strings.Contains(r.To, ":") {
		create.DestinationIpv6CidrBlock, change.DestinationIpv6CidrBlock = &r.To, &r.To
	} else {
		create.DestinationCidrBlock, change.DestinationCidrBlock = &r.To, &r.To
	}
	if !replace {
		_, err := c.EC2.CreateRoute(ctx, create)
		if !cloud.Is(err, "RouteAlreadyExists") {
			return err
		}
	}
	_, err := c.EC2.ReplaceRoute(ctx, change)
	return err
}

// Delete implements graph.Deleter. If associations prevent the deletion, the table is
// disassociated from its subnets first.
func (r *RouteTable) Delete(ctx context.Context, c *cloud.Clients, have *RouteTableState) error {
	remove := func() error {
		_, err := c.EC2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: &have.ID})
		return err
	}
	err := remove()
	if !cloud.InUse(err) {
		return err
	}
	for _, association := range have.Associations {
		_, err := c.EC2.DisassociateRouteTable(ctx, &ec2.DisassociateRouteTableInput{AssociationId: &association})
		if cloud.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return remove()
}

// RouteTables lists the route tables of the cluster.
func RouteTables(ctx context.Context, c *cloud.Clients) ([]RouteTableState, error) {
	return describeRouteTables(ctx, c, "route tables", c.OwnedFilters())
}

// tablesInVPC lists the route tables of a VPC without the main table, which is deleted
// with the VPC.
func tablesInVPC(ctx context.Context, c *cloud.Clients, vpc string) ([]RouteTableState, error) {
	all, err := routeTablesOf(ctx, c, vpc)
	return slices.DeleteFunc(slices.Clone(all), func(s RouteTableState) bool { return s.Main }), err
}

// routeTablesOf lists all route tables of a VPC.
func routeTablesOf(ctx context.Context, c *cloud.Clients, vpc string) ([]RouteTableState, error) {
	return describeRouteTables(ctx, c, "route tables of "+vpc, []types.Filter{cloud.Filter("vpc-id", vpc)})
}

// PublicSubnets reports which of the subnets of an existing VPC have a route to an internet
// gateway or a carrier gateway. A subnet without a route table of its own uses the main one.
func PublicSubnets(ctx context.Context, c *cloud.Clients, vpc string, subnets []SubnetState) (map[string]bool, error) {
	tables, err := routeTablesOf(ctx, c, vpc)
	public := map[string]bool{}
	for _, s := range subnets {
		table := tableOf(tables, s.ID)
		public[s.ID] = table != nil && table.toInternet()
	}
	return public, err
}

// toInternet reports whether the table has a route to an internet gateway or a carrier
// gateway.
func (s RouteTableState) toInternet() bool {
	for _, target := range s.Routes {
		if strings.HasPrefix(target, "igw-") || strings.HasPrefix(target, "cagw-") {
			return true
		}
	}
	return false
}

// describeRouteTables lists the route tables that match the filters; query is the key for
// cloud.Remember.
func describeRouteTables(ctx context.Context, c *cloud.Clients, query string, filters []types.Filter) ([]RouteTableState, error) {
	return cloud.Remember(ctx, c, query, func(ctx context.Context) ([]RouteTableState, error) {
		p := ec2.NewDescribeRouteTablesPaginator(c.EC2, &ec2.DescribeRouteTablesInput{Filters: filters})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeRouteTablesOutput) (out []RouteTableState) {
			for _, x := range o.RouteTables {
				out = append(out, routeTableState(x))
			}
			return out
		})
	})
}

// RouteTarget returns the ID of the resource that a route leads to: of all target fields
// of the EC2 type Route, one is set.
func RouteTarget(r types.Route) string {
	return cmp.Or(
		aws.ToString(r.NatGatewayId), aws.ToString(r.EgressOnlyInternetGatewayId), aws.ToString(r.GatewayId), aws.ToString(r.CarrierGatewayId),
		aws.ToString(r.TransitGatewayId), aws.ToString(r.NetworkInterfaceId), aws.ToString(r.VpcPeeringConnectionId),
		aws.ToString(r.LocalGatewayId), aws.ToString(r.CoreNetworkArn), aws.ToString(r.OdbNetworkArn),
	)
}

func routeTableState(x types.RouteTable) RouteTableState {
	s := RouteTableState{
		Object: identity.Object{ID: aws.ToString(x.RouteTableId), Tags: cloud.FromEC2(x.Tags)}, VPC: aws.ToString(x.VpcId),
		Routes: map[string]string{}, Associations: map[string]string{}, Dead: map[string]bool{},
	}
	for _, r := range x.Routes {
		to := aws.ToString(r.DestinationCidrBlock) + aws.ToString(r.DestinationIpv6CidrBlock)
		if target := RouteTarget(r); to != "" && target != "" && target != "local" {
			s.Routes[to], s.Dead[to] = target, isDead(r)
		}
	}
	for _, a := range x.Associations {
		s.Main = s.Main || aws.ToBool(a.Main)
		if a.SubnetId != nil {
			s.Associations[*a.SubnetId] = aws.ToString(a.RouteTableAssociationId)
		}
	}
	return s
}

// routeTableKind declares route tables.
func routeTableKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: "route-table", Rehearsed: true, Area: plan.AreaNetwork, Type: types.ResourceTypeRouteTable,
		ReadActions: []string{"ec2:DescribeRouteTables"}, Statement: kind.Network,
		Actions: []string{
			"ec2:AssociateRouteTable",
			"ec2:CreateRoute",
			"ec2:CreateRouteTable",
			"ec2:CreateTags",
			"ec2:DeleteRouteTable",
			"ec2:DeleteTags",
			"ec2:DisassociateRouteTable",
			"ec2:ReplaceRoute",
			"ec2:ReplaceRouteTableAssociation",
		},
	}, kind.Functions[RouteTableState]{
		List: kind.Tagged(RouteTables), InVPC: tablesInVPC, Delete: &RouteTable{},
		Refers:   func(s RouteTableState) []string { return []string{s.VPC} },
		Outlives: func(s RouteTableState) []string { return slices.Sorted(maps.Keys(s.Associations)) }, // deleting a subnet deletes its association
	})
}
