package awssim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func TestSaveAndLoad(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		n.newNAT(n.newAddress(), "one")
		r := n.launch(2, "a")
		r.ClientToken = aws.String("two")
		ids := n.run(r)
		n.aws.Edit(func(s *State) { clear(s.EC2.KeyPairs) })
		var file bytes.Buffer
		require.NoError(t, n.aws.Save(&file))
		text := file.String()
		loaded, err := Load(&file, Options{})
		require.NoError(t, err)
		assert.Equal(t, n.aws.Inventory(), loaded.Inventory())
		assert.Equal(t, n.aws.Detailed(), loaded.Detailed())
		assert.Empty(t, loaded.state.EC2.KeyPairs, "what was deleted stays deleted")
		var again bytes.Buffer
		require.NoError(t, loaded.Save(&again))
		assert.Equal(t, text, again.String())

		c := ec2.NewFromConfig(loaded.Config())
		same, err := c.RunInstances(ctx, r)
		require.NoError(t, err)
		assert.Equal(t, *ids[0].InstanceId, *same.Instances[0].InstanceId)
		time.Sleep(ec2sim.NATGatewayTakes)
		nats, err := c.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{Filter: filter("state", "available")})
		require.NoError(t, err)
		assert.Len(t, nats.NatGateways, 1)
	})
}

func TestDetailedComparesAccounts(t *testing.T) {
	build := func(first bool) (lines []string) {
		in(t, Options{}, func(t *testing.T, n *testbed) {
			if first {
				n.newSubnet("10.0.3.0/24", "us-east-1b")
			}
			n.run(n.launch(1, "a"))
			n.newNAT(n.newAddress(), "one")
			_, err := n.ec2.CreateRoute(t.Context(), &ec2.CreateRouteInput{RouteTableId: &n.rtb, DestinationCidrBlock: aws.String("0.0.0.0/0"), GatewayId: &n.igw})
			require.NoError(t, err)
			if !first {
				n.newSubnet("10.0.3.0/24", "us-east-1b")
			}
			time.Sleep(ec2sim.NATGatewayTakes)
			lines = n.aws.Detailed()
		})
		return lines
	}
	lines := build(true)
	assert.Equal(t, lines, build(false), "the order in which things were made does not matter")
	assert.NotRegexp(t, `\b[a-z]+-0[0-9a-f]{16}\b`, strings.Join(lines, "\n"))
	assert.Contains(t, strings.Join(lines, "\n"), "0.0.0.0/0 to InternetGateway(demo-igw) (true)")
}
