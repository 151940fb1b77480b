package ec2

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// mostUserData is the maximum size of user data in bytes.
const mostUserData = 16384

// launch is a RunInstances call during validation.
type launch struct {
	in       *ec2.RunInstancesInput
	image    *Image
	kind     instanceType
	subnet   *Subnet
	groups   []string
	nic      types.InstanceNetworkInterfaceSpecification // the interface to create
	existing []*Interface                                // or existing interfaces, by device index
	ipv6     int32
	public   bool
	disks    []*Volume
	tags     map[types.ResourceType]map[string]string
	model    Instance // the settings of all instances
	count    int
}

// launchFails is how long an instance that cannot be launched is pending.
const launchFails = 5 * time.Second

// RunInstances launches instances. It validates everything first, so that a rejected call
// changes nothing.
func (svc *Service) RunInstances(in *ec2.RunInstancesInput) (*ec2.RunInstancesOutput, error) {
	for _, id := range svc.state.Tokens["RunInstances "+aws.ToString(in.ClientToken)].IDs {
		if i := svc.state.Instances[id]; in.ClientToken != nil && (i == nil || i.over(svc.Now())) {
			return nil, core.Fail("IdempotentInstanceTerminated", "the client token has been used for the instance '%s', which is terminated", id)
		}
	}
	return idempotent(svc, "RunInstances", in.ClientToken, in, func() ([]string, error) {
		l, err := svc.prepared(in)
		if err != nil {
			return nil, err
		}
		if err := svc.checkCount(l); err != nil {
			return nil, err
		}
		return svc.start(l), nil
	}, func(ids []string) *ec2.RunInstancesOutput {
		dead := func(t Thing) *Instance { return &Instance{Thing: t, Terminating: t.Born, Terminated: t.Born.Add(1)} }
		all := remembered(svc.state.Instances, ids, dead)
		return &ec2.RunInstancesOutput{Instances: core.Each(all, svc.instanceOut), OwnerId: aws.String(svc.Number()), ReservationId: core.Text(all[0].Reservation)}
	})
}

func (svc *Service) checkImage(l *launch) error {
	id := aws.ToString(l.in.ImageId)
	if id == "" {
		return core.Fail("MissingParameter", "the request must contain the parameter ImageId")
	}
	image, ok := svc.state.Images[id]
	if !ok {
		return (*Image)(nil).kind().notFound(id)
	}
	if image.state(svc.Now()) != types.ImageStateAvailable {
		return core.Fail("InvalidAMIID.Unavailable", "the image ID '%s' is not available", id)
	}
	kind, ok := svc.typeNamed(string(l.in.InstanceType))
	if !ok {
		return core.Fail("InvalidParameterValue", "invalid value '%s' for InstanceType", l.in.InstanceType)
	}
	if !slices.Contains(kind.architectures(), types.ArchitectureType(image.Architecture)) {
		return core.Fail("InvalidParameterValue", "the architecture '%v' of the specified instance type does not match the architecture '%s' of the specified AMI",
			kind.architectures(), image.Architecture)
	}
	if !slices.Contains(kind.info.SupportedVirtualizationTypes, types.VirtualizationTypeHvm) {
		return core.Fail("InvalidParameterCombination", "images with a virtualization type of 'hvm' are not supported for instance type %s", kind.name)
	}
	l.image, l.kind, l.model.Image, l.model.Type = image, kind, image.ID, kind.name
	return l.checkFirmware()
}

// checkFirmware compares what an image needs with the hardware of the instance type: the boot mode, NitroTPM, and the network adapter.
// Sources in the EC2 user guide: "Requirements to launch an Amazon EC2 instance in UEFI boot mode", "Requirements for using NitroTPM with
// Amazon EC2 instances", and "Enable enhanced networking with ENA". AWS does not document the error codes for boot
// modes and NitroTPM.
func (l *launch) checkFirmware() error {
	info := &l.kind.info
	mode := types.BootModeType(l.image.BootMode)
	if l.image.BootMode == string(types.BootModeValuesUefiPreferred) {
		mode = ""
	}
	family, _, _ := strings.Cut(l.kind.name, ".")
	windows := strings.Contains(l.image.Name, "Windows")
	switch {
	case !windows && slices.Contains([]string{"c1", "m1", "m2", "t1"}, family): // "Linux AMI virtualization types", and saltstack/salt#26417 on GitHub
		return core.Fail(
			"InvalidParameterCombination",
			"Non-Windows instances with a virtualization type of 'hvm' are currently not supported for this instance type",
		)
	case mode != "" && len(info.SupportedBootModes) > 0 && !slices.Contains(info.SupportedBootModes, mode):
		return core.Fail("Unsupported", "the instance type '%s' does not support the boot mode '%s' of the image", l.kind.name, l.image.BootMode)
	case l.image.TPM != "" && info.NitroTpmSupport != types.NitroTpmSupportSupported:
		return core.Fail("Unsupported", "the instance type '%s' does not support NitroTPM, which the image needs", l.kind.name)
	case l.image.NoENA && info.NetworkInfo != nil && info.NetworkInfo.EnaSupport == types.EnaSupportRequired:
		return core.Fail(
			"InvalidParameterCombination",
			"Enhanced networking with the Elastic Network Adapter (ENA) is required for the '%s' instance type. Ensure that you are using an AMI that is enabled for ENA.",
			l.kind.name,
		)
	}
	return nil
}

