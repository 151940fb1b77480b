package render

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// costs says in one line what the cluster costs, and what changes. With PlanView.Full, a
// table follows.
func costs(c *plan.Cost, v PlanView) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	line := v.Style.paint(bold, "Cost:") + " " + total(c) + parenthesis(c) + "; data transfer is not included. Prices of " + c.Prices + "."
	b.WriteString(v.sentence(line) + "\n")
	if v.Full {
		b.WriteString(costTable(c, v.Style))
	}
	return b.String()
}

// briefCost says what the cluster costs, for the top of a plan; "" if that is not known.
func briefCost(c *plan.Cost, v PlanView) string {
	if c == nil {
		return ""
	}
	return v.Style.paint(bold, "Cost:") + " " + total(c) + ".\n"
}

// CostLine says in one line what a cluster costs; "" if that is not known.
func CostLine(c *plan.Cost, s Style) string { return costs(c, PlanView{Style: s}) }

// total is the sum before and after: "about $182.74 → $243 a month, +$60.74".
func total(c *plan.Cost) string {
	m := money(c.Currency)
	switch change := c.After - c.Before; {
	case c.Before == 0:
		return "about " + m.about(c.After) + " a month"
	case math.Abs(change) < 0.005:
		return "about " + m.about(c.After) + " a month, as before"
	default:
		return "about " + m.about(c.Before) + " → " + m.about(c.After) + " a month, " + m.signed(change)
	}
}

// costGroup is the sum of the items with the same name in a summary.
type costGroup struct {
	name          string
	before, after plan.CostAmount
	atMost        bool
}

func (g costGroup) change() float64 { return g.after.Amount - g.before.Amount }

// mostGroups is how many groups the line lists.
const mostGroups = 4

