package render

import (
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Version is the version of the documents and event streams that programs
// read. It grows when a field changes its meaning or goes; new fields may
// come at any time.
const Version = 1

// Counts are how many things a plan does what to.
type Counts struct {
	Create   int `json:"create"`
	Update   int `json:"update"`
	Delete   int `json:"delete"`
	Conflict int `json:"conflict"`
	Settle   int `json:"settle"` // on their way: nothing to do but to wait
	Await    int `json:"await"`  // that come by themselves, of what is made
	Keep     int `json:"keep"`   // as wanted, or not ours
}

// Summarize counts the steps of a plan.
func Summarize(p graph.Plan) Counts {
	return Counts{
		Create: p.Count(graph.Create), Update: p.Count(graph.Update), Delete: p.Count(graph.Remove),
		Conflict: p.Count(graph.Conflict), Settle: p.Count(graph.Settle), Await: p.Count(graph.Await),
		Keep: p.Count(graph.Keep, graph.Existing, graph.Leave),
	}
}

// PlanDocument is a plan for a program.
type PlanDocument struct {
	Version  int          `json:"version"`
	Cluster  string       `json:"cluster"`
	Region   string       `json:"region"`
	Summary  Counts       `json:"summary"`
	Expected float64      `json:"expectedSeconds,omitempty"`
	Steps    []graph.Step `json:"steps"`
}

// NewPlanDocument returns the document of a plan.
func NewPlanDocument(p graph.Plan, v PlanView) PlanDocument {
	d := PlanDocument{Version: Version, Cluster: v.Cluster, Region: v.Region, Summary: Summarize(p), Expected: seconds(v.Expected), Steps: p.Steps}
	if d.Steps == nil {
		d.Steps = []graph.Step{}
	}
	return d
}

// seconds is a duration as documents have it, to the millisecond.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
