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
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// GatewayEndpoint is a gateway VPC endpoint for an AWS service (S3).
type GatewayEndpoint struct {
	VPC         *graph.Ref[VPCState]
	Service     string // "com.amazonaws.us-east-1.s3"
	RouteTables []*graph.Ref[RouteTableState]
	Tags        cloud.Tags
}

// GatewayEndpointState is a gateway endpoint, as AWS describes it.
type GatewayEndpointState struct {
	identity.Object
	VPC         string
	Service     string
	RouteTables []string
	Interface   bool // it is an interface endpoint
	Status      string
	Error       string // "CODE: MESSAGE" of its last error
}

// Failure implements graph.Failing. Gateway endpoints have no owner who accepts or rejects them; the
// states of those that have one are here for the sake of completeness.
func (s GatewayEndpointState) Failure() string {
	if !slices.Contains([]string{EndpointStatus(types.StateFailed), EndpointStatus(types.StateRejected), EndpointStatus(types.StateExpired)}, s.Status) {
		return ""
	}
	return s.Status + text.Prefixed(": ", s.Error)
}

// Deleting implements graph.Deleting.
func (s GatewayEndpointState) Deleting() bool { return s.Status == EndpointStatus(types.StateDeleting) }

var (
	_ graph.Managed[GatewayEndpointState] = (*GatewayEndpoint)(nil)
	_ graph.Timed                         = (*GatewayEndpoint)(nil)
)

// Needs implements graph.Desired.
func (e *GatewayEndpoint) Needs() []graph.Edge {
	needs := graph.Exists(e.VPC)
	for _, t := range e.RouteTables {
		needs = append(needs, graph.On(t)...)
	}
	return needs
}

// Takes implements graph.Timed.
func (e *GatewayEndpoint) Takes() (create, remove time.Duration) { return 0, endpointDeleteTime }

// Find implements graph.Desired.
func (e *GatewayEndpoint) Find(ctx context.Context, c *cloud.Clients) (*GatewayEndpointState, error) {
	if _, ok := e.VPC.Found(); !ok {
		return nil, nil
	}
	return identity.FindListed(ctx, c, Endpoints, e.Tags)
}

// Diff implements graph.Desired.
func (e *GatewayEndpoint) Diff(have *GatewayEndpointState) (d plan.Diff) {
	if have.Failure() != "" {
		d.Set("state", have.Failure(), "created again")
		return d
	}
	d.Await("state", have.Status, EndpointStatus(types.StateAvailable))
	d.Fixed("service", have.Service, e.Service)
	var want []string
	for _, t := range e.RouteTables {
		want = append(want, t.CloudID())
	}
	d.Lines("routeTable", have.RouteTables, want)
	d.Tags(have.Tags, e.Tags)
	return d
}

// CheckCreation implements graph.CheckedCreation: a route table has one gateway endpoint of a service at most ("Gateway endpoints for Amazon S3", AWS
// PrivateLink guide: "You can't have multiple endpoint routes for the same service in a single route table").
func (e *GatewayEndpoint) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	vpc, exists := e.VPC.Found()
	if !exists {
		return "", nil
	}
	all, err := endpointsInVPC(ctx, c, vpc.ID)
	for _, have := range all {
		if have.Interface || have.Service != e.Service || have.IsOwned(c) || have.Deleting() {
			continue
		}
		var shared []string
		for _, t := range e.RouteTables {
			if slices.Contains(have.RouteTables, t.CloudID()) {
				shared = append(shared, t.CloudID())
			}
		}
		if len(shared) == 0 {
			continue
		}
		return fmt.Sprintf("%s routes %s in %s, and a route table takes one endpoint of a service: %sremove the route tables from it: "+
			"aws ec2 modify-vpc-endpoint --region %s --vpc-endpoint-id %s --remove-route-table-ids %s",
			named(have.ID, have.Tags), e.Service, strings.Join(shared, ", "), kind.RestoreAdvice(have.ID, have.Tags, e.Tags), c.Region, have.ID,
			strings.Join(shared, " ")), err
	}
	return "", err
}

// named returns an ID with the tag Name.
func named(id string, tags cloud.Tags) string {
	if name := tags.Printable("Name"); name != "" {
		return id + " (" + name + ")"
	}
	return id
}

// Create implements graph.Creator.
func (e *GatewayEndpoint) Create(ctx context.Context, c *cloud.Clients) (*GatewayEndpointState, error) {
	vpc := e.VPC.CloudID()
	in := &ec2.CreateVpcEndpointInput{
		VpcId: &vpc, ServiceName: &e.Service, VpcEndpointType: types.VpcEndpointTypeGateway,
		ClientToken:       c.Token("vpc-endpoint", vpc, e.Service),
		TagSpecifications: e.Tags.On(types.ResourceTypeVpcEndpoint),
	}
	for _, t := range e.RouteTables {
		in.RouteTableIds = append(in.RouteTableIds, t.CloudID())
	}
	out, err := c.EC2.CreateVpcEndpoint(ctx, in)
	if err != nil {
		return nil, err
	}
	s := endpointState(*out.VpcEndpoint)
	s.Tags, s.RouteTables = e.Tags, in.RouteTableIds
	return &s, nil
}

