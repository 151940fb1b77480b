package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Endpoint is a gateway endpoint.
type Endpoint struct {
	Thing
	VPC, Service string
	RouteTables  []string
	Deleted      time.Time // start of the deletion; zero: none
	Stays        string    // why the deletion fails; "" if it does not
	Failed       string    // code and message of the failure; "" if it is available
}

func (*Endpoint) kind() kind {
	return kind{
		prefix: "vpce", name: "vpcEndpoint", missing: "InvalidVpcEndpointId.NotFound", tags: types.ResourceTypeVpcEndpoint, title: "Endpoint",
		simulate: (*Service).simulateEndpoints, settle: (*Service).settleEndpoints,
	}
}

func (e *Endpoint) name() string { return e.nameOr(e.Service) }

func (e *Endpoint) keepsVPC() string { return e.VPC }

func (svc *Service) simulateEndpoints() {
	core.On(svc.Account, svc.createEndpoint, "VpcId", "ServiceName", "VpcEndpointType", "RouteTableIds", "ClientToken", "TagSpecifications")
	core.On(svc.Account, svc.describeEndpoints, "VpcEndpointIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.modifyEndpoint, "VpcEndpointId", "AddRouteTableIds", "RemoveRouteTableIds")
	core.On(svc.Account, svc.deleteEndpoints, "VpcEndpointIds")
}

// createEndpoint creates a gateway endpoint, which is available immediately. AWS permits
// several for the same service if they have no common route table.
func (svc *Service) createEndpoint(in *ec2.CreateVpcEndpointInput) (*ec2.CreateVpcEndpointOutput, error) {
	s := svc.state
	return idempotent(svc, "CreateVpcEndpoint", in.ClientToken, in, func() ([]string, error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeVpcEndpoint)
		if err != nil {
			return nil, err
		}
		if in.VpcEndpointType != "" && in.VpcEndpointType != types.VpcEndpointTypeGateway {
			return nil, core.NotSimulated("an endpoint of type %s", in.VpcEndpointType)
		}
		v, err := lookup(svc, s.VPCs, in.VpcId)
		if err != nil {
			return nil, err
		}
		service := aws.ToString(in.ServiceName)
		if service != "com.amazonaws."+svc.Region+".s3" && service != "com.amazonaws."+svc.Region+".dynamodb" {
			return nil, core.Fail("InvalidServiceName", "the Vpc Endpoint Service '%s' does not exist", service)
		}
		e := &Endpoint{VPC: v.ID, Service: service, Failed: s.EndpointFailure}
		if err := svc.addTables(e, in.RouteTableIds); err != nil {
			return nil, err
		}
		e.Thing = svc.newThing("vpce", tags)
		s.Endpoints[e.ID] = e
		return []string{e.ID}, nil
	}, func(ids []string) *ec2.CreateVpcEndpointOutput {
		out := svc.endpointOut(remembered(s.Endpoints, ids, func(t Thing) *Endpoint { return &Endpoint{Thing: t, Deleted: t.Born.Add(1)} })[0])
		return &ec2.CreateVpcEndpointOutput{VpcEndpoint: &out, ClientToken: in.ClientToken}
	})
}

// prefixList returns the ID of the prefix list of the endpoint's service.
func (e *Endpoint) prefixList() string { return GivenID("pl", e.Service, "") }

// addTables adds an endpoint's route to more route tables, to all or none.
func (svc *Service) addTables(e *Endpoint, ids []string) error {
	for _, id := range ids {
		t, err := lookup(svc, svc.state.RouteTables, &id)
		if err != nil {
			return err
		}
		if t.VPC != e.VPC {
			return core.Fail("InvalidParameterValue", "route table %s does not belong to network %s", t.ID, e.VPC)
		}
		for _, r := range svc.routes(t) {
			if aws.ToString(r.DestinationPrefixListId) == e.prefixList() {
				return core.Fail("RouteAlreadyExists", "route table %s already has a route with destination-prefix-list-id %s", t.ID, e.prefixList())
			}
		}
	}
	e.RouteTables = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(e.RouteTables), ids...))))
	return nil
}

// stays reports whether the deletion of an endpoint has failed.
func (e *Endpoint) stays(now time.Time) bool {
	return e.Stays != "" && now.Sub(e.Deleted) >= EndpointDeletes
}

func (svc *Service) endpointState(e *Endpoint) types.State {
	if e.Deleted.IsZero() && e.Failed != "" || e.stays(svc.Now()) {
		return types.State(svc.state.failed())
	}
	if e.Deleted.IsZero() {
		return "available" // AWS returns lower case, unlike the constants of the SDK
	}
	return "deleting"
}

