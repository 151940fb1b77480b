package ec2

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
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

// vcpuQuota returns the quota of an instance type; "" for one without, such as Mac instances,
// which run on dedicated hosts.
func vcpuQuota(name string, spot bool) string {
	letters := name[:strings.IndexAny(name, "-0123456789")]
	onDemand, spots := "", ""
	switch letters {
	case "a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z":
		onDemand, spots = standardOnDemand, standardSpot
	case "f":
		onDemand, spots = "L-74FC7D96", "L-88CF9481"
	case "g", "gr", "vt":
		onDemand, spots = "L-DB2E81BA", "L-3819A6DF"
	case "p":
		onDemand, spots = "L-417A185B", "L-7212CCBC"
		if strings.HasPrefix(name, "p5") {
			spots = "L-C4BD4855"
		}
	case "x":
		onDemand, spots = "L-7295265B", "L-E3A00192"
	case "inf":
		onDemand, spots = "L-1945791B", "L-B5D1601B"
	case "trn":
		onDemand, spots = "L-2C3B7624", "L-6B0D517C"
	case "dl":
		onDemand, spots = "L-6E869C2A", "L-85EED4F7"
	case "u":
		onDemand = "L-43DA4232"
	case "hpc":
		onDemand = "L-F7808C92"
	}
	if spot {
		return spots
	}
	return onDemand
}

// inBlock reports whether an instance is in a Capacity Block, whose instances do not count towards the quotas of On-Demand
// Instances ("How Capacity Blocks work", EC2 user guide).
func (i *Instance) inBlock() bool { return i.Launch["market"] == string(types.MarketTypeCapacityBlock) }

// usedVCPUs returns how many vCPUs of a quota are in use.
func (svc *Service) usedVCPUs(code string) (used int) {
	for _, i := range svc.state.Instances {
		if of := vcpuQuota(i.Type, i.Spot); of != code || i.inBlock() || !i.Terminated.IsZero() && !i.Terminated.After(svc.Now()) || !i.Stopped.IsZero() {
			continue
		}
		t, _ := svc.typeNamed(i.Type)
		used += t.vcpus()
	}
	return used
}
