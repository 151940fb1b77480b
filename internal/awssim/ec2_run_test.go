package awssim

import (
	"bytes"
	"encoding/base64"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRunInstancesChecks(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		old := n.newSubnet("10.0.7.0/24", "us-east-1e")
		data := func(size int) *string {
			return aws.String(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), size)))
		}
		disk := func(d types.EbsBlockDevice) []types.BlockDeviceMapping {
			return []types.BlockDeviceMapping{{DeviceName: aws.String("/dev/sda1"), Ebs: &d}}
		}
		n.aws.Edit(func(s *State) {
			s.EC2.PlacementGroups, s.EC2.Partitions = map[string]string{"spread": "spread", "racks": "partition"}, map[string]int32{"racks": 2}
			s.IAM.Profiles["empty"] = &InstanceProfile{Name: "empty"}
			for id, i := range map[string]*Image{"ami-uefi": {BootMode: "uefi"}, "ami-tpm": {BootMode: "uefi-preferred", TPM: "v2.0"}, "ami-ena": {NoENA: true}} {
				i.ID, i.Name, i.Owner, i.Architecture, i.RootDevice, i.RootSize = id, id, "123456789012", "x86_64", "/dev/sda1", 8
				s.EC2.Images[id] = i
			}
			s.EC2.Reservations = map[string]*Reservation{
				"cr-ours": {}, "cr-block": {Block: true}, "cr-type": {Type: "p5.48xlarge"}, "cr-zone": {Zone: "us-east-1f"},
				"cr-later": {Block: true, Start: time.Now().Add(time.Hour)},
			}
		})
		reserve := func(r *ec2.RunInstancesInput, id string, market types.MarketType) {
			r.CapacityReservationSpecification = &types.CapacityReservationSpecification{
				CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: &id},
			}
			if market != "" {
				r.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: market}
			}
		}
		for name, c := range map[string]struct {
			change func(*ec2.RunInstancesInput)
			want   string
		}{
			"as it is":                            {func(*ec2.RunInstancesInput) {}, ""},
			"image":                               {func(r *ec2.RunInstancesInput) { r.ImageId = aws.String("ami-00000000000000000") }, "InvalidAMIID.NotFound"},
			"architecture":                        {func(r *ec2.RunInstancesInput) { r.InstanceType = "m6g.large" }, "InvalidParameterValue"},
			"zone":                                {func(r *ec2.RunInstancesInput) { r.SubnetId = &old }, "Unsupported"},
			"an image for UEFI on a type without": {func(r *ec2.RunInstancesInput) { r.ImageId, r.InstanceType = aws.String("ami-uefi"), "m4.large" }, "Unsupported"},
			"an image for UEFI":                   {func(r *ec2.RunInstancesInput) { r.ImageId = aws.String("ami-uefi") }, ""},
			"an image for NitroTPM":               {func(r *ec2.RunInstancesInput) { r.ImageId, r.InstanceType = aws.String("ami-tpm"), "m4.large" }, "Unsupported"},
			"an image without ENA":                {func(r *ec2.RunInstancesInput) { r.ImageId = aws.String("ami-ena") }, "InvalidParameterCombination"},
			"an image without ENA on an old type": {func(r *ec2.RunInstancesInput) { r.ImageId, r.InstanceType = aws.String("ami-ena"), "t2.medium" }, ""},
			"an instance profile without a role": {func(r *ec2.RunInstancesInput) {
				r.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String("empty")}
			}, "InvalidParameterValue"},
			"a spot instance below the price": {func(r *ec2.RunInstancesInput) {
				r.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: "spot", SpotOptions: &types.SpotMarketOptions{MaxPrice: aws.String("0.001")}}
			}, "SpotMaxPriceTooLow"},
			"key":            {func(r *ec2.RunInstancesInput) { r.KeyName = aws.String("none") }, "InvalidKeyPair.NotFound"},
			"user data":      {func(r *ec2.RunInstancesInput) { r.UserData = data(16384) }, ""},
			"long user data": {func(r *ec2.RunInstancesInput) { r.UserData = data(16385) }, "InvalidParameterValue"},
			"raw user data":  {func(r *ec2.RunInstancesInput) { r.UserData = aws.String("#!/bin/sh") }, "InvalidUserData.Malformed"},
			"small root": {func(r *ec2.RunInstancesInput) {
				r.BlockDeviceMappings = disk(types.EbsBlockDevice{VolumeSize: aws.Int32(7)})
			}, "InvalidBlockDeviceMapping"},
			"key not encrypted": {func(r *ec2.RunInstancesInput) {
				r.BlockDeviceMappings = disk(types.EbsBlockDevice{KmsKeyId: aws.String("k")})
			}, "InvalidParameterDependency"},
			"groups":          {func(r *ec2.RunInstancesInput) { r.SecurityGroupIds = []string{"sg-00000000000000000"} }, "InvalidGroup.NotFound"},
			"placement group": {func(r *ec2.RunInstancesInput) { r.Placement = &types.Placement{GroupName: aws.String("none")} }, "InvalidPlacementGroup.Unknown"},
			"a partition of the group": {func(r *ec2.RunInstancesInput) {
				r.Placement = &types.Placement{GroupName: aws.String("racks"), PartitionNumber: aws.Int32(2)}
			}, ""},
			"a partition that the group does not have": {func(r *ec2.RunInstancesInput) {
				r.Placement = &types.Placement{GroupName: aws.String("racks"), PartitionNumber: aws.Int32(3)}
			}, "InvalidParameterCombination"},
			"host": {func(r *ec2.RunInstancesInput) {
				r.Placement = &types.Placement{HostId: aws.String("h-0"), Tenancy: "host"}
			}, "InvalidHostID.NotFound"},
			"a host in a placement group": {func(r *ec2.RunInstancesInput) {
				r.Placement = &types.Placement{GroupName: aws.String("spread"), Tenancy: "host"}
			}, "InvalidParameterCombination"},
			"a type without hosts": {func(r *ec2.RunInstancesInput) {
				r.InstanceType, r.Placement = "g5.xlarge", &types.Placement{Tenancy: "host"}
			}, "InvalidParameterCombination"},
			"capacity block": {func(r *ec2.RunInstancesInput) {
				r.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: "capacity-block"}
			}, "InvalidParameterCombination"},
			"a capacity block without its market":      {func(r *ec2.RunInstancesInput) { reserve(r, "cr-block", "") }, "InvalidParameterCombination"},
			"a reservation with the market of a block": {func(r *ec2.RunInstancesInput) { reserve(r, "cr-ours", "capacity-block") }, "InvalidParameterCombination"},
			"a reservation of another type":            {func(r *ec2.RunInstancesInput) { reserve(r, "cr-type", "") }, "ReservationCapacityExceeded"},
			"a reservation of another zone":            {func(r *ec2.RunInstancesInput) { reserve(r, "cr-zone", "") }, "ReservationCapacityExceeded"},
			"a capacity block before it begins":        {func(r *ec2.RunInstancesInput) { reserve(r, "cr-later", "capacity-block") }, "ReservationCapacityExceeded"},
			"counts":                                   {func(r *ec2.RunInstancesInput) { r.MinCount = aws.Int32(2) }, "InvalidParameterValue"},
			"tags":                                     {func(r *ec2.RunInstancesInput) { r.TagSpecifications = named("vpc", "x") }, "InvalidParameterValue"},
			"tags in the metadata": {func(r *ec2.RunInstancesInput) {
				r.MetadataOptions = &types.InstanceMetadataOptionsRequest{InstanceMetadataTags: "enabled"}
				r.TagSpecifications[0].Tags = append(r.TagSpecifications[0].Tags, types.Tag{Key: aws.String("kubernetes.io/cluster/demo"), Value: aws.String("owned")})
			}, "InvalidParameterValue"},
			"hop limit": {func(r *ec2.RunInstancesInput) {
				r.MetadataOptions = &types.InstanceMetadataOptionsRequest{HttpPutResponseHopLimit: aws.Int32(65)}
			}, "InvalidParameterValue"},
			"no IPv6": {func(r *ec2.RunInstancesInput) {
				r.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: r.SubnetId, Ipv6AddressCount: aws.Int32(1)}}
				r.SubnetId, r.SecurityGroupIds = nil, nil
			}, "InvalidParameterValue"},
			"subnet twice": {func(r *ec2.RunInstancesInput) {
				r.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: r.SubnetId}}
			}, "InvalidParameterCombination"},
		} {
			r := n.launch(1, "a")
			c.change(r)
			before := len(n.aws.Detailed())
			time.Sleep(time.Second) // EC2 permits two requests per second
			_, err := n.ec2.RunInstances(t.Context(), r)
			assert.Equal(t, c.want, code(err), name)
			if c.want != "" {
				assert.Len(t, n.aws.Detailed(), before, name)
			}
		}
	})
}

