package ec2

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Interface is a network interface.
type Interface struct {
	Thing
	VPC, Subnet, Description, Type, PrivateIP, PublicIP string
	Groups                                              []string
	IPv6                                                []string
	Owner                                               string    // an instance, a NAT gateway, a load balancer; "" if not attached
	Managed                                             bool      // managed by AWS: users cannot delete it
	Dies                                                time.Time // when AWS deletes it; zero: not scheduled
	DeleteWithOwner                                     bool
	Device                                              int32 // device index
	NoSourceCheck                                       bool
	Renews                                              bool // its instance was stopped, and gets another public address when it starts
}

func (*Interface) kind() kind {
	return kind{
		prefix: "eni", name: "networkInterface", missing: "InvalidNetworkInterfaceID.NotFound", tags: types.ResourceTypeNetworkInterface, title: "Interface",
		simulate: (*Service).simulateInterfaces, settle: (*Service).settleInterfaces,
	}
}

func (n *Interface) name() string { return n.nameOr(anonymous(n.Description)) }

func (n *Interface) keepsVPC() string { return n.VPC }

// listed reports whether the interface is not in use.
func (n *Interface) listed() bool { return n.Owner == "" || !n.Dies.IsZero() }

func (svc *Service) simulateInterfaces() {
	core.On(svc.Account, svc.createInterface, "SubnetId", "Groups", "Description", "Ipv6AddressCount", "InterfaceType", "ClientToken", "TagSpecifications")
	core.On(svc.Account, svc.describeInterfaces, "NetworkInterfaceIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.modifyInterfaceAttribute, "NetworkInterfaceId", "Groups", "Description", "SourceDestCheck", "Attachment")
	core.On(svc.Account, svc.deleteInterface, "NetworkInterfaceId")
}

// NewInterface creates an interface that AWS manages for its owner, such as a NAT gateway
// or a load balancer. kind is the interface type. If it is internet-facing, the caller
// sets PublicIP, and the internet gateway cannot be detached. The caller has checked that
// the subnet has free addresses.
func (svc *Service) NewInterface(subnet, description, kind, owner string, groups []string) *Interface {
	s := svc.state.Subnets[subnet]
	n := &Interface{
		Thing: svc.newThing("eni", nil), VPC: s.VPC, Subnet: s.ID, Description: description, Type: kind, PrivateIP: svc.address(s),
		Groups: slices.Clone(groups), Owner: owner, Managed: true,
	}
	svc.state.Interfaces[n.ID] = n
	return n
}

// ReleaseInterfaces deletes the interfaces of a deleted owner after a delay. Until then,
// their subnets, groups and addresses cannot be deleted.
func (svc *Service) ReleaseInterfaces(owner string, after time.Duration) {
	for _, n := range svc.state.Interfaces {
		if n.Owner == owner {
			n.Dies = svc.Now().Add(after)
		}
	}
}

// DetachInterfaces detaches the interfaces of a deleted owner: nobody uses them, and AWS
// deletes them after a delay.
func (svc *Service) DetachInterfaces(owner string, after time.Duration) {
	for _, n := range svc.state.Interfaces {
		if n.Owner == owner {
			n.Owner, n.Dies = "", svc.Now().Add(after)
		}
	}
}

// RemoveInterface removes an interface and releases its elastic IP.
func (svc *Service) RemoveInterface(id string) {
	for _, e := range svc.state.Addresses {
		if e.Interface == id {
			svc.disassociate(e)
		}
	}
	delete(svc.state.Interfaces, id)
}

func (n *Interface) status() types.NetworkInterfaceStatus {
	if n.Owner == "" {
		return types.NetworkInterfaceStatusAvailable
	}
	return types.NetworkInterfaceStatusInUse
}

// requester returns the requester ID of an interface of AWS.
func (n *Interface) requester() string {
	switch {
	case !n.Managed:
		return ""
	case strings.HasPrefix(n.Owner, "nat-"):
		return "amazon-aws"
	case strings.Contains(n.Owner, ":eks:"):
		return "amazon-eks" // AWS returns the ID of its own role
	}
	return "amazon-elb"
}

func (n *Interface) attachmentID() string { return "eni-attach-" + strings.TrimPrefix(n.ID, "eni-") }

// mac returns a locally administered MAC address.
func (n *Interface) mac() string {
	d := n.ID[len(n.ID)-10:]
	return fmt.Sprintf("02:%s:%s:%s:%s:%s", d[0:2], d[2:4], d[4:6], d[6:8], d[8:10])
}

func (svc *Service) groupNames(ids []string) []types.GroupIdentifier {
	return core.Each(ids, func(id string) types.GroupIdentifier {
		g := types.GroupIdentifier{GroupId: aws.String(id)}
		if known := svc.state.SecurityGroups[id]; known != nil {
			g.GroupName = aws.String(known.Name)
		}
		return g
	})
}

// addressOf returns the elastic IP of an interface, or nil.
func (svc *Service) addressOf(n *Interface) *Address {
	for _, e := range svc.state.Addresses {
		if e.Interface == n.ID {
			return e
		}
	}
	return nil
}

func (svc *Service) interfaceOut(n *Interface) types.NetworkInterface {
	out := types.NetworkInterface{
		NetworkInterfaceId: aws.String(n.ID),
		VpcId:              aws.String(n.VPC),
		SubnetId:           aws.String(n.Subnet),
		Description:        aws.String(n.Description),
		InterfaceType: types.NetworkInterfaceType(
			n.Type,
		),
		OwnerId:          aws.String(svc.Number()),
		PrivateIpAddress: core.Text(n.PrivateIP),
		MacAddress:       aws.String(n.mac()),
		RequesterManaged: aws.Bool(n.Managed),
		RequesterId:      core.Text(n.requester()),
		SourceDestCheck:  aws.Bool(!n.NoSourceCheck),
		Status:           n.status(),
		Groups:           svc.groupNames(n.Groups),
		TagSet:           tagsOut(n.Tags),
		Ipv6Addresses: core.Each(n.IPv6, func(ip string) types.NetworkInterfaceIpv6Address {
			return types.NetworkInterfaceIpv6Address{Ipv6Address: aws.String(ip)}
		}),
	}
	if s := svc.state.Subnets[n.Subnet]; s != nil {
		out.AvailabilityZone = aws.String(s.Zone)
	}
	if n.PrivateIP != "" {
		out.PrivateIpAddresses = []types.NetworkInterfacePrivateIpAddress{{PrivateIpAddress: aws.String(n.PrivateIP), Primary: aws.Bool(true)}}
	}
	if n.PublicIP != "" {
		out.Association = &types.NetworkInterfaceAssociation{PublicIp: aws.String(n.PublicIP), IpOwnerId: aws.String("amazon")}
		if e := svc.addressOf(n); e != nil {
			out.Association.AllocationId, out.Association.AssociationId, out.Association.IpOwnerId = aws.String(e.ID), core.Text(e.Association), aws.String(svc.Number())
		}
	}
	if n.Owner == "" {
		return out
	}
	out.Attachment = &types.NetworkInterfaceAttachment{
		AttachmentId: aws.String(n.attachmentID()), DeviceIndex: aws.Int32(n.Device), Status: types.AttachmentStatusAttached,
		DeleteOnTermination: aws.Bool(n.DeleteWithOwner), InstanceOwnerId: aws.String(svc.Number()), AttachTime: aws.Time(n.Born),
	}
	if n.Managed {
		out.Attachment.InstanceOwnerId = aws.String(n.requester())
	} else {
		out.Attachment.InstanceId = aws.String(n.Owner)
	}
	return out
}

func (svc *Service) describeInterfaces(in *ec2.DescribeNetworkInterfacesInput) (*ec2.DescribeNetworkInterfacesOutput, error) {
	interfaces, next, err := describe(svc, svc.state.Interfaces, query{in.NetworkInterfaceIds, in.Filters, in.NextToken, in.MaxResults}, fields[*Interface]{
		"network-interface-id": func(n *Interface) []string { return []string{n.ID} },
		"vpc-id":               func(n *Interface) []string { return []string{n.VPC} },
		"subnet-id":            func(n *Interface) []string { return []string{n.Subnet} },
		"status":               func(n *Interface) []string { return []string{string(n.status())} },
		"group-id":             func(n *Interface) []string { return n.Groups },
		"group-name": func(n *Interface) []string {
			return core.Each(svc.groupNames(n.Groups), func(g types.GroupIdentifier) string { return aws.ToString(g.GroupName) })
		},
		"description":        func(n *Interface) []string { return []string{n.Description} },
		"interface-type":     func(n *Interface) []string { return []string{n.Type} },
		"requester-managed":  func(n *Interface) []string { return flag(n.Managed) },
		"requester-id":       func(n *Interface) []string { return oneValue(n.requester()) },
		"owner-id":           func(*Interface) []string { return []string{svc.Number()} },
		"private-ip-address": func(n *Interface) []string { return oneValue(n.PrivateIP) },
		"mac-address":        func(n *Interface) []string { return []string{n.mac()} },
		"availability-zone":  func(n *Interface) []string { return oneValue(aws.ToString(svc.interfaceOut(n).AvailabilityZone)) },
		"attachment.instance-id": func(n *Interface) []string {
			if n.Managed {
				return nil
			}
			return oneValue(n.Owner)
		},
		"attachment.status": func(n *Interface) []string {
			if n.Owner == "" {
				return nil
			}
			return []string{"attached"}
		},
		"association.public-ip": func(n *Interface) []string { return oneValue(n.PublicIP) },
	}, svc.interfaceOut)
	return &ec2.DescribeNetworkInterfacesOutput{NetworkInterfaces: interfaces, NextToken: next}, err
}

// userInterface creates an interface for a user.
func (svc *Service) userInterface(s *Subnet, groups []string, tags map[string]string, ipv6 int32) *Interface {
	n := svc.NewInterface(s.ID, "", string(types.NetworkInterfaceTypeInterface), "", groups)
	n.Managed = false
	maps.Copy(n.Tags, tags)
	for range ipv6 {
		n.IPv6 = append(n.IPv6, svc.ipv6Address(s))
	}
	return n
}

func (svc *Service) createInterface(in *ec2.CreateNetworkInterfaceInput) (*ec2.CreateNetworkInterfaceOutput, error) {
	st := svc.state
	return idempotent(svc, "CreateNetworkInterface", in.ClientToken, in, func() ([]string, error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeNetworkInterface)
		if err != nil {
			return nil, err
		}
		s, err := lookup(svc, st.Subnets, in.SubnetId)
		if err != nil {
			return nil, err
		}
		groups, err := svc.GroupsFor(s.VPC, in.Groups)
		if err != nil {
			return nil, err
		}
		ipv6 := aws.ToInt32(in.Ipv6AddressCount)
		if ipv6 > 0 && s.IPv6CIDR == "" {
			return nil, core.Fail("InvalidParameterValue", "the subnet %s has no IPv6 CIDR block", s.ID)
		}
		if !s.Native && svc.freeAddresses(s) < 1 {
			return nil, core.Fail("InsufficientFreeAddressesInSubnet", "the subnet %s has no free addresses", s.ID)
		}
		if in.InterfaceType != "" && in.InterfaceType != "interface" && in.InterfaceType != types.NetworkInterfaceCreationTypeEfa {
			return nil, core.Fail("InvalidParameterValue", "value (%s) for parameter interfaceType is invalid", in.InterfaceType)
		}
		n := svc.userInterface(s, groups, tags, ipv6)
		n.Description = aws.ToString(in.Description)
		if in.InterfaceType != "" {
			n.Type = string(in.InterfaceType)
		}
		return []string{n.ID}, nil
	}, func(ids []string) *ec2.CreateNetworkInterfaceOutput {
		out := svc.interfaceOut(remembered(st.Interfaces, ids, func(t Thing) *Interface { return &Interface{Thing: t} })[0])
		return &ec2.CreateNetworkInterfaceOutput{NetworkInterface: &out, ClientToken: in.ClientToken}
	})
}

