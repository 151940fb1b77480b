package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// InstanceType contains the properties of an instance type that the engine uses.
type InstanceType struct {
	Architecture string   // x86_64 or arm64
	Zones        []string // that offer it; nil if not known
	VCPUs        int32
	MemoryMiB    int64
	// The rest is known if VCPUs is.
	EFA, Spot, Enclaves bool
	Xen                 bool   // it is not of the Nitro System
	Hosts               bool   // Dedicated Hosts support it
	GPU                 string // the manufacturer of its GPUs: NVIDIA, AMD…; "" if it has none
	Neuron              bool   // it has AWS Inferentia or Trainium
	InstanceStore       bool   // it has volumes that lose their data when it stops
	// Volumes is how many EBS volumes a machine with one network interface takes; 0 if there is no limit. Where SharesVolumes is set,
	// each other interface takes the place of one.
	Volumes       int
	SharesVolumes bool
	Processor     []string
	Others        []string // architectures without images of Cluster API
	BootModes     []string // legacy-bios and uefi; none if not known
	ENA           bool     // images need the driver of the Elastic Network Adapter
	TPM           bool     // it has NitroTPM
	NoIPv6        bool     // its interfaces take no IPv6 addresses
	Strategies    []string // of placement groups
}

// InstanceTypes describes instance types and the zones that offer them. All checks of a plan share
// the answer.
func InstanceTypes(ctx context.Context, c *cloud.Clients, names []string) (map[string]InstanceType, error) {
	return cloud.Remember(ctx, c, "instance types "+strings.Join(names, " "), func(ctx context.Context) (map[string]InstanceType, error) {
		return describeTypes(ctx, c, names)
	})
}

func describeTypes(ctx context.Context, c *cloud.Clients, names []string) (map[string]InstanceType, error) {
	described, err := typesWithoutZones(ctx, c, names)
	if cloud.Denied(err) {
		return assumedTypes(names), nil
	}
	if err != nil {
		return nil, err
	}
	found := maps.Clone(described)
	zones := map[string][]string{}
	offered := &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone,
		Filters:      []types.Filter{cloud.Filter("instance-type", names...)},
	}
	ctx = cloud.Listing(ctx)
	for p := ec2.NewDescribeInstanceTypeOfferingsPaginator(c.EC2, offered); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if cloud.Denied(err) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		for _, o := range page.InstanceTypeOfferings {
			zones[string(o.InstanceType)] = append(zones[string(o.InstanceType)], aws.ToString(o.Location))
		}
	}
	for _, name := range names {
		t := found[name]
		t.Zones = append([]string{}, slices.Sorted(slices.Values(zones[name]))...)
		found[name] = t
	}
	return found, nil
}

// typesWithoutZones describes instance types. AWS takes 200 values for a filter.
func typesWithoutZones(ctx context.Context, c *cloud.Clients, names []string) (map[string]InstanceType, error) {
	names = slices.Sorted(slices.Values(names))
	return cloud.Remember(ctx, c, "instance types without zones "+strings.Join(names, " "), func(ctx context.Context) (map[string]InstanceType, error) {
		found := map[string]InstanceType{}
		ctx = cloud.Listing(ctx)
		for some := range slices.Chunk(names, 200) { // in a filter, because the call fails if InstanceTypes contains an unknown type
			in := &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{cloud.Filter("instance-type", some...)}}
			for p := ec2.NewDescribeInstanceTypesPaginator(c.EC2, in); p.HasMorePages(); {
				page, err := p.NextPage(ctx)
				if err != nil {
					return nil, err
				}
				for _, t := range page.InstanceTypes {
					found[string(t.InstanceType)] = instanceType(t)
				}
			}
		}
		return found, nil
	})
}

