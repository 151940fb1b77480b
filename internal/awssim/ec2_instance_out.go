package awssim

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// domain is what private names in the region end with.
func (a *AWS) domain() string {
	if a.o.Region == "us-east-1" {
		return "ec2.internal"
	}
	return a.o.Region + ".compute.internal"
}

func (a *AWS) instanceOut(i *Instance) types.Instance {
	s, state := &a.state.EC2, i.state(a.now())
	out := types.Instance{
		InstanceId: aws.String(i.ID), ImageId: text(i.Image), InstanceType: types.InstanceType(i.Type), KeyName: text(i.Key), State: stateOut(state),
		LaunchTime: aws.Time(i.Born), AmiLaunchIndex: aws.Int32(int32(i.Index)), //nolint:gosec // small
		ClientToken: text(i.Token), MetadataOptions: i.Metadata.out(), Tags: tagsOut(i.Tags), RootDeviceType: types.DeviceTypeEbs,
		VirtualizationType: types.VirtualizationTypeHvm, Hypervisor: types.HypervisorTypeXen, PlatformDetails: aws.String("Linux/UNIX"),
		Monitoring: &types.Monitoring{State: types.MonitoringStateDisabled},
		Placement: &types.Placement{
			AvailabilityZone: text(i.Zone), Tenancy: types.Tenancy(i.Placement.Tenancy), GroupName: aws.String(i.Placement.Group),
			HostId: text(i.Placement.Host), Affinity: text(i.Placement.Affinity),
		},
		PrivateDnsName: aws.String(""), PublicDnsName: aws.String(""),
	}
	if i.Placement.Partition != 0 {
		out.Placement.PartitionNumber = aws.Int32(i.Placement.Partition)
	}
	if image := s.Images[i.Image]; image != nil {
		out.Architecture, out.RootDeviceName = types.ArchitectureValues(image.Architecture), aws.String(image.RootDevice)
	}
	if i.Spot {
		out.InstanceLifecycle = types.InstanceLifecycleTypeSpot
		out.SpotInstanceRequestId = aws.String("sir-" + strings.TrimPrefix(i.ID, "i-"))
	}
	if i.Profile != "" {
		out.IamInstanceProfile = &types.IamInstanceProfile{Arn: aws.String(i.profileARN())}
	}
	if id, preference := i.Launch["capacity-reservation"], i.Launch["capacity-reservation-preference"]; id != "" || preference != "" {
		out.CapacityReservationSpecification = &types.CapacityReservationSpecificationResponse{
			CapacityReservationPreference: types.CapacityReservationPreference(preference),
		}
		if id != "" {
			out.CapacityReservationSpecification.CapacityReservationTarget = &types.CapacityReservationTargetResponse{CapacityReservationId: aws.String(id)}
		}
	}
	if !i.Terminating.IsZero() {
		out.StateReason = &types.StateReason{Code: aws.String("Client.UserInitiatedShutdown"), Message: aws.String("Client.UserInitiatedShutdown: User initiated shutdown")}
		out.StateTransitionReason = aws.String("User initiated (" + i.Terminating.UTC().Format("2006-01-02 15:04:05 MST") + ")")
	}
	if state != types.InstanceStateNameTerminated {
		a.networkOut(i, &out)
	}
	return out
}

func (i *Instance) profileARN() string {
	return "arn:aws:iam::" + Account + ":instance-profile/" + i.Profile
}

// networkOut adds what an instance loses when it is terminated: its place in
// the network and its volumes.
func (a *AWS) networkOut(i *Instance, out *types.Instance) {
	s := &a.state.EC2
	out.VpcId, out.SubnetId, out.SourceDestCheck = aws.String(i.VPC), aws.String(i.Subnet), aws.Bool(true)
	out.PrivateDnsNameOptions = &types.PrivateDnsNameOptionsResponse{
		HostnameType: types.HostnameType(i.HostnameType), EnableResourceNameDnsARecord: aws.Bool(i.ResourceNameA),
		EnableResourceNameDnsAAAARecord: aws.Bool(i.ResourceNameAAAA),
	}
	for _, id := range i.Interfaces {
		n := s.Interfaces[id]
		if n == nil {
			continue
		}
		nic := a.instanceInterface(n)
		out.NetworkInterfaces = append(out.NetworkInterfaces, nic)
		if n.Device != 0 {
			continue
		}
		out.PrivateIpAddress, out.PublicIpAddress = text(n.PrivateIP), text(n.PublicIP)
		out.SecurityGroups, out.SourceDestCheck = nic.Groups, aws.Bool(!n.NoSourceCheck)
		if len(n.IPv6) > 0 {
			out.Ipv6Address = aws.String(n.IPv6[0])
		}
		out.PrivateDnsName = aws.String("ip-" + strings.ReplaceAll(n.PrivateIP, ".", "-") + "." + a.domain())
		if i.HostnameType == string(types.HostnameTypeResourceName) {
			out.PrivateDnsName = aws.String(i.ID + "." + a.domain())
		}
		if v := s.VPCs[i.VPC]; v != nil && v.DNSHostnames && n.PublicIP != "" {
			out.PublicDnsName = aws.String("ec2-" + strings.ReplaceAll(n.PublicIP, ".", "-") + "." + strings.TrimSuffix(a.domain(), ".internal") + ".amazonaws.com")
		}
	}
	for _, id := range i.Volumes {
		v := s.Volumes[id]
		if v == nil {
			continue
		}
		out.BlockDeviceMappings = append(out.BlockDeviceMappings, types.InstanceBlockDeviceMapping{
			DeviceName: aws.String(v.Device), Ebs: &types.EbsInstanceBlockDevice{
				VolumeId: aws.String(v.ID), DeleteOnTermination: aws.Bool(v.DeleteWithInstance), AttachTime: aws.Time(v.Born), Status: types.AttachmentStatusAttached,
			},
		})
	}
}

