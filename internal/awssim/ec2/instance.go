package ec2

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Instance is an instance.
type Instance struct {
	Thing
	Image, Type, Subnet, VPC, Zone, Key, Profile, UserData string // user data as received, in base64
	Reservation, Token                                     string
	HostnameType                                           string // ip-name or resource-name
	ResourceNameA, ResourceNameAAAA                        bool
	Protected                                              bool   // termination through the API is disabled
	StopProtected                                          bool   // stopping through the API is disabled, and termination, too
	Operator                                               string // the service that manages it; "" for none
	Spot                                                   bool
	MaxPrice                                               string
	Interfaces, Volumes                                    []string
	Metadata                                               MetadataOptions
	Placement                                              Placement
	Launch                                                 map[string]string // other launch parameters, for tests
	Running                                                time.Time         // running since
	Terminating                                            time.Time         // start of the termination; zero: none
	Stopped                                                time.Time         // since when it is stopped, or will be; zero: it is not
	Started                                                time.Time         // when it was started again; zero: never
	Failed                                                 string            // why it was terminated before it ran: "CODE: MESSAGE"
	Terminated                                             time.Time         // terminated since
	Index                                                  int               // ami-launch-index
	Boot                                                   *Boot             // nil: it has not booted
	Offline                                                time.Time         // since when its boot script has waited for a connection; zero: it has not
	Late                                                   bool              // it has waited too long
	Waits                                                  *time.Duration    // for how long the script waits; nil: its user data has not been read yet
	JoinFails                                              int               // fault: number of attempts to join that an API server refuses
}

func (*Instance) kind() kind {
	return kind{
		prefix: "i", name: "instance", missing: "InvalidInstanceID.NotFound", tags: types.ResourceTypeInstance, title: "Instance",
		simulate: (*Service).simulateInstances, settle: (*Service).settleInstances,
	}
}

// over reports whether the instance is terminated.
func (i *Instance) over(now time.Time) bool { return i.State(now) == types.InstanceStateNameTerminated }

func (i *Instance) ending(now time.Time) string {
	if i.Terminating.IsZero() {
		return ""
	}
	return string(i.State(now))
}

func (i *Instance) takesTags(tags map[string]string) error { return i.Metadata.allow(tags) }

// MetadataOptions are the options of an instance's metadata service.
type MetadataOptions struct {
	Endpoint, IPv6, Tokens, Tags string
	HopLimit                     int32
}

// Placement is the placement of an instance.
type Placement struct {
	Tenancy, Group, Host, Affinity string
	Partition                      int32
}

