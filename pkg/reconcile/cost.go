package reconcile

import (
	"context"
	"math"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
)

// Cost is the monthly cost of the cluster before and after a plan, for a month of 730 hours at
// list prices. It does not include discounts, taxes, data transfer and other usage.
type Cost struct {
	Currency string  `json:"currency"` // "USD", or "CNY" in China
	Before   float64 `json:"before"`   // a month
	After    float64 `json:"after"`    // a month
	// Prices is the date of the price list: "2026-11-23". Services have lists of their own; it
	// is the newest date.
	Prices string     `json:"pricesOf"`
	Items  []CostItem `json:"items"`
	// Unpriced are parts of the cluster that are missing in Before and After, because their
	// price is not known.
	Unpriced []string `json:"unpriced,omitempty"`
	// NotCounted names usage that nobody knows in advance.
	NotCounted []string `json:"notCounted"`
}

// CostItem is a part of the cost of one resource.
type CostItem struct {
	Resource  ID      `json:"resource"`
	Group     string  `json:"group"` // what a summary counts it with: "NAT gateways"
	Item      string  `json:"item"`  // "t3.large, On-Demand, Linux"
	Unit      string  `json:"unit"`  // "hour", "GB-month"
	UnitPrice float64 `json:"unitPrice"`
	// AtMost says that the price may be lower: it is a spot price that could not be read.
	AtMost bool       `json:"atMost,omitempty"`
	Before CostAmount `json:"before"`
	After  CostAmount `json:"after"`
}

// CostAmount has the quantity of an item, and its costs.
type CostAmount struct {
	Pieces   int     `json:"pieces"` // 0 for a part of other items of the group, such as IOPS
	Quantity float64 `json:"monthlyQuantity"`
	Amount   float64 `json:"monthlyAmount"` // rounded to a hundredth
}

// notCounted is usage of every cluster that is not counted.
func notCounted() []string {
	return []string{"data transfer", "gigabytes and capacity units of NAT gateways and load balancers", "logs in CloudWatch", "requests", "snapshots", "boot data in Secrets Manager", "what controllers in the cluster create"}
}

// estimate begins to ask for prices, if the run shows its cost.
func (r *run) estimate(ctx context.Context) {
	if !r.showsCost {
		return
	}
	r.showsCost = false // later looks of the run do not show it
	cache := cost.OpenCache(r.c.target.CacheDir, r.cloud.Region, r.cloud.Clock.Now)
	r.estimated = cost.Begin(ctx, cost.NewList(r.cloud, cache), r.built.Graph)
}

// stopPricing ends calls for prices that nobody needs any more.
func (r *run) stopPricing() {
	if r.estimated != nil {
		r.estimated.Stop()
	}
}

// addCost computes the cost of the plan.
func (r *run) addCost() {
	if r.estimated == nil {
		return
	}
	report := r.estimated.Finish(r.built.Graph, r.plan)
	r.estimated = nil
	for _, w := range report.Warnings {
		r.warn("%s", w)
	}
	if len(report.Lines) > 0 {
		r.cost = costOf(report)
	}
}

// costOf returns the public form of a report.
func costOf(report cost.Report) *Cost {
	c := &Cost{Unpriced: report.Unpriced, NotCounted: append(report.NotCounted, notCounted()...)}
	var before, after float64
	for _, l := range report.Lines {
		i := CostItem{
			Resource: ID(l.Resource), Group: l.Group, Item: l.Name, Unit: string(l.Unit), UnitPrice: l.Price.Amount, AtMost: l.Price.AtMost,
			Before: amountOf(l.Before, l.Price), After: amountOf(l.After, l.Price),
		}
		c.Items = append(c.Items, i)
		before += l.Before.Quantity * l.Price.Amount
		after += l.After.Quantity * l.Price.Amount
		c.Currency, c.Prices = l.Price.Currency, max(c.Prices, l.Price.Published)
	}
	c.Before, c.After = hundredths(before), hundredths(after)
	return c
}

func amountOf(a cost.Amount, p cost.Price) CostAmount {
	return CostAmount{a.Pieces, a.Quantity, hundredths(a.Quantity * p.Amount)}
}

func hundredths(x float64) float64 { return math.Round(x*100) / 100 }
