package replica

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// interfaces reads network interfaces: those of machines, NAT gateways and load balancers,
// and those of everybody else in the same VPCs.
func (r *reader) interfaces(ctx context.Context) error {
	found := sim.Table[*sim.Interface]{}
	p := ec2.NewDescribeNetworkInterfacesPaginator(ec2.NewFromConfig(r.Config), &ec2.DescribeNetworkInterfacesInput{})
	err := pages(ctx, p, func(p *ec2.DescribeNetworkInterfacesOutput) {
		for _, n := range p.NetworkInterfaces {
			own := r.interfaceOf(n)
			found[own.ID] = own
		}
	})
	if err == nil {
		r.to.EC2.Interfaces = found
	}
	return err
}

func (r *reader) interfaceOf(n types.NetworkInterface) *sim.Interface {
	own := &sim.Interface{
		Thing: r.thing(
			n.NetworkInterfaceId,
			tagsOf(n.TagSet),
		),
		VPC:         aws.ToString(n.VpcId),
		Subnet:      aws.ToString(n.SubnetId),
		Description: aws.ToString(n.Description),
		Type: string(
			n.InterfaceType,
		),
		PrivateIP:     aws.ToString(n.PrivateIpAddress),
		Managed:       aws.ToBool(n.RequesterManaged),
		NoSourceCheck: !aws.ToBool(n.SourceDestCheck),
	}
	for _, g := range n.Groups {
		own.Groups = append(own.Groups, aws.ToString(g.GroupId))
	}
	for _, a := range n.Ipv6Addresses {
		own.IPv6 = append(own.IPv6, aws.ToString(a.Ipv6Address))
	}
	if n.Association != nil {
		own.PublicIP = aws.ToString(n.Association.PublicIp)
	}
	if a := n.Attachment; a != nil {
		own.DeleteWithOwner, own.Device = aws.ToBool(a.DeleteOnTermination), aws.ToInt32(a.DeviceIndex)
		own.Born = r.since(a.AttachTime)
		own.Owner = r.ownerOf(own, a)
	}
	return own
}

// ownerOf returns the owner of an attached interface, as the simulated account names it.
func (r *reader) ownerOf(n *sim.Interface, a *types.NetworkInterfaceAttachment) string {
	if a.InstanceId != nil {
		return *a.InstanceId
	}
	for _, g := range r.to.EC2.NATGateways {
		if g.Interface == n.ID {
			return g.ID
		}
	}
	path, balancer := strings.CutPrefix(n.Description, "ELB ")
	switch {
	case balancer && strings.Contains(path, "/"):
		return r.arn("elasticloadbalancing", "loadbalancer/"+path) + " " + n.Subnet
	case balancer:
		return n.Description + " " + n.Subnet
	}
	if cluster, ok := strings.CutPrefix(n.Description, "Amazon EKS "); ok {
		return r.arn("eks", "cluster/"+cluster)
	}
	return "somebody else"
}

// arn returns the ARN of a resource of the source.
func (r *reader) arn(service, resource string) string {
	return core.ARN(service, r.Config.Region, r.Account, resource)
}