func (svc *Service) checkBasics(l *launch) error {
	if key := aws.ToString(l.in.KeyName); key != "" && !svc.state.KeyPairs[key] {
		return core.Fail("InvalidKeyPair.NotFound", "the key pair '%s' does not exist", key)
	}
	l.model.Key, l.model.Token, l.model.Protected = aws.ToString(l.in.KeyName), aws.ToString(l.in.ClientToken), aws.ToBool(l.in.DisableApiTermination)
	p := l.in.IamInstanceProfile
	if p == nil {
		return nil
	}
	if err := core.Only("RunInstances", p, "Name"); err != nil {
		return err
	}
	if !svc.iam.ProfileExists(aws.ToString(p.Name)) {
		return core.Fail(
			"InvalidParameterValue",
			"value (%s) for parameter iamInstanceProfile.name is invalid: invalid IAM instance profile name",
			aws.ToString(p.Name),
		)
	}
	if !svc.iam.ProfileHasRole(aws.ToString(p.Name)) { // seen by others: DanielThomas/ec2gaming #17
		return core.Fail("InvalidParameterValue", "IAM Instance Profile \"%s\" has no associated IAM Roles", svc.iam.ProfileARN(aws.ToString(p.Name)))
	}
	l.model.Profile = aws.ToString(p.Name)
	return nil
}

func (svc *Service) checkUserData(l *launch) error {
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(l.in.UserData))
	if err != nil {
		return core.Fail("InvalidUserData.Malformed", "invalid base64 encoding of user data")
	}
	if len(raw) > mostUserData {
		return core.Fail("InvalidParameterValue", "User data is limited to %d bytes", mostUserData)
	}
	l.model.UserData = aws.ToString(l.in.UserData)
	return nil
}

// checkSubnet finds the subnet and the security groups, which are parameters of the call
// or of its network interface. Without a subnet, AWS uses the default VPC; here the call
// is rejected.
func (svc *Service) checkSubnet(l *launch) error {
	subnet, groups := l.in.SubnetId, l.in.SecurityGroupIds
	if len(l.in.NetworkInterfaces) > 0 {
		if subnet != nil || len(groups) > 0 {
			return core.Fail(
				"InvalidParameterCombination",
				"network interfaces and an instance-level subnet ID or security groups may not be specified on the same request",
			)
		}
		l.nic = l.in.NetworkInterfaces[0]
		subnet, groups = l.nic.SubnetId, l.nic.Groups
		if l.nic.NetworkInterfaceId != nil {
			return svc.checkExisting(l)
		}
	}
	s, err := lookup(svc, svc.state.Subnets, subnet)
	if err != nil {
		return err
	}
	l.subnet = s
	l.groups, err = svc.GroupsFor(s.VPC, groups)
	return err
}

// checkExisting finds the existing network interfaces in the call.
func (svc *Service) checkExisting(l *launch) error {
	if aws.ToInt32(l.in.MaxCount) > 1 {
		return core.Fail("InvalidParameterCombination", "a network interface may not be specified for more than one instance")
	}
	devices := map[int32]bool{}
	for _, spec := range l.in.NetworkInterfaces {
		if err := core.Only("RunInstances", &spec, "NetworkInterfaceId", "DeviceIndex", "DeleteOnTermination"); err != nil {
			return err
		}
		n, err := lookup(svc, svc.state.Interfaces, spec.NetworkInterfaceId)
		if err != nil {
			return err
		}
		if n.Owner != "" || slices.Contains(l.existing, n) {
			return core.Fail("InvalidNetworkInterface.InUse", "the interface '%s' is currently in use", n.ID)
		}
		device := aws.ToInt32(spec.DeviceIndex)
		if spec.DeviceIndex == nil || devices[device] {
			return core.Fail("InvalidParameterValue", "each network interface requires a unique device index")
		}
		devices[device] = true
		s := svc.state.Subnets[n.Subnet]
		if l.subnet != nil && l.subnet.Zone != s.Zone {
			return core.Fail("InvalidParameterCombination", "the network interfaces are in several zones")
		}
		if device == 0 || l.subnet == nil {
			l.subnet = s
		}
		l.existing = append(l.existing, n)
	}
	if !devices[0] {
		return core.Fail("InvalidParameterValue", "there is no network interface with device index 0")
	}
	return nil
}

