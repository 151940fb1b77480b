package awssim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func (a *AWS) simulateInterfaces() {
	on(a, a.createInterface, "SubnetId", "Groups", "Description", "Ipv6AddressCount", "InterfaceType", "ClientToken", "TagSpecifications")
	on(a, a.describeInterfaces, "NetworkInterfaceIds", "Filters", "NextToken", "MaxResults")
	on(a, a.modifyInterfaceAttribute, "NetworkInterfaceId", "Groups", "Description", "SourceDestCheck", "Attachment")
	on(a, a.deleteInterface, "NetworkInterfaceId")
}

// newInterface makes an interface that AWS manages itself, for the owner: a
// NAT gateway or a load balancer. The kind is its interface type. An interface
// that faces the internet is to be given a PublicIP by the caller, which then
// keeps the internet gateway. The caller has looked whether the subnet has
// free addresses.
func (a *AWS) newInterface(subnet, description, kind, owner string, groups []string) *Interface {
	s := a.state.EC2.Subnets[subnet]
	n := &Interface{
		Thing: a.made("eni", nil), VPC: s.VPC, Subnet: s.ID, Description: description, Type: kind, PrivateIP: a.address(s),
		Groups: slices.Clone(groups), Owner: owner, Managed: true,
	}
	a.state.EC2.Interfaces[n.ID] = n
	return n
}

// releaseInterfaces lets the interfaces of an owner that is gone die a while
// later. Until then they keep their subnets, groups and addresses.
func (a *AWS) releaseInterfaces(owner string, after time.Duration) {
	for _, n := range a.state.EC2.Interfaces {
		if n.Owner == owner {
			n.Dies = a.now().Add(after)
		}
	}
}

// bury removes an interface; its elastic IP is free from then on.
func (a *AWS) bury(id string) {
	for _, e := range a.state.EC2.Addresses {
		if e.Interface == id {
			a.takeOff(e)
		}
	}
	delete(a.state.EC2.Interfaces, id)
}

func (n *Interface) status() types.NetworkInterfaceStatus {
	if n.Owner == "" {
		return types.NetworkInterfaceStatusAvailable
	}
	return types.NetworkInterfaceStatusInUse
}

// requester is on whose behalf AWS made an interface.
func (n *Interface) requester() string {
	switch {
	case !n.Managed:
		return ""
	case strings.HasPrefix(n.Owner, "nat-"):
		return "amazon-aws"
	case strings.Contains(n.Owner, ":eks:"):
		return "amazon-eks" // AWS shows the ID of a role of its own
	}
	return "amazon-elb"
}

func (n *Interface) attachmentID() string { return "eni-attach-" + strings.TrimPrefix(n.ID, "eni-") }

// mac is a locally administered hardware address.
func (n *Interface) mac() string {
	d := n.ID[len(n.ID)-10:]
	return fmt.Sprintf("02:%s:%s:%s:%s:%s", d[0:2], d[2:4], d[4:6], d[6:8], d[8:10])
}

func (a *AWS) groupNames(ids []string) []types.GroupIdentifier {
	return each(ids, func(id string) types.GroupIdentifier {
		g := types.GroupIdentifier{GroupId: aws.String(id)}
		if known := a.state.EC2.SecurityGroups[id]; known != nil {
			g.GroupName = aws.String(known.Name)
		}
		return g
	})
}

// addressOf returns the elastic IP that an interface has, if it is one.
func (a *AWS) addressOf(n *Interface) *Address {
	for _, e := range a.state.EC2.Addresses {
		if e.Interface == n.ID {
			return e
		}
	}
	return nil
}

