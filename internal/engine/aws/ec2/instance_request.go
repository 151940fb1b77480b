package ec2

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
)

// request returns the RunInstances input without count, tags and client token. It sets
// the same fields as CAPA (pkg/cloud/services/ec2/instances.go).
func (i *Instance) request(data []byte) (*ec2.RunInstancesInput, error) {
	image, ok := i.Image.Found()
	if !ok {
		return nil, errors.New("the image has not been looked up yet")
	}
	in := &ec2.RunInstancesInput{
		ImageId:           aws.String(image.ID),
		InstanceType:      types.InstanceType(i.Spec.InstanceType),
		NetworkInterfaces: i.networkInterfaces(),
		Placement:         i.placement(),
	}
	if i.Spec.InstanceMetadataOptions != nil { // otherwise, the defaults of the account and of the image apply
		m := i.metadata()
		in.MetadataOptions = &types.InstanceMetadataOptionsRequest{
			HttpEndpoint: types.InstanceMetadataEndpointState(m.Endpoint), HttpProtocolIpv6: types.InstanceMetadataProtocolState(m.IPv6),
			HttpTokens: types.HttpTokensState(m.Tokens), HttpPutResponseHopLimit: &m.HopLimit, InstanceMetadataTags: types.InstanceMetadataTagsState(m.Tags),
		}
	}
	if len(data) > 0 {
		in.UserData = aws.String(base64.StdEncoding.EncodeToString(data))
	}
	if i.Key != "" {
		in.KeyName = &i.Key
	}
	if p := i.Spec.IAMInstanceProfile; p != "" {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: &p}
	}
	var err error
	if in.BlockDeviceMappings, err = i.volumes(image); err != nil {
		return nil, err
	}
	i.market(in)
	i.options(in)
	return in, nil
}

// Request implements graph.Requested.
func (i *Instance) Request() (service, operation string, input any) {
	const ec2Service, runInstances = "EC2", "RunInstances"
	if i.Image == nil {
		return ec2Service, runInstances, nil
	}
	in, err := i.request(nil)
	if err != nil {
		return ec2Service, runInstances, nil
	}
	in.MinCount, in.MaxCount = aws.Int32(1), aws.Int32(1)
	return ec2Service, runInstances, in
}

func (i *Instance) networkInterfaces() (out []types.InstanceNetworkInterfaceSpecification) {
	for n, id := range i.Spec.NetworkInterfaces {
		out = append(out, types.InstanceNetworkInterfaceSpecification{NetworkInterfaceId: &id, DeviceIndex: aws.Int32(int32(n))})
	}
	if len(out) > 0 {
		return out
	}
	nic := types.InstanceNetworkInterfaceSpecification{
		DeviceIndex: aws.Int32(0), SubnetId: aws.String(i.Subnet.CloudID()), Groups: i.groups(), AssociatePublicIpAddress: i.Spec.PublicIP,
		DeleteOnTermination: aws.Bool(true), // the default of AWS, but not of all emulators
	}
	if i.Spec.NetworkInterfaceType == infrav1.NetworkInterfaceTypeEFAWithENAInterface {
		nic.InterfaceType = aws.String("efa")
	}
	subnet, _ := i.Subnet.Found()
	primary := subnet.IPv6CIDR != ""
	if a := i.Spec.AssignPrimaryIPv6; a != nil {
		primary = *a == infrav1.PrimaryIPv6AssignmentStateEnabled
	}
	if primary {
		nic.Ipv6AddressCount, nic.PrimaryIpv6 = aws.Int32(1), aws.Bool(true)
	}
	return append(out, nic)
}

func (i *Instance) placement() *types.Placement {
	s := i.Spec
	if host := aws.ToString(s.HostID); host != "" { // the placement group and tenancy have no effect with a host
		return &types.Placement{HostId: &host, Affinity: aws.String(cmp.Or(aws.ToString(s.HostAffinity), "default")), Tenancy: types.TenancyHost}
	}
	p := &types.Placement{Tenancy: types.Tenancy(s.Tenancy)}
	if s.PlacementGroupName != "" {
		p.GroupName = &s.PlacementGroupName
		if s.PlacementGroupPartition > 0 {
			p.PartitionNumber = aws.Int32(int32(s.PlacementGroupPartition)) //nolint:gosec // validated: 1 to 7
		}
	}
	if *p == (types.Placement{}) {
		return nil
	}
	return p
}