func (a *AWS) instanceInterface(n *Interface) types.InstanceNetworkInterface {
	out := types.InstanceNetworkInterface{
		NetworkInterfaceId: aws.String(n.ID), SubnetId: aws.String(n.Subnet), VpcId: aws.String(n.VPC), Description: aws.String(n.Description),
		InterfaceType: aws.String(n.Type), OwnerId: aws.String(Account), PrivateIpAddress: text(n.PrivateIP), Status: n.status(),
		MacAddress: aws.String(n.mac()), Groups: a.groupNames(n.Groups), SourceDestCheck: aws.Bool(!n.NoSourceCheck),
		Attachment: &types.InstanceNetworkInterfaceAttachment{
			AttachmentId: aws.String(n.attachmentID()), DeviceIndex: aws.Int32(n.Device), DeleteOnTermination: aws.Bool(n.DeleteWithOwner),
			Status: types.AttachmentStatusAttached, AttachTime: aws.Time(n.Born),
		},
		Ipv6Addresses: each(n.IPv6, func(ip string) types.InstanceIpv6Address {
			return types.InstanceIpv6Address{Ipv6Address: aws.String(ip)}
		}),
	}
	if n.PublicIP != "" {
		out.Association = &types.InstanceNetworkInterfaceAssociation{PublicIp: aws.String(n.PublicIP), IpOwnerId: aws.String("amazon")}
	}
	return out
}

// instanceFields are what DescribeInstances can be asked for. A terminated
// instance is in no network any more.
func (a *AWS) instanceFields() fields[*Instance] {
	now := a.now()
	alive := func(get func(*Instance) []string) func(*Instance) []string {
		return func(i *Instance) []string {
			if i.state(now) == types.InstanceStateNameTerminated {
				return nil
			}
			return get(i)
		}
	}
	nics := func(get func(*Interface) []string) func(*Instance) []string {
		return func(i *Instance) (all []string) {
			for _, id := range i.Interfaces {
				if n := a.state.EC2.Interfaces[id]; n != nil {
					all = append(all, get(n)...)
				}
			}
			return all
		}
	}
	names := func(ids []string) []string {
		return each(a.groupNames(ids), func(g types.GroupIdentifier) string { return aws.ToString(g.GroupName) })
	}
	return fields[*Instance]{
		"instance-id":         func(i *Instance) []string { return []string{i.ID} },
		"instance-state-name": func(i *Instance) []string { return []string{string(i.state(now))} },
		"instance-state-code": func(i *Instance) []string { return []string{fmt.Sprint(*stateOut(i.state(now)).Code)} },
		"instance-type":       func(i *Instance) []string { return []string{i.Type} },
		"image-id":            func(i *Instance) []string { return []string{i.Image} },
		"key-name":            func(i *Instance) []string { return one(i.Key) },
		"availability-zone":   func(i *Instance) []string { return []string{i.Zone} },
		"reservation-id":      func(i *Instance) []string { return []string{i.Reservation} },
		"client-token":        func(i *Instance) []string { return one(i.Token) },
		"launch-index":        func(i *Instance) []string { return []string{fmt.Sprint(i.Index)} },
		"owner-id":            func(*Instance) []string { return []string{Account} },
		"instance-lifecycle": func(i *Instance) []string {
			if i.Spot {
				return []string{"spot"}
			}
			return nil
		},
		"iam-instance-profile.arn": func(i *Instance) []string {
			if i.Profile == "" {
				return nil
			}
			return []string{i.profileARN()}
		},
		"placement-group-name":                   func(i *Instance) []string { return one(i.Placement.Group) },
		"tenancy":                                func(i *Instance) []string { return []string{i.Placement.Tenancy} },
		"architecture":                           func(i *Instance) []string { return one(string(a.instanceOut(i).Architecture)) },
		"vpc-id":                                 alive(func(i *Instance) []string { return []string{i.VPC} }),
		"subnet-id":                              alive(func(i *Instance) []string { return []string{i.Subnet} }),
		"private-ip-address":                     nics(func(n *Interface) []string { return one(n.PrivateIP) }),
		"ip-address":                             nics(func(n *Interface) []string { return one(n.PublicIP) }),
		"instance.group-id":                      nics(func(n *Interface) []string { return n.Groups }),
		"instance.group-name":                    nics(func(n *Interface) []string { return names(n.Groups) }),
		"network-interface.network-interface-id": nics(func(n *Interface) []string { return []string{n.ID} }),
		"block-device-mapping.volume-id":         func(i *Instance) []string { return i.Volumes },
	}
}
