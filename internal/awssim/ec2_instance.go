package awssim

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func (a *AWS) simulateInstances() {
	on(a, a.runInstances, "MinCount", "MaxCount", "ClientToken", "ImageId", "InstanceType", "KeyName", "UserData", "IamInstanceProfile",
		"NetworkInterfaces", "SubnetId", "SecurityGroupIds", "BlockDeviceMappings", "InstanceMarketOptions", "MetadataOptions", "PrivateDnsNameOptions",
		"CapacityReservationSpecification", "CpuOptions", "Placement", "TagSpecifications", "DisableApiTermination")
	on(a, a.describeInstances, "InstanceIds", "Filters", "NextToken", "MaxResults")
	on(a, a.describeInstanceAttribute, "InstanceId", "Attribute")
	on(a, a.modifyInstanceMetadataOptions, "InstanceId", "HttpEndpoint", "HttpProtocolIpv6", "HttpPutResponseHopLimit", "HttpTokens", "InstanceMetadataTags")
	on(a, a.modifyInstanceAttribute, "InstanceId", "Groups", "DisableApiTermination", "SourceDestCheck")
	on(a, a.terminateInstances, "InstanceIds")
}

func (i *Instance) state(now time.Time) types.InstanceStateName {
	switch {
	case !i.Terminated.IsZero() && !i.Terminated.After(now):
		return types.InstanceStateNameTerminated
	case !i.Terminating.IsZero():
		return types.InstanceStateNameShuttingDown
	case i.Running.After(now):
		return types.InstanceStateNamePending
	}
	return types.InstanceStateNameRunning
}

func stateOut(s types.InstanceStateName) *types.InstanceState {
	codes := map[types.InstanceStateName]int32{
		types.InstanceStateNamePending: 0, types.InstanceStateNameRunning: 16,
		types.InstanceStateNameShuttingDown: 32, types.InstanceStateNameTerminated: 48,
	}
	return &types.InstanceState{Name: s, Code: aws.Int32(codes[s])}
}

// set changes the options that are given; the others stay.
func (m *MetadataOptions) set(endpoint, ipv6, tokens, tags string, hopLimit *int32) error {
	for _, o := range []struct {
		to     *string
		value  string
		values []string
	}{
		{&m.Endpoint, endpoint, []string{"enabled", "disabled"}}, {&m.IPv6, ipv6, []string{"enabled", "disabled"}},
		{&m.Tokens, tokens, []string{"optional", "required"}}, {&m.Tags, tags, []string{"enabled", "disabled"}},
	} {
		if o.value == "" {
			continue
		}
		if !slices.Contains(o.values, o.value) {
			return fail("InvalidParameterValue", "the metadata option %q is invalid", o.value)
		}
		*o.to = o.value
	}
	if hopLimit == nil {
		return nil
	}
	if *hopLimit < 1 || *hopLimit > 64 {
		return fail("InvalidParameterValue", "the hop limit %d is not between 1 and 64", *hopLimit)
	}
	m.HopLimit = *hopLimit
	return nil
}

// allow refuses tags whose keys the metadata service cannot show, if it is to
// show them ("View tags for your EC2 instances using instance metadata" in the
// user guide): above all those with a slash.
func (m *MetadataOptions) allow(tags map[string]string) error {
	if m.Tags != "enabled" {
		return nil
	}
	fit := regexp.MustCompile(`^[a-zA-Z0-9+\-=.,_:@]+$`)
	for k := range tags {
		if !fit.MatchString(k) || k == "." || k == ".." || k == "_index" {
			return fail("InvalidParameterValue", "'%s' is not a valid tag key: tags are allowed in the instance's metadata", k)
		}
	}
	return nil
}

func (m *MetadataOptions) out() *types.InstanceMetadataOptionsResponse {
	return &types.InstanceMetadataOptionsResponse{
		HttpEndpoint: types.InstanceMetadataEndpointState(m.Endpoint), HttpProtocolIpv6: types.InstanceMetadataProtocolState(m.IPv6),
		HttpTokens: types.HttpTokensState(m.Tokens), InstanceMetadataTags: types.InstanceMetadataTagsState(m.Tags),
		HttpPutResponseHopLimit: aws.Int32(m.HopLimit), State: types.InstanceMetadataOptionsStateApplied,
	}
}

// letGo ends what a terminated instance had: interfaces and volumes go with
// it, or are free.
func (a *AWS) letGo(i *Instance) {
	s := &a.state.EC2
	for _, id := range i.Interfaces {
		n := s.Interfaces[id]
		switch {
		case n == nil:
		case n.DeleteWithOwner:
			a.bury(id)
		default:
			n.Owner, n.Device = "", 0
			if e := a.addressOf(n); e != nil {
				e.Instance = ""
			} else {
				n.PublicIP = ""
			}
		}
	}
	for _, id := range i.Volumes {
		v := s.Volumes[id]
		switch {
		case v == nil:
		case v.DeleteWithInstance:
			delete(s.Volumes, id)
		default:
			v.Instance, v.Device = "", ""
		}
	}
	i.Interfaces, i.Volumes = nil, nil
}

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
		"architecture":                           func(i *Instance) []string { return []string{a.state.EC2.Images[i.Image].Architecture} },
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