// modifyInterfaceAttribute changes one attribute: AWS rejects calls with several.
func (svc *Service) modifyInterfaceAttribute(in *ec2.ModifyNetworkInterfaceAttributeInput) (*ec2.ModifyNetworkInterfaceAttributeOutput, error) {
	n, err := lookup(svc, svc.state.Interfaces, in.NetworkInterfaceId)
	if err != nil {
		return nil, err
	}
	if err := core.Exactly(len(in.Groups) > 0, in.Description != nil, in.SourceDestCheck != nil, in.Attachment != nil); err != nil {
		return nil, err
	}
	out := &ec2.ModifyNetworkInterfaceAttributeOutput{}
	switch {
	case n.Managed:
		return nil, core.Fail("OperationNotPermitted", "you do not have permission to modify the interface %s, which AWS manages", n.ID)
	case in.Description != nil:
		n.Description = aws.ToString(in.Description.Value)
	case in.SourceDestCheck != nil:
		n.NoSourceCheck = !aws.ToBool(in.SourceDestCheck.Value)
	case in.Attachment != nil:
		if err := core.Only("ModifyNetworkInterfaceAttribute", in.Attachment, "AttachmentId", "DeleteOnTermination"); err != nil {
			return nil, err
		}
		if n.Owner == "" || aws.ToString(in.Attachment.AttachmentId) != n.attachmentID() {
			return nil, core.Fail("InvalidAttachmentID.NotFound", "the interface %s has no such attachment", n.ID)
		}
		n.DeleteWithOwner = aws.ToBool(in.Attachment.DeleteOnTermination)
	default:
		groups, err := svc.GroupsFor(n.VPC, in.Groups)
		if err != nil {
			return nil, err
		}
		n.Groups = groups
	}
	return out, nil
}

