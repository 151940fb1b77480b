package ec2

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// tableOf returns the table that a subnet is associated with, if any.
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

// associated returns the table that an association belongs to.
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

// deleteRouteTable deletes a table that no subnet and no endpoint uses. AWS is
// known to insist on the former; the latter is the stricter guess.
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
