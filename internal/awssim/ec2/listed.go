package ec2

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Listed is what AWS lists for another account, of which this one is a copy. Without it, the
// archive of the program applies.
type Listed struct {
	Zones []Zone // of the region, in every state; none: those of the archive
	// Types are instance types by name. The archive has others, and Offers says where the
	// account offers them, too.
	Types map[string]types.InstanceTypeInfo `json:",omitempty"`
	// Offers are the names of the zones that offer an instance type.
	Offers map[string][]string `json:",omitempty"`
}

// Zone is a zone of the region of a copied account.
type Zone struct {
	Name, ID, Group string
	Parent          string `json:",omitempty"` // the availability zone of a Local or Wavelength Zone
	Wavelength      bool   `json:",omitempty"`
	OptIn           types.AvailabilityZoneOptInStatus
}

func (svc *Service) listed() Listed {
	if svc.state.Listed == nil {
		return Listed{}
	}
	return *svc.state.Listed
}

// zones returns the zones of the region: its availability zones, and zones at its edge.
func (svc *Service) zones() (zones []zone) {
	l := svc.listed()
	if l.Zones == nil {
		zones = zonesOf(svc.Region)
	}
	for _, z := range l.Zones {
		zones = append(zones, zone{name: z.Name, id: z.ID, parent: z.Parent, wavelength: z.Wavelength, group: z.Group, optIn: z.OptIn})
	}
	for i := range zones {
		zones[i].copied = map[string]bool{}
		for name, where := range l.Offers {
			zones[i].copied[name] = slices.Contains(where, zones[i].name)
		}
	}
	return zones
}

// typeNames lists the names of all instance types, sorted.
func (svc *Service) typeNames() []string {
	names := slices.Concat(listings().names, slices.Collect(maps.Keys(svc.listed().Types)))
	slices.Sort(names)
	return slices.Compact(names)
}

// typeNamed returns the instance type with that name, in whatever region.
func (svc *Service) typeNamed(name string) (instanceType, bool) {
	if info, ok := svc.listed().Types[name]; ok {
		return instanceType{name, info}, true
	}
	return archived(name)
}

// Architectures returns the architectures of an instance type; nil if it does not exist.
func (svc *Service) Architectures(name string) []types.ArchitectureType {
	t, _ := svc.typeNamed(name)
	return t.architectures()
}

// HasNVIDIA reports whether an instance type has GPUs of NVIDIA.
func (svc *Service) HasNVIDIA(name string) bool {
	t, _ := svc.typeNamed(name)
	return t.info.GpuInfo != nil && slices.ContainsFunc(t.info.GpuInfo.Gpus, func(g types.GpuDeviceInfo) bool { return aws.ToString(g.Manufacturer) == "NVIDIA" })
}

// IsNitro reports whether an instance type is of the Nitro System.
func (svc *Service) IsNitro(name string) bool {
	t, _ := svc.typeNamed(name)
	return t.info.Hypervisor != types.InstanceTypeHypervisorXen
}
