package awssim

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func TestInstanceLife(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		run := n.launch(3, "demo-md-0-x")
		run.SubnetId, run.SecurityGroupIds = nil, nil
		run.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: aws.Int32(0), SubnetId: &n.subnet, Groups: []string{n.group}, AssociatePublicIpAddress: aws.Bool(true),
		}}
		run.TagSpecifications = append(run.TagSpecifications, named("network-interface", "demo-nic")...)
		instances := n.run(run)
		var ids []string
		for index, i := range instances {
			assert.Equal(t, int32(index), *i.AmiLaunchIndex)
			assert.Equal(t, types.InstanceStateNamePending, i.State.Name)
			ids = append(ids, *i.InstanceId)
		}
		time.Sleep(ec2sim.InstanceTakes)
		i := n.instance(ids[0])
		assert.Equal(t, types.InstanceStateNameRunning, i.State.Name)
		assert.NotNil(t, i.PublicIpAddress)
		assert.Regexp(t, `^ip-10-0-0-\d+\.ec2\.internal$`, *i.PrivateDnsName)
		assert.Equal(t, "/dev/sda1", *i.BlockDeviceMappings[0].DeviceName)

		deleteGroup := func() error {
			_, err := n.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &n.group})
			return err
		}
		_, err := n.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
		require.NoError(t, err)
		assert.Equal(t, types.InstanceStateNameShuttingDown, n.instance(ids[0]).State.Name)
		assert.Equal(t, "DependencyViolation", code(deleteGroup()))
		_, err = n.ec2.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: &n.igw, VpcId: &n.vpc})
		assert.Equal(t, "DependencyViolation", code(err))
		time.Sleep(ec2sim.InstanceStops)
		gone := n.instance(ids[0])
		assert.Equal(t, types.InstanceStateNameTerminated, gone.State.Name)
		assert.Nil(t, gone.VpcId)
		assert.Equal(t, "demo-md-0-x", *gone.Tags[0].Value, "a terminated instance still has its tags")
		volumes, err := n.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{})
		require.NoError(t, err)
		assert.Empty(t, volumes.Volumes)
		require.NoError(t, deleteGroup())
		time.Sleep(ec2sim.InstanceShown)
		_, err = n.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids[:1]})
		assert.Equal(t, "InvalidInstanceID.NotFound", code(err))
	})
}

func TestAddressesOfInstances(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx, address := t.Context(), n.newAddress()
		id := *n.run(n.launch(1, "a"))[0].InstanceId
		associate := func(address string) string {
			_, err := n.ec2.AssociateAddress(ctx, &ec2.AssociateAddressInput{AllocationId: &address, InstanceId: &id})
			return code(err)
		}
		assert.Equal(t, "InvalidInstanceID", associate(address), "it is pending")
		time.Sleep(ec2sim.InstanceTakes)
		assert.Empty(t, associate(address))
		assert.Empty(t, associate(address), "asking again is no error")
		assert.Equal(t, "Resource.AlreadyAssociated", associate(n.newAddress()))
		out, err := n.ec2.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{Filters: filter("instance-id", id)})
		require.NoError(t, err)
		assert.Equal(t, *out.Addresses[0].PublicIp, *n.instance(id).PublicIpAddress)
		_, err = n.ec2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &address})
		assert.Equal(t, "InvalidIPAddress.InUse", code(err))
		_, err = n.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
		require.NoError(t, err)
		time.Sleep(ec2sim.InstanceStops)
		_, err = n.ec2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &address})
		require.NoError(t, err)
	})
}

func TestOwnInterfacesStay(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		eni, err := n.ec2.CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: &n.subnet})
		require.NoError(t, err)
		nic := eni.NetworkInterface.NetworkInterfaceId
		r := n.launch(1, "a")
		r.SubnetId, r.SecurityGroupIds = nil, nil
		r.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{NetworkInterfaceId: nic, DeviceIndex: aws.Int32(0)}}
		id := *n.run(r)[0].InstanceId
		_, err = n.ec2.RunInstances(ctx, &ec2.RunInstancesInput{
			MinCount: r.MinCount, MaxCount: r.MaxCount, ImageId: r.ImageId, InstanceType: r.InstanceType, NetworkInterfaces: r.NetworkInterfaces,
		})
		assert.Equal(t, "InvalidNetworkInterface.InUse", code(err))
		_, err = n.ec2.ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: nic, Groups: []string{n.group}})
		require.NoError(t, err)
		assert.Equal(t, n.group, *n.instance(id).SecurityGroups[0].GroupId)
		_, err = n.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: nic})
		assert.Equal(t, "InvalidNetworkInterface.InUse", code(err))
		_, err = n.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
		require.NoError(t, err)
		time.Sleep(ec2sim.InstanceStops)
		_, err = n.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: nic})
		require.NoError(t, err)
	})
}

func TestInstanceAttributes(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx, r := t.Context(), n.launch(1, "a")
		r.DisableApiTermination, r.UserData = aws.Bool(true), aws.String(base64.StdEncoding.EncodeToString([]byte("#cloud-config")))
		id := n.run(r)[0].InstanceId
		out, err := n.ec2.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: id, Attribute: "userData"})
		require.NoError(t, err)
		assert.Equal(t, *r.UserData, *out.UserData.Value)
		terminate := func() string {
			_, err := n.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{*id}})
			return code(err)
		}
		assert.Equal(t, "OperationNotPermitted", terminate())
		_, err = n.ec2.ModifyInstanceAttribute(
			ctx,
			&ec2.ModifyInstanceAttributeInput{InstanceId: id, DisableApiTermination: &types.AttributeBooleanValue{Value: aws.Bool(false)}},
		)
		require.NoError(t, err)
		_, err = n.ec2.ModifyInstanceMetadataOptions(ctx, &ec2.ModifyInstanceMetadataOptionsInput{InstanceId: id, HttpTokens: "required"})
		require.NoError(t, err)
		assert.Equal(t, types.HttpTokensStateRequired, n.instance(*id).MetadataOptions.HttpTokens)
		assert.Empty(t, terminate())
	})
}
