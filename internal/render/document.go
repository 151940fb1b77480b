package render

import (
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Version is the version of the documents and event streams that programs
// read. It is increased when a field changes its meaning or is removed; fields may
// be added at any time.
const Version = 1

// Counts are the numbers of resources for each action of a plan.
type Counts struct {
	Replace  int `json:"replace"` // deleted resources whose place another one takes; both are counted below, too
	Create   int `json:"create"`
	Update   int `json:"update"`
	Delete   int `json:"delete"`
	Conflict int `json:"conflict"`
	Settle   int `json:"settle"` // AWS is still changing them
	Await    int `json:"await"`  // created by others, such as Nodes by their machines
	Keep     int `json:"keep"`   // up to date, existing, or managed by the cluster
}

// Summarize counts the steps of a plan.
func Summarize(p plan.Plan) Counts {
	return Counts{
		Replace: replaced(p), Create: p.Count(plan.Create), Update: p.Count(plan.Update), Delete: p.Count(plan.Remove),
		Conflict: p.Count(plan.Conflict), Settle: p.Count(plan.Settle), Await: p.Count(plan.Await),
		Keep: p.Count(plan.Keep, plan.Existing, plan.Leave),
	}
}

// PlanDocument is a plan for a program.
type PlanDocument struct {
	Version  int         `json:"version"`
	Cluster  string      `json:"cluster"`
	Region   string      `json:"region"`
	Account  string      `json:"account,omitempty"` // ID
	Caller   string      `json:"caller,omitempty"`  // ARN of who has made the plan
	Summary  Counts      `json:"summary"`
	Expected float64     `json:"expectedSeconds,omitempty"`
	Steps    []plan.Step `json:"steps"`
	// Quotas are the quotas of the account that the plan needs some of.
	Quotas []plan.Quota `json:"quotas,omitempty"`
	// Permissions says what the caller may not do, with --check.
	Permissions *plan.Permissions `json:"permissions,omitempty"`
	// Cost has the costs of the cluster a month, before and after.
	Cost  *plan.Cost `json:"cost,omitempty"`
	Notes []string   `json:"notes,omitempty"` // what the plan leads to, such as Nodes that are not ready
}

// NewPlanDocument returns the document of a plan.
func NewPlanDocument(p plan.Plan, v PlanView) PlanDocument {
	d := PlanDocument{
		Version:     Version,
		Cluster:     v.Cluster,
		Region:      v.Region,
		Account:     v.Account,
		Caller:      v.Caller,
		Summary:     Summarize(p),
		Expected:    seconds(p.Expected),
		Steps:       p.Steps,
		Quotas:      p.Quotas,
		Permissions: p.Permissions,
		Cost:        p.Cost,
		Notes:       v.Notes,
	}
	if d.Steps == nil {
		d.Steps = []plan.Step{}
	}
	return d
}

// seconds converts a duration to the unit of documents, with millisecond precision.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