func (svc *Service) deleteInterface(in *ec2.DeleteNetworkInterfaceInput) (*ec2.DeleteNetworkInterfaceOutput, error) {
	n, err := lookup(svc, svc.state.Interfaces, in.NetworkInterfaceId)
	if err != nil {
		return nil, err
	}
	switch {
	case n.Owner != "":
		return nil, core.Fail("InvalidNetworkInterface.InUse", "the interface '%s' is currently in use", n.ID)
	case n.Managed && n.Dies.IsZero():
		return nil, core.Fail("OperationNotPermitted", "you do not have permission to delete the interface %s, which AWS manages", n.ID)
	}
	svc.RemoveInterface(n.ID)
	return &ec2.DeleteNetworkInterfaceOutput{}, nil
}

// Interface returns the network interface with an ID, or nil.
func (svc *Service) Interface(id string) *Interface { return svc.state.Interfaces[id] }

// InterfacesOf returns the network interfaces of an owner, sorted by ID.
func (svc *Service) InterfacesOf(owner string) []*Interface {
	return slices.DeleteFunc(core.ByKey(svc.state.Interfaces), func(n *Interface) bool { return n.Owner != owner })
}

// Regroup changes the security groups of the interfaces of an owner.
func (svc *Service) Regroup(owner string, groups []string) {
	for _, i := range svc.state.Interfaces {
		if i.Owner == owner && i.Dies.IsZero() {
			i.Groups = slices.Clone(groups)
		}
	}
}

// settleInterfaces removes the interfaces whose deletion is due.
func (svc *Service) settleInterfaces() {
	for id, n := range svc.state.Interfaces {
		if !n.Dies.IsZero() && !n.Dies.After(svc.Now()) {
			svc.RemoveInterface(id)
		}
	}
}

func (n *Interface) details(d printer) []string {
	return []string{
		"of " + n.Owner, n.Subnet, n.Type, n.Description, "groups " + d.list(n.Groups), fmt.Sprintf("IPv6 %d public %t", len(n.IPv6), n.PublicIP != ""),
		fmt.Sprintf("device %d goes with its owner %t", n.Device, n.DeleteWithOwner), fmt.Sprintf("managed %t dying %t", n.Managed, !n.Dies.IsZero()),
		fmt.Sprintf("unchecked source %t", n.NoSourceCheck),
	}
}
