package cost

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Line is a position of the cost of a resource, before and after a plan.
type Line struct {
	Resource plan.ID
	Item     // without Pieces and Quantity
	Price    Price
	Before   Amount
	After    Amount
}

// Amount counts an item.
type Amount struct {
	Pieces   int
	Quantity float64 // a month
}

func (a *Amount) add(i Item) {
	a.Pieces += i.Pieces
	a.Quantity += i.Quantity
}

// Report has the costs of the resources of a plan.
type Report struct {
	Lines      []Line   // with a price
	Unpriced   []string // items without a price
	NotCounted []string // groups of which nobody knows the amount
	Warnings   []string // why prices are missing or old
}

// report adds the prices to the lines.
func (e *Estimate) report(lines []Line, errs []error) (r Report) {
	var failed []string
	var why, stale error
	unknown := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, l := range lines {
		if l.NotCounted {
			unknown(&r.NotCounted, l.Group)
			continue
		}
		a := e.list.answer(l.Product)
		switch {
		case a.err == nil:
			l.Price = a.price
			r.Lines = append(r.Lines, l)
		case errors.Is(a.err, errNoPrice):
			unknown(&r.Unpriced, l.Group)
		default:
			unknown(&failed, l.Group)
			why = a.err
		}
		if a.stale != nil {
			stale = a.stale
		}
	}
	if len(r.Unpriced) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("no price for %s in %s: it is not in the cost", strings.Join(r.Unpriced, ", "), e.c.Region))
	}
	switch {
	case why != nil && len(r.Lines) == 0:
		r.Warnings = append(r.Warnings, "the cost is not known: "+reason(why))
	case why != nil:
		r.Warnings = append(r.Warnings, fmt.Sprintf("the cost is without %s: %s", strings.Join(failed, ", "), reason(why)))
	}
	if stale != nil {
		r.Warnings = append(r.Warnings, "the prices are older than a day: "+reason(stale))
	}
	for _, err := range errs {
		if text := "the cost is not complete: " + reason(err); !slices.Contains(r.Warnings, text) {
			r.Warnings = append(r.Warnings, text)
		}
	}
	r.Unpriced = append(r.Unpriced, failed...)
	return r
}

// reason says why prices are not known.
func reason(err error) string {
	var incomplete *MissingError
	switch {
	case errors.As(err, &incomplete):
		return incomplete.What + ": " + incomplete.denied()
	case cloud.Denied(err):
		return (&MissingError{Action: "pricing:GetProducts"}).denied()
	}
	return cloud.Reason(err)
}

// MissingError is the error of Costs if the caller lacks an optional permission.
type MissingError struct {
	What   string // "the volumes of the machines are not known"
	Action string // "ec2:DescribeVolumes"
	Err    error
}

func (m *MissingError) Error() string { return m.What + ": " + m.Err.Error() }

// Unwrap returns the error of the call.
func (m *MissingError) Unwrap() error { return m.Err }

func (m *MissingError) denied() string {
	if m.Err != nil && !cloud.Denied(m.Err) {
		return cloud.Reason(m.Err)
	}
	return "the caller lacks the IAM action " + m.Action
}
