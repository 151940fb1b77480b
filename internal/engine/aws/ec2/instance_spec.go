package ec2

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// LaunchedSpecs returns the spec of the AWSMachine from which each machine could have been
// launched, by its ID. It has all that AWS tells, also what is a default of AWS or of the
// image. It has no subnet, image, tags, security groups nor metadata options.
func LaunchedSpecs(ctx context.Context, c *cloud.Clients, ids []string) (map[string]infrav1.AWSMachineSpec, error) {
	specs := map[string]infrav1.AWSMachineSpec{}
	if len(ids) == 0 {
		return specs, nil
	}
	all, err := instancesAs(ctx, c, &ec2.DescribeInstancesInput{InstanceIds: ids}, func(x types.Instance) types.Instance { return x })
	if err != nil {
		return nil, err
	}
	volumes, err := attachedVolumes(ctx, c, all)
	if err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	for _, x := range all {
		specs[aws.ToString(x.InstanceId)] = launchedSpec(x, volumes)
	}
	return specs, nil
}

// attachedVolumes reads the volumes of machines.
func attachedVolumes(ctx context.Context, c *cloud.Clients, all []types.Instance) (map[string]types.Volume, error) {
	var ids []string
	for _, x := range all {
		ids = append(ids, instanceState(x).Volumes...)
	}
	out := map[string]types.Volume{}
	for part := range slices.Chunk(ids, 200) {
		found, err := describeVolumes(ctx, c, cloud.Filter("volume-id", part...))
		if err != nil {
			return nil, err
		}
		for _, v := range found {
			out[aws.ToString(v.VolumeId)] = v
		}
	}
	return out, nil
}

func launchedSpec(x types.Instance, volumes map[string]types.Volume) infrav1.AWSMachineSpec {
	state := instanceState(x)
	s := infrav1.AWSMachineSpec{InstanceType: state.Type, IAMInstanceProfile: state.Profile}
	if state.Key != "" {
		s.SSHKeyName = &state.Key
	}
	if state.Spot {
		s.SpotMarketOptions = &infrav1.SpotMarketOptions{}
	}
	if x.InstanceLifecycle == types.InstanceLifecycleTypeCapacityBlock {
		s.MarketType = infrav1.MarketTypeCapacityBlock
	}
	s.RootVolume, s.NonRootVolumes = launchedVolumes(x, volumes)
	launchedPlacement(x.Placement, &s)
	if n := x.PrivateDnsNameOptions; n != nil && n.HostnameType == types.HostnameTypeResourceName {
		kind := string(n.HostnameType)
		s.PrivateDNSName = &infrav1.PrivateDNSName{
			HostnameType:                    &kind,
			EnableResourceNameDNSARecord:    n.EnableResourceNameDnsARecord,
			EnableResourceNameDNSAAAARecord: n.EnableResourceNameDnsAAAARecord,
		}
	}
	if r := x.CapacityReservationSpecification; r != nil {
		if t := r.CapacityReservationTarget; t != nil {
			s.CapacityReservationID = t.CapacityReservationId
		}
		if r.CapacityReservationPreference != types.CapacityReservationPreferenceOpen { // the default
			s.CapacityReservationPreference = reservationPreference(r.CapacityReservationPreference)
		}
	}
	if o := x.CpuOptions; o != nil && o.AmdSevSnp == types.AmdSevSnpSpecificationEnabled {
		s.CPUOptions.ConfidentialCompute = infrav1.AWSConfidentialComputePolicySEVSNP
	}
	return s
}

// reservationPreference returns how a manifest names a preference for capacity reservations.
func reservationPreference(p types.CapacityReservationPreference) infrav1.CapacityReservationPreference {
	return map[types.CapacityReservationPreference]infrav1.CapacityReservationPreference{
		types.CapacityReservationPreferenceNone:                     infrav1.CapacityReservationPreferenceNone,
		types.CapacityReservationPreferenceOpen:                     infrav1.CapacityReservationPreferenceOpen,
		types.CapacityReservationPreferenceCapacityReservationsOnly: infrav1.CapacityReservationPreferenceOnly,
	}[p]
}

func launchedPlacement(p *types.Placement, s *infrav1.AWSMachineSpec) {
	if p == nil {
		return
	}
	if host := aws.ToString(p.HostId); host != "" && p.Tenancy == types.TenancyHost {
		s.HostID = &host
		if a := aws.ToString(p.Affinity); a != "" {
			s.HostAffinity = &a
		}
		return
	}
	if p.Tenancy != types.TenancyDefault {
		s.Tenancy = string(p.Tenancy)
	}
	s.PlacementGroupName, s.PlacementGroupPartition = aws.ToString(p.GroupName), int64(aws.ToInt32(p.PartitionNumber))
}

// launchedVolumes returns the root volume, and those that are deleted with the machine: others
// were attached later, for example for a PersistentVolumeClaim.
func launchedVolumes(x types.Instance, volumes map[string]types.Volume) (root *infrav1.Volume, others []infrav1.Volume) {
	for _, d := range x.BlockDeviceMappings {
		if d.Ebs == nil {
			continue
		}
		v, known := volumes[aws.ToString(d.Ebs.VolumeId)]
		if !known {
			continue
		}
		out := infrav1.Volume{
			DeviceName: aws.ToString(d.DeviceName), Type: infrav1.VolumeType(v.VolumeType), Size: int64(aws.ToInt32(v.Size)), IOPS: int64(aws.ToInt32(v.Iops)),
			Encrypted: v.Encrypted, EncryptionKey: aws.ToString(v.KmsKeyId),
		}
		if t := aws.ToInt32(v.Throughput); t > 0 {
			out.Throughput = aws.Int64(int64(t))
		}
		switch {
		case out.DeviceName == aws.ToString(x.RootDeviceName):
			out.DeviceName = ""
			root = &out
		case aws.ToBool(d.Ebs.DeleteOnTermination):
			others = append(others, out)
		}
	}
	return root, others
}

// InstanceUserData returns the user data of a machine.
func InstanceUserData(ctx context.Context, c *cloud.Clients, id string) ([]byte, error) {
	out, err := c.EC2.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: &id, Attribute: types.InstanceAttributeNameUserData})
	if err != nil || out.UserData == nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(aws.ToString(out.UserData.Value))
	if err != nil {
		return nil, fmt.Errorf("the user data of %s: %w", id, err)
	}
	return data, nil
}
