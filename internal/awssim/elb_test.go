package awssim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	elbsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// The EC2 resources that the tests of other services use.
const (
	testVPC      = "vpc-0aaaaaaaaaaaaaaa1"
	testSubnetA  = "subnet-0aaaaaaaaaaaaaaa1"
	testSubnetA2 = "subnet-0aaaaaaaaaaaaaaa2"
	testSubnetB  = "subnet-0bbbbbbbbbbbbbbb1"
	testSubnetC  = "subnet-0ccccccccccccccc1"
	testGroup    = "sg-0aaaaaaaaaaaaaaa1"
	testInstance = "i-0aaaaaaaaaaaaaaa1"
	testIGW      = "igw-0aaaaaaaaaaaaaaa1"
	testAddress  = "eipalloc-0aaaaaaaaaaaaaaa1"
	otherVPC     = "vpc-0bbbbbbbbbbbbbbb1"
	otherSubnet  = "subnet-0ddddddddddddddd1"
	otherGroup   = "sg-0bbbbbbbbbbbbbbb1"
)

// Attributes of load balancers and target groups.
const (
	deletionProtection = "deletion_protection.enabled"
	crossZone          = "load_balancing.cross_zone.enabled"
	drainingInterval   = "target_health_state.unhealthy.draining_interval_seconds"
	terminateUnhealthy = "target_health_state.unhealthy.connection_termination.enabled"
)

// furnish adds a VPC with subnets in three zones, a running instance in zone a, and
// another VPC to an account.
func furnish(a *AWS) {
	a.Edit(func(s *State) {
		born := a.account.Now().Add(-time.Hour)
		thing := func(id string) Thing { return Thing{ID: id, Tags: map[string]string{}, Born: born} }
		s.IAM.Roles["fargate"] = &Role{Name: "fargate", Service: "eks-fargate-pods.amazonaws.com", Born: born}
		s.IAM.Roles["plane"] = &Role{Name: "plane", Service: "eks.amazonaws.com", Born: born}
		if r := s.IAM.Roles["nodes.cluster-api-provider-aws.sigs.k8s.io"]; r != nil { // with spec.eks, Cluster API's stack has it
			r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
		}
		s.IAM.Roles["powerless"] = &Role{Name: "powerless", Service: "ec2.amazonaws.com", Born: born}
		s.EC2.VPCs[testVPC] = &VPC{Thing: thing(testVPC), CIDR: "10.0.0.0/16", DNSSupport: true}
		s.EC2.VPCs[otherVPC] = &VPC{Thing: thing(otherVPC), CIDR: "10.1.0.0/16", DNSSupport: true}
		for id, where := range map[string][3]string{
			testSubnetA: {testVPC, "a", "10.0.0.0/24"}, testSubnetA2: {testVPC, "a", "10.0.1.0/24"}, testSubnetB: {testVPC, "b", "10.0.2.0/24"},
			testSubnetC: {testVPC, "c", "10.0.3.0/24"}, otherSubnet: {otherVPC, "a", "10.1.0.0/24"},
		} {
			s.EC2.Subnets[id] = &Subnet{Thing: thing(id), VPC: where[0], Zone: a.account.Region + where[1], CIDR: where[2]}
		}
		s.EC2.InternetGateways[testIGW] = &InternetGateway{Thing: thing(testIGW), VPC: testVPC}
		s.EC2.SecurityGroups[testGroup] = &SecurityGroup{Thing: thing(testGroup), VPC: testVPC, Name: "lb"}
		s.EC2.SecurityGroups[otherGroup] = &SecurityGroup{Thing: thing(otherGroup), VPC: otherVPC, Name: "lb"}
		s.EC2.Instances[testInstance] = &Instance{
			Thing:   thing(testInstance),
			VPC:     testVPC,
			Subnet:  testSubnetA,
			Zone:    a.account.Region + "a",
			Type:    "t3.large",
			Running: born,
		}
		s.EC2.Addresses[testAddress] = &Address{Thing: thing(testAddress), PublicIP: "203.0.113.7"}
	})
}

func furnished(o Options) *AWS {
	a := New(o)
	furnish(a)
	return a
}

func hasCode(t *testing.T, err error, code string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, code, cloud.Code(err), "%v", err)
}

