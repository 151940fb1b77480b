package conformance

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func (s *suite) network() {
	vpc, err := s.ec2.CreateVpc(s.ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16"), TagSpecifications: tagged("vpc", "demo")})
	s.need(err)
	s.vpc = *vpc.Vpc.VpcId
	s.see("vpc: create", err, *vpc.Vpc.CidrBlock, names(vpc.Vpc.Tags), vpc.Vpc.State)
	s.settle()
	found, err := s.ec2.DescribeVpcs(s.ctx, &ec2.DescribeVpcsInput{Filters: filter("tag:Name", "demo")})
	s.need(err)
	s.see("vpc: describe by tag", err, len(found.Vpcs), found.Vpcs[0].State)
	_, err = s.ec2.DescribeVpcs(s.ctx, &ec2.DescribeVpcsInput{VpcIds: []string{"vpc-0123456789abcdef0"}})
	s.see("vpc: describe one that is not there", err)
	_, err = s.ec2.DeleteVpc(s.ctx, &ec2.DeleteVpcInput{VpcId: aws.String("vpc-0123456789abcdef0")})
	s.see("vpc: delete one that is not there", err)
	_, err = s.ec2.CreateVpc(s.ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/8")})
	s.see("vpc: create a block that is too large", err)
	for _, a := range []types.VpcAttributeName{types.VpcAttributeNameEnableDnsSupport, types.VpcAttributeNameEnableDnsHostnames} {
		out, err := s.ec2.DescribeVpcAttribute(s.ctx, &ec2.DescribeVpcAttributeInput{VpcId: &s.vpc, Attribute: a})
		s.need(err)
		value := out.EnableDnsSupport
		if value == nil {
			value = out.EnableDnsHostnames
		}
		s.see("vpc: "+string(a)+" at first", err, *value.Value)
	}
	_, err = s.ec2.ModifyVpcAttribute(s.ctx, &ec2.ModifyVpcAttributeInput{VpcId: &s.vpc, EnableDnsHostnames: &types.AttributeBooleanValue{Value: aws.Bool(true)}})
	s.see("vpc: set DNS host names", err)
	groups, err := s.ec2.DescribeSecurityGroups(s.ctx, &ec2.DescribeSecurityGroupsInput{Filters: filter("vpc-id", s.vpc)})
	s.need(err)
	s.see("vpc: its default security group", err, len(groups.SecurityGroups), *groups.SecurityGroups[0].GroupName)

	subnet, err := s.ec2.CreateSubnet(
		s.ctx,
		&ec2.CreateSubnetInput{
			VpcId:             &s.vpc,
			CidrBlock:         aws.String("10.0.0.0/24"),
			AvailabilityZone:  aws.String("us-east-1a"),
			TagSpecifications: tagged("subnet", "one"),
		},
	)
	s.need(err)
	s.subnet = *subnet.Subnet.SubnetId
	s.see("subnet: create", err, *subnet.Subnet.CidrBlock, *subnet.Subnet.AvailabilityZone, names(subnet.Subnet.Tags), *subnet.Subnet.MapPublicIpOnLaunch)
	s.settle()
	_, err = s.ec2.CreateSubnet(s.ctx, &ec2.CreateSubnetInput{VpcId: &s.vpc, CidrBlock: aws.String("10.0.0.128/25"), AvailabilityZone: aws.String("us-east-1a")})
	s.see("subnet: create one that overlaps", err)
	_, err = s.ec2.CreateSubnet(s.ctx, &ec2.CreateSubnetInput{VpcId: &s.vpc, CidrBlock: aws.String("10.1.0.0/24"), AvailabilityZone: aws.String("us-east-1a")})
	s.see("subnet: create one outside the VPC", err)
	_, err = s.ec2.CreateSubnet(s.ctx, &ec2.CreateSubnetInput{VpcId: &s.vpc, CidrBlock: aws.String("10.0.9.0/24"), AvailabilityZone: aws.String("us-east-1z")})
	s.see("subnet: create one in a zone that is not there", err)
	_, err = s.ec2.ModifySubnetAttribute(
		s.ctx,
		&ec2.ModifySubnetAttributeInput{SubnetId: &s.subnet, MapPublicIpOnLaunch: &types.AttributeBooleanValue{Value: aws.Bool(true)}},
	)
	s.see("subnet: map public addresses", err)
	_, err = s.ec2.ModifySubnetAttribute(
		s.ctx,
		&ec2.ModifySubnetAttributeInput{SubnetId: &s.subnet, PrivateDnsHostnameTypeOnLaunch: types.HostnameTypeResourceName},
	)
	s.see("subnet: name hosts after resources", err)
	subnets, err := s.ec2.DescribeSubnets(s.ctx, &ec2.DescribeSubnetsInput{Filters: filter("vpc-id", s.vpc)})
	s.need(err)
	seen := subnets.Subnets[0]
	hosts := types.HostnameTypeIpName
	if o := seen.PrivateDnsNameOptionsOnLaunch; o != nil {
		hosts = o.HostnameType
	}
	s.see("subnet: describe", err, len(subnets.Subnets), seen.State, *seen.MapPublicIpOnLaunch)
	s.see("subnet: its host names", err, hosts)
	_, err = s.ec2.DeleteSubnet(s.ctx, &ec2.DeleteSubnetInput{SubnetId: aws.String("subnet-0123456789abcdef0")})
	s.see("subnet: delete one that is not there", err)
	_, err = s.ec2.DeleteVpc(s.ctx, &ec2.DeleteVpcInput{VpcId: &s.vpc})
	s.see("vpc: delete one with a subnet", err)

	zones, err := s.ec2.DescribeAvailabilityZones(s.ctx, &ec2.DescribeAvailabilityZonesInput{Filters: filter("zone-type", "availability-zone")})
	s.need(err)
	s.see("zones: how many", err, len(zones.AvailabilityZones), zones.AvailabilityZones[0].State)
}

func (s *suite) gateways() {
	igw, err := s.ec2.CreateInternetGateway(s.ctx, &ec2.CreateInternetGatewayInput{TagSpecifications: tagged("internet-gateway", "demo")})
	s.need(err)
	gateway := igw.InternetGateway.InternetGatewayId
	s.see("internet gateway: create", err, len(igw.InternetGateway.Attachments))
	s.settle()
	nat := &ec2.CreateNatGatewayInput{SubnetId: &s.subnet, ClientToken: aws.String("once"), TagSpecifications: tagged("natgateway", "demo")}
	address, err := s.ec2.AllocateAddress(s.ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc, TagSpecifications: tagged("elastic-ip", "demo")})
	s.need(err)
	nat.AllocationId = address.AllocationId
	_, err = s.ec2.AttachInternetGateway(s.ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: gateway, VpcId: &s.vpc})
	s.see("internet gateway: attach", err)
	_, err = s.ec2.AttachInternetGateway(s.ctx, &ec2.AttachInternetGatewayInput{InternetGatewayId: gateway, VpcId: &s.vpc})
	s.see("internet gateway: attach again", err)
	_, err = s.ec2.DeleteInternetGateway(s.ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: gateway})
	s.see("internet gateway: delete while attached", err)
	_, err = s.ec2.DeleteInternetGateway(s.ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: aws.String("igw-0123456789abcdef0")})
	s.see("internet gateway: delete one that is not there", err)

	s.routes(gateway)
	s.natGateway(nat, address)

	egress, err := s.ec2.CreateEgressOnlyInternetGateway(s.ctx, &ec2.CreateEgressOnlyInternetGatewayInput{VpcId: &s.vpc})
	s.see("egress-only gateway: create", err)
	s.need(err)
	s.settle()
	_, err = s.ec2.DeleteEgressOnlyInternetGateway(
		s.ctx,
		&ec2.DeleteEgressOnlyInternetGatewayInput{EgressOnlyInternetGatewayId: egress.EgressOnlyInternetGateway.EgressOnlyInternetGatewayId},
	)
	s.see("egress-only gateway: delete", err)
	_, err = s.ec2.DetachInternetGateway(s.ctx, &ec2.DetachInternetGatewayInput{InternetGatewayId: gateway, VpcId: &s.vpc})
	s.see("internet gateway: detach", err)
	_, err = s.ec2.DeleteInternetGateway(s.ctx, &ec2.DeleteInternetGatewayInput{InternetGatewayId: gateway})
	s.see("internet gateway: delete", err)
}

