package replica

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	simec2 "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	simkms "github.com/clusterawsadm/clusterawsadm/internal/awssim/kms"
)

// These are things that a manifest names, and that are read one by one: what the plan has asked for is asked
// again. What the caller may not read is assumed to be there, as the plan does.

func (r *reader) reservations(ctx context.Context) (last error) {
	found := map[string]*simec2.Reservation{}
	for _, in := range of[ec2.DescribeCapacityReservationsInput](r.Asked) {
		out, err := ec2.NewFromConfig(r.Config).DescribeCapacityReservations(ctx, in)
		last = assume(found, in.CapacityReservationIds, err, last)
		if err != nil {
			continue
		}
		for _, x := range out.CapacityReservations {
			found[aws.ToString(x.CapacityReservationId)] = &simec2.Reservation{
				Type: aws.ToString(x.InstanceType), Zone: aws.ToString(x.AvailabilityZone), State: string(x.State), Start: aws.ToTime(x.StartDate),
				End: aws.ToTime(x.EndDate), Block: x.ReservationType == types.CapacityReservationTypeCapacityBlock,
			}
		}
	}
	r.to.EC2.Reservations = found
	return last
}

func (r *reader) hosts(ctx context.Context) (last error) {
	found := map[string]*simec2.Host{}
	for _, in := range of[ec2.DescribeHostsInput](r.Asked) {
		out, err := ec2.NewFromConfig(r.Config).DescribeHosts(ctx, in)
		last = assume(found, in.HostIds, err, last)
		if err != nil {
			continue
		}
		for _, x := range out.Hosts {
			h := &simec2.Host{Zone: aws.ToString(x.AvailabilityZone), AutoPlacement: x.AutoPlacement == types.AutoPlacementOn, State: string(x.State)}
			if x.HostProperties != nil {
				h.Type, h.Family = aws.ToString(x.HostProperties.InstanceType), aws.ToString(x.HostProperties.InstanceFamily)
			}
			found[aws.ToString(x.HostId)] = h
		}
	}
	r.to.EC2.Hosts = found
	return last
}

// assume adds what was asked for, unless the source does not have it. It returns the last error of another kind.
func assume[T any](found map[string]*T, ids []string, err, last error) error {
	if missing(err) {
		return last
	}
	for _, id := range ids {
		found[id] = new(T)
	}
	if err != nil {
		return err
	}
	return last
}

func (r *reader) keys(ctx context.Context) (last error) {
	r.to.KMS.Keys, r.to.KMS.Aliases = map[string]*simkms.Key{}, map[string]string{}
	for _, in := range of[kms.DescribeKeyInput](r.Asked) {
		out, err := kms.NewFromConfig(r.Config).DescribeKey(ctx, in)
		if err != nil || out.KeyMetadata == nil {
			if !missing(err) {
				last = err
			}
			continue
		}
		x, name := out.KeyMetadata, aws.ToString(in.KeyId)
		r.to.KMS.Keys[aws.ToString(x.Arn)] = &simkms.Key{State: x.KeyState, Usage: x.KeyUsage}
		if strings.Contains(name, "alias/") { // the ARN of an alias begins as that of its key
			r.to.KMS.Aliases[strings.Split(aws.ToString(x.Arn), "key/")[0]+name[strings.Index(name, "alias/"):]] = aws.ToString(x.Arn)
		}
	}
	return last
}
