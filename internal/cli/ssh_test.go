package cli

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// launched launches a machine of the cluster demo, and waits until it runs.
func launched(t *testing.T, a *awssim.AWS, role, key string) (id string) {
	c := ec2.NewFromConfig(a.Config())
	subnets, err := c.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{
		Filters: []types.Filter{{Name: aws.String("availability-zone"), Values: []string{"us-east-1a"}}},
	})
	require.NoError(t, err)
	images, err := c.DescribeImages(t.Context(), &ec2.DescribeImagesInput{
		Filters: []types.Filter{
			{Name: aws.String("name"), Values: []string{"capa-ami-ubuntu-24.04-v1.34.2-*"}}, {Name: aws.String("architecture"), Values: []string{"x86_64"}},
		},
	})
	require.NoError(t, err)
	in := &ec2.RunInstancesInput{
		MinCount: aws.Int32(
			1,
		),
		MaxCount:           aws.Int32(1),
		ImageId:            images.Images[0].ImageId,
		InstanceType:       types.InstanceTypeT3Large,
		SubnetId:           subnets.Subnets[0].SubnetId,
		IamInstanceProfile: &types.IamInstanceProfileSpecification{Name: aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{
			{Key: aws.String("sigs.k8s.io/cluster-api-provider-aws/cluster/demo"), Value: aws.String("owned")},
			{Key: aws.String("sigs.k8s.io/cluster-api-provider-aws/role"), Value: &role},
			{Key: aws.String("Name"), Value: aws.String("demo-" + role)},
		}}},
	}
	if key != "" {
		in.KeyName = &key
	}
	out, err := c.RunInstances(t.Context(), in)
	require.NoError(t, err)
	time.Sleep(5 * time.Minute)
	return *out.Instances[0].InstanceId
}

// TestSSH opens a session with the plugin, whose secret is not among its arguments, or ssh through the bastion, and
// says what to do if there is no way.
func TestSSH(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		a := awssim.New(awssim.Options{})
		s.AWS = func(context.Context, string, string) (aws.Config, error) { return a.Config(), nil }
		version, missing := "1.2.764.0\n", error(nil)
		s.Output = func(_ context.Context, command []string) (string, error) {
			assert.Equal(t, []string{"session-manager-plugin", "--version"}, command)
			return version, missing
		}
		var ran, variables []string
		code := 0
		s.Attach = func(command, more []string) (int, error) { ran, variables = command, more; return code, nil }
		a.Edit(func(state *awssim.State) { state.EC2.KeyPairs["mine"] = true })
		id := launched(t, a, "node", "mine")

		require.Equal(t, env.Failed, s.run("cluster", "ssh", "demo", id))
		assert.Contains(t, s.err.String(), id+": the machine is not connected to Systems Manager: give its role the permissions of AmazonSSMManagedInstanceCore")
		assert.Contains(t, s.err.String(), "; or give the cluster a bastion (spec.bastion.enabled)")
		assert.Equal(t, 1, strings.Count(strings.TrimSpace(s.err.String()), "\n")+1, "one line: %s", s.err.String())

		a.Edit(func(state *awssim.State) {
			r := state.IAM.Roles["nodes.cluster-api-provider-aws.sigs.k8s.io"]
			r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
		})
		require.Equal(t, 0, s.run("cluster", "ssh", "demo", "demo-node"), s.err.String())
		assert.Equal(t, []string{
			"session-manager-plugin",
			"AWS_SSM_START_SESSION_RESPONSE",
			"us-east-1",
			"StartSession",
			"",
			`{"Target":"` + id + `"}`,
			"https://ssm.us-east-1.amazonaws.com",
		}, ran)
		require.Len(t, variables, 1)
		assert.Regexp(t, `^AWS_SSM_START_SESSION_RESPONSE=\{"SessionId":".+","StreamUrl":"wss://.+","TokenValue":".+"\}$`, variables[0])
		assert.NotContains(t, s.err.String(), "TokenValue")
		code = 7
		require.Equal(t, 7, s.run("cluster", "ssh", "demo", id))
		assert.NotContains(t, s.err.String(), "error:")
		code = 0

		version = "1.2.497.0\n"
		require.Equal(t, env.Failed, s.run("cluster", "ssh", "demo", id))
		assert.Contains(t, s.err.String(), "session-manager-plugin 1.2.497.0 takes secrets as arguments: install a newer one")
		missing = &exec.Error{Name: "session-manager-plugin", Err: exec.ErrNotFound}
		require.Equal(t, env.Failed, s.run("cluster", "ssh", "demo", id))
		assert.Contains(t, s.err.String(), "session-manager-plugin is not installed: see https://docs.aws.amazon.com/")
		require.Equal(t, env.Failed, s.run("cluster", "ssh", "demo", id, "--via", "bastion"))
		assert.Contains(t, s.err.String(), "the cluster has no bastion that runs: set spec.bastion.enabled, and run create")

		bastion := launched(t, a, "bastion", "mine")
		machines, err := ec2.NewFromConfig(a.Config()).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id, bastion}})
		require.NoError(t, err)
		address := map[string][2]string{}
		for _, r := range machines.Reservations {
			for _, i := range r.Instances {
				address[*i.InstanceId] = [2]string{aws.ToString(i.PrivateIpAddress), aws.ToString(i.PublicIpAddress)}
			}
		}
		require.Equal(t, 0, s.run("cluster", "ssh", "demo", id, "--user", "ec2-user", "--", "-v"), s.err.String())
		assert.Equal(t, []string{"ssh", "-J", "ubuntu@" + address[bastion][1], "-v", "ec2-user@" + address[id][0]}, ran)
		assert.Empty(t, variables)

		require.Equal(t, env.Wrong, s.run("cluster", "ssh", "demo", id, "--user", "-oProxyCommand=x"))
		require.Equal(t, env.Wrong, s.run("cluster", "ssh", "demo"))
		s.Attach = func([]string, []string) (int, error) { return 0, errors.Join(exec.ErrNotFound) }
		require.Equal(t, env.Failed, s.run("cluster", "ssh", "demo", id))
		assert.Contains(t, s.err.String(), "ssh is not installed")
	})
}