func (s *suite) routes(gateway *string) {
	table, err := s.ec2.CreateRouteTable(s.ctx, &ec2.CreateRouteTableInput{VpcId: &s.vpc, TagSpecifications: tagged("route-table", "demo")})
	s.need(err)
	id := table.RouteTable.RouteTableId
	s.see("route table: create", err, len(table.RouteTable.Routes), *table.RouteTable.Routes[0].GatewayId)
	s.settle()
	route := &ec2.CreateRouteInput{RouteTableId: id, DestinationCidrBlock: aws.String("0.0.0.0/0"), GatewayId: gateway}
	_, err = s.ec2.CreateRoute(s.ctx, route)
	s.see("route: create", err)
	_, err = s.ec2.CreateRoute(s.ctx, route)
	s.see("route: create again", err)
	_, err = s.ec2.ReplaceRoute(s.ctx, &ec2.ReplaceRouteInput{RouteTableId: id, DestinationCidrBlock: route.DestinationCidrBlock, GatewayId: gateway})
	s.see("route: replace", err)
	_, err = s.ec2.ReplaceRoute(s.ctx, &ec2.ReplaceRouteInput{RouteTableId: id, DestinationCidrBlock: aws.String("192.0.2.0/24"), GatewayId: gateway})
	s.see("route: replace one that is not there", err)
	association, err := s.ec2.AssociateRouteTable(s.ctx, &ec2.AssociateRouteTableInput{RouteTableId: id, SubnetId: &s.subnet})
	s.see("route table: associate", err)
	s.need(err)
	_, err = s.ec2.DeleteRouteTable(s.ctx, &ec2.DeleteRouteTableInput{RouteTableId: id})
	s.see("route table: delete while associated", err)
	tables, err := s.ec2.DescribeRouteTables(s.ctx, &ec2.DescribeRouteTablesInput{Filters: filter("vpc-id", s.vpc)})
	s.need(err)
	s.see("route table: describe, the main one too", err, len(tables.RouteTables))
	acls, err := s.ec2.DescribeNetworkAcls(s.ctx, &ec2.DescribeNetworkAclsInput{Filters: filter("vpc-id", s.vpc)})
	s.need(err)
	s.see("network ACL: describe, the default one", err, len(acls.NetworkAcls))

	endpoint, err := s.ec2.CreateVpcEndpoint(s.ctx, &ec2.CreateVpcEndpointInput{
		VpcId: &s.vpc, ServiceName: aws.String("com.amazonaws.us-east-1.s3"), VpcEndpointType: types.VpcEndpointTypeGateway, RouteTableIds: []string{*id},
	})
	s.see("endpoint: create", err)
	s.need(err)
	s.settle()
	_, err = s.ec2.DeleteVpcEndpoints(s.ctx, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{*endpoint.VpcEndpoint.VpcEndpointId}})
	s.see("endpoint: delete", err)
	s.settle()
	s.askFlowLogs()

	_, err = s.ec2.DisassociateRouteTable(s.ctx, &ec2.DisassociateRouteTableInput{AssociationId: association.AssociationId})
	s.see("route table: disassociate", err)
	_, err = s.ec2.DeleteRouteTable(s.ctx, &ec2.DeleteRouteTableInput{RouteTableId: id})
	s.see("route table: delete", err)
	_, err = s.ec2.DeleteRouteTable(s.ctx, &ec2.DeleteRouteTableInput{RouteTableId: id})
	s.see("route table: delete again", err)
}

