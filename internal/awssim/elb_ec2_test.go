package awssim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	classic "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	elbsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
)

// site is a VPC that was created with EC2 calls.
type site struct{ vpc, subnet, gateway, group *string }

func buildSite(t *testing.T, c *ec2.Client) (s site) {
	t.Helper()
	vpc, err := c.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
	require.NoError(t, err)
	s.vpc = vpc.Vpc.VpcId
	time.Sleep(time.Minute)
	subnet, err := c.CreateSubnet(
		t.Context(),
		&ec2.CreateSubnetInput{VpcId: s.vpc, CidrBlock: aws.String("10.0.0.0/24"), AvailabilityZone: aws.String("us-east-1a")},
	)
	require.NoError(t, err)
	s.subnet = subnet.Subnet.SubnetId
	gateway, err := c.CreateInternetGateway(t.Context(), &ec2.CreateInternetGatewayInput{})
	require.NoError(t, err)
	s.gateway = gateway.InternetGateway.InternetGatewayId
	_, err = c.AttachInternetGateway(t.Context(), &ec2.AttachInternetGatewayInput{VpcId: s.vpc, InternetGatewayId: s.gateway})
	require.NoError(t, err)
	group, err := c.CreateSecurityGroup(t.Context(), &ec2.CreateSecurityGroupInput{VpcId: s.vpc, GroupName: aws.String("lb"), Description: aws.String("lb")})
	require.NoError(t, err)
	s.group = group.GroupId
	return s
}

// raze deletes a site as far as EC2 permits it, in the right order, and returns the error
// of each step.
func (s site) raze(t *testing.T, c *ec2.Client) (refusals []error) {
	t.Helper()
	_, err := c.DeleteSecurityGroup(t.Context(), &ec2.DeleteSecurityGroupInput{GroupId: s.group})
	refusals = append(refusals, err)
	_, err = c.DetachInternetGateway(t.Context(), &ec2.DetachInternetGatewayInput{InternetGatewayId: s.gateway, VpcId: s.vpc})
	refusals = append(refusals, err)
	_, err = c.DeleteSubnet(t.Context(), &ec2.DeleteSubnetInput{SubnetId: s.subnet})
	refusals = append(refusals, err)
	_, err = c.DeleteVpc(t.Context(), &ec2.DeleteVpcInput{VpcId: s.vpc})
	return append(refusals, err)
}

func TestLoadBalancersHoldTheirVPC(t *testing.T) {
	for _, kind := range []string{"network", "classic"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(Options{})
				c, v2, v1 := ec2.NewFromConfig(a.Config()), elb.NewFromConfig(a.Config()), classic.NewFromConfig(a.Config())
				s := buildSite(t, c)
				if kind == "network" {
					in := nlb("demo", *s.subnet)
					in.SecurityGroups = []string{*s.group}
					out, err := v2.CreateLoadBalancer(t.Context(), in)
					require.NoError(t, err)
					holds(t, s.raze(t, c))
					_, err = v2.DeleteLoadBalancer(t.Context(), &elb.DeleteLoadBalancerInput{LoadBalancerArn: out.LoadBalancers[0].LoadBalancerArn})
					require.NoError(t, err)
				} else {
					in := classicInput("demo", *s.subnet)
					in.SecurityGroups = []string{*s.group}
					_, err := v1.CreateLoadBalancer(t.Context(), in)
					require.NoError(t, err)
					holds(t, s.raze(t, c))
					_, err = v1.DeleteLoadBalancer(t.Context(), &classic.DeleteLoadBalancerInput{LoadBalancerName: aws.String("demo")})
					require.NoError(t, err)
				}
				assert.Empty(t, of[*elbsim.Service](a).Inventory())
				time.Sleep(elbsim.BalancerInterfacesLinger - 10*time.Second)
				holds(t, s.raze(t, c))
				interfaces, err := c.DescribeNetworkInterfaces(t.Context(), &ec2.DescribeNetworkInterfacesInput{})
				require.NoError(t, err)
				require.Len(t, interfaces.NetworkInterfaces, 1)
				assert.Regexp(t, `^ELB (net/demo/[0-9a-f]{16}|demo)$`, *interfaces.NetworkInterfaces[0].Description)
				time.Sleep(10 * time.Second)
				for _, err := range s.raze(t, c) {
					require.NoError(t, err)
				}
			})
		})
	}
}

func holds(t *testing.T, refusals []error) {
	t.Helper()
	for _, err := range refusals {
		hasCode(t, err, "DependencyViolation")
	}
}

func TestInternetFacingNeedsAGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		c := ec2.NewFromConfig(a.Config())
		s := buildSite(t, c)
		_, err := c.DetachInternetGateway(t.Context(), &ec2.DetachInternetGatewayInput{InternetGatewayId: s.gateway, VpcId: s.vpc})
		require.NoError(t, err)
		in := nlb("demo", *s.subnet)
		in.SecurityGroups = nil
		_, err = elb.NewFromConfig(a.Config()).CreateLoadBalancer(t.Context(), in)
		hasCode(t, err, "InvalidSubnet")
		in.Scheme = "internal"
		_, err = elb.NewFromConfig(a.Config()).CreateLoadBalancer(t.Context(), in)
		require.NoError(t, err)
		old := classicInput("old", *s.subnet)
		old.SecurityGroups = nil
		old.Scheme = aws.String("internal")
		_, err = classic.NewFromConfig(a.Config()).CreateLoadBalancer(t.Context(), old)
		require.NoError(t, err)
		got, err := classic.NewFromConfig(a.Config()).DescribeLoadBalancers(t.Context(), &classic.DescribeLoadBalancersInput{})
		require.NoError(t, err)
		assert.Len(t, got.LoadBalancerDescriptions[0].SecurityGroups, 1, "the VPC's default group")
	})
}

func TestDetailedComparesLoadBalancers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		build := func(serial int) (*AWS, *string) {
			a := New(Options{})
			a.Edit(func(s *State) { s.Serial += serial })
			s := buildSite(t, ec2.NewFromConfig(a.Config()))
			in := nlb("demo", *s.subnet)
			in.SecurityGroups = []string{*s.group}
			out, err := elb.NewFromConfig(a.Config()).CreateLoadBalancer(t.Context(), in)
			require.NoError(t, err)
			old := classicInput("old", *s.subnet)
			old.SecurityGroups = []string{*s.group}
			_, err = classic.NewFromConfig(a.Config()).CreateLoadBalancer(t.Context(), old)
			require.NoError(t, err)
			return a, out.LoadBalancers[0].LoadBalancerArn
		}
		a, _ := build(0)
		b, arn := build(77)
		assert.Equal(t, a.Detailed(), b.Detailed())
		_, err := elb.NewFromConfig(b.Config()).DeleteLoadBalancer(t.Context(), &elb.DeleteLoadBalancerInput{LoadBalancerArn: arn})
		require.NoError(t, err)
		assert.NotEqual(t, a.Detailed(), b.Detailed())
		time.Sleep(elbsim.BalancerInterfacesLinger)
		assert.NotContains(t, b.Inventory(), "LoadBalancer demo")
		assert.Contains(t, b.Inventory(), "ClassicLoadBalancer old")
	})
}
