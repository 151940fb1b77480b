package ec2

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Host is a Dedicated Host. It has room for any number of instances.
type Host struct {
	Type, Zone    string `json:",omitempty"` // "": any
	Family        string `json:",omitempty"` // of instances, for a host that supports several types: "m5"
	AutoPlacement bool   `json:",omitempty"` // it takes instances that do not name it
	State         string `json:",omitempty"` // "": available
}

func (h *Host) state() types.AllocationState {
	if h.State != "" {
		return types.AllocationState(h.State)
	}
	return types.AllocationStateAvailable
}

func (h *Host) autoPlacement() types.AutoPlacement {
	if h.AutoPlacement {
		return types.AutoPlacementOn
	}
	return types.AutoPlacementOff
}

// takes reports whether an instance that does not name the host may be launched on it: "Understand auto-placement and
// affinity", EC2 user guide.
func (h *Host) takes(l *launch) bool {
	family, _, _ := strings.Cut(l.kind.name, ".")
	return h.AutoPlacement && h.state() == types.AllocationStateAvailable && (h.Type == "" || h.Type == l.kind.name) &&
		(h.Family == "" || h.Family == family) && (h.Zone == "" || h.Zone == l.subnet.Zone)
}

// describeHosts returns Dedicated Hosts.
func (svc *Service) describeHosts(in *ec2.DescribeHostsInput) (*ec2.DescribeHostsOutput, error) {
	hosts := svc.state.Hosts
	keep, err := matching(in.Filter, fields[string]{
		"auto-placement":    func(id string) []string { return oneValue(string(hosts[id].autoPlacement())) },
		"availability-zone": func(id string) []string { return oneValue(hosts[id].Zone) },
		"instance-type":     func(id string) []string { return oneValue(hosts[id].Type) },
		"state":             func(id string) []string { return oneValue(string(hosts[id].state())) },
	}, nil)
	if err != nil {
		return nil, err
	}
	found := 0
	var ids []string
	for _, id := range core.SortedKeys(hosts) {
		if len(in.HostIds) > 0 && !slices.Contains(in.HostIds, id) {
			continue
		}
		if found++; keep(id) {
			ids = append(ids, id)
		}
	}
	if found < len(in.HostIds) {
		return nil, core.Fail("InvalidHostID.NotFound", "The host does not exist")
	}
	part, next, err := core.Page(svc.Account, ids, in.NextToken, in.MaxResults, 500)
	return &ec2.DescribeHostsOutput{NextToken: next, Hosts: core.Each(part, func(id string) types.Host {
		h := hosts[id]
		return types.Host{
			HostId: aws.String(id), State: h.state(), AutoPlacement: h.autoPlacement(), AvailabilityZone: core.Text(h.Zone),
			HostProperties: &types.HostProperties{InstanceType: core.Text(h.Type), InstanceFamily: core.Text(h.Family)},
		}
	})}, err
}

// withoutHost is the error of a launch with the tenancy host that names no host, if no host takes it: auto-placement is off for new
// hosts.
func (svc *Service) withoutHost(l *launch) error {
	if l.model.Placement.Tenancy != string(types.TenancyHost) || l.model.Placement.Host != "" {
		return nil
	}
	for _, h := range svc.state.Hosts {
		if h.takes(l) {
			return nil
		}
	}
	return core.Fail("InsufficientCapacityOnHost", "There is not enough capacity on the Dedicated Host to launch or start the instance.")
}
