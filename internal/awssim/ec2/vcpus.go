package ec2

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// VCPUQuota is a quota of vCPUs.
type VCPUQuota struct{ Code, Name string }

// VCPUQuotas lists the quotas of vCPUs ("Amazon EC2 endpoints and quotas").
func VCPUQuotas() []VCPUQuota {
	return []VCPUQuota{
		{standardOnDemand, "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"},
		{"L-74FC7D96", "Running On-Demand F instances"},
		{"L-DB2E81BA", "Running On-Demand G and VT instances"},
		{"L-417A185B", "Running On-Demand P instances"},
		{"L-7295265B", "Running On-Demand X instances"},
		{"L-1945791B", "Running On-Demand Inf instances"},
		{"L-2C3B7624", "Running On-Demand Trn instances"},
		{"L-6E869C2A", "Running On-Demand DL instances"},
		{"L-43DA4232", "Running On-Demand High Memory instances"},
		{"L-F7808C92", "Running On-Demand HPC instances"},
		{standardSpot, "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"},
		{"L-88CF9481", "All F Spot Instance Requests"},
		{"L-3819A6DF", "All G and VT Spot Instance Requests"},
		{"L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"},
		{"L-C4BD4855", "All P5 Spot Instance Requests"},
		{"L-E3A00192", "All X Spot Instance Requests"},
		{"L-B5D1601B", "All Inf Spot Instance Requests"},
		{"L-6B0D517C", "All Trn Spot Instance Requests"},
		{"L-85EED4F7", "All DL Spot Instance Requests"},
	}
}

const standardOnDemand, standardSpot = "L-1216C47A", "L-34B43A08"

// VCPUsOf returns the limit of a quota of vCPUs.
func (l Limits) VCPUsOf(code string) int {
	if n, ok := l.OtherVCPUs[code]; ok {
		return n
	}
	if code == standardOnDemand || code == standardSpot {
		return l.VCPUs
	}
	return 64 // AWS gives to a new account none of most of these
}

// vcpuQuota returns the quota of an instance type. Only the families of the simulated types
// are known.
func vcpuQuota(name string, spot bool) (string, error) {
	letters := name[:strings.IndexAny(name, "0123456789")]
	switch {
	case slices.Contains([]string{"t", "m", "c"}, letters):
		return map[bool]string{false: standardOnDemand, true: standardSpot}[spot], nil
	case letters == "g":
		return map[bool]string{false: "L-DB2E81BA", true: "L-3819A6DF"}[spot], nil
	}
	return "", core.NotSimulated("the quota of instance type %s", name)
}

// usedVCPUs returns how many vCPUs of a quota are in use.
func (svc *Service) usedVCPUs(code string) (used int) {
	for _, i := range svc.state.Instances {
		if of, _ := vcpuQuota(i.Type, i.Spot); of != code || !i.Terminated.IsZero() && !i.Terminated.After(svc.Now()) {
			continue
		}
		t, _ := typeNamed(i.Type)
		used += int(t.vcpus)
	}
	return used
}
