package ec2

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Reserved is what a manifest wants of a capacity reservation, or of a Capacity Block for ML.
type Reserved struct {
	Path     string // of its ID in the manifest
	ID       string // "": no reservation
	Type     string // of the instances; "" if it is not known
	Block    bool   // the market type is CapacityBlock
	Subnets  []*graph.Ref[SubnetState]
	Launches bool // machines are to be launched now
}

// Refusal says why EC2 launches no machines into the reservation; "" if nothing is known against it.
func (r Reserved) Refusal(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if r.ID == "" {
		return "", nil
	}
	have, err := cloud.Remember(ctx, c, "capacity reservation "+r.ID, func(ctx context.Context) (*types.CapacityReservation, error) {
		out, err := c.EC2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{r.ID}})
		if err != nil || len(out.CapacityReservations) == 0 {
			return nil, cloud.IgnoreNotFound(err)
		}
		return &out.CapacityReservations[0], nil
	})
	if err != nil {
		return "", err
	}
	what := r.Path + ": the capacity reservation " + r.ID
	if have == nil {
		return what + " does not exist in this account and region: correct the ID", nil
	}
	if refusal = r.unlike(what, have); refusal == "" {
		refusal = r.outside(what, have)
	}
	if refusal == "" {
		refusal = inAnotherZone(what, aws.ToString(have.AvailabilityZone), r.Subnets...)
	}
	return refusal, nil
}

// unlike says that the reservation is of another kind, or for another instance type.
func (r Reserved) unlike(what string, have *types.CapacityReservation) string {
	isBlock := have.ReservationType == types.CapacityReservationTypeCapacityBlock
	switch {
	case isBlock && !r.Block:
		return what + " is a Capacity Block: set marketType: CapacityBlock"
	case r.Block && !isBlock && have.ReservationType != "":
		return what + " is not a Capacity Block: remove marketType: CapacityBlock, or name a Capacity Block"
	case aws.ToString(have.InstanceType) != "" && r.Type != "" && *have.InstanceType != r.Type:
		return fmt.Sprintf("%s is for the instance type %s, and the machine has %s: change one of them", what, *have.InstanceType, r.Type)
	}
	return ""
}

// outside says that machines are to be launched before the reservation begins, after it has ended, or while it is not active.
func (r Reserved) outside(what string, have *types.CapacityReservation) string {
	switch state := have.State; {
	case !r.Launches || state == types.CapacityReservationStateActive:
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

// checkReservation says why a machine cannot be launched into the capacity reservation that the manifest names. Of a launch
// template, the group that uses it knows the subnets, and whether it launches machines.
func (i *Instance) checkReservation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	r := reserved(&i.Spec)
	if i.Subnet != nil {
		r.Subnets, r.Launches = []*graph.Ref[SubnetState]{i.Subnet}, true
	}
	return r.Refusal(ctx, c)
}

func reserved(s *infrav1.AWSMachineSpec) Reserved {
	return Reserved{
		Path: "capacityReservationId", ID: aws.ToString(s.CapacityReservationID), Type: s.InstanceType, Block: s.MarketType == infrav1.MarketTypeCapacityBlock,
	}
}

// Reserved is what the template wants of a reservation.
func (t *LaunchTemplate) Reserved() Reserved {
	r := reserved(&t.machine().Spec)
	r.Path = "awsLaunchTemplate." + r.Path
	return r
}