func (svc *Service) simulateInstances() {
	core.On(svc.Account, svc.RunInstances, "MinCount", "MaxCount", "ClientToken", "ImageId", "InstanceType", "KeyName", "UserData", "IamInstanceProfile",
		"NetworkInterfaces", "SubnetId", "SecurityGroupIds", "BlockDeviceMappings", "InstanceMarketOptions", "MetadataOptions", "PrivateDnsNameOptions",
		"CapacityReservationSpecification", "CpuOptions", "Placement", "TagSpecifications", "DisableApiTermination", "EnclaveOptions", "LaunchTemplate")
	core.On(svc.Account, svc.describeInstances, "InstanceIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.describeInstanceAttribute, "InstanceId", "Attribute")
	core.On(svc.Account, svc.getConsoleOutput, "InstanceId", "Latest")
	core.On(
		svc.Account,
		svc.modifyInstanceMetadataOptions,
		"InstanceId",
		"HttpEndpoint",
		"HttpProtocolIpv6",
		"HttpPutResponseHopLimit",
		"HttpTokens",
		"InstanceMetadataTags",
	)
	core.On(svc.Account, svc.modifyInstanceAttribute, "InstanceId", "Groups", "DisableApiTermination", "DisableApiStop", "SourceDestCheck")
	core.On(svc.Account, svc.TerminateInstances, "InstanceIds")
	core.On(svc.Account, svc.StopInstances, "InstanceIds")
	core.On(svc.Account, svc.StartInstances, "InstanceIds")
}

func (i *Instance) State(now time.Time) types.InstanceStateName {
	switch {
	case !i.Terminated.IsZero() && !i.Terminated.After(now):
		return types.InstanceStateNameTerminated
	case i.Failed != "":
		return types.InstanceStateNamePending
	case !i.Terminating.IsZero():
		return types.InstanceStateNameShuttingDown
	case i.Stopped.After(now):
		return types.InstanceStateNameStopping
	case !i.Stopped.IsZero():
		return types.InstanceStateNameStopped
	case i.Running.After(now):
		return types.InstanceStateNamePending
	}
	return types.InstanceStateNameRunning
}

func stateOut(s types.InstanceStateName) *types.InstanceState {
	code := int32(0)
	switch s {
	case types.InstanceStateNamePending:
	case types.InstanceStateNameRunning:
		code = 16
	case types.InstanceStateNameShuttingDown:
		code = 32
	case types.InstanceStateNameTerminated:
		code = 48
	case types.InstanceStateNameStopping:
		code = 64
	case types.InstanceStateNameStopped:
		code = 80
	}
	return &types.InstanceState{Name: s, Code: aws.Int32(code)}
}

// set changes the options in the call; the others stay.
func (m *MetadataOptions) set(endpoint, ipv6, tokens, tags string, hopLimit *int32) error {
	for _, o := range []struct {
		to     *string
		value  string
		values []string
	}{
		{&m.Endpoint, endpoint, []string{"enabled", "disabled"}},
		{&m.IPv6, ipv6, []string{"enabled", "disabled"}},
		{&m.Tokens, tokens, []string{"optional", "required"}},
		{&m.Tags, tags, []string{"enabled", "disabled"}},
	} {
		if o.value == "" {
			continue
		}
		if !slices.Contains(o.values, o.value) {
			return core.Fail("InvalidParameterValue", "the metadata option %q is invalid", o.value)
		}
		*o.to = o.value
	}
	if hopLimit == nil {
		return nil
	}
	if *hopLimit < 1 || *hopLimit > 64 {
		return core.Fail("InvalidParameterValue", "the hop limit %d is not between 1 and 64", *hopLimit)
	}
	m.HopLimit = *hopLimit
	return nil
}

// allow rejects tags whose keys instance metadata does not support, if it is to contain
// tags ("View tags for your EC2 instances using instance metadata" in the user guide):
// mainly those with a slash.
func (m *MetadataOptions) allow(tags map[string]string) error {
	if m.Tags != "enabled" {
		return nil
	}
	fit := regex.Of(`^[a-zA-Z0-9+\-=.,_:@]+$`)
	for k := range tags {
		if !fit.MatchString(k) || k == "." || k == ".." || k == "_index" {
			return core.Fail("InvalidParameterValue", "'%s' is not a valid tag key: tags are allowed in the instance's metadata", k)
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

// releaseAll deletes or detaches the interfaces and volumes of a terminated instance.
func (svc *Service) releaseAll(i *Instance) {
	s := svc.state
	for _, id := range i.Interfaces {
		n := s.Interfaces[id]
		switch {
		case n == nil:
		case n.DeleteWithOwner:
			svc.RemoveInterface(id)
		default:
			n.Owner, n.Device = "", 0
			if e := svc.addressOf(n); e != nil {
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

// describeInstances counts instances for pagination, so a reservation may be on several
// pages.
func (svc *Service) describeInstances(in *ec2.DescribeInstancesInput) (*ec2.DescribeInstancesOutput, error) {
	found, next, err := describe(svc, svc.state.Instances, query{in.InstanceIds, in.Filters, in.NextToken, in.MaxResults},
		svc.instanceFields(), func(i *Instance) *Instance { return i })
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(x, y *Instance) int {
		return cmp.Or(strings.Compare(x.Reservation, y.Reservation), strings.Compare(x.ID, y.ID))
	})
	out := &ec2.DescribeInstancesOutput{NextToken: next}
	for len(found) > 0 {
		r := found[0].Reservation
		n := slices.IndexFunc(found, func(i *Instance) bool { return i.Reservation != r })
		if n < 0 {
			n = len(found)
		}
		out.Reservations = append(out.Reservations, types.Reservation{
			ReservationId: aws.String(r), OwnerId: aws.String(svc.Number()), Instances: core.Each(found[:n], svc.instanceOut),
		})
		found = found[n:]
	}
	return out, nil
}

func (svc *Service) describeInstanceAttribute(in *ec2.DescribeInstanceAttributeInput) (*ec2.DescribeInstanceAttributeOutput, error) {
	i, err := lookup(svc, svc.state.Instances, in.InstanceId)
	if err != nil {
		return nil, err
	}
	if !svc.shows(i) {
		return nil, i.kind().notFound(i.ID)
	}
	out := &ec2.DescribeInstanceAttributeOutput{InstanceId: in.InstanceId}
	switch in.Attribute { //nolint:exhaustive // the others are not simulated
	case types.InstanceAttributeNameUserData:
		out.UserData = &types.AttributeValue{Value: core.Text(i.UserData)}
	case types.InstanceAttributeNameDisableApiTermination:
		out.DisableApiTermination = &types.AttributeBooleanValue{Value: aws.Bool(i.Protected)}
	case types.InstanceAttributeNameDisableApiStop:
		out.DisableApiStop = &types.AttributeBooleanValue{Value: aws.Bool(i.StopProtected)}
	case types.InstanceAttributeNameGroupSet:
		out.Groups = svc.instanceOut(i).SecurityGroups
	default:
		return nil, core.NotSimulated("the instance attribute %q", in.Attribute)
	}
	return out, nil
}

// modifiable returns an instance that is not terminating.
func (svc *Service) modifiable(id *string) (*Instance, error) {
	i, err := lookup(svc, svc.state.Instances, id)
	if err != nil {
		return nil, err
	}
	if !i.Terminating.IsZero() {
		return nil, core.Fail("IncorrectInstanceState", "the instance '%s' is not in a state in which it can be changed", i.ID)
	}
	return i, nil
}

func (svc *Service) modifyInstanceMetadataOptions(in *ec2.ModifyInstanceMetadataOptionsInput) (*ec2.ModifyInstanceMetadataOptionsOutput, error) {
	i, err := svc.modifiable(in.InstanceId)
	if err != nil {
		return nil, err
	}
	changed := i.Metadata
	if err := changed.set(
		string(in.HttpEndpoint),
		string(in.HttpProtocolIpv6),
		string(in.HttpTokens),
		string(in.InstanceMetadataTags),
		in.HttpPutResponseHopLimit,
	); err != nil {
		return nil, err
	}
	if err := changed.allow(i.Tags); err != nil {
		return nil, err
	}
	i.Metadata = changed
	return &ec2.ModifyInstanceMetadataOptionsOutput{InstanceId: in.InstanceId, InstanceMetadataOptions: i.Metadata.out()}, nil
}

// modifyInstanceAttribute changes one attribute: AWS rejects calls with several.
func (svc *Service) modifyInstanceAttribute(in *ec2.ModifyInstanceAttributeInput) (*ec2.ModifyInstanceAttributeOutput, error) {
	i, err := svc.modifiable(in.InstanceId)
	if err != nil {
		return nil, err
	}
	if err := core.Exactly(len(in.Groups) > 0, in.DisableApiTermination != nil, in.DisableApiStop != nil, in.SourceDestCheck != nil); err != nil {
		return nil, err
	}
	out := &ec2.ModifyInstanceAttributeOutput{}
	if in.DisableApiTermination != nil || in.DisableApiStop != nil {
		return out, i.protect(in.DisableApiTermination, in.DisableApiStop)
	}
	if len(i.Interfaces) > 1 {
		return nil, core.Fail("InvalidInstanceID", "there are multiple interfaces attached to instance '%s': please specify an interface ID", i.ID)
	}
	n := svc.state.Interfaces[i.Interfaces[0]]
	if in.SourceDestCheck != nil {
		n.NoSourceCheck = !aws.ToBool(in.SourceDestCheck.Value)
		return out, nil
	}
	groups, err := svc.GroupsFor(i.VPC, in.Groups)
	if err != nil {
		return nil, err
	}
	n.Groups = groups
	return out, nil
}

// TerminateInstances starts the termination of all instances in the call or none. It is
// idempotent.
func (svc *Service) TerminateInstances(in *ec2.TerminateInstancesInput) (*ec2.TerminateInstancesOutput, error) {
	if len(in.InstanceIds) == 0 || len(in.InstanceIds) > most {
		return nil, core.Fail("InvalidParameterValue", "1 to %d instances can be terminated in one call", most)
	}
	var all []*Instance
	for _, id := range in.InstanceIds {
		i, err := lookup(svc, svc.state.Instances, &id)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	for _, i := range all { // "Amazon EC2 managed instances", EC2 user guide; code and text are not verified
		if i.Operator != "" {
			return nil, core.Fail("OperationNotPermitted", "The instance '%s' is managed by %s and cannot be terminated by you", i.ID, i.Operator)
		}
	}
	out := &ec2.TerminateInstancesOutput{}
	zones, refused := svc.protected(all)
	for _, i := range all {
		if zones[svc.zoneOf(i)] {
			continue
		}
		before := i.State(svc.Now())
		svc.Terminate(i.ID)
		out.TerminatingInstances = append(out.TerminatingInstances, types.InstanceStateChange{
			InstanceId: aws.String(i.ID), PreviousState: stateOut(before), CurrentState: stateOut(i.State(svc.Now())),
		})
	}
	if refused != nil {
		return nil, refused
	}
	return out, nil
}

// protect changes what protects an instance from termination. "You can't enable termination
// protection for Spot Instances", nor stop protection (EC2 User Guide); the code is not
// verified.
func (i *Instance) protect(terminate, stop *types.AttributeBooleanValue) error {
	for _, c := range []struct {
		to *bool
		v  *types.AttributeBooleanValue
	}{{&i.Protected, terminate}, {&i.StopProtected, stop}} {
		if c.v == nil {
			continue
		}
		if aws.ToBool(c.v.Value) && i.Spot {
			return core.Fail("UnsupportedOperation", "the instance '%s' is a Spot Instance, which cannot be protected", i.ID)
		}
		*c.to = aws.ToBool(c.v.Value)
	}
	return nil
}

// protected returns the error for instances that are protected from termination, and their
// zones: none of the instances in these zones is terminated, but those in others are (EC2 User
// Guide, "Terminate multiple instances with termination protection"). Stop protection also
// protects from termination ("Enable stop protection for your EC2 instances").
func (svc *Service) protected(all []*Instance) (zones map[string]bool, refused error) {
	zones = map[string]bool{}
	for _, i := range all {
		attribute := ""
		switch {
		case i.Protected:
			attribute = "disableApiTermination"
		case i.StopProtected:
			attribute = "disableApiStop"
		default:
			continue
		}
		zones[svc.zoneOf(i)] = true
		refused = core.Fail("OperationNotPermitted", "The instance '%s' may not be terminated. Modify its '%s' instance attribute and try again.", i.ID, attribute)
	}
	return zones, refused
}

func (svc *Service) zoneOf(i *Instance) string {
	if s := svc.state.Subnets[i.Subnet]; s != nil {
		return s.Zone
	}
	return ""
}

// Instance returns the instance with an ID, or nil.
func (svc *Service) Instance(id string) *Instance { return svc.state.Instances[id] }

// Instances returns all instances, unordered.
func (svc *Service) Instances() iter.Seq[*Instance] { return maps.Values(svc.state.Instances) }

// Terminate starts the termination of an instance.
func (svc *Service) Terminate(id string) {
	if i := svc.Instance(id); i != nil && i.Terminating.IsZero() {
		i.Terminating = svc.Now()
		i.Terminated = i.Terminating.Add(InstanceStops)
	}
}

// settleInstances releases the resources of terminated instances, and removes instances
// after an hour.
func (svc *Service) settleInstances() {
	for id, i := range svc.state.Instances {
		if i.Terminated.IsZero() || i.Terminated.After(svc.Now()) {
			continue
		}
		svc.releaseAll(i)
		if svc.Now().Sub(i.Terminated) >= InstanceShown {
			delete(svc.state.Instances, id)
		}
	}
}

func (i *Instance) details(d printer) []string {
	return []string{
		i.Image,
		i.Type,
		i.Subnet,
		i.Zone,
		fmt.Sprintf("key %q profile %q", i.Key, i.Profile),
		fmt.Sprintf("user data %t", i.UserData != ""),
		fmt.Sprintf("spot %t %s", i.Spot, i.MaxPrice),
		fmt.Sprintf("metadata %+v", i.Metadata),
		fmt.Sprintf("placement %+v", i.Placement),
		core.Pairs(i.Launch),
		fmt.Sprintf(
			"hostnames %s A %t AAAA %t",
			i.HostnameType,
			i.ResourceNameA,
			i.ResourceNameAAAA,
		),
		fmt.Sprintf("protected %t stop %t", i.Protected, i.StopProtected),
		fmt.Sprintf("ending %t", i.State(d.aws.Now()) == types.InstanceStateNameShuttingDown),
	}
}

// InstanceRuns reports whether an instance is running.
func (svc *Service) InstanceRuns(i *Instance) bool {
	return i != nil && !i.Running.IsZero() && !svc.Now().Before(i.Running) && i.Terminating.IsZero() && i.Terminated.IsZero() && i.Stopped.IsZero()
}

// InstanceGone reports whether an instance is terminated.
func (svc *Service) InstanceGone(id string) bool {
	i, ok := svc.state.Instances[id]
	return !ok || !i.Terminated.IsZero() && !svc.Now().Before(i.Terminated)
}

// Domain is the domain of private DNS names in the region.
func (svc *Service) Domain() string {
	if svc.Region == "us-east-1" {
		return "ec2.internal"
	}
	return svc.Region + ".compute.internal"
}

// publicDomain is the domain of public DNS names in the region.
func (svc *Service) publicDomain() string {
	if svc.Region == "us-east-1" {
		return "compute-1.amazonaws.com"
	}
	return svc.Region + ".compute." + core.DNSSuffix(svc.Region)
}

// launched is the LaunchTime: that of the last start ("Instance", EC2 API reference).
func (i *Instance) launched() time.Time {
	if i.Started.After(i.Born) {
		return i.Started
	}
	return i.Born
}

func (svc *Service) instanceOut(i *Instance) types.Instance {
	s, state := svc.state, i.State(svc.Now())
	out := types.Instance{
		InstanceId: aws.String(i.ID), ImageId: core.Text(i.Image), InstanceType: types.InstanceType(i.Type), KeyName: core.Text(i.Key), State: stateOut(state),
		LaunchTime: aws.Time(i.launched()), AmiLaunchIndex: aws.Int32(int32(i.Index)), //nolint:gosec // small
		ClientToken: core.Text(i.Token), MetadataOptions: i.Metadata.out(), Tags: tagsOut(i.Tags), RootDeviceType: types.DeviceTypeEbs,
		VirtualizationType: types.VirtualizationTypeHvm, Hypervisor: types.HypervisorTypeXen, PlatformDetails: aws.String("Linux/UNIX"),
		Monitoring: &types.Monitoring{State: types.MonitoringStateDisabled},
		Placement: &types.Placement{
			AvailabilityZone: core.Text(i.Zone), Tenancy: types.Tenancy(i.Placement.Tenancy), GroupName: aws.String(i.Placement.Group),
			HostId: core.Text(i.Placement.Host), Affinity: core.Text(i.Placement.Affinity),
		},
		PrivateDnsName: aws.String(""), PublicDnsName: aws.String(""),
	}
	if i.Operator != "" {
		out.Operator = &types.OperatorResponse{Managed: aws.Bool(true), Principal: aws.String(i.Operator)}
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
		out.IamInstanceProfile = &types.IamInstanceProfile{Arn: aws.String(svc.iam.ProfileARN(i.Profile))}
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
		out.StateReason = &types.StateReason{
			Code:    aws.String("Client.UserInitiatedShutdown"),
			Message: aws.String("Client.UserInitiatedShutdown: User initiated shutdown"),
		}
		out.StateTransitionReason = aws.String("User initiated (" + i.Terminating.UTC().Format("2006-01-02 15:04:05 MST") + ")")
		if i.Failed != "" {
			code, _, _ := strings.Cut(i.Failed, ": ")
			out.StateReason = &types.StateReason{Code: &code, Message: aws.String(i.Failed)}
			out.StateTransitionReason = aws.String(strings.ReplaceAll(code, "Client.", ""))
		}
	}
	if state != types.InstanceStateNameTerminated {
		svc.networkOut(i, &out)
	}
	return out
}

// networkOut adds the fields that a terminated instance does not have: network and
// volumes.
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
		out.PrivateDnsName = aws.String(svc.privateName(i, n))
		if v := s.VPCs[i.VPC]; v != nil && v.DNSHostnames && n.PublicIP != "" {
			out.PublicDnsName = aws.String("ec2-" + strings.ReplaceAll(n.PublicIP, ".", "-") + "." + svc.publicDomain())
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
		InterfaceType: aws.String(n.Type), OwnerId: aws.String(svc.Number()), PrivateIpAddress: core.Text(n.PrivateIP), Status: n.status(),
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

// instanceFields are the filters of DescribeInstances. A terminated instance has no
// network.
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
		"key-name":            func(i *Instance) []string { return oneValue(i.Key) },
		"availability-zone":   func(i *Instance) []string { return []string{i.Zone} },
		"reservation-id":      func(i *Instance) []string { return []string{i.Reservation} },
		"client-token":        func(i *Instance) []string { return oneValue(i.Token) },
		"launch-index":        func(i *Instance) []string { return []string{fmt.Sprint(i.Index)} },
		"owner-id":            func(*Instance) []string { return []string{svc.Number()} },
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
			return []string{svc.iam.ProfileARN(i.Profile)}
		},
		"placement-group-name":                   func(i *Instance) []string { return oneValue(i.Placement.Group) },
		"tenancy":                                func(i *Instance) []string { return []string{i.Placement.Tenancy} },
		"architecture":                           func(i *Instance) []string { return oneValue(string(svc.instanceOut(i).Architecture)) },
		"vpc-id":                                 alive(func(i *Instance) []string { return []string{i.VPC} }),
		"subnet-id":                              alive(func(i *Instance) []string { return []string{i.Subnet} }),
		"private-ip-address":                     nics(func(n *Interface) []string { return oneValue(n.PrivateIP) }),
		"ip-address":                             nics(func(n *Interface) []string { return oneValue(n.PublicIP) }),
		"instance.group-id":                      nics(func(n *Interface) []string { return n.Groups }),
		"instance.group-name":                    nics(func(n *Interface) []string { return names(n.Groups) }),
		"network-interface.network-interface-id": nics(func(n *Interface) []string { return []string{n.ID} }),
		"block-device-mapping.volume-id":         func(i *Instance) []string { return i.Volumes },
	}
}

// PrivateName returns the private DNS name of an instance; "" if it has no network interface any more.
func (svc *Service) PrivateName(i *Instance) string {
	for _, n := range svc.InterfacesOf(i.ID) {
		if n.Device == 0 {
			return svc.privateName(i, n)
		}
	}
	return ""
}

// privateName returns the private DNS name of an instance with its first network interface.
func (svc *Service) privateName(i *Instance, n *Interface) string {
	if i.HostnameType == string(types.HostnameTypeResourceName) {
		return i.ID + "." + svc.Domain()
	}
	return "ip-" + strings.ReplaceAll(n.PrivateIP, ".", "-") + "." + svc.Domain()
}
