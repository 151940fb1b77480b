package replica

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// noUserData is the reason why a copied machine does not boot.
const noUserData = "the copy of the account does not have the machine's user data"

// instances reads instances, of all owners. User data is not read. Stopped instances are not
// simulated; terminated ones are skipped.
func (r *reader) instances(ctx context.Context) error {
	found, stopped := sim.Table[*sim.Instance]{}, 0
	p := ec2.NewDescribeInstancesPaginator(ec2.NewFromConfig(r.Config), &ec2.DescribeInstancesInput{})
	err := pages(ctx, p, func(p *ec2.DescribeInstancesOutput) {
		for _, reservation := range p.Reservations {
			for _, i := range reservation.Instances {
				switch stateOf(i) { //nolint:exhaustive // the others are copied
				case types.InstanceStateNameTerminated:
					continue
				case types.InstanceStateNameStopped, types.InstanceStateNameStopping:
					stopped++
					continue
				}
				own := r.instanceOf(i)
				own.Reservation = aws.ToString(reservation.ReservationId)
				found[own.ID] = own
			}
		}
	})
	if err != nil {
		return err
	}
	if r.to.EC2.Instances = found; stopped > 0 {
		r.remark("%d stopped instances are not copied: they are not simulated", stopped)
	}
	return nil
}

func stateOf(i types.Instance) types.InstanceStateName {
	if i.State == nil {
		return ""
	}
	return i.State.Name
}

func (r *reader) instanceOf(i types.Instance) *sim.Instance {
	own := &sim.Instance{
		Thing: r.thing(i.InstanceId, tagsOf(i.Tags)), Image: aws.ToString(i.ImageId), Type: string(i.InstanceType), Subnet: aws.ToString(i.SubnetId),
		VPC: aws.ToString(i.VpcId), Key: aws.ToString(i.KeyName), Token: aws.ToString(i.ClientToken), Spot: i.InstanceLifecycle == types.InstanceLifecycleTypeSpot,
		Index: int(aws.ToInt32(i.AmiLaunchIndex)), HostnameType: string(types.HostnameTypeIpName), Waits: new(time.Duration),
	}
	own.Born = r.since(i.LaunchTime)
	own.Running = own.Born
	own.Boot = &sim.Boot{At: own.Born, Failed: noUserData}
	switch stateOf(i) { //nolint:exhaustive // the others run
	case types.InstanceStateNamePending:
		own.Running = r.Now.Add(30 * time.Second)
	case types.InstanceStateNameShuttingDown:
		own.Terminating, own.Terminated = r.Now, r.Now.Add(time.Minute)
	}
	if p := i.Placement; p != nil {
		own.Zone = aws.ToString(p.AvailabilityZone)
		own.Placement = sim.Placement{
			Tenancy: string(
				p.Tenancy,
			),
			Group:     aws.ToString(p.GroupName),
			Host:      aws.ToString(p.HostId),
			Affinity:  aws.ToString(p.Affinity),
			Partition: aws.ToInt32(p.PartitionNumber),
		}
	}
	if p := i.IamInstanceProfile; p != nil {
		own.Profile = last(aws.ToString(p.Arn))
	}
	if o := i.MetadataOptions; o != nil {
		own.Metadata = sim.MetadataOptions{
			Endpoint: string(
				o.HttpEndpoint,
			),
			IPv6:     string(o.HttpProtocolIpv6),
			Tokens:   string(o.HttpTokens),
			Tags:     string(o.InstanceMetadataTags),
			HopLimit: aws.ToInt32(o.HttpPutResponseHopLimit),
		}
	}
	if o := i.PrivateDnsNameOptions; o != nil {
		own.HostnameType = string(o.HostnameType)
		own.ResourceNameA, own.ResourceNameAAAA = aws.ToBool(o.EnableResourceNameDnsARecord), aws.ToBool(o.EnableResourceNameDnsAAAARecord)
	}
	own.Launch = reserved(i)
	for _, n := range i.NetworkInterfaces {
		own.Interfaces = append(own.Interfaces, aws.ToString(n.NetworkInterfaceId))
	}
	for _, b := range i.BlockDeviceMappings {
		if b.Ebs != nil {
			own.Volumes = append(own.Volumes, aws.ToString(b.Ebs.VolumeId))
		}
	}
	return own
}

// reserved returns the launch parameters of capacity reservations.
func reserved(i types.Instance) map[string]string {
	launch := map[string]string{}
	if c := i.CapacityReservationSpecification; c != nil {
		if c.CapacityReservationPreference != "" {
			launch["capacity-reservation-preference"] = string(c.CapacityReservationPreference)
		}
		if t := c.CapacityReservationTarget; t != nil && t.CapacityReservationId != nil {
			launch["capacity-reservation"] = *t.CapacityReservationId
		}
	}
	return launch
}
