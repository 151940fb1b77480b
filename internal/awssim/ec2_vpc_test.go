package awssim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func TestVPCStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		c := ec2.NewFromConfig(a.Config())
		out, err := c.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16"), AmazonProvidedIpv6CidrBlock: aws.Bool(true)})
		require.NoError(t, err)
		assert.Equal(t, types.VpcStatePending, out.Vpc.State)
		assert.Empty(t, *out.Vpc.Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock)
		time.Sleep(ec2sim.VPCTakes)
		look := func() types.Vpc {
			out, err := c.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{VpcIds: []string{*out.Vpc.VpcId}})
			require.NoError(t, err)
			return out.Vpcs[0]
		}
		assert.Equal(t, types.VpcStateAvailable, look().State)
		assert.Equal(t, types.VpcCidrBlockStateCodeAssociating, look().Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlockState.State)
		time.Sleep(ec2sim.IPv6BlockTakes)
		block := *look().Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock
		assert.Regexp(t, `^2600:1f18:.*/56$`, block)

		subnet := func(v6 string) error {
			_, err := c.CreateSubnet(t.Context(), &ec2.CreateSubnetInput{
				VpcId: out.Vpc.VpcId, AvailabilityZone: aws.String("us-east-1a"), Ipv6Native: aws.Bool(true), Ipv6CidrBlock: &v6,
			})
			return err
		}
		first := strings.Replace(block, "/56", "/64", 1)
		assert.Empty(t, code(subnet(first)))
		assert.Equal(t, "InvalidSubnet.Conflict", code(subnet(first)))
		assert.Equal(t, "InvalidSubnet.Range", code(subnet("2600:1f19::/64")))
	})
}

func TestSubnetsLieInTheirVPC(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		for cidr, want := range map[string]string{
			"10.0.1.0/24": "", "10.0.0.128/25": "InvalidSubnet.Conflict", "10.1.0.0/24": "InvalidSubnet.Range", "10.0.2.0/29": "InvalidSubnet.Range",
		} {
			_, err := n.ec2.CreateSubnet(t.Context(), &ec2.CreateSubnetInput{VpcId: &n.vpc, CidrBlock: &cidr, AvailabilityZone: aws.String("us-east-1b")})
			assert.Equal(t, want, code(err), cidr)
		}
		_, err := n.ec2.ModifySubnetAttribute(t.Context(), &ec2.ModifySubnetAttributeInput{
			SubnetId: &n.subnet, MapPublicIpOnLaunch: &types.AttributeBooleanValue{Value: aws.Bool(true)}, PrivateDnsHostnameTypeOnLaunch: "resource-name",
		})
		assert.Equal(t, "InvalidParameterCombination", code(err))
	})
}

func TestSecondaryBlocks(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		associate := func(cidr string) (string, error) {
			out, err := n.ec2.AssociateVpcCidrBlock(t.Context(), &ec2.AssociateVpcCidrBlockInput{VpcId: &n.vpc, CidrBlock: &cidr})
			if err != nil {
				return "", err
			}
			return *out.CidrBlockAssociation.AssociationId, nil
		}
		id, err := associate("100.64.0.0/16")
		require.NoError(t, err)
		_, err = associate("192.168.0.0/16")
		assert.Equal(t, "InvalidVpc.Range", code(err))
		_, err = associate("100.64.1.0/24")
		assert.Equal(t, "InvalidVpc.Range", code(err))
		subnet := n.newSubnet("100.64.0.0/24", "us-east-1a")
		_, err = n.ec2.DisassociateVpcCidrBlock(t.Context(), &ec2.DisassociateVpcCidrBlockInput{AssociationId: &id})
		assert.Equal(t, "DependencyViolation", code(err))
		_, err = n.ec2.DeleteSubnet(t.Context(), &ec2.DeleteSubnetInput{SubnetId: &subnet})
		require.NoError(t, err)
		_, err = n.ec2.DisassociateVpcCidrBlock(t.Context(), &ec2.DisassociateVpcCidrBlockInput{AssociationId: &id})
		require.NoError(t, err)
	})
}

func TestVPCDeletedLast(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		eigw, err := n.ec2.CreateEgressOnlyInternetGateway(ctx, &ec2.CreateEgressOnlyInternetGatewayInput{VpcId: &n.vpc})
		require.NoError(t, err)
		endpoint, err := n.ec2.CreateVpcEndpoint(ctx, &ec2.CreateVpcEndpointInput{
			VpcId: &n.vpc, ServiceName: aws.String("com.amazonaws.us-east-1.s3"), RouteTableIds: []string{n.rtb},
		})
		require.NoError(t, err)
		association, err := n.ec2.AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: &n.rtb, SubnetId: &n.subnet})
		require.NoError(t, err)
		eni, err := n.ec2.CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: &n.subnet, Groups: []string{n.group}})
		require.NoError(t, err)

		deleteVPC := func() string {
			_, err := n.ec2.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: &n.vpc})
			return code(err)
		}
		steps := []struct {
			name string
			do   func() error
			want string
		}{
			{"table in use", func() error {
				_, err := n.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: &n.rtb})
				return err
			}, "DependencyViolation"},
			{"endpoint", func() error {
				_, err := n.ec2.DeleteVpcEndpoints(ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{*endpoint.VpcEndpoint.VpcEndpointId}})
				return err
			}, ""},
			{"disassociate", func() error {
				_, err := n.ec2.DisassociateRouteTable(ctx, &ec2.DisassociateRouteTableInput{AssociationId: association.AssociationId})
				return err
			}, ""},
			{"table of a dying endpoint", func() error {
				_, err := n.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: &n.rtb})
				return err
			}, "DependencyViolation"},
			{"table", func() error {
				time.Sleep(ec2sim.EndpointDeletes)
				_, err := n.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: &n.rtb})
				return err
			}, ""},
			{"egress-only gateway", func() error {
				_, err := n.ec2.DeleteEgressOnlyInternetGateway(ctx, &ec2.DeleteEgressOnlyInternetGatewayInput{
					EgressOnlyInternetGatewayId: eigw.EgressOnlyInternetGateway.EgressOnlyInternetGatewayId,
				})
				return err
			}, ""},
			{"attached gateway", func() error {
				_, err := n.ec2.DeleteInternetGateway(ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: &n.igw})
				return err
			}, "DependencyViolation"},
			{"detach", func() error {
				_, err := n.ec2.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: &n.igw, VpcId: &n.vpc})
				return err
			}, ""},
			{"group in use", func() error {
				_, err := n.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &n.group})
				return err
			}, "DependencyViolation"},
			{"interface", func() error {
				_, err := n.ec2.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: eni.NetworkInterface.NetworkInterfaceId})
				return err
			}, ""},
			{"group", func() error {
				_, err := n.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &n.group})
				return err
			}, ""},
			{"subnet", func() error {
				_, err := n.ec2.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: &n.subnet})
				return err
			}, ""},
		}
		for _, step := range steps {
			assert.Equal(t, "DependencyViolation", deleteVPC(), "before %s", step.name)
			assert.Equal(t, step.want, code(step.do()), step.name)
		}
		assert.Empty(t, deleteVPC())
		assert.Equal(t, "InvalidVpcID.NotFound", deleteVPC())
		assert.Equal(t, []string{"InternetGateway demo-igw"}, n.aws.Inventory())
	})
}