// volumes returns the block device mappings. That of the root volume uses the root device
// of the image.
func (i *Instance) volumes(image ImageState) (out []types.BlockDeviceMapping, err error) {
	if r := i.Spec.RootVolume; r != nil {
		root := *r
		if root.Size > 0 && root.Size < int64(image.RootSize) {
			return nil, fmt.Errorf("rootVolume.size is %d GiB, but image %s needs %d", root.Size, image.ID, image.RootSize)
		}
		root.DeviceName = image.RootDevice
		out = append(out, volume(root))
	}
	for _, v := range i.Spec.NonRootVolumes {
		out = append(out, volume(v))
	}
	return out, nil
}

func volume(v infrav1.Volume) types.BlockDeviceMapping {
	ebs := &types.EbsBlockDevice{DeleteOnTermination: aws.Bool(true), VolumeType: types.VolumeType(v.Type)}
	if v.Size > 0 {
		ebs.VolumeSize = aws.Int32(int32(v.Size)) //nolint:gosec // EBS volumes have at most 65,536 GiB
	}
	if v.IOPS > 0 {
		ebs.Iops = aws.Int32(int32(v.IOPS)) //nolint:gosec // EBS volumes have at most 256,000 IOPS
	}
	if v.Throughput != nil {
		ebs.Throughput = aws.Int32(int32(*v.Throughput)) //nolint:gosec // validated: at most 2,000
	}
	ebs.Encrypted = v.Encrypted
	if v.EncryptionKey != "" {
		ebs.Encrypted, ebs.KmsKeyId = aws.Bool(true), &v.EncryptionKey
	}
	return types.BlockDeviceMapping{DeviceName: aws.String(v.DeviceName), Ebs: ebs}
}

// market sets the purchase option (on-demand, spot, capacity block) and the capacity
// reservation.
func (i *Instance) market(in *ec2.RunInstancesInput) {
	s := i.Spec
	switch {
	case s.MarketType == infrav1.MarketTypeCapacityBlock:
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeCapacityBlock}
	case s.SpotMarketOptions != nil || s.MarketType == infrav1.MarketTypeSpot:
		spot := &types.SpotMarketOptions{InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate, SpotInstanceType: types.SpotInstanceTypeOneTime}
		if s.SpotMarketOptions != nil && aws.ToString(s.SpotMarketOptions.MaxPrice) != "" {
			spot.MaxPrice = s.SpotMarketOptions.MaxPrice
		}
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot, SpotOptions: spot}
	}
	var reservation types.CapacityReservationSpecification
	if id := aws.ToString(s.CapacityReservationID); id != "" {
		reservation.CapacityReservationTarget = &types.CapacityReservationTarget{CapacityReservationId: &id}
	}
	preference := map[infrav1.CapacityReservationPreference]types.CapacityReservationPreference{
		infrav1.CapacityReservationPreferenceNone: types.CapacityReservationPreferenceNone,
		infrav1.CapacityReservationPreferenceOpen: types.CapacityReservationPreferenceOpen,
		infrav1.CapacityReservationPreferenceOnly: types.CapacityReservationPreferenceCapacityReservationsOnly,
		infrav1.CapacityReservationPreference(""): "",
	}[s.CapacityReservationPreference]
	reservation.CapacityReservationPreference = preference
	if reservation.CapacityReservationTarget != nil || preference != "" {
		in.CapacityReservationSpecification = &reservation
	}
}

// options sets the host name type and CPU options.
func (i *Instance) options(in *ec2.RunInstancesInput) {
	if n := i.Spec.PrivateDNSName; n != nil {
		in.PrivateDnsNameOptions = &types.PrivateDnsNameOptionsRequest{
			EnableResourceNameDnsAAAARecord: n.EnableResourceNameDNSAAAARecord,
			EnableResourceNameDnsARecord:    n.EnableResourceNameDNSARecord,
			HostnameType:                    types.HostnameType(aws.ToString(n.HostnameType)),
		}
	}
	cpu := i.Spec.CPUOptions
	if cpu == (infrav1.CPUOptions{}) {
		return
	}
	in.CpuOptions = &types.CpuOptionsRequest{}
	switch cpu.ConfidentialCompute {
	case infrav1.AWSConfidentialComputePolicySEVSNP:
		in.CpuOptions.AmdSevSnp = types.AmdSevSnpSpecificationEnabled
	case infrav1.AWSConfidentialComputePolicyDisabled:
		in.CpuOptions.AmdSevSnp = types.AmdSevSnpSpecificationDisabled
	}
	if cpu.NestedVirtualization != "" {
		in.CpuOptions.NestedVirtualization = types.NestedVirtualizationSpecification(strings.ToLower(string(cpu.NestedVirtualization)))
	}
}