// checkInterfaces validates the network interface to create, and the zone.
func (svc *Service) checkInterfaces(l *launch) error {
	if z, _ := svc.zone(l.subnet.Zone); !z.offered(l.kind.name) {
		return core.Fail("Unsupported", "your requested instance type (%s) is not supported in your requested availability zone (%s)", l.kind.name, z.name)
	}
	l.model.Subnet, l.model.VPC, l.model.Zone = l.subnet.ID, l.subnet.VPC, l.subnet.Zone
	if len(l.existing) > 0 {
		return nil
	}
	if len(l.in.NetworkInterfaces) > 1 {
		return core.NotSimulated("RunInstances: several new network interfaces")
	}
	if err := core.Only("RunInstances", &l.nic, "DeviceIndex", "SubnetId", "Groups", "AssociatePublicIpAddress", "InterfaceType",
		"Ipv6AddressCount", "PrimaryIpv6", "DeleteOnTermination", "Description"); err != nil {
		return err
	}
	if len(l.in.NetworkInterfaces) > 0 && (l.nic.DeviceIndex == nil || *l.nic.DeviceIndex != 0) {
		return core.Fail("InvalidParameterValue", "there is no network interface with device index 0")
	}
	l.public = l.subnet.MapPublicIP
	if l.nic.AssociatePublicIpAddress != nil {
		l.public = *l.nic.AssociatePublicIpAddress
	}
	l.ipv6 = aws.ToInt32(l.nic.Ipv6AddressCount)
	if l.ipv6 == 0 && (l.subnet.AssignIPv6 || l.subnet.Native) {
		l.ipv6 = 1
	}
	switch kind := aws.ToString(l.nic.InterfaceType); {
	case kind != "" && kind != "interface" && kind != "efa":
		return core.Fail("InvalidParameterValue", "value (%s) for parameter interfaceType is invalid", kind)
	case kind == "efa" && !aws.ToBool(l.kind.info.NetworkInfo.EfaSupported):
		return core.Fail("Unsupported", "instance type %s does not support EFA interfaces", l.kind.name)
	case l.ipv6 > 0 && l.subnet.IPv6CIDR == "":
		return core.Fail("InvalidParameterValue", "the subnet %s has no IPv6 CIDR block", l.subnet.ID)
	case aws.ToBool(l.nic.PrimaryIpv6) && l.ipv6 == 0:
		return core.Fail("InvalidParameterCombination", "a primary IPv6 address requires an IPv6 address")
	case l.public && l.subnet.Native:
		return core.Fail("InvalidParameterCombination", "instances of an IPv6-only subnet have no public IPv4 address")
	case l.ipv6 > 0 && !aws.ToBool(l.kind.info.NetworkInfo.Ipv6Supported):
		return core.Fail("Unsupported", "instance type %s does not support IPv6", l.kind.name)
	case l.ipv6 > 0 && l.kind.info.Hypervisor == types.InstanceTypeHypervisorXen && l.subnet.Native:
		return core.Fail("Unsupported", "IPv6-only subnets take instance types of the Nitro System only")
	}
	return nil
}

