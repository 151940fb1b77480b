package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// checkReservation says why a machine cannot be launched into the capacity reservation that the manifest names.
func (i *Instance) checkReservation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	id := aws.ToString(i.Spec.CapacityReservationID)
	if id == "" {
		return "", nil
	}
	r, err := cloud.Remember(ctx, c, "capacity reservation "+id, func(ctx context.Context) (*types.CapacityReservation, error) {
		out, err := c.EC2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{id}})
		if err != nil || len(out.CapacityReservations) == 0 {
			return nil, cloud.IgnoreNotFound(err)
		}
		return &out.CapacityReservations[0], nil
	})
	if err != nil {
		return "", err
	}
	what := "capacityReservationId: the capacity reservation " + id
	switch {
	case r == nil:
		return what + " does not exist in this account and region: correct the ID", nil
	case r.State != types.CapacityReservationStateActive && r.State != types.CapacityReservationStateScheduled:
		return fmt.Sprintf("%s is %s: name another", what, r.State), nil
	case aws.ToString(r.InstanceType) != "" && *r.InstanceType != i.Spec.InstanceType:
		return fmt.Sprintf("%s is for the instance type %s, and the machine has %s: change one of them", what, *r.InstanceType, i.Spec.InstanceType), nil
	}
	return i.inAnotherZone(what, aws.ToString(r.AvailabilityZone)), nil
}