func (s *suite) natGateway(in *ec2.CreateNatGatewayInput, address *ec2.AllocateAddressOutput) {
	made, err := s.ec2.CreateNatGateway(s.ctx, in)
	s.need(err)
	id := *made.NatGateway.NatGatewayId
	s.see("NAT gateway: create", err, made.NatGateway.State)
	again, err := s.ec2.CreateNatGateway(s.ctx, in)
	same := err == nil && *again.NatGateway.NatGatewayId == id
	s.see("NAT gateway: create again with the same token", err, "the same:", same)
	s.settle()
	state := func() types.NatGatewayState {
		out, err := s.ec2.DescribeNatGateways(s.ctx, &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{id}})
		s.need(err)
		return out.NatGateways[0].State
	}
	s.see("NAT gateway: after a while", nil, state())
	_, err = s.ec2.ReleaseAddress(s.ctx, &ec2.ReleaseAddressInput{AllocationId: address.AllocationId})
	s.see("elastic IP: release while in use", err)
	if err == nil {
		next, err := s.ec2.AllocateAddress(s.ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc})
		s.need(err)
		address = next
	}
	s.deleteSubnet("subnet: delete under a NAT gateway")
	_, err = s.ec2.DeleteNatGateway(s.ctx, &ec2.DeleteNatGatewayInput{NatGatewayId: &id})
	s.see("NAT gateway: delete", err)
	s.see("NAT gateway: then", nil, state())
	s.settle()
	s.see("NAT gateway: and later", nil, state())
	_, err = s.ec2.ReleaseAddress(s.ctx, &ec2.ReleaseAddressInput{AllocationId: address.AllocationId})
	s.see("elastic IP: release", err)
	_, err = s.ec2.ReleaseAddress(s.ctx, &ec2.ReleaseAddressInput{AllocationId: address.AllocationId})
	s.see("elastic IP: release again", err)
}

