package ec2_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// A machine that AWS has terminated before it ran ends the run with AWS's reason. Another that is gone is launched again. Whether
// a machine never ran is said only without doubt, because the answer permits a new etcd.
func TestLaunchFailure(t *testing.T) {
	terminated := &types.InstanceState{Name: types.InstanceStateNameTerminated}
	reason := func(code, message string) *types.StateReason {
		r := &types.StateReason{Code: &code}
		if message != "" {
			r.Message = &message
		}
		return r
	}
	for name, c := range map[string]struct {
		state  *types.InstanceState
		reason *types.StateReason
		why    string // the end of the run's error; "" for none
		never  bool   // it never ran
	}{
		"a KMS key": {
			terminated, reason("Client.InvalidKMSKey.InvalidState", "The key is disabled"), "The key is disabled", true,
		},
		"volumes":                 {terminated, reason("Client.VolumeLimitExceeded", ""), "Client.VolumeLimitExceeded", true},
		"capacity":                {terminated, reason("Server.InsufficientInstanceCapacity", "None left"), "None left", true},
		"at its launch, or later": {terminated, reason("Server.InternalError", "Sorry"), "Sorry", false},
		"by a user":               {terminated, reason("Client.UserInitiatedShutdown", "A user did it"), "", false},
		"by itself":               {terminated, reason("Client.InstanceInitiatedShutdown", "It did it"), "", false},
		"by spot":                 {terminated, reason("Server.SpotInstanceTermination", "Outbid"), "", false},
		"without a reason":        {terminated, nil, "", false},
		"it is pending":           {&types.InstanceState{Name: types.InstanceStateNamePending}, reason("pending", "pending"), "", false},
		"its state is not known":  {nil, reason("Client.InternalError", "x"), "", false},
		"it is stopped": {
			&types.InstanceState{Name: types.InstanceStateNameStopped}, reason("Client.VolumeLimitExceeded", "x"), "", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.why != "" {
				c.why = "instance i-1 was terminated at its launch: " + c.why
			}
			e := &recorder{answer: func(in any) (any, error) {
				if len(in.(*awsec2.DescribeInstancesInput).InstanceIds) == 0 { // the machines that are not terminated
					return &awsec2.DescribeInstancesOutput{}, nil
				}
				return &awsec2.DescribeInstancesOutput{Reservations: []types.Reservation{{Instances: []types.Instance{
					{InstanceId: aws.String("i-1"), State: c.state, StateReason: c.reason},
				}}}}, nil
			}}
			m, client := newLaunchFixture(t, ec2.SubnetState{}).machine(0, infrav1.AWSMachineSpec{}), cloud.New(e.config(), "demo", cloud.Options{})
			last := &ec2.InstanceState{Object: enginetest.Object("i-1"), Status: "pending"}
			have, err := m.Follow(t.Context(), client, last)
			require.Nil(t, have)
			if c.why == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.why)
			}
			last.Status = "running"
			_, err = m.Follow(t.Context(), client, last)
			require.NoError(t, err, "one that ran is not looked at")
			never, err := ec2.FailedToLaunch(t.Context(), client, "i-1")
			require.NoError(t, err)
			require.Equal(t, c.never, never)
		})
	}
	for code, known := range map[string]bool{"InvalidInstanceID.NotFound": true, "UnauthorizedOperation": false} {
		e := &recorder{answer: func(any) (any, error) { return nil, &smithy.GenericAPIError{Code: code} }}
		never, err := ec2.FailedToLaunch(t.Context(), cloud.New(e.config(), "demo", cloud.Options{}), "i-1")
		require.Equal(t, known, err == nil, "%s: %v", code, err)
		require.False(t, never)
	}
}

// A machine that is stopped and started keeps the time of its launch, although AWS changes its LaunchTime. An interface that is
// attached to it later does not change it.
func TestLaunchedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.Quickstart)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		launched := func() map[string]time.Time {
			all, err := ec2.Instances(t.Context(), cloud.New(a.Config(), m.Name, cloud.Options{}))
			require.NoError(t, err)
			require.Len(t, all, 2)
			at := map[string]time.Time{}
			for _, i := range all {
				at[i.ID] = i.LaunchedAt
			}
			return at
		}
		time.Sleep(time.Hour)
		first, client := launched(), awsec2.NewFromConfig(a.Config())
		for id, at := range first {
			require.Greater(t, time.Since(at), time.Hour)
			a.Edit(func(s *awssim.State) { s.EC2.Instances[id].StopProtected = false })
			_, err := client.StopInstances(t.Context(), &awsec2.StopInstancesInput{InstanceIds: []string{id}})
			require.NoError(t, err)
			time.Sleep(ec2sim.InstanceHalts)
			_, err = client.StartInstances(t.Context(), &awsec2.StartInstancesInput{InstanceIds: []string{id}})
			require.NoError(t, err)
		}
		time.Sleep(ec2sim.InstanceTakes)
		require.Equal(t, first, launched())
	})
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	attached := func(at *time.Time) types.InstanceNetworkInterface {
		return types.InstanceNetworkInterface{Attachment: &types.InstanceNetworkInterfaceAttachment{AttachTime: at}}
	}
	for name, c := range map[string]struct {
		launch     *time.Time
		interfaces []types.InstanceNetworkInterface
		want       time.Time
	}{
		"no interfaces": {&noon, nil, noon},
		"never stopped": {&noon, []types.InstanceNetworkInterface{attached(&noon), attached(aws.Time(noon.Add(time.Hour)))}, noon},
		"stopped and started": {
			aws.Time(noon.Add(2 * time.Hour)), []types.InstanceNetworkInterface{attached(aws.Time(noon.Add(time.Hour))), attached(&noon)}, noon,
		},
		"an interface comes":      {&noon, []types.InstanceNetworkInterface{{}}, noon},
		"it has no time yet":      {&noon, []types.InstanceNetworkInterface{attached(nil)}, noon},
		"no time of launch, none": {nil, []types.InstanceNetworkInterface{attached(&noon)}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &recorder{answer: func(any) (any, error) {
				return &awsec2.DescribeInstancesOutput{Reservations: []types.Reservation{{Instances: []types.Instance{
					{InstanceId: aws.String("i-1"), LaunchTime: c.launch, NetworkInterfaces: c.interfaces},
				}}}}, nil
			}}
			all, err := ec2.Instances(t.Context(), cloud.New(e.config(), "demo", cloud.Options{}))
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, c.want, all[0].LaunchedAt)
		})
	}
}
