package ec2

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// routesPerTable is the default quota of routes in a table.
const routesPerTable = 50

// nat64 is the NAT64 prefix of DNS64, the only IPv6 destination of a NAT gateway.
const nat64 = "64:ff9b::/96"

// routeTarget describes a kind of resource as the target of routes.
type routeTarget struct {
	parameter string // in CreateRoute and ReplaceRoute
	id        func(*ec2.CreateRouteInput) *string
	show      func(*types.Route) **string
	// vpc returns the VPC of a target, or an error if the route is not permitted.
	vpc func(svc *Service, id *string, destination string) (string, error)
	// leads reports whether a route to a resource is active.
	leads func(svc *Service, t *RouteTable, id string) bool
}

// RouteTable is a route table.
type RouteTable struct {
	Thing
	VPC          string
	Main         string            // ID of the main association; "": not the main table
	Routes       []Route           // except for local ones and those of endpoints
	Associations map[string]string // subnet by association ID
}

func (*RouteTable) kind() kind {
	return kind{
		prefix: "rtb", name: "routeTable", missing: "InvalidRouteTableID.NotFound", tags: types.ResourceTypeRouteTable, title: "RouteTable",
		simulate: (*Service).simulateRouteTables,
	}
}

// keepsVPC is "" for the main route table, which is deleted with its VPC.
func (t *RouteTable) keepsVPC() string {
	if t.Main != "" {
		return ""
	}
	return t.VPC
}

func (t *RouteTable) over(time.Time) bool { return t.Given || t.Main != "" }

func (t *RouteTable) details(d printer) []string {
	return []string{t.VPC, "routes " + d.routes(t), "subnets " + d.list(slices.Collect(maps.Values(t.Associations)))}
}

// Route is one route.
type Route struct {
	Destination string // an IPv4 or IPv6 CIDR
	Target      string // igw-…, eigw-…, nat-…
}

func (svc *Service) simulateRouteTables() {
	core.On(svc.Account, svc.createRouteTable, "VpcId", "ClientToken", "TagSpecifications")
	core.On(svc.Account, svc.describeRouteTables, "RouteTableIds", "Filters", "NextToken", "MaxResults")
	route := []string{"RouteTableId", "DestinationCidrBlock", "DestinationIpv6CidrBlock"}
	for _, to := range svc.routeTargets() {
		route = append(route, to.parameter)
	}
	core.On(svc.Account, svc.createRoute, route...)
	core.On(svc.Account, svc.replaceRoute, route...)
	core.On(svc.Account, svc.deleteRoute, "RouteTableId", "DestinationCidrBlock", "DestinationIpv6CidrBlock")
	core.On(svc.Account, svc.associateRouteTable, "RouteTableId", "SubnetId")
	core.On(svc.Account, svc.disassociateRouteTable, "AssociationId")
	core.On(svc.Account, svc.replaceRouteTableAssociation, "AssociationId", "RouteTableId")
	core.On(svc.Account, svc.deleteRouteTable, "RouteTableId")
}

func (svc *Service) createRouteTable(in *ec2.CreateRouteTableInput) (*ec2.CreateRouteTableOutput, error) {
	s := svc.state
	return idempotent(svc, "CreateRouteTable", in.ClientToken, in, func() ([]string, error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeRouteTable)
		if err != nil {
			return nil, err
		}
		v, err := lookup(svc, s.VPCs, in.VpcId)
		if err != nil {
			return nil, err
		}
		t := &RouteTable{Thing: svc.newThing("rtb", tags), VPC: v.ID, Associations: map[string]string{}}
		s.RouteTables[t.ID] = t
		return []string{t.ID}, nil
	}, func(ids []string) *ec2.CreateRouteTableOutput {
		out := svc.routeTableOut(remembered(s.RouteTables, ids, func(t Thing) *RouteTable { return &RouteTable{Thing: t, VPC: aws.ToString(in.VpcId)} })[0])
		return &ec2.CreateRouteTableOutput{RouteTable: &out, ClientToken: in.ClientToken}
	})
}

func (svc *Service) routeTableOut(t *RouteTable) types.RouteTable {
	out := types.RouteTable{
		RouteTableId: aws.String(t.ID),
		VpcId:        aws.String(t.VPC),
		OwnerId:      aws.String(svc.Number()),
		Routes:       svc.routes(t),
		Tags:         tagsOut(t.Tags),
	}
	associated := &types.RouteTableAssociationState{State: types.RouteTableAssociationStateCodeAssociated}
	if t.Main != "" {
		out.Associations = append(out.Associations, types.RouteTableAssociation{
			RouteTableAssociationId: aws.String(t.Main), RouteTableId: aws.String(t.ID), Main: aws.Bool(true), AssociationState: associated,
		})
	}
	for _, id := range core.SortedKeys(t.Associations) {
		out.Associations = append(out.Associations, types.RouteTableAssociation{
			RouteTableAssociationId: aws.String(id), RouteTableId: aws.String(t.ID), SubnetId: aws.String(t.Associations[id]),
			Main: aws.Bool(false), AssociationState: associated,
		})
	}
	return out
}

