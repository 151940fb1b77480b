package render

import (
	"io"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// costOf returns a cost with one item for each kind of line.
func costOf(before, after []float64) *plan.Cost {
	c := &plan.Cost{Currency: "USD", Prices: "2026-11-23", NotCounted: []string{"data transfer", "logs in CloudWatch"}}
	for n, i := range []plan.CostItem{
		{Resource: "node-group/blue", Group: "t3.large", Item: "t3.large, On-Demand, Linux", Unit: "hour", UnitPrice: 0.0832},
		{Resource: "node-group/green", Group: "m6i.large spot", Item: "m6i.large, spot, Linux", Unit: "hour", UnitPrice: 0.096, AtMost: true},
		{Resource: "node-group/blue", Group: "gp3 volumes", Item: "gp3 volume, 40 GiB", Unit: "GB-month", UnitPrice: 0.08},
		{Resource: "nat-gateway/us-east-1a", Group: "NAT gateways", Item: "NAT gateway", Unit: "hour", UnitPrice: 0.045},
		{Resource: "eks-cluster", Group: "EKS control planes", Item: "EKS control plane", Unit: "hour", UnitPrice: 0.1},
	} {
		unit := 730.0
		if i.Unit == "GB-month" {
			unit = 40
		}
		i.Before, i.After = amount(before[n], unit, i.UnitPrice), amount(after[n], unit, i.UnitPrice)
		c.Before, c.After = c.Before+i.Before.Amount, c.After+i.After.Amount
		c.Items = append(c.Items, i)
	}
	return c
}

func amount(pieces, unit, price float64) plan.CostAmount {
	return plan.CostAmount{Pieces: int(pieces), Quantity: pieces * unit, Amount: pieces * unit * price}
}

func TestCost(t *testing.T) {
	none, some := make([]float64, 5), []float64{2, 3, 2, 1, 1}
	full := PlanView{Cluster: "demo", Region: "us-east-1", Full: true}
	for name, c := range map[string]*plan.Cost{
		"new":       costOf(none, some),
		"unchanged": costOf(some, some),
		"more":      costOf(some, []float64{20, 3, 20, 1, 1}),
		"less":      costOf(some, []float64{2, 0, 2, 1, 1}),
	} {
		t.Run(name, func(t *testing.T) {
			golden.Assert(t, "cost-"+name+".txt", printed(t, func(w io.Writer) error {
				return Plan(w, plan.Plan{Cost: c}, full)
			}))
		})
	}
}