// Update implements graph.Updater.
func (e *GatewayEndpoint) Update(ctx context.Context, c *cloud.Clients, have *GatewayEndpointState, d plan.Diff) (*GatewayEndpointState, error) {
	if d.Has("state") {
		return nil, e.Delete(ctx, c, have)
	}
	after := *have
	if d.Has("routeTable") {
		_, err := c.EC2.ModifyVpcEndpoint(ctx, &ec2.ModifyVpcEndpointInput{
			VpcEndpointId: &have.ID, AddRouteTableIds: d.Added("routeTable"), RemoveRouteTableIds: d.Removed("routeTable"),
		})
		if err != nil {
			return nil, err
		}
		after.RouteTables = slices.DeleteFunc(append(slices.Clone(have.RouteTables), d.Added("routeTable")...), func(t string) bool {
			return slices.Contains(d.Removed("routeTable"), t)
		})
	}
	var err error
	if d.HasTags() {
		after.Object, err = changeTags(ctx, c, have.Object, e.Tags, d)
	}
	return &after, err
}

// Delete implements graph.Deleter.
func (e *GatewayEndpoint) Delete(ctx context.Context, c *cloud.Clients, have *GatewayEndpointState) error {
	out, err := c.EC2.DeleteVpcEndpoints(ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{have.ID}})
	if err != nil {
		return err
	}
	return unsuccessful(out.Unsuccessful)
}

// Endpoints lists the VPC endpoints of the cluster.
func Endpoints(ctx context.Context, c *cloud.Clients) ([]GatewayEndpointState, error) {
	return describeEndpoints(ctx, c, "VPC endpoints", c.OwnedFilters())
}

// endpointsInVPC lists all VPC endpoints of a VPC, of any type.
func endpointsInVPC(ctx context.Context, c *cloud.Clients, vpc string) ([]GatewayEndpointState, error) {
	return describeEndpoints(ctx, c, "VPC endpoints of "+vpc, []types.Filter{cloud.Filter("vpc-id", vpc)})
}

// describeEndpoints lists the VPC endpoints that match the filters; query is the key for
// cloud.Remember.
func describeEndpoints(ctx context.Context, c *cloud.Clients, query string, filters []types.Filter) ([]GatewayEndpointState, error) {
	return cloud.Remember(ctx, c, query, func(ctx context.Context) ([]GatewayEndpointState, error) {
		p := ec2.NewDescribeVpcEndpointsPaginator(c.EC2, &ec2.DescribeVpcEndpointsInput{Filters: filters})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeVpcEndpointsOutput) (out []GatewayEndpointState) {
			for _, x := range o.VpcEndpoints {
				if s := endpointState(x); s.Status != EndpointStatus(types.StateDeleted) {
					out = append(out, s)
				}
			}
			return out
		})
	})
}

func endpointState(x types.VpcEndpoint) GatewayEndpointState {
	var last string
	if e := x.LastError; e != nil {
		last = aws.ToString(e.Code) + text.Prefixed(": ", aws.ToString(e.Message))
	}
	return GatewayEndpointState{
		Object: identity.Object{ID: aws.ToString(x.VpcEndpointId), Tags: cloud.FromEC2(x.Tags)}, VPC: aws.ToString(x.VpcId), Service: aws.ToString(x.ServiceName),
		RouteTables: x.RouteTableIds, Interface: x.VpcEndpointType == types.VpcEndpointTypeInterface, Status: EndpointStatus(x.State), Error: last,
	}
}

// EndpointStatus returns a state in lower case. The EC2 API uses both Available and
// available.
func EndpointStatus(s types.State) string { return strings.ToLower(string(s)) }

// endpointDeleteTime is how long AWS usually takes to delete a VPC endpoint.
const endpointDeleteTime = 10 * time.Second

// gatewayEndpointKind declares gateway endpoints.
func gatewayEndpointKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: "vpc-endpoint", Rehearsed: true, Area: plan.AreaNetwork, Type: types.ResourceTypeVpcEndpoint,
		ReadActions: []string{"ec2:DescribeVpcEndpoints"}, Statement: kind.Network,
		Actions: []string{"ec2:CreateTags", "ec2:CreateVpcEndpoint", "ec2:DeleteTags", "ec2:DeleteVpcEndpoints", "ec2:ModifyVpcEndpoint"},
	}, kind.Functions[GatewayEndpointState]{
		List: kind.Tagged(Endpoints), InVPC: endpointsInVPC, Delete: &GatewayEndpoint{},
		Refers: func(s GatewayEndpointState) []string { return append(slices.Clone(s.RouteTables), s.VPC) },
	})
}