// routes returns all routes of a table: local ones, its own, and those of endpoints.
func (svc *Service) routes(t *RouteTable) (all []types.Route) {
	if v := svc.state.VPCs[t.VPC]; v != nil {
		for _, b := range v.Blocks() {
			all = append(all, localRoute(b))
		}
		if b, ok := svc.ipv6(v); ok {
			all = append(all, localRoute(b))
		}
	}
	for _, r := range t.Routes {
		out := types.Route{Origin: types.RouteOriginCreateRoute, State: types.RouteStateActive}
		if prefix(r.Destination).Addr().Is4() {
			out.DestinationCidrBlock = aws.String(r.Destination)
		} else {
			out.DestinationIpv6CidrBlock = aws.String(r.Destination)
		}
		if to := svc.kindOf(r.Target).route; to != nil {
			*to.show(&out) = aws.String(r.Target)
		} else {
			*foreign(r.Target, &out) = aws.String(r.Target)
		}
		if !svc.leads(t, r.Target) {
			out.State = types.RouteStateBlackhole
		}
		all = append(all, out)
	}
	for _, id := range core.SortedKeys(svc.state.Endpoints) {
		if e := svc.state.Endpoints[id]; e.Deleted.IsZero() && slices.Contains(e.RouteTables, t.ID) {
			all = append(all, types.Route{
				DestinationPrefixListId: aws.String(e.prefixList()), GatewayId: aws.String(e.ID),
				Origin: types.RouteOriginCreateRoute, State: types.RouteStateActive,
			})
		}
	}
	return all
}

// foreign returns the field for a target that is not simulated.
func foreign(target string, out *types.Route) **string {
	switch prefixOf(target) {
	case "tgw":
		return &out.TransitGatewayId
	case "pcx":
		return &out.VpcPeeringConnectionId
	case "eni":
		return &out.NetworkInterfaceId
	case "i":
		return &out.InstanceId
	case "lgw":
		return &out.LocalGatewayId
	}
	return &out.GatewayId
}

func localRoute(b netip.Prefix) types.Route {
	r := types.Route{GatewayId: aws.String("local"), Origin: types.RouteOriginCreateRouteTable, State: types.RouteStateActive}
	if b.Addr().Is4() {
		r.DestinationCidrBlock = aws.String(b.String())
	} else {
		r.DestinationIpv6CidrBlock = aws.String(b.String())
	}
	return r
}

// leads reports whether a route to the target is active and not a blackhole. Targets that are
// not simulated are in the copy of another account only.
func (svc *Service) leads(t *RouteTable, target string) bool {
	to := svc.kindOf(target).route
	return to == nil || to.leads(svc, t, target)
}

func (svc *Service) describeRouteTables(in *ec2.DescribeRouteTablesInput) (*ec2.DescribeRouteTablesOutput, error) {
	associations := func(get func(types.RouteTableAssociation) string) func(*RouteTable) []string {
		return func(t *RouteTable) []string {
			return slices.DeleteFunc(core.Each(svc.routeTableOut(t).Associations, get), func(s string) bool { return s == "" })
		}
	}
	routes := func(get func(types.Route) *string) func(*RouteTable) []string {
		return func(t *RouteTable) []string {
			all := core.Each(svc.routes(t), func(r types.Route) string { return aws.ToString(get(r)) })
			return slices.DeleteFunc(all, func(s string) bool { return s == "" })
		}
	}
	tables, next, err := describe(svc, svc.state.RouteTables, query{in.RouteTableIds, in.Filters, in.NextToken, in.MaxResults}, fields[*RouteTable]{
		"route-table-id": func(t *RouteTable) []string { return []string{t.ID} },
		"vpc-id":         func(t *RouteTable) []string { return []string{t.VPC} },
		"owner-id":       func(*RouteTable) []string { return []string{svc.Number()} },
		"association.main": associations(func(x types.RouteTableAssociation) string {
			return map[bool]string{true: "true", false: "false"}[aws.ToBool(x.Main)]
		}),
		"association.subnet-id":                  associations(func(x types.RouteTableAssociation) string { return aws.ToString(x.SubnetId) }),
		"association.route-table-id":             associations(func(x types.RouteTableAssociation) string { return aws.ToString(x.RouteTableId) }),
		"association.route-table-association-id": associations(func(x types.RouteTableAssociation) string { return aws.ToString(x.RouteTableAssociationId) }),
		"route.destination-cidr-block":           routes(func(r types.Route) *string { return r.DestinationCidrBlock }),
		"route.destination-ipv6-cidr-block":      routes(func(r types.Route) *string { return r.DestinationIpv6CidrBlock }),
		"route.gateway-id":                       routes(func(r types.Route) *string { return r.GatewayId }),
		"route.nat-gateway-id":                   routes(func(r types.Route) *string { return r.NatGatewayId }),
	}, svc.routeTableOut)
	return &ec2.DescribeRouteTablesOutput{RouteTables: tables, NextToken: next}, err
}

