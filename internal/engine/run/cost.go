package run

import (
	"context"
	"math"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// notCounted is usage of every cluster that is not counted.
func notCounted() []string {
	return []string{
		"data transfer",
		"gigabytes and capacity units of NAT gateways and load balancers",
		"logs in CloudWatch",
		"requests",
		"snapshots",
		"boot data in Secrets Manager",
		"what controllers in the cluster create",
	}
}

// pricing asks for the prices of a plan while it is made. Later plans of a run have none.
type pricing struct {
	begun *cost.Estimate // nil: not begun, or finished
	done  bool
	cost  *plan.Cost
}

// newPricing returns the pricing of a plan; nil if the plan does not show its cost.
func newPricing(shown bool) *pricing {
	if !shown {
		return nil
	}
	return &pricing{}
}

// begin asks for the prices of the graph.
func (p *pricing) begin(ctx context.Context, l *Looking) {
	if p == nil || p.done {
		return
	}
	p.done = true
	cache := cost.OpenCache(l.Cluster.Target.CacheDir, l.Cloud.Region, l.Cloud.Clock.Now)
	p.begun = cost.Begin(ctx, cost.NewList(l.Cloud, cache), l.Built.Graph)
}

// stop ends calls for prices that nobody needs any more.
func (p *pricing) stop() {
	if p != nil && p.begun != nil {
		p.begun.Stop()
	}
}

// finish computes the cost of the plan.
func (p *pricing) finish(l *Looking) {
	if p == nil || p.begun == nil {
		return
	}
	report := p.begun.Finish(l.Built.Graph, l.Plan)
	p.begun = nil
	for _, w := range report.Warnings {
		l.Warn("%s", w)
	}
	if len(report.Lines) > 0 {
		p.cost = costOf(report)
	}
}

// found returns the cost; nil if it is not known.
func (p *pricing) found() *plan.Cost {
	if p == nil {
		return nil
	}
	return p.cost
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
