package ec2

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Reservation is a capacity reservation. It has room for any number of instances.
type Reservation struct {
	Type, Zone string    `json:",omitempty"` // "": any
	Block      bool      `json:",omitempty"` // it is a Capacity Block for ML
	State      string    `json:",omitempty"` // "": active from Start to End
	Start, End time.Time // zero: no limit
}

// state returns the state of a reservation: a Capacity Block is scheduled before it begins, and expired when it has ended
// ("View Capacity Blocks", EC2 user guide).
func (r *Reservation) state(now time.Time) types.CapacityReservationState {
	switch {
	case r.State != "":
		return types.CapacityReservationState(r.State)
	case now.Before(r.Start):
		return types.CapacityReservationStateScheduled
	case !r.End.IsZero() && !now.Before(r.End):
		return types.CapacityReservationStateExpired
	}
	return types.CapacityReservationStateActive
}

// describeReservations returns capacity reservations.
func (svc *Service) describeReservations(in *ec2.DescribeCapacityReservationsInput) (*ec2.DescribeCapacityReservationsOutput, error) {
	out := &ec2.DescribeCapacityReservationsOutput{}
	for _, id := range core.SortedKeys(svc.state.Reservations) {
		if len(in.CapacityReservationIds) > 0 && !slices.Contains(in.CapacityReservationIds, id) {
			continue
		}
		r := svc.state.Reservations[id]
		x := types.CapacityReservation{
			CapacityReservationId: aws.String(id), State: r.state(svc.Now()), InstanceType: core.Text(r.Type), AvailabilityZone: core.Text(r.Zone),
			ReservationType: types.CapacityReservationTypeDefault,
		}
		if r.Block {
			x.ReservationType = types.CapacityReservationTypeCapacityBlock
		}
		if !r.Start.IsZero() {
			x.StartDate = aws.Time(r.Start)
		}
		if !r.End.IsZero() {
			x.EndDate = aws.Time(r.End)
		}
		out.CapacityReservations = append(out.CapacityReservations, x)
	}
	if len(out.CapacityReservations) < len(in.CapacityReservationIds) {
		return nil, core.Fail("InvalidCapacityReservationId.NotFound", "The capacity reservation does not exist")
	}
	return out, nil
}

// checkReserved compares a launch with the reservation that it targets: the type, the zone and the state have to be those of the
// reservation, and a Capacity Block needs the market type capacity-block, which nothing else may have ("Launch instances using
// Capacity Blocks" and "Launch instances into an existing Capacity Reservation", EC2 user guide). What EC2 answers to a market
// type that does not fit is not documented.
func (svc *Service) checkReserved(l *launch) error {
	const none = "The requested reservation does not have sufficient compatible and available capacity for this request."
	r := svc.state.Reservations[l.model.Launch["capacity-reservation"]]
	if r == nil {
		// CapacityReservationSpecification in the EC2 API reference: "If capacity isn't available, the instance will fail to launch".
		if l.model.Launch["capacity-reservation-preference"] == string(types.CapacityReservationPreferenceCapacityReservationsOnly) && !svc.hasReservation(l) {
			return core.Fail("ReservationCapacityExceeded", none)
		}
		return nil
	}
	switch market := l.model.inBlock(); {
	case r.Block && !market:
		return core.Fail("InvalidParameterCombination", "a Capacity Block needs the market type capacity-block")
	case market && !r.Block:
		return core.Fail("InvalidParameterCombination", "the market type capacity-block needs a Capacity Block")
	case r.Type != "" && r.Type != l.kind.name, r.Zone != "" && r.Zone != l.subnet.Zone, r.state(svc.Now()) != types.CapacityReservationStateActive:
		return core.Fail("ReservationCapacityExceeded", none)
	}
	return nil
}

// hasReservation reports whether an active reservation takes a launch that names none: those for the type and the zone do, Capacity Blocks do not.
func (svc *Service) hasReservation(l *launch) bool {
	for _, r := range svc.state.Reservations {
		if !r.Block && (r.Type == "" || r.Type == l.kind.name) && (r.Zone == "" || r.Zone == l.subnet.Zone) &&
			r.state(svc.Now()) == types.CapacityReservationStateActive {
			return true
		}
	}
	return false
}