// destination returns the destination of a route from the IPv4 or IPv6 parameter.
func (svc *Service) destination(t *RouteTable, v4, v6 *string) (string, error) {
	if err := core.Exactly(v4 != nil, v6 != nil); err != nil {
		return "", err
	}
	d := v4
	if v6 != nil {
		d = v6
	}
	block, err := cidr(d)
	if err != nil {
		return "", err
	}
	if block.Addr().Is4() != (v4 != nil) {
		return "", core.Fail("InvalidParameterValue", "the destination %s is not of the IP version of its parameter", block)
	}
	for _, r := range svc.routes(t) {
		local := aws.ToString(r.DestinationCidrBlock) + aws.ToString(r.DestinationIpv6CidrBlock)
		if aws.ToString(r.GatewayId) == "local" && within(prefix(local), block) {
			return "", core.Fail("InvalidParameterValue", "the destination CIDR block %s is equal to or more specific than one of this VPC's CIDR blocks", block)
		}
	}
	return block.String(), nil
}

// routeTargets returns the kinds that can be targets of routes.
func (svc *Service) routeTargets() (all []*routeTarget) {
	for _, t := range svc.tables {
		if to := t.kind().route; to != nil {
			all = append(all, to)
		}
	}
	return all
}

// target returns the target of a route.
func (svc *Service) target(t *RouteTable, destination string, in *ec2.CreateRouteInput) (string, error) {
	var set []bool
	var to *routeTarget
	for _, r := range svc.routeTargets() {
		given := r.id(in) != nil
		if set = append(set, given); given {
			to = r
		}
	}
	if err := core.Exactly(set...); err != nil {
		return "", err
	}
	id := to.id(in)
	vpc, err := to.vpc(svc, id, destination)
	if err != nil {
		return "", err
	}
	if vpc != t.VPC {
		return "", core.Fail("InvalidParameterValue", "route table %s and gateway %s belong to different networks", t.ID, *id)
	}
	return *id, nil
}

func (t *RouteTable) routeFor(destination string) int {
	return slices.IndexFunc(t.Routes, func(r Route) bool { return r.Destination == destination })
}

// createRoute creates a route. It rejects an existing destination even if the target is
// the same; AWS may accept that.
func (svc *Service) createRoute(in *ec2.CreateRouteInput) (*ec2.CreateRouteOutput, error) {
	t, err := lookup(svc, svc.state.RouteTables, in.RouteTableId)
	if err != nil {
		return nil, err
	}
	destination, err := svc.destination(t, in.DestinationCidrBlock, in.DestinationIpv6CidrBlock)
	if err != nil {
		return nil, err
	}
	target, err := svc.target(t, destination, in)
	if err != nil {
		return nil, err
	}
	if t.routeFor(destination) >= 0 {
		return nil, core.Fail("RouteAlreadyExists", "the route identified by %s already exists", destination)
	}
	if len(t.Routes) >= routesPerTable {
		return nil, core.Fail("RouteLimitExceeded", "the maximum number of routes in %s has been reached", t.ID)
	}
	t.Routes = append(t.Routes, Route{Destination: destination, Target: target})
	return &ec2.CreateRouteOutput{Return: aws.Bool(true)}, nil
}

func (svc *Service) replaceRoute(in *ec2.ReplaceRouteInput) (*ec2.ReplaceRouteOutput, error) {
	t, err := lookup(svc, svc.state.RouteTables, in.RouteTableId)
	if err != nil {
		return nil, err
	}
	destination, err := svc.destination(t, in.DestinationCidrBlock, in.DestinationIpv6CidrBlock)
	if err != nil {
		return nil, err
	}
	same := core.Recast[ec2.CreateRouteInput](in)
	target, err := svc.target(t, destination, &same)
	if err != nil {
		return nil, err
	}
	at := t.routeFor(destination)
	if at < 0 {
		return nil, core.Fail("InvalidParameterValue", "there is no route defined for '%s' in the route table", destination)
	}
	t.Routes[at].Target = target
	return &ec2.ReplaceRouteOutput{}, nil
}

