package render

import (
	"cmp"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Rehearsal is the document of a rehearsal: what happened in the copy of the account. A rehearsal
// that failed has the parts until then.
type Rehearsal struct {
	Version int    `json:"version"`
	Cluster string `json:"cluster"`
	Region  string `json:"region"`
	Account string `json:"account,omitempty"` // ID
	Source  string `json:"source"`            // what was copied: "account", or "simulated"
	Faults  string `json:"faults,omitempty"`  // the value of --faults
	// Runs are the creation and the deletion.
	Runs []RehearsedRun `json:"runs"`
	// Changes are the resources that a plan after the creation would change: none, if all is well.
	Changes []plan.ID `json:"changesAfterCreate,omitempty"`
	Calls   []Calls   `json:"calls"`
	// Quotas are those of which the cluster needs some, or has some.
	Quotas []plan.Quota `json:"quotas,omitempty"`
	Cost   *plan.Cost   `json:"cost,omitempty"`
	// Policy are the actions that the policy of the caller must allow.
	Policy []string `json:"policy"`
	// Permissions says what the caller of the copied account may not do.
	Permissions *plan.Permissions `json:"permissions,omitempty"`
	// Left is what the deletion has left, one line for each resource.
	Left []string `json:"left"`
	// Kills are the runs of --every-call.
	Kills *Kills `json:"kills,omitempty"`
}

// RehearsedRun is one run, in the time of AWS.
type RehearsedRun struct {
	Run     string  `json:"run"` // "create", "delete"
	Changed Counts  `json:"changed"`
	Reads   int64   `json:"reads"`
	Writes  int64   `json:"writes"`
	Took    float64 `json:"tookSeconds"`
}

// NewRehearsedRun returns the record of a run.
func NewRehearsedRun(name string, r cluster.Result, took time.Duration) RehearsedRun {
	return RehearsedRun{Run: name, Changed: Summarize(r.Plan), Reads: r.Reads, Writes: r.Writes, Took: seconds(took)}
}

// Kills are runs that were killed at one of their calls, and run again.
type Kills struct {
	Every       int    `json:"everyNthCall"`
	CreateCalls int    `json:"createCalls"` // of a run that was not killed
	DeleteCalls int    `json:"deleteCalls"`
	Planned     int    `json:"planned"`
	NotReached  int    `json:"notReached"` // the run ended before the call: two runs do not make the same number
	Differ      int    `json:"differ"`     // those of Runs that are not Same
	Runs        []Kill `json:"runs"`
}

// Add adds a killed run, in the order of creation and deletion, and of their calls.
func (k *Kills) Add(one Kill) {
	at, _ := slices.BinarySearchFunc(k.Runs, one, func(a, b Kill) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Call, b.Call), cmp.Compare(b.When(), a.When()))
	})
	k.Runs = slices.Insert(k.Runs, at, one)
	if !one.Same() {
		k.Differ++
	}
}

// Kill is one run that was killed, and the run after it.
type Kill struct {
	Run       string  `json:"run"`   // "create", "delete"
	Call      int     `json:"call"`  // its number in the run, from 1
	After     bool    `json:"after"` // AWS had carried the call out
	Service   string  `json:"service"`
	Operation string  `json:"operation"`
	At        float64 `json:"atSeconds"` // since the run began
	// Again is the second run, Error how it failed.
	Again RehearsedRun `json:"again"`
	Error string       `json:"error,omitempty"`
	// Left and Missing are what the account then has beyond the result of a run that was not
	// killed, and what it lacks; Changed is what has other attributes or tags.
	Left    []string `json:"left,omitempty"`
	Missing []string `json:"missing,omitempty"`
	Changed []string `json:"changed,omitempty"`
}

// Same reports whether the result is that of a run that was not killed.
func (k Kill) Same() bool {
	return k.Error == "" && len(k.Left)+len(k.Missing)+len(k.Changed) == 0
}

// When says whether the call had its effect: "before", "after".
func (k Kill) When() string {
	if k.After {
		return "after"
	}
	return "before"
}

// Differences are the lines that say what is not as it should be.
func (k Kill) Differences() (out []string) {
	if k.Error != "" {
		out = append(out, k.Error)
	}
	for _, d := range []struct {
		word  string
		lines []string
	}{{"left: ", k.Left}, {"missing: ", k.Missing}, {"changed: ", k.Changed}} {
		for _, line := range d.lines {
			out = append(out, d.word+line)
		}
	}
	return out
}

// NearlyUsedUp reports whether less than a fifth of a quota is left.
func NearlyUsedUp(q plan.Quota) bool { return (q.Used+q.Needed)*5 > q.Limit*4 }