func (svc *Service) endpointOut(e *Endpoint) types.VpcEndpoint {
	var last *types.LastError // "The last error that occurred for endpoint"
	if code, message, failed := strings.Cut(cmp.Or(e.Stays, e.Failed), ": "); failed {
		last = &types.LastError{Code: &code, Message: &message}
	}
	return types.VpcEndpoint{
		LastError:     last,
		VpcEndpointId: aws.String(e.ID), VpcId: core.Text(e.VPC), ServiceName: core.Text(e.Service), VpcEndpointType: types.VpcEndpointTypeGateway,
		State: svc.endpointState(e), RouteTableIds: slices.Clone(e.RouteTables), OwnerId: aws.String(svc.Number()), CreationTimestamp: aws.Time(e.Born),
		PrivateDnsEnabled: aws.Bool(false), RequesterManaged: aws.Bool(false), Tags: tagsOut(e.Tags),
		PolicyDocument: aws.String(`{"Version":"2008-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}]}`),
	}
}

func (svc *Service) describeEndpoints(in *ec2.DescribeVpcEndpointsInput) (*ec2.DescribeVpcEndpointsOutput, error) {
	endpoints, next, err := describe(svc, svc.state.Endpoints, query{in.VpcEndpointIds, in.Filters, in.NextToken, in.MaxResults}, fields[*Endpoint]{
		"vpc-endpoint-id":    func(e *Endpoint) []string { return []string{e.ID} },
		"vpc-id":             func(e *Endpoint) []string { return []string{e.VPC} },
		"service-name":       func(e *Endpoint) []string { return []string{e.Service} },
		"vpc-endpoint-state": func(e *Endpoint) []string { return []string{string(svc.endpointState(e))} },
		"vpc-endpoint-type":  func(*Endpoint) []string { return []string{string(types.VpcEndpointTypeGateway)} },
	}, svc.endpointOut)
	return &ec2.DescribeVpcEndpointsOutput{VpcEndpoints: endpoints, NextToken: next}, err
}

func (svc *Service) modifyEndpoint(in *ec2.ModifyVpcEndpointInput) (*ec2.ModifyVpcEndpointOutput, error) {
	e, err := lookup(svc, svc.state.Endpoints, in.VpcEndpointId)
	if err != nil {
		return nil, err
	}
	if !e.Deleted.IsZero() {
		return nil, core.Fail("InvalidParameter", "the endpoint %s is being deleted", e.ID)
	}
	for _, id := range in.RemoveRouteTableIds {
		if !slices.Contains(e.RouteTables, id) {
			return nil, core.Fail("InvalidRouteTableID.NotFound", "the route table %s is not associated with %s", id, e.ID)
		}
	}
	if err := svc.addTables(e, in.AddRouteTableIds); err != nil {
		return nil, err
	}
	e.RouteTables = slices.DeleteFunc(e.RouteTables, func(id string) bool { return slices.Contains(in.RemoveRouteTableIds, id) })
	return &ec2.ModifyVpcEndpointOutput{Return: aws.Bool(true)}, nil
}

// deleteEndpoints deletes endpoints. Errors are returned per endpoint, and the call
// succeeds.
func (svc *Service) deleteEndpoints(in *ec2.DeleteVpcEndpointsInput) (*ec2.DeleteVpcEndpointsOutput, error) {
	if len(in.VpcEndpointIds) == 0 {
		return nil, core.Fail("MissingParameter", "the request must contain the parameter vpcEndpointIds")
	}
	out := &ec2.DeleteVpcEndpointsOutput{}
	for _, id := range in.VpcEndpointIds {
		e, err := lookup(svc, svc.state.Endpoints, &id)
		switch {
		case err != nil:
			out.Unsuccessful = append(out.Unsuccessful, types.UnsuccessfulItem{
				ResourceId: aws.String(id),
				Error:      &types.UnsuccessfulItemError{Code: aws.String("InvalidVpcEndpoint.NotFound"), Message: aws.String(err.Error())},
			})
		case svc.state.EndpointRefusal != "":
			code, message, _ := strings.Cut(svc.state.EndpointRefusal, ": ")
			out.Unsuccessful = append(
				out.Unsuccessful,
				types.UnsuccessfulItem{ResourceId: aws.String(id), Error: &types.UnsuccessfulItemError{Code: &code, Message: &message}},
			)
		case e.Deleted.IsZero() || e.stays(svc.Now()):
			e.Deleted, e.Stays = svc.Now(), svc.state.EndpointDeleteFailure
		}
	}
	return out, nil
}

// settleEndpoints removes endpoints after their deletion.
func (svc *Service) settleEndpoints() {
	maps.DeleteFunc(svc.state.Endpoints, func(_ string, e *Endpoint) bool {
		return !e.Deleted.IsZero() && svc.Now().Sub(e.Deleted) >= EndpointDeletes && e.Stays == ""
	})
}

func (e *Endpoint) details(d printer) []string {
	return []string{e.VPC, e.Service, "tables " + d.list(e.RouteTables), fmt.Sprintf("deleting %t", !e.Deleted.IsZero())}
}