func (svc *Service) deleteRoute(in *ec2.DeleteRouteInput) (*ec2.DeleteRouteOutput, error) {
	t, err := lookup(svc, svc.state.RouteTables, in.RouteTableId)
	if err != nil {
		return nil, err
	}
	destination, err := svc.destination(t, in.DestinationCidrBlock, in.DestinationIpv6CidrBlock)
	if err != nil {
		return nil, err
	}
	at := t.routeFor(destination)
	if at < 0 {
		return nil, core.Fail("InvalidRoute.NotFound", "no route with destination-cidr-block %s in route table %s", destination, t.ID)
	}
	t.Routes = slices.Delete(t.Routes, at, at+1)
	return &ec2.DeleteRouteOutput{}, nil
}

// tableOf returns the table that a subnet is associated with, or nil.
func (svc *Service) tableOf(subnet string) *RouteTable {
	for _, t := range svc.state.RouteTables {
		for _, s := range t.Associations {
			if s == subnet {
				return t
			}
		}
	}
	return nil
}

func (svc *Service) associateRouteTable(in *ec2.AssociateRouteTableInput) (*ec2.AssociateRouteTableOutput, error) {
	t, err := lookup(svc, svc.state.RouteTables, in.RouteTableId)
	if err != nil {
		return nil, err
	}
	s, err := lookup(svc, svc.state.Subnets, in.SubnetId)
	if err != nil {
		return nil, err
	}
	if s.VPC != t.VPC {
		return nil, core.Fail("InvalidParameterValue", "route table %s and subnet %s belong to different networks", t.ID, s.ID)
	}
	if svc.tableOf(s.ID) != nil {
		return nil, core.Fail("Resource.AlreadyAssociated", "the specified association for route table %s conflicts with an existing association", t.ID)
	}
	id := svc.ID("rtbassoc")
	t.Associations[id] = s.ID
	return &ec2.AssociateRouteTableOutput{
		AssociationId: aws.String(id), AssociationState: &types.RouteTableAssociationState{State: types.RouteTableAssociationStateCodeAssociated},
	}, nil
}

// associated returns the table of an association.
func (svc *Service) associated(id *string) (*RouteTable, error) {
	for _, t := range svc.state.RouteTables {
		if _, ok := t.Associations[aws.ToString(id)]; ok || t.Main != "" && t.Main == aws.ToString(id) {
			return t, nil
		}
	}
	return nil, core.Fail("InvalidAssociationID.NotFound", "the association ID '%s' does not exist", aws.ToString(id))
}

func (svc *Service) disassociateRouteTable(in *ec2.DisassociateRouteTableInput) (*ec2.DisassociateRouteTableOutput, error) {
	t, err := svc.associated(in.AssociationId)
	if err != nil {
		return nil, err
	}
	if t.Main == *in.AssociationId {
		return nil, core.Fail("InvalidParameterValue", "cannot disassociate the main route table association %s", t.Main)
	}
	delete(t.Associations, *in.AssociationId)
	return &ec2.DisassociateRouteTableOutput{}, nil
}

func (svc *Service) replaceRouteTableAssociation(in *ec2.ReplaceRouteTableAssociationInput) (*ec2.ReplaceRouteTableAssociationOutput, error) {
	old, err := svc.associated(in.AssociationId)
	if err != nil {
		return nil, err
	}
	t, err := lookup(svc, svc.state.RouteTables, in.RouteTableId)
	if err != nil {
		return nil, err
	}
	if t.VPC != old.VPC {
		return nil, core.Fail("InvalidParameterValue", "route tables %s and %s belong to different networks", old.ID, t.ID)
	}
	id := svc.ID("rtbassoc")
	if old.Main == *in.AssociationId {
		old.Main, t.Main = "", id
	} else {
		subnet := old.Associations[*in.AssociationId]
		delete(old.Associations, *in.AssociationId)
		t.Associations[id] = subnet
	}
	return &ec2.ReplaceRouteTableAssociationOutput{
		NewAssociationId: aws.String(id), AssociationState: &types.RouteTableAssociationState{State: types.RouteTableAssociationStateCodeAssociated},
	}, nil
}

// deleteRouteTable deletes a table that no subnet and no endpoint uses. That an endpoint
// prevents it is not verified.
func (svc *Service) deleteRouteTable(in *ec2.DeleteRouteTableInput) (*ec2.DeleteRouteTableOutput, error) {
	t, err := lookup(svc, svc.state.RouteTables, in.RouteTableId)
	if err != nil {
		return nil, err
	}
	users := core.SortedKeys(t.Associations)
	if t.Main != "" {
		users = append(users, t.Main)
	}
	for _, e := range svc.state.Endpoints {
		if slices.Contains(e.RouteTables, t.ID) {
			users = append(users, e.ID)
		}
	}
	if len(users) > 0 {
		return nil, core.Fail("DependencyViolation", "the routeTable '%s' has dependencies and cannot be deleted: %s", t.ID, strings.Join(users, ", "))
	}
	delete(svc.state.RouteTables, t.ID)
	return &ec2.DeleteRouteTableOutput{}, nil
}