// checkDisks creates the volumes from the block device mappings. There is always a root
// volume.
func (svc *Service) checkDisks(l *launch) error {
	root := &Volume{Device: l.image.RootDevice, Type: "gp2", Size: l.image.RootSize, DeleteWithInstance: true}
	l.disks = []*Volume{root}
	seen := map[string]bool{}
	for _, m := range l.in.BlockDeviceMappings {
		if err := core.Only("RunInstances", &m, "DeviceName", "Ebs"); err != nil {
			return err
		}
		device := aws.ToString(m.DeviceName)
		if device == "" || m.Ebs == nil || seen[device] {
			return core.Fail("InvalidBlockDeviceMapping", "the device name %q is missing, there twice, or has no volume", device)
		}
		if !isDevice(device) {
			return core.Fail("InvalidBlockDeviceMapping", "invalid device name %s", device)
		}
		seen[device] = true
		if err := core.Only("RunInstances", m.Ebs, "VolumeSize", "VolumeType", "Iops", "Throughput", "Encrypted", "KmsKeyId", "DeleteOnTermination"); err != nil {
			return err
		}
		v := root
		if device != root.Device {
			v = &Volume{Device: device, Type: "gp2", DeleteWithInstance: true}
			l.disks = append(l.disks, v)
		}
		v.IOPS, v.Throughput = aws.ToInt32(m.Ebs.Iops), aws.ToInt32(m.Ebs.Throughput)
		v.Encrypted, v.Key = aws.ToBool(m.Ebs.Encrypted), aws.ToString(m.Ebs.KmsKeyId)
		if m.Ebs.VolumeSize != nil {
			v.Size = *m.Ebs.VolumeSize
		}
		if m.Ebs.VolumeType != "" {
			v.Type = string(m.Ebs.VolumeType)
		}
		if m.Ebs.DeleteOnTermination != nil {
			v.DeleteWithInstance = *m.Ebs.DeleteOnTermination
		}
		if v == root && v.Size < l.image.leastRoot() {
			return core.Fail(
				"InvalidBlockDeviceMapping",
				"volume of size %dGB is smaller than snapshot '%s', expect size>= %dGB",
				v.Size,
				l.image.devices()[0].Snapshot,
				l.image.leastRoot(),
			)
		}
		if err := v.check(); err != nil {
			return err
		}
		// "Amazon EBS volumes in Wavelength Zones" in the AWS Wavelength Developer Guide: only gp2. The code is not verified.
		if l.subnet != nil && v.Type != "gp2" { // a launch template has no subnet
			if z, _ := svc.zone(l.subnet.Zone); z.wavelength {
				return core.Fail("InvalidParameterValue", "the volume type %s is not supported in the zone %s", v.Type, z.name)
			}
		}
		if v == root && (v.Type == "st1" || v.Type == "sc1") { // "Throughput Optimized HDD and Cold HDD volumes", EBS user guide
			return core.Fail("InvalidParameterCombination", "volume type %s cannot be used as a boot volume", v.Type)
		}
	}
	return l.checkAttachments()
}

// checkAttachments counts the volumes. Where the limit is shared, each network interface after the first takes the place of one
// ("Amazon EBS volume limits for Amazon EC2 instances", EC2 user guide). For instances on Xen, the limit is a recommendation.
func (l *launch) checkAttachments() error {
	info := l.kind.info.EbsInfo
	if info == nil || info.MaximumEbsAttachments == nil || l.kind.info.Hypervisor == types.InstanceTypeHypervisorXen {
		return nil
	}
	most := int(*info.MaximumEbsAttachments)
	if info.AttachmentLimitType == types.AttachmentLimitTypeShared {
		most -= max(0, len(l.in.NetworkInterfaces)-1)
	}
	if len(l.disks) > most {
		return core.Fail("AttachmentLimitExceeded", "the instance type %s takes %d volumes with these network interfaces", l.kind.name, most)
	}
	return nil
}

// checkCount computes the number of instances: as many as possible.
func (svc *Service) checkCount(l *launch) error {
	least, wanted := int(aws.ToInt32(l.in.MinCount)), int(aws.ToInt32(l.in.MaxCount))
	if least < 1 || wanted < least {
		return core.Fail("InvalidParameterValue", "the counts %d to %d are invalid", least, wanted)
	}
	l.count = wanted
	for _, check := range []func(*launch) error{svc.checkReserved, svc.withoutHost, svc.checkSpotPrice} {
		if err := check(l); err != nil {
			return err
		}
	}
	if room, limited := svc.roomInGroup(l); limited {
		if l.count = min(l.count, room); l.count < least {
			return core.Fail( // AWS does not document the code
				"InsufficientInstanceCapacity",
				"the placement group '%s' has %d running instances in %s, which is the most",
				l.model.Placement.Group,
				mostInSpread-room,
				l.model.Zone,
			)
		}
	}
	if quota := vcpuQuota(l.kind.name, l.model.Spot); quota != "" && !l.model.inBlock() {
		limit := svc.state.Limits.VCPUsOf(quota)
		l.count = min(l.count, (limit-svc.usedVCPUs(quota))/l.kind.vcpus())
		if l.count < least {
			return vcpuLimitExceeded(l.model.Spot, limit)
		}
	}
	if len(l.existing) == 0 && !l.subnet.Native {
		l.count = min(l.count, svc.freeAddresses(l.subnet))
	}
	if l.count < least {
		return core.Fail(
			"InsufficientFreeAddressesInSubnet",
			"there are not enough free addresses in subnet '%s' to satisfy the requested number of instances",
			l.subnet.ID,
		)
	}
	return nil
}

