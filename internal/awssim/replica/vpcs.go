package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func (r *reader) vpcs(ctx context.Context, c *ec2.Client, n *sim.State) error {
	err := pages(ctx, ec2.NewDescribeVpcsPaginator(c, &ec2.DescribeVpcsInput{}), func(p *ec2.DescribeVpcsOutput) {
		for _, v := range p.Vpcs {
			own := &sim.VPC{
				Thing:      r.thing(v.VpcId, tagsOf(v.Tags)),
				CIDR:       aws.ToString(v.CidrBlock),
				Tenancy:    string(v.InstanceTenancy),
				Default:    aws.ToBool(v.IsDefault),
				DNSSupport: true,
			}
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
