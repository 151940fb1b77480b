package cost

import "strings"

// Machine has the properties of a machine on which its price depends, besides its volumes.
type Machine struct {
	Type string
	Spot bool
	// Tenancy is default (or ""), dedicated or host: a dedicated host costs money, and the
	// machines on it none.
	Tenancy string
	Block   bool // it is in a capacity block, which is paid in advance
}

// Server is a machine with its volumes.
type Server struct {
	Machine
	Volumes []Volume
}

// All returns the items of n such machines, with one purchase option.
func (s Server) All(n int) []Item {
	if s.Spot {
		return s.Items(n, n)
	}
	return s.Items(n, 0)
}

// Items returns the items of n such machines, of which some are spot instances.
func (s Server) Items(n, spot int) (all []Item) {
	for _, part := range []struct {
		n    int
		spot bool
	}{{n - spot, false}, {spot, true}} {
		if s.Spot = part.spot; part.n > 0 {
			all = append(all, Times(part.n, []Item{s.Item()})...)
		}
	}
	for _, v := range s.Volumes {
		all = append(all, Times(n, v.Items())...)
	}
	return all
}

// Item returns the item of one machine with Linux.
func (m Machine) Item() Item {
	switch {
	case m.Block:
		return Item{Group: "capacity blocks", Name: m.Type + ", capacity block", NotCounted: true}
	case m.Tenancy == "host":
		return Item{Group: "dedicated hosts", Name: m.Type + ", dedicated host", NotCounted: true}
	}
	product := Product{Service: "AmazonEC2", Usage: "BoxUsage:" + m.Type}
	filters := []string{"instanceType=" + m.Type, "operatingSystem=Linux", "tenancy=Shared", "preInstalledSw=NA", "capacitystatus=Used"}
	group, option := m.Type, "On-Demand, Linux"
	if m.Tenancy == "dedicated" {
		product.Usage, filters[2] = "DedicatedUsage:"+m.Type, "tenancy=Dedicated"
		group, option = group+" dedicated", option+", dedicated"
	}
	product.Attributes = strings.Join(filters, "\n")
	if m.Spot {
		product.Spot, group, option = m.Type, group+" spot", strings.Replace(option, "On-Demand", "spot", 1)
	}
	return Hourly(group, m.Type+", "+option, product, 1)
}