// vcpuLimitExceeded is the error of a launch that exceeds a quota of vCPUs.
func vcpuLimitExceeded(spot bool, limit int) error {
	if spot {
		return core.Fail("MaxSpotInstanceCountExceeded", "max spot instance count exceeded")
	}
	return core.Fail("VcpuLimitExceeded", "you have requested more vCPU capacity than your current vCPU limit of %d allows", limit)
}

// start creates the instances of a valid launch.
func (svc *Service) start(l *launch) (ids []string) {
	s, reservation := svc.state, svc.ID("r")
	for index := range l.count {
		i := l.model
		i.Thing = svc.newThing("i", maps.Clone(l.tags[types.ResourceTypeInstance]))
		i.Launch = maps.Clone(l.model.Launch)
		i.Reservation, i.Index, i.Running = reservation, index, svc.Now().Add(InstanceTakes)
		for n, e := range l.existing {
			spec := l.in.NetworkInterfaces[n]
			e.Owner, e.Device, e.DeleteWithOwner = i.ID, aws.ToInt32(spec.DeviceIndex), aws.ToBool(spec.DeleteOnTermination)
			i.Interfaces = append(i.Interfaces, e.ID)
			for _, address := range s.Addresses {
				if address.Interface == e.ID {
					address.Instance = i.ID
				}
			}
		}
		if len(l.existing) == 0 {
			n := svc.userInterface(l.subnet, l.groups, l.tags[types.ResourceTypeNetworkInterface], l.ipv6)
			n.Owner, n.Description = i.ID, aws.ToString(l.nic.Description)
			n.Type = cmp.Or(aws.ToString(l.nic.InterfaceType), n.Type)
			n.DeleteWithOwner = l.nic.DeleteOnTermination == nil || *l.nic.DeleteOnTermination
			if l.public {
				n.PublicIP = svc.PublicIP()
			}
			i.Interfaces = []string{n.ID}
		}
		for _, d := range l.disks {
			v := *d
			v.Thing, v.Zone, v.Instance = svc.newThing("vol", maps.Clone(l.tags[types.ResourceTypeVolume])), i.Zone, i.ID
			s.Volumes[v.ID] = &v
			i.Volumes = append(i.Volumes, v.ID)
		}
		if i.Failed = cmp.Or(s.LaunchFailure, svc.LaunchFailure, svc.unusableKey(l.disks)); i.Failed != "" {
			i.Terminating = svc.Now()
			i.Terminated = svc.Now().Add(launchFails)
		}
		s.Instances[i.ID] = &i
		ids = append(ids, i.ID)
	}
	return ids
}

// unusableKey says why AWS ends an instance whose volumes it cannot encrypt: it looks at a KMS key after it has answered
// ("KmsKeyId", EbsBlockDevice; "Troubleshoot instance launch issues", EC2 user guide).
func (svc *Service) unusableKey(disks []*Volume) string {
	for _, d := range disks {
		if d.Key == "" {
			continue
		}
		switch err := svc.Usable(d.Key); {
		case err == nil:
		case strings.Contains(err.Error(), "is not found") || strings.Contains(err.Error(), "does not exist"):
			return "Client.InternalError: Client error on launch"
		default:
			return "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state"
		}
	}
	return ""
}

// Launch launches instances like RunInstances.
func (svc *Service) Launch(in *ec2.RunInstancesInput) (launched []*Instance, err error) {
	l, err := svc.prepared(in)
	if err != nil {
		return nil, err
	}
	if err := svc.checkCount(l); err != nil {
		return nil, err
	}
	if code, message, refused := strings.Cut(svc.state.LaunchRefusal, ": "); refused {
		return nil, core.Fail(code, "%s", message)
	}
	for _, id := range svc.start(l) {
		launched = append(launched, svc.Instance(id))
	}
	return launched, nil
}

// CheckLaunch returns the error of RunInstances for a call, except for quotas, free
// addresses and reservations.
func (svc *Service) CheckLaunch(in *ec2.RunInstancesInput) error {
	_, err := svc.prepared(in)
	return err
}

