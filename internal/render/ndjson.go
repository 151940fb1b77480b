package render

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Record is one line of the stream of events for programs. docs/events.md
// says what is in it.
type Record struct {
	Version  int        `json:"version"`
	Type     string     `json:"type"` // look, plan, step, resource, note, calls, end
	At       time.Time  `json:"at"`
	Verb     string     `json:"verb,omitempty"`
	Cluster  string     `json:"cluster,omitempty"`
	Region   string     `json:"region,omitempty"`
	Program  string     `json:"program,omitempty"` // its version
	Summary  *Counts    `json:"summary,omitempty"`
	Resource plan.ID    `json:"resource,omitempty"`
	What     plan.What  `json:"what,omitempty"`
	CloudID  string     `json:"cloudID,omitempty"`
	Detail   string     `json:"detail,omitempty"`
	Error    string     `json:"error,omitempty"`
	Took     *float64   `json:"tookSeconds,omitempty"`
	Expected *float64   `json:"expectedSeconds,omitempty"`
	Text     string     `json:"text,omitempty"`
	Cost     *plan.Cost `json:"cost,omitempty"` // of the cluster, before and after the plan
	Result   *Outcome   `json:"result,omitempty"`
	*StepRecord
	*Calls
	*Ending
}

// StepRecord is the part of a Record that describes one step of a plan.
type StepRecord struct {
	Action plan.Action `json:"action"`
	Origin string      `json:"origin,omitempty"`
	Needs  []Arrow     `json:"needs,omitempty"` // edges to other steps
}

// Ending describes the end of a run.
type Ending struct {
	ExitCode int      `json:"exitCode"`
	Errors   []string `json:"errors,omitempty"`
	Account  string   `json:"account,omitempty"` // ID
	Caller   string   `json:"caller,omitempty"`  // ARN
	Profile  string   `json:"profile,omitempty"`
	Calls    []Calls  `json:"-"`
}

// Outcome counts how the resources of a run ended.
type Outcome struct {
	Done    int `json:"done"`
	Kept    int `json:"kept"`
	Failed  int `json:"failed"`
	Blocked int `json:"blocked"` // not started: a resource that it needs failed
}

// stream is a Progress that writes one JSON object on a line for each event.
type stream struct {
	w       io.Writer
	t       Terminal
	cluster string // in each record; "": in those of a run only

	mu    sync.Mutex
	tally *tally
	ended bool
	end   *Ending
}

// NewNDJSON returns a Progress for programs: newline-delimited JSON.
func NewNDJSON(w io.Writer, t Terminal) Progress { return &stream{w: w, t: t} }

// NewNDJSONOf is NewNDJSON for one of several clusters: each record names it.
func NewNDJSONOf(cluster string, w io.Writer, t Terminal) Progress {
	return &stream{w: w, t: t, cluster: cluster}
}

// Look implements Progress.
func (s *stream) Look(r Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally = newTally(r, s.t.Clock.Now())
	s.write(Record{Type: "look", Verb: r.Verb, Cluster: r.Cluster, Region: r.Region, Program: r.Program})
}

// Pause implements Progress.
func (*stream) Pause() {}

// Begin implements Progress.
func (s *stream) Begin(p plan.Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.plan(p, s.t.Clock.Now())
	c := Summarize(p)
	s.write(
		Record{
			Type:     "plan",
			Verb:     s.tally.run.Verb,
			Cluster:  s.tally.run.Cluster,
			Region:   s.tally.run.Region,
			Summary:  &c,
			Expected: number(p.Expected),
			Cost:     p.Cost,
		},
	)
	needs := needsOf(p)
	for _, step := range p.Steps {
		s.write(Record{Type: "step", Resource: step.Resource, CloudID: step.CloudID, StepRecord: &StepRecord{step.Action, step.Origin, needs[step.Resource]}})
	}
}

// needsOf returns the edges between the steps of a plan, by the resource that they start at.
func needsOf(p plan.Plan) map[plan.ID][]Arrow {
	out, steps := map[plan.ID][]Arrow{}, map[plan.ID]bool{}
	for _, s := range p.Steps {
		steps[s.Resource] = true
	}
	for _, r := range p.Graph {
		for _, n := range r.Needs {
			if steps[n.Resource] {
				out[r.ID] = append(out[r.ID], Arrow{string(n.Resource), n.Existing, n.Loose, n.Outlives})
			}
		}
	}
	return out
}

// Event implements Progress.
func (s *stream) Event(e plan.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	told, _ := s.tally.note(e)
	e.What = told.What
	if e.What == plan.Kept {
		return
	}
	took := seconds(e.Took)
	r := Record{Type: "resource", At: e.At, Resource: e.Resource, What: e.What, CloudID: e.CloudID, Detail: e.Detail, Took: &took, Expected: number(e.Expected)}
	if e.Err != nil {
		r.Error = e.Err.Error()
	}
	s.write(r)
}

// Note implements Progress.
func (s *stream) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(Record{Type: "note", Text: text})
}

// Result implements Progress.
func (s *stream) Result(e Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = &e
}

// End implements Progress.
func (s *stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.tally == nil {
		s.ended = true
		return
	}
	s.ended = true
	took := seconds(s.t.Clock.Since(s.tally.began))
	if s.end != nil {
		for _, c := range s.end.Calls {
			s.write(Record{Type: "calls", Calls: &c})
		}
	}
	s.write(Record{
		Type: "end", Verb: s.tally.run.Verb, Cluster: s.tally.run.Cluster, Region: s.tally.run.Region, Took: &took, Ending: s.end,
		Result: &Outcome{
			Done: s.tally.count("", plan.Done), Kept: s.tally.kept,
			Failed: s.tally.count("", plan.Failed), Blocked: s.tally.count("", plan.Blocked),
		},
	})
}

func (s *stream) write(r Record) {
	r.Version = Version
	if r.Cluster == "" {
		r.Cluster = s.cluster
	}
	if r.At.IsZero() {
		r.At = s.t.Clock.Now()
	}
	r.At = r.At.UTC()
	line, err := json.Marshal(r)
	if err != nil {
		return // a Record holds nothing that cannot be encoded
	}
	_, _ = s.w.Write(append(line, '\n'))
}

// number is a duration in seconds, or nil for none.
func number(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	s := seconds(d)
	return &s
}
