package ec2

import (
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Domain is what private names in the region end with.
func (svc *Service) Domain() string {
	if svc.Region == "us-east-1" {
		return "ec2.internal"
	}
	return svc.Region + ".compute.internal"
}

func (svc *Service) instanceOut(i *Instance) types.Instance {
	s, state := svc.state, i.State(svc.Now())
	out := types.Instance{
		InstanceId: aws.String(i.ID), ImageId: core.Text(i.Image), InstanceType: types.InstanceType(i.Type), KeyName: core.Text(i.Key), State: stateOut(state),
		LaunchTime: aws.Time(i.Born), AmiLaunchIndex: aws.Int32(int32(i.Index)), //nolint:gosec // small
		ClientToken: core.Text(i.Token), MetadataOptions: i.Metadata.out(), Tags: tagsOut(i.Tags), RootDeviceType: types.DeviceTypeEbs,
		VirtualizationType: types.VirtualizationTypeHvm, Hypervisor: types.HypervisorTypeXen, PlatformDetails: aws.String("Linux/UNIX"),
		Monitoring: &types.Monitoring{State: types.MonitoringStateDisabled},
		Placement: &types.Placement{
			AvailabilityZone: core.Text(i.Zone), Tenancy: types.Tenancy(i.Placement.Tenancy), GroupName: aws.String(i.Placement.Group),
			HostId: core.Text(i.Placement.Host), Affinity: core.Text(i.Placement.Affinity),
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
		svc.networkOut(i, &out)
	}
	return out
}

func (i *Instance) profileARN() string {
	return "arn:aws:iam::" + core.AccountID + ":instance-profile/" + i.Profile
}

// networkOut adds what an instance loses when it is terminated: its place in
// the network and its volumes.
func (svc *Service) networkOut(i *Instance, out *types.Instance) {
	s := svc.state
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
		nic := svc.instanceInterface(n)
		out.NetworkInterfaces = append(out.NetworkInterfaces, nic)
		if n.Device != 0 {
			continue
		}
		out.PrivateIpAddress, out.PublicIpAddress = core.Text(n.PrivateIP), core.Text(n.PublicIP)
		out.SecurityGroups, out.SourceDestCheck = nic.Groups, aws.Bool(!n.NoSourceCheck)
		if len(n.IPv6) > 0 {
			out.Ipv6Address = aws.String(n.IPv6[0])
		}
		out.PrivateDnsName = aws.String("ip-" + strings.ReplaceAll(n.PrivateIP, ".", "-") + "." + svc.Domain())
		if i.HostnameType == string(types.HostnameTypeResourceName) {
			out.PrivateDnsName = aws.String(i.ID + "." + svc.Domain())
		}
		if v := s.VPCs[i.VPC]; v != nil && v.DNSHostnames && n.PublicIP != "" {
			out.PublicDnsName = aws.String("ec2-" + strings.ReplaceAll(n.PublicIP, ".", "-") + "." + strings.TrimSuffix(svc.Domain(), ".internal") + ".amazonaws.com")
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

func (svc *Service) instanceInterface(n *Interface) types.InstanceNetworkInterface {
	out := types.InstanceNetworkInterface{
		NetworkInterfaceId: aws.String(n.ID), SubnetId: aws.String(n.Subnet), VpcId: aws.String(n.VPC), Description: aws.String(n.Description),
		InterfaceType: aws.String(n.Type), OwnerId: aws.String(core.AccountID), PrivateIpAddress: core.Text(n.PrivateIP), Status: n.status(),
		MacAddress: aws.String(n.mac()), Groups: svc.groupNames(n.Groups), SourceDestCheck: aws.Bool(!n.NoSourceCheck),
		Attachment: &types.InstanceNetworkInterfaceAttachment{
			AttachmentId: aws.String(n.attachmentID()), DeviceIndex: aws.Int32(n.Device), DeleteOnTermination: aws.Bool(n.DeleteWithOwner),
			Status: types.AttachmentStatusAttached, AttachTime: aws.Time(n.Born),
		},
		Ipv6Addresses: core.Each(n.IPv6, func(ip string) types.InstanceIpv6Address {
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
func (svc *Service) instanceFields() fields[*Instance] {
	now := svc.Now()
	alive := func(get func(*Instance) []string) func(*Instance) []string {
		return func(i *Instance) []string {
			if i.State(now) == types.InstanceStateNameTerminated {
				return nil
			}
			return get(i)
		}
	}
	nics := func(get func(*Interface) []string) func(*Instance) []string {
		return func(i *Instance) (all []string) {
			for _, id := range i.Interfaces {
				if n := svc.state.Interfaces[id]; n != nil {
					all = append(all, get(n)...)
				}
			}
			return all
		}
	}
	names := func(ids []string) []string {
		return core.Each(svc.groupNames(ids), func(g types.GroupIdentifier) string { return aws.ToString(g.GroupName) })
	}
	return fields[*Instance]{
		"instance-id":         func(i *Instance) []string { return []string{i.ID} },
		"instance-state-name": func(i *Instance) []string { return []string{string(i.State(now))} },
		"instance-state-code": func(i *Instance) []string { return []string{fmt.Sprint(*stateOut(i.State(now)).Code)} },
		"instance-type":       func(i *Instance) []string { return []string{i.Type} },
		"image-id":            func(i *Instance) []string { return []string{i.Image} },
		"key-name":            func(i *Instance) []string { return one(i.Key) },
		"availability-zone":   func(i *Instance) []string { return []string{i.Zone} },
		"reservation-id":      func(i *Instance) []string { return []string{i.Reservation} },
		"client-token":        func(i *Instance) []string { return one(i.Token) },
		"launch-index":        func(i *Instance) []string { return []string{fmt.Sprint(i.Index)} },
		"owner-id":            func(*Instance) []string { return []string{core.AccountID} },
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
		"architecture":                           func(i *Instance) []string { return one(string(svc.instanceOut(i).Architecture)) },
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
