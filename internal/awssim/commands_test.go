package awssim

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ssmsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
)

// managed launches a machine whose role lets its agent report, and waits until it does.
func managed(t *testing.T, a *AWS) string {
	t.Helper()
	c := ec2.NewFromConfig(a.Config())
	a.Edit(func(s *State) {
		r := s.IAM.Roles["nodes.cluster-api-provider-aws.sigs.k8s.io"]
		r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
	})
	subnets, err := c.DescribeSubnets(
		t.Context(),
		&ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("availability-zone"), Values: []string{"us-east-1a"}}}},
	)
	require.NoError(t, err)
	out, err := c.RunInstances(t.Context(), &ec2.RunInstancesInput{
		MinCount: aws.Int32(
			1,
		),
		MaxCount:           aws.Int32(1),
		ImageId:            aws.String(newestImage(a, "capa-ami-ubuntu-24.04-v1.34.2-", "x86_64")),
		InstanceType:       types.InstanceTypeT3Large,
		SubnetId:           subnets.Subnets[0].SubnetId,
		IamInstanceProfile: &types.IamInstanceProfileSpecification{Name: aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")},
	})
	require.NoError(t, err)
	time.Sleep(5 * time.Minute)
	return *out.Instances[0].InstanceId
}

// A command is unknown at first, then pending, in progress and done. Only an agent that has
// reported takes commands; when it does not report any more, they are never delivered.
func TestRunCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		id := managed(t, a)
		c := ssm.NewFromConfig(a.Config())
		listed, err := c.DescribeInstanceInformation(t.Context(), &ssm.DescribeInstanceInformationInput{})
		require.NoError(t, err)
		require.Len(t, listed.InstanceInformationList, 1)
		assert.Equal(t, ssmtypes.PingStatusOnline, listed.InstanceInformationList[0].PingStatus)

		in := &ssm.SendCommandInput{
			DocumentName:   aws.String("AWS-RunShellScript"),
			InstanceIds:    []string{id},
			Parameters:     map[string][]string{"commands": {"uptime"}},
			TimeoutSeconds: aws.Int32(30),
		}
		sent, err := c.SendCommand(t.Context(), in)
		require.NoError(t, err)
		get := &ssm.GetCommandInvocationInput{CommandId: sent.Command.CommandId, InstanceId: &id}
		_, err = c.GetCommandInvocation(t.Context(), get)
		hasCode(t, err, "InvocationDoesNotExist")
		var seen []string
		for range 3 {
			time.Sleep(time.Second)
			out, err := c.GetCommandInvocation(t.Context(), get)
			require.NoError(t, err)
			seen = append(seen, string(out.Status))
			assert.Equal(t, out.Status == ssmtypes.CommandInvocationStatusFailed, strings.Contains(*out.StandardErrorContent, "not simulated"))
		}
		assert.Equal(t, []string{"Pending", "InProgress", "Failed"}, seen, "an unknown script fails")

		a.Edit(func(s *State) { // the output of another script
			s.SSM.Commands[*sent.Command.CommandId].Results[id] = &ssmsim.Result{Out: strings.Repeat("x", 30000)}
		})
		out, err := c.GetCommandInvocation(t.Context(), get)
		require.NoError(t, err)
		assert.Len(t, *out.StandardOutputContent, 24000)
		assert.Contains(t, *out.StandardOutputContent, "truncated")

		a.Edit(func(s *State) { s.IAM.Roles["nodes.cluster-api-provider-aws.sigs.k8s.io"].Attached = nil })
		listed, err = c.DescribeInstanceInformation(t.Context(), &ssm.DescribeInstanceInformationInput{})
		require.NoError(t, err)
		assert.Equal(t, ssmtypes.PingStatusConnectionLost, listed.InstanceInformationList[0].PingStatus)
		sent, err = c.SendCommand(t.Context(), in)
		require.NoError(t, err)
		time.Sleep(31 * time.Second)
		out, err = c.GetCommandInvocation(t.Context(), &ssm.GetCommandInvocationInput{CommandId: sent.Command.CommandId, InstanceId: &id})
		require.NoError(t, err)
		assert.Equal(t, "TimedOut: Delivery Timed Out", string(out.Status)+": "+*out.StatusDetails)
		time.Sleep(31 * 24 * time.Hour)
		_, err = c.GetCommandInvocation(t.Context(), get)
		hasCode(t, err, "InvocationDoesNotExist")
	})
}

