package ec2

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
)

// Interface is a network interface in a VPC or a security group, of any owner.
type Interface struct {
	ID, Description string
	Requester       string // ID of the AWS service or account that created it
	Tags            cloud.Tags
	Groups          []string // IDs of its security groups
	Available       bool     // nothing uses it

	// Instance, NATGateway, Endpoint and LoadBalancer are the resource that it is a part
	// of; LoadBalancer is the name of a classic one, or the last part of an ARN:
	// "net/NAME/0123456789abcdef". EKSCluster is the name of a cluster whose control plane
	// uses it. All are "" if another service uses it, or nobody.
	Instance, NATGateway, Endpoint, LoadBalancer, EKSCluster string
	// CNI: a CNI plugin created it for the pods of a machine.
	CNI bool
}

// Interfaces lists the network interfaces that match the filters.
func Interfaces(ctx context.Context, c *cloud.Clients, filters ...types.Filter) (out []Interface, err error) {
	all, err := describeInterfaces(ctx, c, filters...)
	for _, x := range all {
		out = append(out, interfaceOf(x))
	}
	return out, err
}

// interfaceOf reads from a network interface what uses it. Interfaces of AWS services have
// no reference to their user, other than a description. The user guides of EC2, Elastic
// Load Balancing and EKS show these descriptions.
func interfaceOf(x types.NetworkInterface) Interface {
	i := Interface{
		ID: aws.ToString(x.NetworkInterfaceId), Description: aws.ToString(x.Description), Requester: aws.ToString(x.RequesterId),
		Tags: cloud.FromEC2(x.TagSet), Available: x.Status == types.NetworkInterfaceStatusAvailable,
	}
	for _, g := range x.Groups {
		i.Groups = append(i.Groups, aws.ToString(g.GroupId))
	}
	if x.Attachment != nil {
		i.Instance = aws.ToString(x.Attachment.InstanceId)
	}
	after := func(prefix string) string {
		name, is := strings.CutPrefix(i.Description, prefix)
		if !is {
			return ""
		}
		return name
	}
	if !aws.ToBool(x.RequesterManaged) {
		i.CNI = createdByCNI(i)
		return i
	}
	i.NATGateway, i.Endpoint = after("Interface for NAT Gateway "), after("VPC Endpoint Interface ")
	i.LoadBalancer, i.EKSCluster = after("ELB "), after("Amazon EKS ")
	return i
}

// createdByCNI reports whether a network interface is from a CNI plugin: the Amazon VPC
// CNI, the VPC resource controller of EKS, or Cilium.
func createdByCNI(i Interface) bool {
	for _, prefix := range []string{"aws-K8S-", "aws-k8s-branch-eni", "Cilium-CNI"} {
		if strings.HasPrefix(i.Description, prefix) {
			return true
		}
	}
	return i.Tags[kind.CNITag] != ""
}

// InstanceTags returns the tags of the instances that exist and are not being terminated, by ID, whoever
// owns them.
func InstanceTags(ctx context.Context, c *cloud.Clients, ids []string) (map[string]cloud.Tags, error) {
	found := map[string]cloud.Tags{}
	for part := range slices.Chunk(ids, 200) { // AWS takes 200 values for a filter
		all, err := describeInstances(ctx, c, []types.Filter{
			cloud.Filter("instance-id", part...), NotTerminating(),
		})
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			found[s.ID] = s.Tags
		}
	}
	return found, nil
}

// NATGatewayTags returns the tags of the NAT gateways that exist, by ID.
func NATGatewayTags(ctx context.Context, c *cloud.Clients, ids []string) (map[string]cloud.Tags, error) {
	found := map[string]cloud.Tags{}
	for part := range slices.Chunk(ids, 200) {
		p := ec2.NewDescribeNatGatewaysPaginator(c.EC2, &ec2.DescribeNatGatewaysInput{Filter: []types.Filter{
			cloud.Filter("nat-gateway-id", part...), cloud.Filter("state", "pending", "available"),
		}})
		all, err := cloud.Pages(ctx, p, func(o *ec2.DescribeNatGatewaysOutput) []types.NatGateway { return o.NatGateways })
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			found[aws.ToString(x.NatGatewayId)] = cloud.FromEC2(x.Tags)
		}
	}
	return found, nil
}