// checkMarket validates spot options, capacity reservations and CPU options.
func (svc *Service) checkMarket(l *launch) error {
	reserved := ""
	if c := l.in.CapacityReservationSpecification; c != nil {
		if t := c.CapacityReservationTarget; t != nil {
			if err := core.Only("RunInstances", t, "CapacityReservationId"); err != nil {
				return err
			}
			reserved = aws.ToString(t.CapacityReservationId)
			if svc.state.Reservations[reserved] == nil {
				return core.Fail("InvalidCapacityReservationId.NotFound", "the capacity reservation '%s' does not exist", reserved)
			}
		}
		if reserved != "" && c.CapacityReservationPreference != "" && c.CapacityReservationPreference != types.CapacityReservationPreferenceCapacityReservationsOnly {
			return core.Fail("InvalidParameterCombination", "a capacity reservation target and the preference %s exclude each other", c.CapacityReservationPreference)
		}
		l.model.Launch["capacity-reservation"], l.model.Launch["capacity-reservation-preference"] = reserved, string(c.CapacityReservationPreference)
	}
	if c := l.in.CpuOptions; c != nil {
		if err := core.Only("RunInstances", c, "AmdSevSnp", "NestedVirtualization"); err != nil {
			return err
		}
		if err := l.cpuOptions(c); err != nil {
			return err
		}
	}
	m := l.in.InstanceMarketOptions
	if m == nil {
		return nil
	}
	switch m.MarketType { //nolint:exhaustive // the others are rejected
	case types.MarketTypeCapacityBlock:
		if reserved == "" || m.SpotOptions != nil {
			return core.Fail("InvalidParameterCombination", "a capacity block needs a capacity reservation target and no spot options")
		}
		l.model.Launch["market"] = string(m.MarketType)
		return nil
	case types.MarketTypeSpot:
		if reserved != "" {
			return core.Fail("InvalidParameterCombination", "a spot instance cannot use a capacity reservation")
		}
		return l.spot(m.SpotOptions)
	default:
		return core.Fail("InvalidParameterValue", "value (%s) for parameter instanceMarketOptions.marketType is invalid", m.MarketType)
	}
}

// cpuOptions validates options of the processor, and keeps them. A launch template may have
// no instance type.
func (l *launch) cpuOptions(c *types.CpuOptionsRequest) error {
	for feature, on := range map[types.SupportedAdditionalProcessorFeature]bool{
		types.SupportedAdditionalProcessorFeatureAmdSevSnp:            c.AmdSevSnp == types.AmdSevSnpSpecificationEnabled,
		types.SupportedAdditionalProcessorFeatureNestedVirtualization: c.NestedVirtualization == types.NestedVirtualizationSpecificationEnabled,
	} {
		if known := l.kind.name != ""; on && known && !slices.Contains(l.kind.info.ProcessorInfo.SupportedFeatures, feature) {
			return core.Fail("Unsupported", "instance type %s does not support these CPU options", l.kind.name)
		}
		if on {
			l.model.Launch[string(feature)] = "true"
		}
	}
	return nil
}

// spot validates the options of a spot instance. Persistent requests are not simulated:
// they would outlive the instance.
func (l *launch) spot(o *types.SpotMarketOptions) error {
	if known := l.kind.name != ""; known && !slices.Contains(l.kind.info.SupportedUsageClasses, types.UsageClassTypeSpot) {
		return core.Fail("Unsupported", "instance type %s is not available as a spot instance", l.kind.name)
	}
	l.model.Spot = true
	if o == nil {
		return nil
	}
	if err := core.Only("RunInstances", o, "MaxPrice", "SpotInstanceType", "InstanceInterruptionBehavior"); err != nil {
		return err
	}
	if o.SpotInstanceType == types.SpotInstanceTypePersistent {
		return core.NotSimulated("RunInstances: persistent spot requests")
	}
	if b := o.InstanceInterruptionBehavior; b != "" && b != types.InstanceInterruptionBehaviorTerminate {
		return core.Fail("InvalidParameterCombination", "a one-time spot request allows no interruption behavior but terminate")
	}
	if o.MaxPrice != nil {
		if price, err := strconv.ParseFloat(*o.MaxPrice, 64); err != nil || price <= 0 {
			return core.Fail("InvalidParameterValue", "invalid price: %s", *o.MaxPrice)
		}
		l.model.MaxPrice = *o.MaxPrice
	}
	return nil
}