// parenthesis lists the largest groups, or those that change: "(t3.large × 2 $121.47, …)".
func parenthesis(c *plan.Cost) string {
	m, all := money(c.Currency), costGroups(c)
	changes := c.Before > 0
	if changes {
		all = slices.DeleteFunc(all, func(g costGroup) bool { return math.Abs(g.change()) < 0.005 })
	}
	slices.SortStableFunc(all, func(a, b costGroup) int { return cmp.Compare(math.Abs(b.change()), math.Abs(a.change())) })
	var parts []string
	for _, g := range all[:min(len(all), mostGroups)] {
		parts = append(parts, g.text(m, changes))
	}
	if len(all) > mostGroups {
		parts = append(parts, "…")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (g costGroup) text(m money, changes bool) string {
	amount, pieces := m.exact(g.after.Amount), strconv.Itoa(g.after.Pieces)
	if changes {
		amount = m.signed(g.change())
		if g.before.Pieces != g.after.Pieces {
			pieces = strconv.Itoa(g.before.Pieces) + " → " + pieces
		}
	}
	if g.atMost {
		amount = "at most " + amount
	}
	return g.name + " × " + pieces + " " + amount
}

// costGroups sums the items by group, in order of first appearance.
func costGroups(c *plan.Cost) (all []costGroup) {
	for _, i := range c.Items {
		at := slices.IndexFunc(all, func(g costGroup) bool { return g.name == i.Group })
		if at < 0 {
			at = len(all)
			all = append(all, costGroup{name: i.Group})
		}
		g := &all[at]
		g.atMost = g.atMost || i.AtMost
		for _, x := range []struct {
			sum *plan.CostAmount
			add plan.CostAmount
		}{{&g.before, i.Before}, {&g.after, i.After}} {
			x.sum.Pieces += x.add.Pieces
			x.sum.Amount += x.add.Quantity * i.UnitPrice
		}
	}
	return all
}

// CostRows lists every item: what it costs, and what that changes if anything changes. The first
// row is the head of the table, the last one the total.
func CostRows(c *plan.Cost) [][]string {
	m, changes := money(c.Currency), c.Before > 0 && slices.ContainsFunc(c.Items, func(i plan.CostItem) bool { return i.Before != i.After })
	row := func(before, after float64, cells ...string) []string {
		if !changes {
			return append(cells, m.exact(after))
		}
		return append(cells, m.exact(before), m.exact(after), m.signed(after-before))
	}
	rows := [][]string{{"RESOURCE", "ITEM", "UNIT PRICE", "A MONTH"}}
	if changes {
		rows = [][]string{{"RESOURCE", "ITEM", "UNIT PRICE", "BEFORE", "AFTER", "CHANGE"}}
	}
	for _, i := range c.Items {
		price := m.unit(i.UnitPrice) + " / " + i.Unit
		if i.AtMost {
			price = "at most " + price
		}
		rows = append(rows, row(i.Before.Amount, i.After.Amount, string(i.Resource), i.Item+times(i, changes), price))
	}
	return append(rows, row(c.Before, c.After, "", "", "total"))
}

// NotIncluded names what the cost of a cluster does not include.
func NotIncluded(c *plan.Cost) string {
	return "Not included: " + strings.Join(append(slices.Clone(c.Unpriced), c.NotCounted...), ", ") + "."
}

// costTable prints the items.
func costTable(c *plan.Cost, s Style) string {
	rows := CostRows(c)
	wide := make([]int, len(rows[0]))
	for _, cells := range rows {
		for n, cell := range cells {
			wide[n] = max(wide[n], width(cell))
		}
	}
	var b strings.Builder
	b.WriteString("\n")
	for n, cells := range rows {
		line := "  " + strings.TrimRight(aligned(cells, wide), " ")
		if n == 0 {
			line = s.paint(dim, line)
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("\n  " + s.paint(dim, NotIncluded(c)) + "\n")
	return b.String()
}

// times says how many there are, unless it is one: " × 3", " × 1 → 3".
func times(i plan.CostItem, changes bool) string {
	count := func(a plan.CostAmount) string {
		if i.Before.Pieces+i.After.Pieces == 0 {
			return strconv.FormatFloat(a.Quantity, 'f', -1, 64)
		}
		return strconv.Itoa(a.Pieces)
	}
	before, after := count(i.Before), count(i.After)
	switch {
	case changes && before != after && i.Before != (plan.CostAmount{}) && i.After != (plan.CostAmount{}):
		return " × " + before + " → " + after
	case i.After == (plan.CostAmount{}):
		after = before
	}
	if after == "1" {
		return ""
	}
	return " × " + after
}

// aligned aligns a row of a table to the widths of its columns. Amounts are aligned to the right.
func aligned(row []string, wide []int) string {
	const firstAmount = 3
	var cells []string
	for n, cell := range row {
		if n >= firstAmount {
			cell = strings.Repeat(" ", wide[n]-width(cell)) + cell
		}
		cells = append(cells, pad(cell, wide[n]))
	}
	return strings.Join(cells, "  ")
}

// money is a currency: "USD".
type money string

func (m money) symbol() string {
	if m == "USD" {
		return "$"
	}
	return string(m) + " "
}

// about is an amount in whole units, as estimates are: "$1,243".
func (m money) about(x float64) string {
	if x < 100 {
		return m.exact(x)
	}
	return m.symbol() + text.Thousands(fmt.Sprintf("%.0f", x))
}

// exact is an amount with cents.
func (m money) exact(x float64) string { return m.symbol() + text.Thousands(fmt.Sprintf("%.2f", x)) }

// signed is a difference: "+$60.74", "−$60.74".
func (m money) signed(x float64) string {
	switch {
	case x >= 0.005:
		return "+" + m.exact(x)
	case x <= -0.005:
		return "−" + m.exact(-x)
	}
	return "0"
}

// unit is the price of a unit, with all its digits.
func (m money) unit(x float64) string {
	digits := strconv.FormatFloat(math.Round(x*1e8)/1e8, 'f', -1, 64)
	if cents := fmt.Sprintf("%.2f", x); len(digits) < len(cents) {
		digits = cents
	}
	return m.symbol() + digits
}

// Monthly is what a cluster costs a month: "$243".
func Monthly(c *plan.Cost) string { return money(c.Currency).about(c.After) }

// Saving describes how much a plan saves each month, and what the cluster still costs: "It saves about $210.22 of $340 a month;
// $130 goes on: …". It returns "" if the plan saves nothing, or if the cost is not known.
func Saving(c *plan.Cost) string {
	if c == nil || c.Before-c.After < 0.005 {
		return ""
	}
	m := money(c.Currency)
	goesOn := slices.DeleteFunc(costGroups(c), func(g costGroup) bool { return g.after.Amount < 0.005 })
	slices.SortStableFunc(goesOn, func(a, b costGroup) int { return cmp.Compare(b.after.Amount, a.after.Amount) })
	var names []string
	for _, g := range goesOn[:min(len(goesOn), mostGroups)] {
		names = append(names, g.name+" "+m.about(g.after.Amount))
	}
	line := fmt.Sprintf("It saves about %s of %s a month", m.about(c.Before-c.After), m.about(c.Before))
	if len(names) > 0 {
		line += fmt.Sprintf("; %s goes on: %s", m.about(c.After), strings.Join(names, ", "))
	}
	return line + "."
}
