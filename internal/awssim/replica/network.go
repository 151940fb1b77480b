package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func tagsOf(tags []types.Tag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return m
}

// network reads VPCs with their subnets, gateways, route tables and endpoints. They replace
// those of the simulated account all together, as they refer to one another.
func (r *reader) network(ctx context.Context) error {
	n := sim.State{
		VPCs: sim.Table[*sim.VPC]{}, Subnets: sim.Table[*sim.Subnet]{}, InternetGateways: sim.Table[*sim.InternetGateway]{},
		EgressOnlyGateways: sim.Table[*sim.EgressOnlyGateway]{}, CarrierGateways: sim.Table[*sim.CarrierGateway]{},
		RouteTables: sim.Table[*sim.RouteTable]{}, Endpoints: sim.Table[*sim.Endpoint]{},
	}
	for _, read := range []func(context.Context, *ec2.Client, *sim.State) error{r.vpcs, r.subnets, r.internetGateways, r.routeTables} {
		if err := read(ctx, ec2.NewFromConfig(r.Config), &n); err != nil {
			return err
		}
	}
	to := r.to.EC2
	to.VPCs, to.Subnets, to.InternetGateways, to.RouteTables = n.VPCs, n.Subnets, n.InternetGateways, n.RouteTables
	for _, more := range []struct {
		what string
		read func(context.Context, *ec2.Client, *sim.State) error
	}{{"egress-only internet gateways", r.egressOnly}, {"carrier gateways", r.carrierGateways}, {"VPC endpoints", r.endpoints}} {
		if err := r.part(ctx, more.what, func(ctx context.Context) error { return more.read(ctx, ec2.NewFromConfig(r.Config), &n) }); err != nil {
			return err
		}
	}
	to.EgressOnlyGateways, to.CarrierGateways, to.Endpoints = n.EgressOnlyGateways, n.CarrierGateways, n.Endpoints
	// The default network of the simulated account is no longer there, nor are its groups.
	to.SecurityGroups = sim.Table[*sim.SecurityGroup]{}
	return nil
}

func (r *reader) vpcs(ctx context.Context, c *ec2.Client, n *sim.State) error {
	err := pages(ctx, ec2.NewDescribeVpcsPaginator(c, &ec2.DescribeVpcsInput{}), func(p *ec2.DescribeVpcsOutput) {
		for _, v := range p.Vpcs {
			own := &sim.VPC{Thing: r.thing(v.VpcId, tagsOf(v.Tags)), CIDR: aws.ToString(v.CidrBlock), Tenancy: string(v.InstanceTenancy), Default: aws.ToBool(v.IsDefault), DNSSupport: true}
			own.Given = own.Default
			for _, b := range v.CidrBlockAssociationSet {
				used := b.CidrBlockState == nil || b.CidrBlockState.State == types.VpcCidrBlockStateCodeAssociated
				if aws.ToString(b.CidrBlock) != own.CIDR && used {
					own.Secondary = append(own.Secondary, sim.Association{ID: aws.ToString(b.AssociationId), CIDR: aws.ToString(b.CidrBlock), Born: r.old()})
				}
			}
			for _, b := range v.Ipv6CidrBlockAssociationSet {
				if b.Ipv6CidrBlockState == nil || b.Ipv6CidrBlockState.State == types.VpcCidrBlockStateCodeAssociated {
					own.IPv6 = &sim.Association{ID: aws.ToString(b.AssociationId), CIDR: aws.ToString(b.Ipv6CidrBlock), Born: r.old()}
				}
			}
			n.VPCs[own.ID] = own
		}
	})
	if err != nil {
		return err
	}
	for id, v := range n.VPCs {
		if v.DNSHostnames = v.Default; !r.Asked.about(id, v.Tags["Name"]) {
			continue // of VPCs that the manifest does not touch, the settings do not matter
		}
		if err := r.dns(ctx, c, v); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) dns(ctx context.Context, c *ec2.Client, v *sim.VPC) error {
	names, err := c.DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: &v.ID, Attribute: types.VpcAttributeNameEnableDnsHostnames})
	if err != nil {
		return err
	}
	support, err := c.DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: &v.ID, Attribute: types.VpcAttributeNameEnableDnsSupport})
	if err != nil {
		return err
	}
	on := func(a *types.AttributeBooleanValue) bool { return a != nil && aws.ToBool(a.Value) }
	v.DNSHostnames, v.DNSSupport = on(names.EnableDnsHostnames), on(support.EnableDnsSupport)
	return nil
}