func TestAThousandInstances(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		n.subnet = n.newSubnet("10.0.64.0/18", "us-east-1a")
		began := len(n.aws.Calls())
		n.run(n.launch(1000, "worker"))
		out, err := n.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: filter("tag:Name", "worker")})
		require.NoError(t, err)
		assert.Len(t, out.Reservations[0].Instances, 1000)
		assert.Len(t, n.aws.Calls(), began+2)
		addresses := map[string]bool{}
		for _, i := range out.Reservations[0].Instances {
			addresses[*i.PrivateIpAddress] = true
		}
		assert.Len(t, addresses, 1000)
	})
}

func BenchmarkDescribeInstances(b *testing.B) {
	a := New(Options{})
	c := ec2.NewFromConfig(a.Config())
	ctx := b.Context()
	vpc, err := c.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
	require.NoError(b, err)
	subnet, err := c.CreateSubnet(
		ctx,
		&ec2.CreateSubnetInput{VpcId: vpc.Vpc.VpcId, CidrBlock: aws.String("10.0.0.0/18"), AvailabilityZone: aws.String("us-east-1a")},
	)
	require.NoError(b, err)
	image := newestImage(a, "capa-ami-", "x86_64")
	_, err = c.RunInstances(ctx, &ec2.RunInstancesInput{
		MinCount: aws.Int32(1000), MaxCount: aws.Int32(1000), ImageId: &image, InstanceType: "t3.medium", SubnetId: subnet.Subnet.SubnetId,
		TagSpecifications: named("instance", "worker"),
	})
	require.NoError(b, err)
	for b.Loop() {
		_, err := c.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filter("tag:Name", "worker")})
		require.NoError(b, err)
	}
}
