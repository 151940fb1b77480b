package awssim

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (n *testbed) table(id string) types.RouteTable {
	n.t.Helper()
	out, err := n.ec2.DescribeRouteTables(n.t.Context(), &ec2.DescribeRouteTablesInput{RouteTableIds: []string{id}})
	require.NoError(n.t, err)
	return out.RouteTables[0]
}

func TestRoutes(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		create := func(r ec2.CreateRouteInput) string {
			r.RouteTableId = &n.rtb
			_, err := n.ec2.CreateRoute(ctx, &r)
			return code(err)
		}
		everywhere, everywhere6 := aws.String("0.0.0.0/0"), aws.String("::/0")
		assert.Equal(t, "InvalidGatewayID.NotFound", create(ec2.CreateRouteInput{DestinationCidrBlock: everywhere, GatewayId: aws.String("igw-00000000000000000")}))
		assert.Equal(t, "InvalidParameterValue", create(ec2.CreateRouteInput{DestinationCidrBlock: aws.String("10.0.1.0/24"), GatewayId: &n.igw}))
		eigw, err := n.ec2.CreateEgressOnlyInternetGateway(ctx, &ec2.CreateEgressOnlyInternetGatewayInput{VpcId: &n.vpc})
		require.NoError(t, err)
		egress := eigw.EgressOnlyInternetGateway.EgressOnlyInternetGatewayId
		assert.Equal(t, "InvalidParameterValue", create(ec2.CreateRouteInput{DestinationCidrBlock: everywhere, EgressOnlyInternetGatewayId: egress}))
		assert.Empty(t, create(ec2.CreateRouteInput{DestinationIpv6CidrBlock: everywhere6, EgressOnlyInternetGatewayId: egress}))

		replace := func(gateway string) string {
			_, err := n.ec2.ReplaceRoute(ctx, &ec2.ReplaceRouteInput{RouteTableId: &n.rtb, DestinationCidrBlock: everywhere, GatewayId: &gateway})
			return code(err)
		}
		assert.Equal(t, "InvalidParameterValue", replace(n.igw), "there is nothing to replace")
		assert.Empty(t, create(ec2.CreateRouteInput{DestinationCidrBlock: everywhere, GatewayId: &n.igw}))
		assert.Empty(t, replace(n.igw))
		other, err := n.ec2.CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{})
		require.NoError(t, err)
		assert.Equal(t, "InvalidParameterValue", replace(*other.InternetGateway.InternetGatewayId), "it belongs to no network")

		_, err = n.ec2.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: &n.igw, VpcId: &n.vpc})
		require.NoError(t, err, "a route does not keep the gateway")
		_, err = n.ec2.DeleteEgressOnlyInternetGateway(ctx, &ec2.DeleteEgressOnlyInternetGatewayInput{EgressOnlyInternetGatewayId: egress})
		require.NoError(t, err, "a route does not keep the gateway")
		states := core.Each(n.table(n.rtb).Routes, func(r types.Route) types.RouteState { return r.State })
		assert.Equal(t, []types.RouteState{types.RouteStateActive, types.RouteStateBlackhole, types.RouteStateBlackhole}, states)
		remove := func() string {
			_, err := n.ec2.DeleteRoute(ctx, &ec2.DeleteRouteInput{RouteTableId: &n.rtb, DestinationCidrBlock: everywhere})
			return code(err)
		}
		assert.Empty(t, remove())
		assert.Equal(t, "InvalidRoute.NotFound", remove())
	})
}

func TestRouteTableAssociations(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		second, err := n.ec2.CreateRouteTable(ctx, &ec2.CreateRouteTableInput{VpcId: &n.vpc})
		require.NoError(t, err)
		other := second.RouteTable.RouteTableId
		made, err := n.ec2.AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: &n.rtb, SubnetId: &n.subnet})
		require.NoError(t, err)
		_, err = n.ec2.AssociateRouteTable(ctx, &ec2.AssociateRouteTableInput{RouteTableId: other, SubnetId: &n.subnet})
		assert.Equal(t, "Resource.AlreadyAssociated", code(err))
		moved, err := n.ec2.ReplaceRouteTableAssociation(ctx, &ec2.ReplaceRouteTableAssociationInput{AssociationId: made.AssociationId, RouteTableId: other})
		require.NoError(t, err)
		_, err = n.ec2.DisassociateRouteTable(ctx, &ec2.DisassociateRouteTableInput{AssociationId: made.AssociationId})
		assert.Equal(t, "InvalidAssociationID.NotFound", code(err), "the association has a new ID")
		found, err := n.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: filter("association.subnet-id", n.subnet)})
		require.NoError(t, err)
		require.Len(t, found.RouteTables, 1)
		assert.Equal(t, *other, *found.RouteTables[0].RouteTableId)
		_, err = n.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: other})
		assert.Equal(t, "DependencyViolation", code(err))
		_, err = n.ec2.DisassociateRouteTable(ctx, &ec2.DisassociateRouteTableInput{AssociationId: moved.NewAssociationId})
		require.NoError(t, err)

		main, err := n.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{Filters: append(filter("association.main", "true"), filter("vpc-id", n.vpc)...)})
		require.NoError(t, err)
		_, err = n.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: main.RouteTables[0].RouteTableId})
		assert.Equal(t, "DependencyViolation", code(err), "it is the main table")
		_, err = n.ec2.ReplaceRouteTableAssociation(ctx, &ec2.ReplaceRouteTableAssociationInput{
			AssociationId: main.RouteTables[0].Associations[0].RouteTableAssociationId, RouteTableId: other,
		})
		require.NoError(t, err)
		_, err = n.ec2.DeleteRouteTable(ctx, &ec2.DeleteRouteTableInput{RouteTableId: main.RouteTables[0].RouteTableId})
		require.NoError(t, err, "it is the main table no more")
	})
}