func (r *reader) subnets(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeSubnetsPaginator(c, &ec2.DescribeSubnetsInput{}), func(p *ec2.DescribeSubnetsOutput) {
		for _, s := range p.Subnets {
			own := &sim.Subnet{
				Thing: r.thing(s.SubnetId, tagsOf(s.Tags)), VPC: aws.ToString(s.VpcId), CIDR: aws.ToString(s.CidrBlock), Zone: aws.ToString(s.AvailabilityZone),
				MapPublicIP: aws.ToBool(s.MapPublicIpOnLaunch), AssignIPv6: aws.ToBool(s.AssignIpv6AddressOnCreation), DNS64: aws.ToBool(s.EnableDns64),
				Default: aws.ToBool(s.DefaultForAz), Native: aws.ToBool(s.Ipv6Native), HostnameType: string(types.HostnameTypeIpName),
			}
			own.Given = own.Default
			for _, b := range s.Ipv6CidrBlockAssociationSet {
				if b.Ipv6CidrBlockState == nil || b.Ipv6CidrBlockState.State == types.SubnetCidrBlockStateCodeAssociated {
					own.IPv6CIDR = aws.ToString(b.Ipv6CidrBlock)
				}
			}
			if o := s.PrivateDnsNameOptionsOnLaunch; o != nil {
				own.HostnameType = string(o.HostnameType)
				own.ResourceNameA, own.ResourceNameAAAA = aws.ToBool(o.EnableResourceNameDnsARecord), aws.ToBool(o.EnableResourceNameDnsAAAARecord)
			}
			n.Subnets[own.ID] = own
		}
	})
}

func (r *reader) internetGateways(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeInternetGatewaysPaginator(c, &ec2.DescribeInternetGatewaysInput{}), func(p *ec2.DescribeInternetGatewaysOutput) {
		for _, g := range p.InternetGateways {
			own := &sim.InternetGateway{Thing: r.thing(g.InternetGatewayId, tagsOf(g.Tags))}
			for _, a := range g.Attachments {
				own.VPC = aws.ToString(a.VpcId)
			}
			if v := n.VPCs[own.VPC]; v != nil {
				own.Given = v.Default
			}
			n.InternetGateways[own.ID] = own
		}
	})
}

func (r *reader) egressOnly(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeEgressOnlyInternetGatewaysPaginator(c, &ec2.DescribeEgressOnlyInternetGatewaysInput{}), func(p *ec2.DescribeEgressOnlyInternetGatewaysOutput) {
		for _, g := range p.EgressOnlyInternetGateways {
			own := &sim.EgressOnlyGateway{Thing: r.thing(g.EgressOnlyInternetGatewayId, tagsOf(g.Tags))}
			for _, a := range g.Attachments {
				own.VPC = aws.ToString(a.VpcId)
			}
			n.EgressOnlyGateways[own.ID] = own
		}
	})
}

func (r *reader) carrierGateways(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeCarrierGatewaysPaginator(c, &ec2.DescribeCarrierGatewaysInput{}), func(p *ec2.DescribeCarrierGatewaysOutput) {
		for _, g := range p.CarrierGateways {
			if g.State == types.CarrierGatewayStateDeleted {
				continue
			}
			own := &sim.CarrierGateway{Thing: r.thing(g.CarrierGatewayId, tagsOf(g.Tags)), VPC: aws.ToString(g.VpcId)}
			n.CarrierGateways[own.ID] = own
		}
	})
}

// endpoints reads gateway endpoints. Interface endpoints are not simulated; their network
// interfaces are copied.
func (r *reader) endpoints(ctx context.Context, c *ec2.Client, n *sim.State) error {
	return pages(ctx, ec2.NewDescribeVpcEndpointsPaginator(c, &ec2.DescribeVpcEndpointsInput{}), func(p *ec2.DescribeVpcEndpointsOutput) {
		for _, e := range p.VpcEndpoints {
			if e.VpcEndpointType != types.VpcEndpointTypeGateway {
				continue
			}
			own := &sim.Endpoint{Thing: r.thing(e.VpcEndpointId, tagsOf(e.Tags)), VPC: aws.ToString(e.VpcId), Service: aws.ToString(e.ServiceName), RouteTables: e.RouteTableIds}
			if s := string(e.State); s == "deleting" || s == "Deleting" {
				own.Deleted = r.Now
			}
			n.Endpoints[own.ID] = own
		}
	})
}
