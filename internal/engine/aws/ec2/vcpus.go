package ec2

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Launch is machines of one type.
type Launch struct {
	Type  string
	Spot  bool
	Count int
}

// Launcher is a desired resource that launches machines.
type Launcher interface {
	// Launches returns the machines that it launches; have is its state, nil if it does
	// not exist.
	Launches(have graph.State) []Launch
}

var _ Launcher = (*Instance)(nil)

// Launches implements Launcher. Machines on dedicated hosts and in capacity blocks do not
// count against the quotas of vCPUs.
func (i *Instance) Launches(have graph.State) []Launch {
	if have != nil || i.Spec.Tenancy == "host" || aws.ToString(i.Spec.HostID) != "" || i.Spec.MarketType == infrav1.MarketTypeCapacityBlock {
		return nil
	}
	return []Launch{{i.Spec.InstanceType, i.Spec.SpotMarketOptions != nil || i.Spec.MarketType == infrav1.MarketTypeSpot, 1}}
}

// LaunchesOf returns that many machines of a launch template.
func (t *LaunchTemplate) LaunchesOf(n int32) []Launch {
	all := t.machine().Launches(nil)
	for i := range all {
		all[i].Count = int(n)
	}
	return all
}

// vcpuFamily is a group of instance families with common quotas of vCPUs.
type vcpuFamily struct {
	families       string // the letters before the generation, separated by spaces
	name           string
	onDemand, spot string // codes of the quotas; "" for none
}

// vcpuFamilies lists the quotas of vCPUs ("Amazon EC2 endpoints and quotas" in the AWS
// General Reference). There is none for Mac instances, which run on dedicated hosts.
func vcpuFamilies() []vcpuFamily {
	return []vcpuFamily{
		{"a c d h i im is m r t z", "Standard", "L-1216C47A", "L-34B43A08"},
		{"f", "F", "L-74FC7D96", "L-88CF9481"},
		{"g gr vt", "G and VT", "L-DB2E81BA", "L-3819A6DF"},
		{"p", "P", "L-417A185B", "L-7212CCBC"},
		{"x", "X", "L-7295265B", "L-E3A00192"},
		{"inf", "Inf", "L-1945791B", "L-B5D1601B"},
		{"trn", "Trn", "L-2C3B7624", "L-6B0D517C"},
		{"dl", "DL", "L-6E869C2A", "L-85EED4F7"},
		{"u", "High Memory", "L-43DA4232", ""},
		{"hpc", "HPC", "L-F7808C92", ""},
	}
}

// VCPUQuota returns the quota that the vCPUs of an instance type count against; nil if it
// is not known.
func VCPUQuota(instanceType string, spot bool) *kind.Quota {
	end := strings.IndexAny(instanceType, "-0123456789")
	if end < 0 {
		return nil
	}
	for _, f := range vcpuFamilies() {
		if !slices.Contains(strings.Fields(f.families), instanceType[:end]) {
			continue
		}
		q := &kind.Quota{Service: "ec2", Code: f.onDemand, Name: "vCPUs of " + f.name + " instances"}
		if spot {
			q.Code, q.Name = f.spot, "vCPUs of "+f.name+" spot instances"
		}
		if p5 := spot && strings.HasPrefix(instanceType, "p5"); p5 {
			q.Code, q.Name = "L-C4BD4855", "vCPUs of P5 spot instances"
		}
		if q.Code == "" {
			return nil
		}
		return q
	}
	return nil
}

// Running counts the machines in the region by type, whoever owns them. Stopped machines
// do not count against a quota ("Amazon EC2 instance type quotas").
func Running(ctx context.Context, c *cloud.Clients) ([]Launch, error) {
	return cloud.Remember(ctx, c, "running instances", func(ctx context.Context) ([]Launch, error) {
		found, err := describeInstances(ctx, c, []types.Filter{cloud.Filter("instance-state-name", "pending", "running")})
		if err != nil {
			return nil, err
		}
		count := map[Launch]int{}
		for _, s := range found {
			count[Launch{Type: s.Type, Spot: s.Spot}]++
		}
		var out []Launch
		for l, n := range count {
			out = append(out, Launch{l.Type, l.Spot, n})
		}
		return out, nil
	})
}

// VCPUs returns the numbers of vCPUs of instance types.
func VCPUs(ctx context.Context, c *cloud.Clients, names map[string]bool) (map[string]int, error) {
	described, err := typesWithoutZones(ctx, c, slices.Collect(maps.Keys(names)))
	found := map[string]int{}
	for name, t := range described {
		found[name] = int(t.VCPUs)
	}
	return found, err
}
