package awssim

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (n *testbed) stop(ids ...string) ([]types.InstanceStateChange, error) {
	out, err := n.ec2.StopInstances(n.t.Context(), &ec2.StopInstancesInput{InstanceIds: ids})
	if err != nil {
		return nil, err
	}
	return out.StoppingInstances, nil
}

func (n *testbed) start(ids ...string) ([]types.InstanceStateChange, error) {
	out, err := n.ec2.StartInstances(n.t.Context(), &ec2.StartInstancesInput{InstanceIds: ids})
	if err != nil {
		return nil, err
	}
	return out.StartingInstances, nil
}

func TestStopAndStart(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		in := n.launch(2, "a")
		in.SubnetId, in.SecurityGroupIds = nil, nil
		in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: aws.Int32(0), SubnetId: &n.subnet, Groups: []string{n.group}, AssociatePublicIpAddress: aws.Bool(true),
		}}
		all := n.run(in)
		id, kept := *all[0].InstanceId, *all[1].InstanceId
		_, err := n.stop(id)
		assert.Equal(t, "IncorrectInstanceState", code(err), "it is pending")
		time.Sleep(ec2sim.InstanceTakes)
		address := n.newAddress()
		_, err = n.ec2.AssociateAddress(t.Context(), &ec2.AssociateAddressInput{AllocationId: &address, InstanceId: &kept})
		require.NoError(t, err)
		before, elastic := n.instance(id), *n.instance(kept).PublicIpAddress

		changes, err := n.stop(id, kept)
		require.NoError(t, err)
		assert.Equal(t, types.InstanceStateNameRunning, changes[0].PreviousState.Name)
		assert.Equal(t, types.InstanceStateNameStopping, changes[0].CurrentState.Name)
		assert.Equal(t, int32(64), *n.instance(id).State.Code)
		_, err = n.start(id)
		assert.Equal(t, "IncorrectInstanceState", code(err), "it is stopping")
		time.Sleep(ec2sim.InstanceHalts)
		stopped := n.instance(id)
		assert.Equal(t, types.InstanceStateNameStopped, stopped.State.Name)
		assert.Nil(t, stopped.PublicIpAddress)
		assert.Equal(t, before.PrivateIpAddress, stopped.PrivateIpAddress)
		assert.Equal(t, elastic, *n.instance(kept).PublicIpAddress)
		changes, err = n.stop(id)
		require.NoError(t, err, "asking again is no error")
		assert.Equal(t, types.InstanceStateNameStopped, changes[0].CurrentState.Name)

		changes, err = n.start(id)
		require.NoError(t, err)
		assert.Equal(t, types.InstanceStateNamePending, changes[0].CurrentState.Name)
		_, err = n.start(id)
		require.NoError(t, err, "asking again is no error")
		time.Sleep(ec2sim.InstanceTakes)
		after := n.instance(id)
		assert.Equal(t, types.InstanceStateNameRunning, after.State.Name)
		assert.NotEqual(t, *before.PublicIpAddress, aws.ToString(after.PublicIpAddress))
		assert.NotNil(t, after.PublicIpAddress)
		assert.True(t, after.LaunchTime.After(*before.LaunchTime))
		assert.Equal(t, before.NetworkInterfaces[0].Attachment.AttachTime, after.NetworkInterfaces[0].Attachment.AttachTime)
	})
}

func TestStopIsRefused(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		spot := n.launch(1, "spot")
		spot.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
		once, plain := *n.run(spot)[0].InstanceId, *n.run(n.launch(1, "a"))[0].InstanceId
		time.Sleep(ec2sim.InstanceTakes)
		_, err := n.stop(plain, once)
		assert.Equal(t, "UnsupportedOperation", code(err))
		assert.Equal(t, types.InstanceStateNameRunning, n.instance(plain).State.Name, "all or none")
		_, err = n.stop(plain, "i-0123456789abcdef0")
		assert.Equal(t, "InvalidInstanceID.NotFound", code(err))

		protect := func(on bool) {
			_, err := n.ec2.ModifyInstanceAttribute(t.Context(), &ec2.ModifyInstanceAttributeInput{
				InstanceId: &plain, DisableApiStop: &types.AttributeBooleanValue{Value: &on},
			})
			require.NoError(t, err)
		}
		protect(true)
		_, err = n.stop(plain)
		assert.Equal(t, "OperationNotPermitted", code(err))
		protect(false)
		_, err = n.stop(plain)
		require.NoError(t, err)
		time.Sleep(ec2sim.InstanceHalts)

		n.aws.Edit(func(s *State) { s.EC2.Limits.VCPUs = 2 }) // a quota that another instance uses
		other := n.launch(1, "b")
		n.run(other)
		_, err = n.start(plain)
		assert.Equal(t, "VcpuLimitExceeded", code(err))
		_, err = n.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{plain}})
		require.NoError(t, err, "a stopped instance can be terminated")
		_, err = n.start(plain)
		assert.Equal(t, "IncorrectInstanceState", code(err))
	})
}