// A script that exits with 194 restarts the machine, and is run again: it has no end.
func TestRunCommandReboots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		id := managed(t, a)
		c := ssm.NewFromConfig(a.Config())
		for code, want := range map[string]ssmtypes.CommandInvocationStatus{
			"exit 193": ssmtypes.CommandInvocationStatusFailed, "exit 194": ssmtypes.CommandInvocationStatusInProgress, "exit 0": ssmtypes.CommandInvocationStatusSuccess,
		} {
			sent, err := c.SendCommand(t.Context(), &ssm.SendCommandInput{
				DocumentName: aws.String("AWS-RunShellScript"), InstanceIds: []string{id},
				Parameters: map[string][]string{"commands": {code}, "executionTimeout": {"172800"}},
			})
			require.NoError(t, err)
			for range 3 {
				time.Sleep(ssmsim.CommandTakes)
				out, err := c.GetCommandInvocation(t.Context(), &ssm.GetCommandInvocationInput{CommandId: sent.Command.CommandId, InstanceId: &id})
				require.NoError(t, err)
				assert.Equal(t, want, out.Status, code)
			}
		}
	})
}

// A session is started with a machine whose agent reports, and ended once.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		id := managed(t, a)
		c := ssm.NewFromConfig(a.Config())
		_, err := c.StartSession(t.Context(), &ssm.StartSessionInput{Target: aws.String("i-0123456789abcdef0")})
		hasCode(t, err, "TargetNotConnected")
		out, err := c.StartSession(t.Context(), &ssm.StartSessionInput{Target: &id})
		require.NoError(t, err)
		assert.Contains(t, *out.StreamUrl, "wss://ssmmessages.us-east-1.amazonaws.com/v1/data-channel/"+*out.SessionId)
		assert.NotEmpty(t, *out.TokenValue)
		_, err = c.TerminateSession(t.Context(), &ssm.TerminateSessionInput{SessionId: out.SessionId})
		require.NoError(t, err)
		_, err = c.TerminateSession(t.Context(), &ssm.TerminateSessionInput{SessionId: aws.String("nobody-0123")})
		hasCode(t, err, "DoesNotExistException")
		a.Edit(func(s *State) { s.IAM.Roles["nodes.cluster-api-provider-aws.sigs.k8s.io"].Attached = nil })
		_, err = c.StartSession(t.Context(), &ssm.StartSessionInput{Target: &id})
		hasCode(t, err, "TargetNotConnected")
	})
}

func TestRunCommandRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		id := managed(t, a)
		c := ssm.NewFromConfig(a.Config())
		shell, commands := aws.String("AWS-RunShellScript"), map[string][]string{"commands": {"uptime"}}
		for _, x := range []struct {
			code string
			in   ssm.SendCommandInput
		}{
			{"InvalidDocument", ssm.SendCommandInput{DocumentName: aws.String("Other"), InstanceIds: []string{id}, Parameters: commands}},
			{"InvalidInstanceId", ssm.SendCommandInput{DocumentName: shell, InstanceIds: []string{id, "i-0123456789abcdef0"}, Parameters: commands}},
			{"ValidationException", ssm.SendCommandInput{DocumentName: shell, InstanceIds: slices.Repeat([]string{id}, 51), Parameters: commands}},
			{"ValidationException", ssm.SendCommandInput{DocumentName: shell, InstanceIds: []string{id}, Parameters: commands, TimeoutSeconds: aws.Int32(29)}},
			{"InvalidParameters", ssm.SendCommandInput{DocumentName: shell, InstanceIds: []string{id}}},
			{"InvalidParameters", ssm.SendCommandInput{DocumentName: shell, InstanceIds: []string{id}, Parameters: map[string][]string{"commands": {"a"}, "executionTimeout": {"172801"}}}},
			{"InvalidParameters", ssm.SendCommandInput{DocumentName: shell, InstanceIds: []string{id}, Parameters: map[string][]string{"commands": {"a"}, "command": {"b"}}}},
		} {
			_, err := c.SendCommand(t.Context(), &x.in)
			hasCode(t, err, x.code)
		}
		_, err := c.GetCommandInvocation(t.Context(), &ssm.GetCommandInvocationInput{CommandId: aws.String("short"), InstanceId: &id})
		hasCode(t, err, "ValidationException")
		_, err = c.DescribeInstanceInformation(t.Context(), &ssm.DescribeInstanceInformationInput{MaxResults: aws.Int32(4)})
		hasCode(t, err, "ValidationException")
	})
}
