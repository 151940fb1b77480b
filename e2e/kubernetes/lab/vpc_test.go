package lab

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// vpc is a VPC with a public and a private subnet in each of two zones, which share a NAT
// gateway.
type vpc struct {
	*account
	id              string
	public, private map[string]string // IDs of subnets, by zone
}

// make makes an EC2 resource, and returns its ID.
func (a *account) make(t *testing.T, action string, parameters ...string) string {
	t.Helper()
	var answer struct {
		VPC     string `xml:"vpc>vpcId"`
		Subnet  string `xml:"subnet>subnetId"`
		Gateway string `xml:"internetGateway>internetGatewayId"`
		NAT     string `xml:"natGateway>natGatewayId"`
		Table   string `xml:"routeTable>routeTableId"`
		Group   string `xml:"groupId"`
		Address string `xml:"allocationId"`
	}
	require.NoError(t, a.ec2(t.Context(), action, &answer, parameters...))
	return answer.VPC + answer.Subnet + answer.Gateway + answer.NAT + answer.Table + answer.Group + answer.Address
}

// newVPC makes a VPC as a user would have one before there is a cluster.
func (a *account) newVPC(t *testing.T, cidr string) *vpc {
	t.Helper()
	v := &vpc{account: a, public: map[string]string{}, private: map[string]string{}}
	v.id = a.make(t, "CreateVpc", "CidrBlock", cidr)
	a.make(t, "ModifyVpcAttribute", "VpcId", v.id, "EnableDnsHostnames.Value", "true")
	internet := a.make(t, "CreateInternetGateway")
	a.make(t, "AttachInternetGateway", "VpcId", v.id, "InternetGatewayId", internet)
	var first, second int
	_, err := fmt.Sscanf(cidr, "%d.%d.0.0/16", &first, &second)
	require.NoError(t, err)
	nat := ""
	for i, zone := range []string{region + "a", region + "b"} {
		block := func(n int) string { return fmt.Sprintf("%d.%d.%d.0/20", first, second, 16*(2*i+n)) }
		v.public[zone] = v.subnet(t, zone, block(0), "GatewayId", internet)
		if nat == "" {
			nat = a.make(t, "CreateNatGateway", "SubnetId", v.public[zone], "AllocationId", a.make(t, "AllocateAddress", "Domain", "vpc"))
		}
		v.private[zone] = v.subnet(t, zone, block(1), "NatGatewayId", nat)
	}
	return v
}

// subnet makes a subnet whose default route is to a gateway.
func (v *vpc) subnet(t *testing.T, zone, cidr string, gateway ...string) string {
	t.Helper()
	id := v.make(t, "CreateSubnet", "VpcId", v.id, "AvailabilityZone", zone, "CidrBlock", cidr)
	table := v.make(t, "CreateRouteTable", "VpcId", v.id)
	v.make(t, "CreateRoute", append(gateway, "RouteTableId", table, "DestinationCidrBlock", "0.0.0.0/0")...)
	v.make(t, "AssociateRouteTable", "RouteTableId", table, "SubnetId", id)
	return id
}

// group makes a security group.
func (v *vpc) group(t *testing.T, name string, more ...string) string {
	t.Helper()
	return v.make(t, "CreateSecurityGroup", append(more, "VpcId", v.id, "GroupName", name, "GroupDescription", name)...)
}
