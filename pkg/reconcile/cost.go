package reconcile

import (
	"context"
	"math"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
)

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
func costOf(report cost.Report) *plan.Cost {
	c := &plan.Cost{Unpriced: report.Unpriced, NotCounted: append(report.NotCounted, notCounted()...)}
	var before, after float64
	for _, l := range report.Lines {
		i := plan.CostItem{
			Resource: l.Resource, Group: l.Group, Item: l.Name, Unit: string(l.Unit), UnitPrice: l.Price.Amount, AtMost: l.Price.AtMost,
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

func amountOf(a cost.Amount, p cost.Price) plan.CostAmount {
	return plan.CostAmount{Pieces: a.Pieces, Quantity: a.Quantity, Amount: hundredths(a.Quantity * p.Amount)}
}

func hundredths(x float64) float64 { return math.Round(x*100) / 100 }