// checkSpotPrice refuses a maximum price below the spot price of the zone: SpotMaxPriceTooLow ("Error codes for the Amazon EC2 API").
func (svc *Service) checkSpotPrice(l *launch) error {
	most, err := strconv.ParseFloat(l.model.MaxPrice, 64)
	price, known := svc.spotPrice(l.kind.name, l.subnet.Zone)
	if !l.model.Spot || err != nil || !known || most >= price {
		return nil //nolint:nilerr // there is no maximum price
	}
	return core.Fail(
		"SpotMaxPriceTooLow",
		"Your Spot request price of %s is lower than the minimum required Spot request fulfillment price of %.4f.",
		l.model.MaxPrice,
		price,
	)
}

func (svc *Service) checkMetadata(l *launch) error {
	l.model.Metadata = MetadataOptions{Endpoint: "enabled", IPv6: "disabled", Tokens: "optional", Tags: "disabled", HopLimit: 1}
	if l.image != nil && l.image.IMDS == string(types.ImdsSupportValuesV20) { // "Order of precedence for instance metadata options", EC2 user guide
		l.model.Metadata.Tokens, l.model.Metadata.HopLimit = "required", 2
	}
	l.model.Metadata.Tokens = cmp.Or(svc.state.MetadataTokens, l.model.Metadata.Tokens)
	o := l.in.MetadataOptions
	if o == nil {
		return nil
	}
	return l.model.Metadata.set(
		string(o.HttpEndpoint),
		string(o.HttpProtocolIpv6),
		string(o.HttpTokens),
		string(o.InstanceMetadataTags),
		o.HttpPutResponseHopLimit,
	)
}

func (svc *Service) checkNames(l *launch) error {
	l.model.HostnameType, l.model.ResourceNameA, l.model.ResourceNameAAAA = l.subnet.HostnameType, l.subnet.ResourceNameA, l.subnet.ResourceNameAAAA
	o := l.in.PrivateDnsNameOptions
	if o == nil {
		return nil
	}
	if o.HostnameType != "" {
		if !slices.Contains(o.HostnameType.Values(), o.HostnameType) || l.subnet.Native && o.HostnameType == types.HostnameTypeIpName {
			return core.Fail("InvalidParameterValue", "value (%s) for parameter privateDnsNameOptions.hostnameType is invalid", o.HostnameType)
		}
		l.model.HostnameType = string(o.HostnameType)
	}
	if o.EnableResourceNameDnsAAAARecord != nil {
		if *o.EnableResourceNameDnsAAAARecord && l.subnet.IPv6CIDR == "" {
			return core.Fail("InvalidParameterValue", "the subnet %s has no IPv6 CIDR block", l.subnet.ID)
		}
		l.model.ResourceNameAAAA = *o.EnableResourceNameDnsAAAARecord
	}
	if o.EnableResourceNameDnsARecord != nil {
		l.model.ResourceNameA = *o.EnableResourceNameDnsARecord
	}
	return nil
}

// mostInSpread is how many running instances a placement group with the strategy spread can have in a zone ("Placement groups", rules and
// limitations, EC2 user guide).
const mostInSpread = 7

// roomInGroup returns how many more instances the placement group of a launch takes in its zone, and whether there is a limit.
func (svc *Service) roomInGroup(l *launch) (room int, limited bool) {
	name := l.model.Placement.Group
	if svc.state.PlacementGroups[name] != "spread" {
		return 0, false
	}
	room = mostInSpread
	for _, i := range svc.state.Instances {
		if i.Placement.Group == name && i.Zone == l.model.Zone && i.Stopped.IsZero() && !i.over(svc.Now()) {
			room--
		}
	}
	return room, true
}

// elsewhere returns another zone that has instances of a placement group; "" for none. A group with the strategy cluster is in one
// zone (the same page).
func (svc *Service) elsewhere(group, zone string) string {
	for _, i := range svc.state.Instances {
		if i.Placement.Group == group && i.Zone != zone && !i.over(svc.Now()) {
			return i.Zone
		}
	}
	return ""
}

