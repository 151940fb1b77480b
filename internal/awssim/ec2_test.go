package awssim

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

// code returns the AWS error code of err, "" for none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func named(kind types.ResourceType, name string) []types.TagSpecification {
	return []types.TagSpecification{{ResourceType: kind, Tags: []types.Tag{{Key: aws.String("Name"), Value: aws.String(name)}}}}
}

func filter(name string, values ...string) []types.Filter {
	return []types.Filter{{Name: aws.String(name), Values: values}}
}

// testbed is a small network in a simulated account.
type testbed struct {
	t                            *testing.T
	aws                          *AWS
	ec2                          *ec2.Client
	vpc, subnet, igw, rtb, group string
	image                        string
}

// in runs a test in virtual time, with a VPC, an attached internet gateway, a public
// subnet and a security group.
func in(t *testing.T, o Options, test func(t *testing.T, n *testbed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := New(o)
		n := &testbed{t: t, aws: a, ec2: ec2.NewFromConfig(a.Config())}
		ctx := t.Context()
		vpc, err := n.ec2.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16"), TagSpecifications: named("vpc", "demo-vpc")})
		require.NoError(t, err)
		n.vpc = *vpc.Vpc.VpcId
		time.Sleep(o.LagRefs)
		n.subnet = n.newSubnet("10.0.0.0/24", "us-east-1a")
		igw, err := n.ec2.CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{TagSpecifications: named("internet-gateway", "demo-igw")})
		require.NoError(t, err)
		n.igw = *igw.InternetGateway.InternetGatewayId
		time.Sleep(o.LagRefs)
		_, err = n.ec2.AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: &n.igw, VpcId: &n.vpc})
		require.NoError(t, err)
		rtb, err := n.ec2.CreateRouteTable(ctx, &ec2.CreateRouteTableInput{VpcId: &n.vpc, TagSpecifications: named("route-table", "demo-rt")})
		require.NoError(t, err)
		n.rtb = *rtb.RouteTable.RouteTableId
		n.group = n.newGroup("demo-node")
		n.image = newestImage(a, "capa-ami-ubuntu-24.04-v1.34.2-", "x86_64")
		time.Sleep(max(o.Lag, o.LagRefs))
		test(t, n)
	})
}

func (n *testbed) newSubnet(cidr, zone string) string {
	n.t.Helper()
	s, err := n.ec2.CreateSubnet(n.t.Context(), &ec2.CreateSubnetInput{
		VpcId: &n.vpc, CidrBlock: &cidr, AvailabilityZone: &zone, TagSpecifications: named("subnet", "demo-"+cidr),
	})
	require.NoError(n.t, err)
	return *s.Subnet.SubnetId
}

func (n *testbed) newGroup(name string) string {
	n.t.Helper()
	g, err := n.ec2.CreateSecurityGroup(n.t.Context(), &ec2.CreateSecurityGroupInput{VpcId: &n.vpc, GroupName: &name, Description: aws.String("a group")})
	require.NoError(n.t, err)
	return *g.GroupId
}

func (n *testbed) newAddress() string {
	n.t.Helper()
	e, err := n.ec2.AllocateAddress(n.t.Context(), &ec2.AllocateAddressInput{Domain: "vpc", TagSpecifications: named("elastic-ip", "demo-eip")})
	require.NoError(n.t, err)
	return *e.AllocationId
}

func (n *testbed) newNAT(address, token string) string {
	n.t.Helper()
	g, err := n.ec2.CreateNatGateway(n.t.Context(), &ec2.CreateNatGatewayInput{
		SubnetId: &n.subnet, AllocationId: &address, ClientToken: &token, TagSpecifications: named("natgateway", "demo-nat"),
	})
	require.NoError(n.t, err)
	return *g.NatGateway.NatGatewayId
}

func (n *testbed) natState(id string) types.NatGatewayState {
	n.t.Helper()
	out, err := n.ec2.DescribeNatGateways(n.t.Context(), &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{id}})
	require.NoError(n.t, err)
	return out.NatGateways[0].State
}

// launch returns the input of RunInstances for instances in the subnet.
func (n *testbed) launch(count int32, name string) *ec2.RunInstancesInput {
	return &ec2.RunInstancesInput{
		MinCount: &count, MaxCount: &count, ImageId: &n.image, InstanceType: "t3.medium", SubnetId: &n.subnet, SecurityGroupIds: []string{n.group},
		TagSpecifications: append(named("instance", name), named("volume", name)...),
	}
}

func (n *testbed) run(in *ec2.RunInstancesInput) []types.Instance {
	n.t.Helper()
	out, err := n.ec2.RunInstances(n.t.Context(), in)
	require.NoError(n.t, err)
	return out.Instances
}

func (n *testbed) instance(id string) types.Instance {
	n.t.Helper()
	out, err := n.ec2.DescribeInstances(n.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	require.NoError(n.t, err)
	return out.Reservations[0].Instances[0]
}

func newestImage(a *AWS, prefix, architecture string) string {
	var newest *Image
	for _, i := range a.state.EC2.Images {
		if strings.HasPrefix(i.Name, prefix) && i.Architecture == architecture && (newest == nil || i.Created.After(newest.Created)) {
			newest = i
		}
	}
	return newest.ID
}
