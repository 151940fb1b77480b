package awssim

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	elbsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
)

func TestNATGatewayLife(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx, address := t.Context(), n.newAddress()
		nat := n.newNAT(address, "one")
		assert.Equal(t, types.NatGatewayStatePending, n.natState(nat))
		route := func() error {
			_, err := n.ec2.CreateRoute(ctx, &ec2.CreateRouteInput{RouteTableId: &n.rtb, DestinationCidrBlock: aws.String("0.0.0.0/0"), NatGatewayId: &nat})
			return err
		}
		assert.Equal(t, "InvalidNatGatewayID.NotFound", code(route()))
		time.Sleep(ec2sim.NATGatewayTakes - time.Nanosecond)
		assert.Equal(t, types.NatGatewayStatePending, n.natState(nat))
		time.Sleep(time.Nanosecond)
		assert.Equal(t, types.NatGatewayStateAvailable, n.natState(nat))
		require.NoError(t, route())
		assert.Equal(t, "RouteAlreadyExists", code(route()))

		detach := func() error {
			_, err := n.ec2.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: &n.igw, VpcId: &n.vpc})
			return err
		}
		release := func() error {
			_, err := n.ec2.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: &address})
			return err
		}
		deleteSubnet := func() error {
			_, err := n.ec2.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: &n.subnet})
			return err
		}
		refused := func() {
			t.Helper()
			assert.Equal(t, "DependencyViolation", code(detach()))
			assert.Equal(t, "InvalidIPAddress.InUse", code(release()))
			assert.Equal(t, "DependencyViolation", code(deleteSubnet()))
		}
		refused()
		_, err := n.ec2.DeleteNatGateway(ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: &nat})
		require.NoError(t, err)
		assert.Equal(t, types.NatGatewayStateDeleting, n.natState(nat))
		assert.Contains(t, n.aws.Inventory(), "NATGateway demo-nat deleting")
		time.Sleep(ec2sim.NATGatewayDeletes - time.Second)
		refused()
		time.Sleep(ec2sim.NATGatewayDeletesMost - ec2sim.NATGatewayDeletes + time.Second)
		assert.Equal(t, types.NatGatewayStateDeleted, n.natState(nat))
		tables, err := n.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{RouteTableIds: []string{n.rtb}})
		require.NoError(t, err)
		assert.Equal(t, types.RouteStateBlackhole, tables.RouteTables[0].Routes[1].State)
		require.NoError(t, detach())
		require.NoError(t, release())
		require.NoError(t, deleteSubnet())
		time.Sleep(ec2sim.NATGatewayShown)
		_, err = n.ec2.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{nat}})
		assert.Equal(t, "NatGatewayNotFound", code(err))
	})
}

func TestNATGatewayFailsWithoutInternetGateway(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		_, err := n.ec2.DetachInternetGateway(t.Context(), &ec2.DetachInternetGatewayInput{InternetGatewayId: &n.igw, VpcId: &n.vpc})
		require.NoError(t, err)
		address := n.newAddress()
		nat := n.newNAT(address, "one")
		assert.Equal(t, types.NatGatewayStatePending, n.natState(nat))
		time.Sleep(ec2sim.NATGatewayFails)
		assert.Equal(t, types.NatGatewayStateFailed, n.natState(nat))
		_, err = n.ec2.ReleaseAddress(t.Context(), &ec2.ReleaseAddressInput{AllocationId: &address})
		require.NoError(t, err)
	})
}

func TestInterfacesOfLoadBalancersLinger(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx, a := t.Context(), n.aws
		a.Edit(func(*State) {
			of[*ec2sim.Service](a).NewInterface(n.subnet, "ELB net/demo/0123456789abcdef", "network_load_balancer", "lb", []string{n.group}).PublicIP = "54.1.2.3"
		})
		assert.NotContains(t, strings.Join(a.Inventory(), "\n"), "Interface")
		a.Edit(func(*State) { of[*ec2sim.Service](a).ReleaseInterfaces("lb", elbsim.BalancerInterfacesLinger) })
		assert.Contains(t, a.Inventory(), "Interface ELB net/demo/(ID)")
		tries := map[string]func() error{
			"subnet": func() error {
				_, err := n.ec2.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: &n.subnet})
				return err
			},
			"group": func() error {
				_, err := n.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &n.group})
				return err
			},
			"gateway": func() error {
				_, err := n.ec2.DetachInternetGateway(ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: &n.igw, VpcId: &n.vpc})
				return err
			},
		}
		for what, try := range tries {
			assert.Equal(t, "DependencyViolation", code(try()), what)
		}
		time.Sleep(elbsim.BalancerInterfacesLinger)
		for what, try := range tries {
			assert.NoError(t, try(), what)
		}
	})
}