func instanceType(t types.InstanceTypeInfo) InstanceType {
	var out InstanceType
	if t.ProcessorInfo != nil {
		out.setProcessor(*t.ProcessorInfo)
	}
	if t.MemoryInfo != nil {
		out.MemoryMiB = aws.ToInt64(t.MemoryInfo.SizeInMiB)
	}
	out.InstanceStore = aws.ToBool(t.InstanceStorageSupported)
	out.Enclaves = t.NitroEnclavesSupport == types.NitroEnclavesSupportSupported
	if e := t.EbsInfo; e != nil && t.Hypervisor != types.InstanceTypeHypervisorXen {
		out.Volumes, out.SharesVolumes = int(aws.ToInt32(e.MaximumEbsAttachments)), e.AttachmentLimitType == types.AttachmentLimitTypeShared
	}
	if t.GpuInfo != nil && len(t.GpuInfo.Gpus) > 0 {
		out.GPU = aws.ToString(t.GpuInfo.Gpus[0].Manufacturer)
	}
	out.Xen, out.Neuron = t.Hypervisor == types.InstanceTypeHypervisorXen, t.NeuronInfo != nil
	out.Hosts = aws.ToBool(t.DedicatedHostsSupported)
	for _, m := range t.SupportedBootModes {
		out.BootModes = append(out.BootModes, string(m))
	}
	if p := t.PlacementGroupInfo; p != nil {
		for _, s := range p.SupportedStrategies {
			out.Strategies = append(out.Strategies, string(s))
		}
	}
	out.TPM = t.NitroTpmSupport == types.NitroTpmSupportSupported
	if n := t.NetworkInfo; n != nil {
		out.ENA, out.EFA = n.EnaSupport == types.EnaSupportRequired, aws.ToBool(n.EfaSupported)
		out.NoIPv6 = n.Ipv6Supported != nil && !*n.Ipv6Supported
	}
	out.Spot = slices.Contains(t.SupportedUsageClasses, types.UsageClassTypeSpot)
	if t.VCpuInfo != nil && t.VCpuInfo.DefaultVCpus != nil {
		out.VCPUs = *t.VCpuInfo.DefaultVCpus
	}
	return out
}

func (t *InstanceType) setProcessor(info types.ProcessorInfo) {
	for _, a := range info.SupportedArchitectures {
		if t.Architecture == "" && (a == types.ArchitectureTypeX8664 || a == types.ArchitectureTypeArm64) {
			t.Architecture = string(a)
		}
		t.Others = append(t.Others, string(a))
	}
	for _, f := range info.SupportedFeatures {
		t.Processor = append(t.Processor, string(f))
	}
}

// TooManyVolumes returns an error message if a machine of the type cannot have that many volumes beside its root volume; otherwise ""
// ("Amazon EBS volume limits for Amazon EC2 instances", EC2 user guide).
func (t InstanceType) TooManyVolumes(name string, others, interfaces int) string {
	room := t.Volumes
	if t.SharesVolumes {
		room -= max(0, interfaces-1)
	}
	if t.Volumes == 0 || 1+others <= room {
		return ""
	}
	return fmt.Sprintf(
		"the instance type %s takes %d EBS volumes, and the machine has %d with its root volume: remove some, or use another type",
		name,
		room,
		1+others,
	)
}

// Unfit says why machines of the type do not start from an image; "" if they do. It compares the boot mode, NitroTPM and the network
// adapter, but not the architecture. Sources in the EC2 user guide: "Requirements to launch an Amazon EC2 instance in UEFI boot mode",
// "Requirements for using NitroTPM", and "Enable enhanced networking with ENA".
func (t InstanceType) Unfit(name string, image ImageState) string {
	const fix = ": use another type, or another image"
	switch {
	case t.VCPUs == 0 || image.ID == "":
		return ""
	case image.BootMode != "" && image.BootMode != string(types.BootModeValuesUefiPreferred) && len(t.BootModes) > 0 && !slices.Contains(t.BootModes, image.BootMode):
		return fmt.Sprintf("the image %s starts with %s, and the instance type %s does not%s", image.ID, image.BootMode, name, fix)
	case image.TPM && !t.TPM:
		return fmt.Sprintf("the image %s needs NitroTPM, and the instance type %s has none%s", image.ID, name, fix)
	case image.NoENA && t.ENA:
		return fmt.Sprintf("the image %s is not enabled for the Elastic Network Adapter (ENA), which the instance type %s needs%s", image.ID, name, fix)
	}
	return ""
}

// assumedTypes returns x86_64 for all types, as CAPA does without permission to describe
// them.
func assumedTypes(names []string) map[string]InstanceType {
	out := map[string]InstanceType{}
	for _, n := range names {
		out[n] = InstanceType{Architecture: string(types.ArchitectureTypeX8664)}
	}
	return out
}