func (svc *Service) checkPlacement(l *launch) error {
	p := l.in.Placement
	l.model.Placement.Tenancy = svc.state.VPCs[l.subnet.VPC].Tenancy
	if p != nil && p.Tenancy != "" {
		l.model.Placement.Tenancy = string(p.Tenancy)
	}
	// "Supported purchasing options for T instances" in the EC2 user guide: Dedicated Instances (T3 only). The code is not verified.
	if l.model.Placement.Tenancy == string(types.TenancyDedicated) && aws.ToBool(l.kind.info.BurstablePerformanceSupported) &&
		!strings.HasPrefix(l.kind.name, "t3.") {
		return core.Fail("InvalidParameterCombination", "the instance type %s does not support the tenancy dedicated", l.kind.name)
	}
	if p == nil {
		return nil
	}
	if err := core.Only("RunInstances", p, "AvailabilityZone", "Tenancy", "GroupName", "PartitionNumber", "HostId", "Affinity"); err != nil {
		return err
	}
	group, partition, host := aws.ToString(p.GroupName), aws.ToInt32(p.PartitionNumber), aws.ToString(p.HostId)
	strategy, known := svc.state.PlacementGroups[group]
	switch {
	case p.AvailabilityZone != nil && *p.AvailabilityZone != l.subnet.Zone:
		return core.Fail("InvalidParameterValue", "the subnet %s is not in the zone %s", l.subnet.ID, *p.AvailabilityZone)
	case p.Tenancy != "" && !slices.Contains(p.Tenancy.Values(), p.Tenancy):
		return core.Fail("InvalidParameterValue", "value (%s) for parameter tenancy is invalid", p.Tenancy)
	case group != "" && !known:
		return core.Fail("InvalidPlacementGroup.Unknown", "the placement group '%s' is unknown", group)
	case partition != 0 && (strategy != "partition" || partition < 1 || partition > svc.partitions(group)):
		return core.Fail("InvalidParameterCombination", "the partition number %d needs a placement group with partitions", partition)
	case group != "" && !slices.Contains(l.kind.info.PlacementGroupInfo.SupportedStrategies, types.PlacementGroupStrategy(strategy)):
		return core.Fail("InvalidParameterCombination", "%s placement groups are not supported by the '%s' instance type", strategy, l.kind.name)
	case host != "" && svc.state.Hosts[host] == nil:
		return core.Fail("InvalidHostID.NotFound", "the host '%s' does not exist", host)
	case (host != "" || p.Affinity != nil) && p.Tenancy != types.TenancyHost:
		return core.Fail("InvalidParameterCombination", "a host and affinity need the tenancy host")
	case strings.HasPrefix(l.kind.name, "mac") && p.Tenancy != types.TenancyHost:
		return core.Fail("InvalidParameterValue", "instance type %s needs a dedicated host", l.kind.name)
	case strategy == "spread" && l.model.Placement.Tenancy == string(types.TenancyDedicated): // the same page
		return core.Fail("InvalidParameterCombination", "spread placement groups are not supported for Dedicated Instances")
	case strategy == "partition" && l.model.Placement.Tenancy == string(types.TenancyDedicated) && svc.partitions(group) > 2:
		return core.Fail("InvalidParameterCombination", "a partition placement group with Dedicated Instances has at most two partitions")
	case strategy == "cluster" && svc.elsewhere(group, l.subnet.Zone) != "":
		return core.Fail("InvalidParameterCombination", "the placement group '%s' is in %s", group, svc.elsewhere(group, l.subnet.Zone))
	case group != "" && p.Tenancy == types.TenancyHost: // "Placement groups", rules and limitations, EC2 user guide
		return core.Fail("InvalidParameterCombination", "you can't launch Dedicated Hosts in placement groups")
	case p.Tenancy == types.TenancyHost && l.kind.name != "" && !aws.ToBool(l.kind.info.DedicatedHostsSupported):
		return core.Fail("InvalidParameterCombination", "the instance type %s does not support the tenancy host", l.kind.name)
	case l.model.Spot && p.Tenancy == types.TenancyHost:
		return core.Fail("InvalidParameterCombination", "spot instances do not support the tenancy host")
	case p.Affinity != nil && *p.Affinity != "default" && *p.Affinity != "host":
		return core.Fail("InvalidParameterValue", "value (%s) for parameter affinity is invalid", *p.Affinity)
	}
	l.model.Placement = Placement{
		Tenancy: l.model.Placement.Tenancy, Group: group, Host: host, Affinity: aws.ToString(p.Affinity), Partition: partition,
	}
	return nil
}

func (svc *Service) checkTags(l *launch) (err error) {
	kinds := []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface}
	if l.model.Spot {
		kinds = append(kinds, types.ResourceTypeSpotInstancesRequest)
	}
	if l.tags, err = specified(l.in.TagSpecifications, kinds...); err != nil {
		return err
	}
	if len(l.existing) > 0 && l.tags[types.ResourceTypeNetworkInterface] != nil {
		return core.Fail("InvalidParameterCombination", "network interfaces that exist already cannot be tagged on launch")
	}
	return l.model.Metadata.allow(l.tags[types.ResourceTypeInstance])
}