func TestGatewayEndpoints(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		create := func(tables ...string) (string, error) {
			out, err := n.ec2.CreateVpcEndpoint(ctx, &ec2.CreateVpcEndpointInput{
				VpcId: &n.vpc, ServiceName: aws.String("com.amazonaws.us-east-1.s3"), RouteTableIds: tables, TagSpecifications: named("vpc-endpoint", "demo-s3"),
			})
			if err != nil {
				return "", err
			}
			return *out.VpcEndpoint.VpcEndpointId, nil
		}
		id, err := create(n.rtb)
		require.NoError(t, err)
		through := func() bool {
			return slices.ContainsFunc(n.table(n.rtb).Routes, func(r types.Route) bool { return aws.ToString(r.GatewayId) == id })
		}
		assert.True(t, through())
		_, err = create(n.rtb)
		assert.Equal(t, "RouteAlreadyExists", code(err))
		_, err = create("rtb-00000000000000000")
		assert.Equal(t, "InvalidRouteTableID.NotFound", code(err))
		_, err = n.ec2.ModifyVpcEndpoint(ctx, &ec2.ModifyVpcEndpointInput{VpcEndpointId: &id, RemoveRouteTableIds: []string{n.rtb}})
		require.NoError(t, err)
		assert.False(t, through())
		out, err := n.ec2.DeleteVpcEndpoints(ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{id, "vpce-00000000000000000"}})
		require.NoError(t, err)
		require.Len(t, out.Unsuccessful, 1)
		assert.Equal(t, "InvalidVpcEndpoint.NotFound", *out.Unsuccessful[0].Error.Code)
		list := func() []types.VpcEndpoint {
			out, err := n.ec2.DescribeVpcEndpoints(ctx, &ec2.DescribeVpcEndpointsInput{Filters: filter("tag:Name", "demo-s3")})
			require.NoError(t, err)
			return out.VpcEndpoints
		}
		require.Len(t, list(), 1)
		assert.Equal(t, types.State("deleting"), list()[0].State)
		time.Sleep(ec2sim.EndpointDeletes)
		assert.Empty(t, list())
	})
}

func TestInternetGateways(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		attach := func(id string) string {
			_, err := n.ec2.AttachInternetGateway(ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: &id, VpcId: &n.vpc})
			return code(err)
		}
		assert.Equal(t, "Resource.AlreadyAssociated", attach(n.igw))
		second, err := n.ec2.CreateInternetGateway(ctx, &ec2.CreateInternetGatewayInput{})
		require.NoError(t, err)
		assert.Equal(t, "InvalidParameterValue", attach(*second.InternetGateway.InternetGatewayId), "a VPC has one")
		_, err = n.ec2.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: second.InternetGateway.InternetGatewayId, VpcId: &n.vpc})
		assert.Equal(t, "Gateway.NotAttached", code(err))
		found, err := n.ec2.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{Filters: filter("attachment.vpc-id", n.vpc)})
		require.NoError(t, err)
		require.Len(t, found.InternetGateways, 1)
		assert.Equal(t, n.igw, *found.InternetGateways[0].InternetGatewayId)
	})
}

func TestVolumes(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx := t.Context()
		create := func(kind types.VolumeType, iops int32) (string, error) {
			out, err := n.ec2.CreateVolume(ctx, &ec2.CreateVolumeInput{
				AvailabilityZone: aws.String("us-east-1a"), Size: aws.Int32(10), VolumeType: kind, Iops: aws.Int32(iops), TagSpecifications: named("volume", "pvc"),
			})
			if err != nil {
				return "", err
			}
			return *out.VolumeId, nil
		}
		_, err := create("gp2", 3000)
		assert.Equal(t, "InvalidParameterCombination", code(err))
		_, err = create("gp3", 99999)
		assert.Equal(t, "InvalidParameterValue", code(err))
		id, err := create("gp3", 3000)
		require.NoError(t, err)
		remove := func(id string) string {
			_, err := n.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id})
			return code(err)
		}
		assert.Equal(t, "IncorrectState", remove(id))
		time.Sleep(ec2sim.VolumeTakes)
		assert.Contains(t, n.aws.Inventory(), "Volume pvc")
		root := *n.run(n.launch(1, "a"))[0].BlockDeviceMappings[0].Ebs.VolumeId
		assert.NotContains(t, n.aws.Inventory(), "Volume a")
		assert.Equal(t, "VolumeInUse", remove(root))
		assert.Empty(t, remove(id))
	})
}