// deleteSubnet tries to delete the subnet, and creates it again if that succeeds.
func (s *suite) deleteSubnet(question string) {
	s.t.Helper()
	_, err := s.ec2.DeleteSubnet(s.ctx, &ec2.DeleteSubnetInput{SubnetId: &s.subnet})
	s.see(question, err)
	if err != nil {
		return
	}
	out, err := s.ec2.CreateSubnet(s.ctx, &ec2.CreateSubnetInput{VpcId: &s.vpc, CidrBlock: aws.String("10.0.0.0/24"), AvailabilityZone: aws.String("us-east-1a")})
	s.need(err)
	s.subnet = *out.Subnet.SubnetId
}

// askFlowLogs creates a flow log of the VPC, and deletes it.
func (s *suite) askFlowLogs() {
	create := &ec2.CreateFlowLogsInput{
		ResourceIds: []string{s.vpc}, ResourceType: types.FlowLogsResourceTypeVpc, TrafficType: types.TrafficTypeAll,
		LogDestinationType: types.LogDestinationTypeCloudWatchLogs, LogGroupName: aws.String("/vpc/conformance"),
	}
	_, err := s.ec2.CreateFlowLogs(s.ctx, create)
	s.see("flow log: create one for a log group without a role", err)
	create.DeliverLogsPermissionArn = aws.String("arn:aws:iam::123456789012:role/flow-logs")
	made, err := s.ec2.CreateFlowLogs(s.ctx, create)
	s.see("flow log: create", err)
	s.need(err)
	_, err = s.ec2.CreateFlowLogs(s.ctx, create)
	s.see("flow log: create the same again", err)
	found, err := s.ec2.DescribeFlowLogs(s.ctx, &ec2.DescribeFlowLogsInput{Filter: filter("resource-id", s.vpc)})
	s.need(err)
	f := append(found.FlowLogs, types.FlowLog{})[0]
	s.see("flow log: describe", err, len(found.FlowLogs), str(f.FlowLogStatus), f.TrafficType, f.LogDestinationType, str(f.LogGroupName))
	deleted, err := s.ec2.DeleteFlowLogs(s.ctx, &ec2.DeleteFlowLogsInput{FlowLogIds: made.FlowLogIds})
	s.need(err)
	s.see("flow log: delete", err, len(deleted.Unsuccessful))
	deleted, err = s.ec2.DeleteFlowLogs(s.ctx, &ec2.DeleteFlowLogsInput{FlowLogIds: made.FlowLogIds})
	if err == nil && len(deleted.Unsuccessful) > 0 {
		s.see("flow log: delete again", nil, str(deleted.Unsuccessful[0].Error.Code))
		return
	}
	s.see("flow log: delete again", err)
}
