// Package cost computes what the resources of a plan cost a month: before and after, by the
// price list of AWS.
//
// A kind of resources declares what it costs beside its struct: its desired resource
// implements Desired, and its state Existing.
package cost

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Desired is implemented by a desired resource that costs money while it exists.
type Desired interface {
	// Costs returns what the resource costs now, and what it costs when it is as desired.
	// have is its state, nil if it does not exist. An error means that something is missing
	// in what it returns.
	Costs(ctx context.Context, c *cloud.Clients, have graph.State) (now, then []Item, err error)
}

// Existing is implemented by the state of a resource that costs money, for one that is not
// desired any more.
type Existing interface {
	Costs(ctx context.Context, c *cloud.Clients) ([]Item, error)
}

// Hours is how many hours a month has, as in AWS's own calculator.
const Hours = 730

// Item is a part of what a resource costs.
type Item struct {
	Group   string // what it is counted with in a summary: "t3.large", "NAT gateways"
	Name    string // "t3.large, On-Demand, Linux"
	Product Product
	// Pieces is how many there are; 0 for a part of other items of the group, such as the
	// IOPS of volumes.
	Pieces   int
	Unit     Unit
	Quantity float64 // a month, in Unit
	// NotCounted: nobody knows in advance how much of it there is. It has no Product.
	NotCounted bool
	// Assumed says that the image decides the volume type, and has not been looked up yet: the product
	// is that of the default type.
	Assumed bool
}

// Unit is the unit of a price.
type Unit string

// The units.
const (
	Hour         Unit = "hour"
	Month        Unit = "month"
	GigabyteTime Unit = "GB-month"
	IOPSTime     Unit = "IOPS-month"
	MiBpsTime    Unit = "MiB/s-month"
)

// Product identifies a price in the price list of AWS.
type Product struct {
	Service string // code of the service: "AmazonEC2"
	// Usage is the usage type without the prefix of the region: "BoxUsage:t3.large".
	Usage string
	// Attributes are further filters of the price list, one "name=value" a line. They are set
	// if several products have the usage type, or to make the response smaller.
	Attributes string
	Spot       string // instance type whose spot price applies; "" for none
}

// Hourly returns an item for n pieces that cost money by the hour.
func Hourly(group, name string, p Product, n int) Item {
	return Item{Group: group, Name: name, Product: p, Pieces: n, Unit: Hour, Quantity: float64(n) * Hours}
}

// Same returns what a resource costs that always costs the same: nothing before it exists.
func Same(have graph.State, items []Item) (now, then []Item, err error) {
	if have != nil {
		now = items
	}
	return now, items, nil
}

// Times returns the items of n resources that have these items each.
func Times(n int, each []Item) (all []Item) {
	for _, i := range each {
		i.Pieces *= n
		i.Quantity *= float64(n)
		all = append(all, i)
	}
	return all
}

// PublicAddresses returns the item of n public IPv4 addresses in use.
func PublicAddresses(n int) Item {
	return Hourly(
		"public IPv4 addresses",
		"public IPv4 address",
		Product{Service: "AmazonVPC", Usage: "PublicIPv4:InUseAddress", Attributes: "group=VPCPublicIPv4Address"},
		n,
	)
}
