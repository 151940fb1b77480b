package ec2

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// NoWayOut says why machines in an existing subnet reach neither the internet nor the APIs of AWS, from where they
// fetch what they boot with; "" if they may. public is whether they get a public address; nil: as the subnet says.
//
// Routes to other networks may lead to a proxy, and interface endpoints to the APIs: such subnets are not refused.
func NoWayOut(ctx context.Context, c *cloud.Clients, subnet *graph.Ref[SubnetState], public *bool) (string, error) {
	if subnet == nil || subnet.Desired() != nil { // the run makes the routes of its own subnets
		return "", nil
	}
	state, ok := subnet.Found()
	if !ok {
		return "", nil
	}
	table, err := RouteTableOf(ctx, c, state.VPC, state.ID)
	if table == nil || err != nil {
		return "", err
	}
	if table, err = table.withoutBlindAlleys(ctx, c); err != nil {
		return "", err
	}
	hasPublic := state.MapPublicIP
	if public != nil {
		hasPublic = *public
	}
	why, fix := table.closed(hasPublic), "add a default route to a NAT gateway"
	if why == "" {
		if why, err = table.closedGateway(ctx, c); err != nil {
			return "", err
		}
	}
	if why != "" {
		why = "its route table " + table.ID + " " + why
	} else if why, err = table.closedRules(ctx, c, state.ID); why == "" || err != nil {
		return "", err
	} else {
		fix = "permit them"
	}
	endpoints, err := endpointsInVPC(ctx, c, state.VPC)
	if err != nil || slices.ContainsFunc(endpoints, func(e GatewayEndpointState) bool { return e.Interface }) {
		return "", err
	}
	return fmt.Sprintf(
		"machines in the subnet %s reach neither the internet nor the APIs of AWS: %s, and the VPC has no interface endpoints: "+
			"%s, or add endpoints, or choose another subnet",
		state.ID,
		why,
		fix,
	), nil
}

// closedRules returns why a network ACL prevents machines in a subnet with this route table from connecting to AWS: the network ACL of
// the subnet itself, or that of the subnet with the NAT gateway of the default route. It returns "" if neither does.
func (s RouteTableState) closedRules(ctx context.Context, c *cloud.Clients, subnet string) (why string, err error) {
	if why, err = closedACL(ctx, c, s.VPC, subnet); why != "" || err != nil {
		return why, err
	}
	n, err := s.natGateway(ctx, c)
	if n == nil || err != nil {
		return "", err
	}
	return closedACL(ctx, c, s.VPC, aws.ToString(n.SubnetId))
}

// natGateway returns the NAT gateway of the default route; nil if the route leads elsewhere.
func (s RouteTableState) natGateway(ctx context.Context, c *cloud.Clients) (*types.NatGateway, error) {
	id := s.Routes[AnywhereIPv4]
	if !strings.HasPrefix(id, "nat-") {
		return nil, nil
	}
	all, err := natGatewaysIn(ctx, c, s.VPC)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(n types.NatGateway) bool { return aws.ToString(n.NatGatewayId) == id })
	if at < 0 {
		return nil, nil
	}
	return &all[at], nil
}

// closedGateway says why the public NAT gateway of a default route does not lead to the internet: its own subnet has no way there. A
// public NAT gateway needs a route to an internet gateway ("NAT gateway basics", VPC user guide). A route to a firewall or to another
// network may lead there.
func (s RouteTableState) closedGateway(ctx context.Context, c *cloud.Clients) (why string, err error) {
	if s.Dead[AnywhereIPv4] {
		return "", nil
	}
	n, err := s.natGateway(ctx, c)
	if n == nil || err != nil || n.ConnectivityType == types.ConnectivityTypePrivate {
		return "", err
	}
	subnet := aws.ToString(n.SubnetId)
	table, err := RouteTableOf(ctx, c, s.VPC, subnet)
	if table == nil || err != nil || table.closed(true) == "" {
		return "", err
	}
	return fmt.Sprintf(
		"leads to the NAT gateway %s, which is in the subnet %s, whose route table %s %s",
		aws.ToString(n.NatGatewayId),
		subnet,
		table.ID,
		table.closed(true),
	), nil
}

// withoutBlindAlleys returns the table without routes for private addresses to a NAT gateway whose own subnet has no route for them, but those to the
// internet, where private addresses do not lead.
func (s RouteTableState) withoutBlindAlleys(ctx context.Context, c *cloud.Clients) (*RouteTableState, error) {
	after := s
	after.Routes = maps.Clone(s.Routes)
	for to, target := range s.Routes {
		block, err := netip.ParsePrefix(to)
		if err != nil || !block.Addr().IsPrivate() || !strings.HasPrefix(target, "nat-") {
			continue
		}
		all, err := natGatewaysIn(ctx, c, s.VPC)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(n types.NatGateway) bool { return aws.ToString(n.NatGatewayId) == target })
		if at < 0 {
			continue
		}
		table, err := RouteTableOf(ctx, c, s.VPC, aws.ToString(all[at].SubnetId))
		if err != nil {
			return nil, err
		}
		if table != nil && !table.mayLead() {
			delete(after.Routes, to)
		}
	}
	return &after, nil
}

// mayLead reports whether a table has a route that leads neither to the internet nor to an endpoint.
func (s RouteTableState) mayLead() bool {
	for to, target := range s.Routes {
		if !strings.HasPrefix(target, "igw-") && !strings.HasPrefix(target, "eigw-") && !strings.HasPrefix(target, "vpce-") && !s.Dead[to] {
			return true
		}
	}
	return false
}

// RouteTableOf returns the route table that a subnet is associated with, or the main one of its VPC; nil if there is
// none.
func RouteTableOf(ctx context.Context, c *cloud.Clients, vpc, subnet string) (*RouteTableState, error) {
	tables, err := routeTablesOf(ctx, c, vpc)
	return tableOf(tables, subnet), err
}

// tableOf finds the route table of a subnet in those of its VPC.
func tableOf(tables []RouteTableState, subnet string) *RouteTableState {
	at := slices.IndexFunc(tables, func(t RouteTableState) bool { return t.Associations[subnet] != "" })
	if at < 0 {
		at = slices.IndexFunc(tables, func(t RouteTableState) bool { return t.Main })
	}
	if at < 0 {
		return nil
	}
	return &tables[at]
}

// NoInternet says why a table does not lead to the internet; "" if it does. noAddress says that the machines have no
// public address; "" if they have one.
func (s RouteTableState) NoInternet(noAddress string) (why string) {
	why = "has no default route"
	for _, to := range []string{AnywhereIPv4, anywhereIPv6} {
		switch target := s.Routes[to]; {
		case target == "":
		case s.Dead[to]:
			why = fmt.Sprintf("has a route to %s that leads to %s, which does not exist or does not work", to, target)
		case to == AnywhereIPv4 && strings.HasPrefix(target, "igw-") && noAddress != "":
			why = fmt.Sprintf("leads to the internet gateway %s, and %s", target, noAddress)
		default:
			return ""
		}
	}
	return why
}

// closed says why a table leads nowhere; "" if it may: to a network with a proxy, perhaps.
func (s RouteTableState) closed(public bool) (why string) {
	noAddress := "machines there get no public addresses"
	if public {
		noAddress = ""
	}
	for to, target := range s.Routes {
		if !IsAnywhere(to) && !s.Dead[to] && !strings.HasPrefix(target, "vpce-") {
			return ""
		}
	}
	return s.NoInternet(noAddress)
}

// isDead reports whether what a route leads to does not exist or does not work.
func isDead(r types.Route) bool { return r.State == types.RouteStateBlackhole }