// describeInstances counts pages in instances. Those of one launch can come on
// several pages.
func (a *AWS) describeInstances(in *ec2.DescribeInstancesInput) (*ec2.DescribeInstancesOutput, error) {
	found, next, err := describe(a, a.state.EC2.Instances, "i", query{in.InstanceIds, in.Filters, in.NextToken, in.MaxResults},
		a.instanceFields(), func(i *Instance) *Instance { return i })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(x, y *Instance) int {
		return cmp.Or(strings.Compare(x.Reservation, y.Reservation), strings.Compare(x.ID, y.ID))
	})
	out := &ec2.DescribeInstancesOutput{NextToken: next}
	for n, i := range found {
		if n == 0 || found[n-1].Reservation != i.Reservation {
			out.Reservations = append(out.Reservations, types.Reservation{ReservationId: aws.String(i.Reservation), OwnerId: aws.String(Account)})
		}
		r := &out.Reservations[len(out.Reservations)-1]
		r.Instances = append(r.Instances, a.instanceOut(i))
	}
	return out, nil
}

func (a *AWS) describeInstanceAttribute(in *ec2.DescribeInstanceAttributeInput) (*ec2.DescribeInstanceAttributeOutput, error) {
	i, err := lookup(a, a.state.EC2.Instances, "i", in.InstanceId)
	if err != nil {
		return nil, err
	}
	if !a.visible(i.Born) {
		return nil, kindOf("i").notFound(i.ID)
	}
	out := &ec2.DescribeInstanceAttributeOutput{InstanceId: in.InstanceId}
	switch in.Attribute { //nolint:exhaustive // the others are not simulated
	case types.InstanceAttributeNameUserData:
		out.UserData = &types.AttributeValue{Value: text(i.UserData)}
	case types.InstanceAttributeNameDisableApiTermination:
		out.DisableApiTermination = &types.AttributeBooleanValue{Value: aws.Bool(i.Protected)}
	case types.InstanceAttributeNameGroupSet:
		out.Groups = a.instanceOut(i).SecurityGroups
	default:
		return nil, fmt.Errorf("awssim: the instance attribute %q is not simulated", in.Attribute)
	}
	return out, nil
}

// modifiable returns an instance that a call may change.
func (a *AWS) modifiable(id *string) (*Instance, error) {
	i, err := lookup(a, a.state.EC2.Instances, "i", id)
	if err != nil {
		return nil, err
	}
	if !i.Terminating.IsZero() {
		return nil, fail("IncorrectInstanceState", "the instance '%s' is not in a state in which it can be changed", i.ID)
	}
	return i, nil
}

func (a *AWS) modifyInstanceMetadataOptions(in *ec2.ModifyInstanceMetadataOptionsInput) (*ec2.ModifyInstanceMetadataOptionsOutput, error) {
	i, err := a.modifiable(in.InstanceId)
	if err != nil {
		return nil, err
	}
	changed := i.Metadata
	if err := changed.set(string(in.HttpEndpoint), string(in.HttpProtocolIpv6), string(in.HttpTokens), string(in.InstanceMetadataTags), in.HttpPutResponseHopLimit); err != nil {
		return nil, err
	}
	if err := changed.allow(i.Tags); err != nil {
		return nil, err
	}
	i.Metadata = changed
	return &ec2.ModifyInstanceMetadataOptionsOutput{InstanceId: in.InstanceId, InstanceMetadataOptions: i.Metadata.out()}, nil
}

// modifyInstanceAttribute changes one attribute: AWS takes no two in a call.
func (a *AWS) modifyInstanceAttribute(in *ec2.ModifyInstanceAttributeInput) (*ec2.ModifyInstanceAttributeOutput, error) {
	i, err := a.modifiable(in.InstanceId)
	if err != nil {
		return nil, err
	}
	if err := exactly(len(in.Groups) > 0, in.DisableApiTermination != nil, in.SourceDestCheck != nil); err != nil {
		return nil, err
	}
	out := &ec2.ModifyInstanceAttributeOutput{}
	if in.DisableApiTermination != nil {
		i.Protected = aws.ToBool(in.DisableApiTermination.Value)
		return out, nil
	}
	if len(i.Interfaces) > 1 {
		return nil, fail("InvalidInstanceID", "there are multiple interfaces attached to instance '%s': please specify an interface ID", i.ID)
	}
	n := a.state.EC2.Interfaces[i.Interfaces[0]]
	if in.SourceDestCheck != nil {
		n.NoSourceCheck = !aws.ToBool(in.SourceDestCheck.Value)
		return out, nil
	}
	groups, err := a.groupsFor(i.VPC, in.Groups)
	if err != nil {
		return nil, err
	}
	n.Groups = groups
	return out, nil
}

// terminateInstances begins the end of instances, of all or none. Asking again
// is no error.
func (a *AWS) terminateInstances(in *ec2.TerminateInstancesInput) (*ec2.TerminateInstancesOutput, error) {
	if len(in.InstanceIds) == 0 || len(in.InstanceIds) > most {
		return nil, fail("InvalidParameterValue", "1 to %d instances can be terminated in one call", most)
	}
	var all []*Instance
	for _, id := range in.InstanceIds {
		i, err := lookup(a, a.state.EC2.Instances, "i", &id)
		if err != nil {
			return nil, err
		}
		if i.Protected {
			return nil, fail("OperationNotPermitted", "the instance '%s' may not be terminated: modify its 'disableApiTermination' instance attribute and try again", id)
		}
		all = append(all, i)
	}
	out := &ec2.TerminateInstancesOutput{}
	for _, i := range all {
		before := i.state(a.now())
		if i.Terminating.IsZero() {
			i.Terminating = a.now()
			i.Terminated = i.Terminating.Add(InstanceStops)
		}
		out.TerminatingInstances = append(out.TerminatingInstances, types.InstanceStateChange{
			InstanceId: aws.String(i.ID), PreviousState: stateOut(before), CurrentState: stateOut(i.state(a.now())),
		})
	}
	return out, nil
}