func (a *AWS) interfaceOut(n *Interface) types.NetworkInterface {
	out := types.NetworkInterface{
		NetworkInterfaceId: aws.String(n.ID), VpcId: aws.String(n.VPC), SubnetId: aws.String(n.Subnet), Description: aws.String(n.Description),
		InterfaceType: types.NetworkInterfaceType(n.Type), OwnerId: aws.String(Account), PrivateIpAddress: text(n.PrivateIP), MacAddress: aws.String(n.mac()),
		RequesterManaged: aws.Bool(n.Managed), RequesterId: text(n.requester()), SourceDestCheck: aws.Bool(!n.NoSourceCheck), Status: n.status(),
		Groups: a.groupNames(n.Groups), TagSet: tagsOut(n.Tags),
		Ipv6Addresses: each(n.IPv6, func(ip string) types.NetworkInterfaceIpv6Address {
			return types.NetworkInterfaceIpv6Address{Ipv6Address: aws.String(ip)}
		}),
	}
	if s := a.state.EC2.Subnets[n.Subnet]; s != nil {
		out.AvailabilityZone = aws.String(s.Zone)
	}
	if n.PrivateIP != "" {
		out.PrivateIpAddresses = []types.NetworkInterfacePrivateIpAddress{{PrivateIpAddress: aws.String(n.PrivateIP), Primary: aws.Bool(true)}}
	}
	if n.PublicIP != "" {
		out.Association = &types.NetworkInterfaceAssociation{PublicIp: aws.String(n.PublicIP), IpOwnerId: aws.String("amazon")}
		if e := a.addressOf(n); e != nil {
			out.Association.AllocationId, out.Association.AssociationId, out.Association.IpOwnerId = aws.String(e.ID), text(e.Association), aws.String(Account)
		}
	}
	if n.Owner == "" {
		return out
	}
	out.Attachment = &types.NetworkInterfaceAttachment{
		AttachmentId: aws.String(n.attachmentID()), DeviceIndex: aws.Int32(n.Device), Status: types.AttachmentStatusAttached,
		DeleteOnTermination: aws.Bool(n.DeleteWithOwner), InstanceOwnerId: aws.String(Account), AttachTime: aws.Time(n.Born),
	}
	if n.Managed {
		out.Attachment.InstanceOwnerId = aws.String(n.requester())
	} else {
		out.Attachment.InstanceId = aws.String(n.Owner)
	}
	return out
}

func (a *AWS) describeInterfaces(in *ec2.DescribeNetworkInterfacesInput) (*ec2.DescribeNetworkInterfacesOutput, error) {
	interfaces, next, err := describe(a, a.state.EC2.Interfaces, "eni", query{in.NetworkInterfaceIds, in.Filters, in.NextToken, in.MaxResults}, fields[*Interface]{
		"network-interface-id": func(n *Interface) []string { return []string{n.ID} },
		"vpc-id":               func(n *Interface) []string { return []string{n.VPC} },
		"subnet-id":            func(n *Interface) []string { return []string{n.Subnet} },
		"status":               func(n *Interface) []string { return []string{string(n.status())} },
		"group-id":             func(n *Interface) []string { return n.Groups },
		"group-name": func(n *Interface) []string {
			return each(a.groupNames(n.Groups), func(g types.GroupIdentifier) string { return aws.ToString(g.GroupName) })
		},
		"description":        func(n *Interface) []string { return []string{n.Description} },
		"interface-type":     func(n *Interface) []string { return []string{n.Type} },
		"requester-managed":  func(n *Interface) []string { return flag(n.Managed) },
		"requester-id":       func(n *Interface) []string { return one(n.requester()) },
		"owner-id":           func(*Interface) []string { return []string{Account} },
		"private-ip-address": func(n *Interface) []string { return one(n.PrivateIP) },
		"mac-address":        func(n *Interface) []string { return []string{n.mac()} },
		"availability-zone":  func(n *Interface) []string { return one(aws.ToString(a.interfaceOut(n).AvailabilityZone)) },
		"attachment.instance-id": func(n *Interface) []string {
			if n.Managed {
				return nil
			}
			return one(n.Owner)
		},
		"attachment.status": func(n *Interface) []string {
			if n.Owner == "" {
				return nil
			}
			return []string{"attached"}
		},
		"association.public-ip": func(n *Interface) []string { return one(n.PublicIP) },
	}, a.interfaceOut)
	return &ec2.DescribeNetworkInterfacesOutput{NetworkInterfaces: interfaces, NextToken: next}, err
}

// userInterface makes an interface for the account's user.
func (a *AWS) userInterface(s *Subnet, groups []string, tags map[string]string, ipv6 int32) *Interface {
	n := a.newInterface(s.ID, "", string(types.NetworkInterfaceTypeInterface), "", groups)
	n.Managed = false
	maps.Copy(n.Tags, tags)
	for range ipv6 {
		n.IPv6 = append(n.IPv6, a.ipv6Address(s))
	}
	return n
}

