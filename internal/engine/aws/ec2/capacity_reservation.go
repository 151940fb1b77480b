package ec2

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// reserved is a capacity reservation, or a Capacity Block for ML, into which a manifest launches machines.
type reserved struct {
	path         string // of its ID in the manifest
	id           string // "": no reservation
	instanceType string // of the machines; "" if it is not known
	block        bool   // the market type is CapacityBlock
	subnets      []*graph.Ref[SubnetState]
	launches     bool // machines are to be launched now
	only         bool // the machines run only in reservations
}

// refusal returns the reason why EC2 launches no machines into the reservation, or "".
func (r reserved) refusal(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if r.id == "" {
		return r.without(ctx, c)
	}
	have, err := cloud.Remember(ctx, c, "capacity reservation "+r.id, func(ctx context.Context) (*types.CapacityReservation, error) {
		out, err := c.EC2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{r.id}})
		if err != nil || len(out.CapacityReservations) == 0 {
			return nil, cloud.IgnoreNotFound(err)
		}
		return &out.CapacityReservations[0], nil
	})
	if err != nil {
		return "", err
	}
	what := r.path + ": the capacity reservation " + r.id
	if have == nil {
		return what + " does not exist in this account and region: correct the ID", nil
	}
	if refusal = r.unlike(what, have); refusal == "" {
		refusal = r.outside(what, have)
	}
	if refusal == "" {
		refusal = inAnotherZone(what, aws.ToString(have.AvailabilityZone), r.subnets...)
	}
	return refusal, nil
}

// without returns the reason why EC2 launches no machines that run only in reservations, and name none: there is no open reservation for their
// type in their zone ("CapacityReservationSpecification", EC2 API reference), or "".
func (r reserved) without(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if !r.only || !r.launches || r.instanceType == "" {
		return "", nil
	}
	all, err := cloud.Remember(ctx, c, "capacity reservations", func(ctx context.Context) ([]types.CapacityReservation, error) {
		p := ec2.NewDescribeCapacityReservationsPaginator(c.EC2, &ec2.DescribeCapacityReservationsInput{})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeCapacityReservationsOutput) []types.CapacityReservation {
			return o.CapacityReservations
		})
	})
	if err != nil {
		return "", err
	}
	where := c.Region
	for _, ref := range r.subnets {
		zone := zoneOf(ref)
		if zone != "" {
			where = zone
		}
		for _, have := range all {
			kind, in := aws.ToString(have.InstanceType), aws.ToString(have.AvailabilityZone)
			if have.State == types.CapacityReservationStateActive && have.ReservationType != types.CapacityReservationTypeCapacityBlock &&
				(kind == "" || kind == r.instanceType) && (in == "" || zone == "" || in == zone) {
				return "", nil
			}
		}
	}
	return fmt.Sprintf(
		"%s CapacityReservationsOnly: this account has no active capacity reservation for %s in %s, and EC2 launches no machine without one: create one, or remove it",
		strings.TrimSuffix(r.path, "Id")+"Preference",
		r.instanceType,
		where,
	), nil
}

// unlike returns a message if the reservation is of another kind, or for another instance type; otherwise "".
func (r reserved) unlike(what string, have *types.CapacityReservation) string {
	isBlock := have.ReservationType == types.CapacityReservationTypeCapacityBlock
	switch {
	case isBlock && !r.block:
		return what + " is a Capacity Block: set marketType: CapacityBlock"
	case r.block && !isBlock && have.ReservationType != "":
		return what + " is not a Capacity Block: remove marketType: CapacityBlock, or name a Capacity Block"
	case aws.ToString(have.InstanceType) != "" && r.instanceType != "" && *have.InstanceType != r.instanceType:
		return fmt.Sprintf("%s is for the instance type %s, and the machine has %s: change one of them", what, *have.InstanceType, r.instanceType)
	}
	return ""
}

// outside returns a message if machines are to be launched while the reservation is not active; otherwise "".
func (r reserved) outside(what string, have *types.CapacityReservation) string {
	switch state := have.State; {
	case !r.launches || state == types.CapacityReservationStateActive:
		return ""
	case state == types.CapacityReservationStateScheduled && have.StartDate != nil:
		return fmt.Sprintf(
			"%s begins on %s: EC2 launches no machine before; begin with 0 replicas, and scale up then",
			what,
			have.StartDate.UTC().Format(time.RFC3339),
		)
	case state == types.CapacityReservationStateExpired && have.EndDate != nil:
		return fmt.Sprintf("%s has ended on %s: name another", what, have.EndDate.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s is %s: name another", what, have.State)
}

// checkReservation returns the reason why EC2 launches no machine into the capacity reservation that the manifest names, or "". A
// launch template has no subnet: CheckReservation does the rest.
func (i *Instance) checkReservation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	r := reservedFor(&i.Spec)
	if i.Subnet != nil {
		r.subnets, r.launches = []*graph.Ref[SubnetState]{i.Subnet}, true
	}
	return r.refusal(ctx, c)
}

// CheckReservation returns the reason why a group that uses the launch template cannot launch machines into the capacity reservation,
// or "". launches says that the group launches machines now. Without a launch template, there is no reservation.
func (t *LaunchTemplate) CheckReservation(
	ctx context.Context, c *cloud.Clients, subnets []*graph.Ref[SubnetState], launches bool,
) (refusal string, err error) {
	if t == nil {
		return "", nil
	}
	r := reservedFor(&t.machine().Spec)
	r.path, r.subnets, r.launches = "awsLaunchTemplate."+r.path, subnets, launches
	return r.refusal(ctx, c)
}

func reservedFor(s *infrav1.AWSMachineSpec) reserved {
	return reserved{
		path:         "capacityReservationId",
		id:           aws.ToString(s.CapacityReservationID),
		instanceType: s.InstanceType,
		block:        s.MarketType == infrav1.MarketTypeCapacityBlock,
		only:         s.CapacityReservationPreference == infrav1.CapacityReservationPreferenceOnly,
	}
}
