package ec2

import (
	"net/netip"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// AddressUse is the number of IPv4 addresses that a step of a plan needs in subnets.
type AddressUse struct {
	Subnets []*graph.Ref[SubnetState]
	Takes   int // addresses in all subnets together
	Each    int // free addresses that AWS requires in each subnet
}

// AddressUser is implemented by resources with network interfaces.
type AddressUser interface {
	// Addresses returns the IPv4 addresses that EC2 allocates when the step is carried out. The step creates or updates
	// the resource; have is its last observed state.
	Addresses(s plan.Step, have graph.State) AddressUse
}

// reservedAddresses is how many addresses of a subnet AWS keeps: the first four and the last ("Subnet CIDR blocks",
// Amazon VPC user guide).
const reservedAddresses = 5

// FreeAddresses returns how many IPv4 addresses of a subnet are free; limited is false for a subnet without IPv4.
func FreeAddresses(subnet *graph.Ref[SubnetState]) (free int, limited bool) {
	if state, ok := subnet.Found(); ok {
		return state.Free, state.CIDR != ""
	}
	desired, ok := subnet.Desired().(*Subnet)
	if !ok {
		return 0, false
	}
	block, err := netip.ParsePrefix(desired.CIDR)
	if err != nil {
		return 0, false
	}
	return 1<<(block.Addr().BitLen()-block.Bits()) - reservedAddresses, true
}

// Addresses implements AddressUser.
func (i *Instance) Addresses(s plan.Step, _ graph.State) AddressUse {
	if s.Action != plan.Create || i.Subnet == nil || len(i.Spec.NetworkInterfaces) > 0 {
		return AddressUse{}
	}
	return AddressUse{Subnets: []*graph.Ref[SubnetState]{i.Subnet}, Takes: 1}
}

// Addresses implements AddressUser.
func (g *NATGateway) Addresses(s plan.Step, _ graph.State) AddressUse {
	if s.Action != plan.Create {
		return AddressUse{}
	}
	return AddressUse{Subnets: []*graph.Ref[SubnetState]{g.Subnet}, Takes: 1}
}