func (a *AWS) createInterface(in *ec2.CreateNetworkInterfaceInput) (*ec2.CreateNetworkInterfaceOutput, error) {
	st := &a.state.EC2
	return once(a, "CreateNetworkInterface", in.ClientToken, in, func() ([]string, error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeNetworkInterface)
		if err != nil {
			return nil, err
		}
		s, err := lookup(a, st.Subnets, "subnet", in.SubnetId)
		if err != nil {
			return nil, err
		}
		groups, err := a.groupsFor(s.VPC, in.Groups)
		if err != nil {
			return nil, err
		}
		ipv6 := aws.ToInt32(in.Ipv6AddressCount)
		if ipv6 > 0 && s.IPv6CIDR == "" {
			return nil, fail("InvalidParameterValue", "the subnet %s has no IPv6 CIDR block", s.ID)
		}
		if !s.Native && a.freeAddresses(s) < 1 {
			return nil, fail("InsufficientFreeAddressesInSubnet", "the subnet %s has no free addresses", s.ID)
		}
		if in.InterfaceType != "" && in.InterfaceType != "interface" && in.InterfaceType != types.NetworkInterfaceCreationTypeEfa {
			return nil, fail("InvalidParameterValue", "value (%s) for parameter interfaceType is invalid", in.InterfaceType)
		}
		n := a.userInterface(s, groups, tags, ipv6)
		n.Description = aws.ToString(in.Description)
		if in.InterfaceType != "" {
			n.Type = string(in.InterfaceType)
		}
		return []string{n.ID}, nil
	}, func(ids []string) *ec2.CreateNetworkInterfaceOutput {
		out := a.interfaceOut(remembered(st.Interfaces, ids, func(t Thing) *Interface { return &Interface{Thing: t} })[0])
		return &ec2.CreateNetworkInterfaceOutput{NetworkInterface: &out, ClientToken: in.ClientToken}
	})
}

// modifyInterfaceAttribute changes one attribute: AWS takes no two in a call.
func (a *AWS) modifyInterfaceAttribute(in *ec2.ModifyNetworkInterfaceAttributeInput) (*ec2.ModifyNetworkInterfaceAttributeOutput, error) {
	n, err := lookup(a, a.state.EC2.Interfaces, "eni", in.NetworkInterfaceId)
	if err != nil {
		return nil, err
	}
	if err := exactly(len(in.Groups) > 0, in.Description != nil, in.SourceDestCheck != nil, in.Attachment != nil); err != nil {
		return nil, err
	}
	out := &ec2.ModifyNetworkInterfaceAttributeOutput{}
	switch {
	case n.Managed:
		return nil, fail("OperationNotPermitted", "you do not have permission to modify the interface %s, which AWS manages", n.ID)
	case in.Description != nil:
		n.Description = aws.ToString(in.Description.Value)
	case in.SourceDestCheck != nil:
		n.NoSourceCheck = !aws.ToBool(in.SourceDestCheck.Value)
	case in.Attachment != nil:
		if err := only("ModifyNetworkInterfaceAttribute", in.Attachment, "AttachmentId", "DeleteOnTermination"); err != nil {
			return nil, err
		}
		if n.Owner == "" || aws.ToString(in.Attachment.AttachmentId) != n.attachmentID() {
			return nil, fail("InvalidAttachmentID.NotFound", "the interface %s has no such attachment", n.ID)
		}
		n.DeleteWithOwner = aws.ToBool(in.Attachment.DeleteOnTermination)
	default:
		groups, err := a.groupsFor(n.VPC, in.Groups)
		if err != nil {
			return nil, err
		}
		n.Groups = groups
	}
	return out, nil
}

func (a *AWS) deleteInterface(in *ec2.DeleteNetworkInterfaceInput) (*ec2.DeleteNetworkInterfaceOutput, error) {
	n, err := lookup(a, a.state.EC2.Interfaces, "eni", in.NetworkInterfaceId)
	if err != nil {
		return nil, err
	}
	switch {
	case n.Owner != "":
		return nil, fail("InvalidNetworkInterface.InUse", "the interface '%s' is currently in use", n.ID)
	case n.Managed:
		return nil, fail("OperationNotPermitted", "you do not have permission to delete the interface %s, which AWS manages", n.ID)
	}
	a.bury(n.ID)
	return &ec2.DeleteNetworkInterfaceOutput{}, nil
}