func isNotSimulated(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	assert.Contains(t, err.Error(), "not simulated")
}

func nlb(name string, subnets ...string) *elb.CreateLoadBalancerInput {
	return &elb.CreateLoadBalancerInput{Name: aws.String(name), Type: types.LoadBalancerTypeEnumNetwork, Subnets: subnets, SecurityGroups: []string{testGroup}}
}

func group6443(name string) *elb.CreateTargetGroupInput {
	return &elb.CreateTargetGroupInput{
		Name: aws.String(name), Port: aws.Int32(6443), Protocol: types.ProtocolEnumTcp, VpcId: aws.String(testVPC),
		HealthCheckProtocol: types.ProtocolEnumTcp, HealthCheckPort: aws.String("6443"), HealthCheckIntervalSeconds: aws.Int32(5),
		HealthCheckTimeoutSeconds: aws.Int32(4), HealthyThresholdCount: aws.Int32(2), UnhealthyThresholdCount: aws.Int32(6),
	}
}

func listen(balancer, group *string, port int32) *elb.CreateListenerInput {
	return &elb.CreateListenerInput{
		LoadBalancerArn: balancer, Port: aws.Int32(port), Protocol: types.ProtocolEnumTcp,
		DefaultActions: []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: group}},
	}
}

// served creates a load balancer, a target group and a listener that connects them.
func served(t *testing.T, c *elb.Client) (balancer, group, listener *string) {
	t.Helper()
	b, err := c.CreateLoadBalancer(t.Context(), nlb("demo-apiserver", testSubnetA, testSubnetB))
	require.NoError(t, err)
	g, err := c.CreateTargetGroup(t.Context(), group6443("apiserver-target-abcde"))
	require.NoError(t, err)
	l, err := c.CreateListener(t.Context(), listen(b.LoadBalancers[0].LoadBalancerArn, g.TargetGroups[0].TargetGroupArn, 6443))
	require.NoError(t, err)
	return b.LoadBalancers[0].LoadBalancerArn, g.TargetGroups[0].TargetGroupArn, l.Listeners[0].ListenerArn
}

func balancerInterfaces(a *AWS) (n int) {
	a.Edit(func(s *State) {
		for _, i := range s.EC2.Interfaces {
			if strings.HasPrefix(i.Description, "ELB ") {
				n++
			}
		}
	})
	return n
}

func TestLoadBalancerIsProvisioned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		out, err := c.CreateLoadBalancer(t.Context(), nlb("demo-apiserver", testSubnetB, testSubnetA))
		require.NoError(t, err)
		b := out.LoadBalancers[0]
		assert.Equal(t, types.LoadBalancerStateEnumProvisioning, b.State.Code)
		assert.Regexp(t, `^arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/demo-apiserver/[0-9a-f]{16}$`, *b.LoadBalancerArn)
		assert.Regexp(t, `^demo-apiserver-[0-9a-f]{16}\.elb\.us-east-1\.amazonaws\.com$`, *b.DNSName)
		assert.Equal(t, testSubnetA, *b.AvailabilityZones[0].SubnetId)
		assert.Equal(t, testVPC, *b.VpcId)

		began := time.Now()
		waiter := elb.NewLoadBalancerAvailableWaiter(c, func(o *elb.LoadBalancerAvailableWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, time.Second })
		require.NoError(t, waiter.Wait(t.Context(), &elb.DescribeLoadBalancersInput{Names: []string{"demo-apiserver"}}, time.Hour))
		assert.InDelta(t, elbsim.NLBTakes.Seconds(), time.Since(began).Seconds(), 2)
	})
}

func TestLoadBalancerRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		for _, test := range []struct {
			name, code string
			change     func(*elb.CreateLoadBalancerInput)
		}{
			{"long name", "ValidationError", func(in *elb.CreateLoadBalancerInput) { in.Name = aws.String(strings.Repeat("x", 33)) }},
			{"dot in name", "ValidationError", func(in *elb.CreateLoadBalancerInput) { in.Name = aws.String("a.b") }},
			{"internal name", "ValidationError", func(in *elb.CreateLoadBalancerInput) { in.Name = aws.String("internal-x") }},
			{"no subnets", "ValidationError", func(in *elb.CreateLoadBalancerInput) { in.Subnets = nil }},
			{"no such subnet", "SubnetNotFound", func(in *elb.CreateLoadBalancerInput) { in.Subnets = []string{"subnet-0"} }},
			{"two in a zone", "InvalidConfigurationRequest", func(in *elb.CreateLoadBalancerInput) { in.Subnets = []string{testSubnetA, testSubnetA2} }},
			{"two VPCs", "InvalidConfigurationRequest", func(in *elb.CreateLoadBalancerInput) { in.Subnets = []string{testSubnetB, otherSubnet} }},
			{"no internet gateway", "InvalidSubnet", func(in *elb.CreateLoadBalancerInput) { in.Subnets, in.SecurityGroups = []string{otherSubnet}, nil }},
			{"group elsewhere", "InvalidSecurityGroup", func(in *elb.CreateLoadBalancerInput) { in.SecurityGroups = []string{otherGroup} }},
			{"IPv4 subnets", "InvalidSubnet", func(in *elb.CreateLoadBalancerInput) { in.IpAddressType = types.IpAddressTypeDualstack }},
			{"no such address", "AllocationIdNotFound", func(in *elb.CreateLoadBalancerInput) {
				in.Subnets, in.SubnetMappings = nil, []types.SubnetMapping{{SubnetId: aws.String(testSubnetA), AllocationId: aws.String("eipalloc-0")}}
			}},
			{"tag twice", "DuplicateTagKeys", func(in *elb.CreateLoadBalancerInput) {
				in.Tags = []types.Tag{{Key: aws.String("a")}, {Key: aws.String("a")}}
			}},
			{"application in one zone", "ValidationError", func(in *elb.CreateLoadBalancerInput) { in.Type = types.LoadBalancerTypeEnumApplication }},
		} {
			in := nlb("demo", testSubnetA)
			test.change(in)
			_, err := c.CreateLoadBalancer(t.Context(), in)
			t.Log(test.name)
			hasCode(t, err, test.code)
			time.Sleep(5 * time.Second) // AWS accepts one call in this time
		}
		in := nlb("demo", testSubnetA)
		in.CustomerOwnedIpv4Pool = aws.String("pool")
		_, err := c.CreateLoadBalancer(t.Context(), in)
		isNotSimulated(t, err)
		in = nlb("demo")
		in.SubnetMappings = []types.SubnetMapping{{SubnetId: aws.String(testSubnetA), PrivateIPv4Address: aws.String("10.0.0.9")}}
		_, err = c.CreateLoadBalancer(t.Context(), in)
		isNotSimulated(t, err)
		assert.Empty(t, of[*elbsim.Service](a).Inventory())
		assert.Zero(t, balancerInterfaces(a))
	})
}

func TestSameLoadBalancerTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		one, err := c.CreateLoadBalancer(t.Context(), nlb("demo", testSubnetA, testSubnetB))
		require.NoError(t, err)
		two, err := c.CreateLoadBalancer(t.Context(), nlb("demo", testSubnetB, testSubnetA))
		require.NoError(t, err)
		assert.Equal(t, one.LoadBalancers[0].LoadBalancerArn, two.LoadBalancers[0].LoadBalancerArn)
		assert.Equal(t, 2, balancerInterfaces(a))
		_, err = c.CreateLoadBalancer(t.Context(), nlb("demo", testSubnetA))
		hasCode(t, err, "DuplicateLoadBalancerName")

		_, err = c.CreateTargetGroup(t.Context(), group6443("demo"))
		require.NoError(t, err)
		_, err = c.CreateTargetGroup(t.Context(), group6443("demo"))
		require.NoError(t, err)
		other := group6443("demo")
		other.Port = aws.Int32(443)
		_, err = c.CreateTargetGroup(t.Context(), other)
		hasCode(t, err, "DuplicateTargetGroupName")
		assert.Equal(t, []string{"LoadBalancer demo", "TargetGroup unattached TCP 6443"}, of[*elbsim.Service](a).Inventory())
	})
}

func TestElasticAddressIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		in := nlb("demo")
		in.SubnetMappings = []types.SubnetMapping{{SubnetId: aws.String(testSubnetA), AllocationId: aws.String(testAddress)}}
		out, err := c.CreateLoadBalancer(t.Context(), in)
		require.NoError(t, err)
		assert.Equal(t, "203.0.113.7", *out.LoadBalancers[0].AvailabilityZones[0].LoadBalancerAddresses[0].IpAddress)
		_, err = c.CreateLoadBalancer(t.Context(), in)
		require.NoError(t, err, "the same again is the same load balancer")
		in.Name = aws.String("other")
		_, err = c.CreateLoadBalancer(t.Context(), in)
		hasCode(t, err, "ResourceInUse")

		_, err = c.DeleteLoadBalancer(t.Context(), &elb.DeleteLoadBalancerInput{LoadBalancerArn: out.LoadBalancers[0].LoadBalancerArn})
		require.NoError(t, err)
		held := func() (held bool) {
			a.Edit(func(s *State) { held = s.EC2.Addresses[testAddress].Association != "" })
			return held
		}
		assert.True(t, held())
		time.Sleep(2 * time.Minute)
		a.Edit(func(*State) {}) // advances the simulation
		assert.False(t, held())
	})
}

func TestDeletedLoadBalancerLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		balancer, group, _ := served(t, c)
		_, err := c.DeleteTargetGroup(t.Context(), &elb.DeleteTargetGroupInput{TargetGroupArn: group})
		hasCode(t, err, "ResourceInUse")

		_, err = c.ModifyLoadBalancerAttributes(t.Context(), &elb.ModifyLoadBalancerAttributesInput{
			LoadBalancerArn: balancer, Attributes: []types.LoadBalancerAttribute{{Key: aws.String(deletionProtection), Value: aws.String("true")}},
		})
		require.NoError(t, err)
		_, err = c.DeleteLoadBalancer(t.Context(), &elb.DeleteLoadBalancerInput{LoadBalancerArn: balancer})
		hasCode(t, err, "OperationNotPermitted")
		_, err = c.ModifyLoadBalancerAttributes(t.Context(), &elb.ModifyLoadBalancerAttributesInput{
			LoadBalancerArn: balancer, Attributes: []types.LoadBalancerAttribute{{Key: aws.String(deletionProtection), Value: aws.String("false")}},
		})
		require.NoError(t, err)

		for range 2 { // deletion is idempotent
			_, err = c.DeleteLoadBalancer(t.Context(), &elb.DeleteLoadBalancerInput{LoadBalancerArn: balancer})
			require.NoError(t, err)
			_, err = c.DeleteTargetGroup(t.Context(), &elb.DeleteTargetGroupInput{TargetGroupArn: group})
			require.NoError(t, err)
		}
		_, err = c.DescribeLoadBalancers(t.Context(), &elb.DescribeLoadBalancersInput{Names: []string{"demo-apiserver"}})
		hasCode(t, err, "LoadBalancerNotFound")
		_, err = c.DescribeLoadBalancers(t.Context(), &elb.DescribeLoadBalancersInput{LoadBalancerArns: []string{*balancer}})
		hasCode(t, err, "LoadBalancerNotFound")
		assert.Empty(t, of[*elbsim.Service](a).Inventory())
		assert.Equal(t, 2, balancerInterfaces(a))
		time.Sleep(59 * time.Second)
		assert.Equal(t, 2, balancerInterfaces(a))
		time.Sleep(time.Minute)
		assert.Zero(t, balancerInterfaces(a))
	})
}

func TestSubnetsAndGroupsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		balancer, _, _ := served(t, c)
		out, err := c.SetSubnets(t.Context(), &elb.SetSubnetsInput{LoadBalancerArn: balancer, Subnets: []string{testSubnetC, testSubnetB}})
		require.NoError(t, err)
		assert.Len(t, out.AvailabilityZones, 2)
		assert.Equal(t, 3, balancerInterfaces(a), "the interface in zone a lingers")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 2, balancerInterfaces(a))

		a.Edit(func(s *State) {
			s.EC2.SecurityGroups["sg-0ccc"] = &SecurityGroup{Thing: Thing{ID: "sg-0ccc"}, VPC: testVPC, Name: "other"}
		})
		_, err = c.SetSecurityGroups(t.Context(), &elb.SetSecurityGroupsInput{LoadBalancerArn: balancer, SecurityGroups: []string{"sg-0ccc"}})
		require.NoError(t, err)
		a.Edit(func(s *State) {
			for _, i := range s.EC2.Interfaces {
				assert.Equal(t, []string{"sg-0ccc"}, i.Groups)
			}
		})
		bare := nlb("bare", testSubnetA)
		bare.SecurityGroups = nil
		b, err := c.CreateLoadBalancer(t.Context(), bare)
		require.NoError(t, err)
		_, err = c.SetSecurityGroups(
			t.Context(),
			&elb.SetSecurityGroupsInput{LoadBalancerArn: b.LoadBalancers[0].LoadBalancerArn, SecurityGroups: []string{testGroup}},
		)
		hasCode(t, err, "InvalidConfigurationRequest")
	})
}

func TestAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		balancer, group, _ := served(t, c)
		modify := func(k, v string) error {
			_, err := c.ModifyLoadBalancerAttributes(t.Context(), &elb.ModifyLoadBalancerAttributesInput{
				LoadBalancerArn: balancer, Attributes: []types.LoadBalancerAttribute{{Key: &k, Value: &v}},
			})
			return err
		}
		require.NoError(t, modify(crossZone, "true"))
		hasCode(t, modify("idle_timeout.timeout_seconds", "60"), "ValidationError")
		hasCode(t, modify(crossZone, "yes"), "ValidationError")
		isNotSimulated(t, modify("access_logs.s3.enabled", "true"))
		got, err := c.DescribeLoadBalancerAttributes(t.Context(), &elb.DescribeLoadBalancerAttributesInput{LoadBalancerArn: balancer})
		require.NoError(t, err)
		assert.Contains(t, got.Attributes, types.LoadBalancerAttribute{Key: aws.String(crossZone), Value: aws.String("true")})

		set := func(pairs ...string) error {
			in := &elb.ModifyTargetGroupAttributesInput{TargetGroupArn: group}
			for i := 0; i < len(pairs); i += 2 {
				in.Attributes = append(in.Attributes, types.TargetGroupAttribute{Key: &pairs[i], Value: &pairs[i+1]})
			}
			_, err := c.ModifyTargetGroupAttributes(t.Context(), in)
			return err
		}
		hasCode(t, set(drainingInterval, "300"), "InvalidConfigurationRequest")
		require.NoError(t, set(drainingInterval, "300", terminateUnhealthy, "false"))
		require.NoError(t, set("preserve_client_ip.enabled", "false"))
		hasCode(t, set("deregistration_delay.timeout_seconds", "3601"), "ValidationError")
		hasCode(t, set("nonsense", "1"), "ValidationError")
	})
}

func TestHealthCheckRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := elb.NewFromConfig(a.Config())
		in := group6443("bad")
		in.HealthCheckTimeoutSeconds = aws.Int32(6) // of 5 seconds between two checks
		_, err := c.CreateTargetGroup(t.Context(), in)
		hasCode(t, err, "ValidationError")
		in.HealthCheckTimeoutSeconds, in.HealthCheckPath = aws.Int32(4), aws.String("/readyz")
		_, err = c.CreateTargetGroup(t.Context(), in)
		hasCode(t, err, "InvalidConfigurationRequest")
		in.HealthCheckProtocol = types.ProtocolEnumHttps
		out, err := c.CreateTargetGroup(t.Context(), in)
		require.NoError(t, err)
		assert.Equal(t, "/readyz", *out.TargetGroups[0].HealthCheckPath)
		in = group6443("worse")
		in.VpcId = aws.String("vpc-0")
		_, err = c.CreateTargetGroup(t.Context(), in)
		hasCode(t, err, "ValidationError")
		in = group6443("lambda")
		in.TargetType = types.TargetTypeEnumLambda
		_, err = c.CreateTargetGroup(t.Context(), in)
		isNotSimulated(t, err)

		changed, err := c.ModifyTargetGroup(
			t.Context(),
			&elb.ModifyTargetGroupInput{TargetGroupArn: out.TargetGroups[0].TargetGroupArn, HealthCheckIntervalSeconds: aws.Int32(10)},
		)
		require.NoError(t, err)
		assert.EqualValues(t, 10, *changed.TargetGroups[0].HealthCheckIntervalSeconds)
		assert.EqualValues(t, 4, *changed.TargetGroups[0].HealthCheckTimeoutSeconds)
	})
}
