package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Read reads the events of a run, as --progress json writes them. The last line may be cut off,
// as that of a process that was killed. Of several runs, the last one counts.
func Read(r io.Reader) (*Report, error) {
	var h *history
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return nil, err
		}
		var e render.Record
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if err := json.Unmarshal(text, &e); err != nil || e.Type == "" {
				if last && h != nil {
					break
				}
				return nil, fmt.Errorf("line %d is not an event of --progress json", n)
			}
			if e.Version != render.Version {
				return nil, fmt.Errorf("line %d is an event of version %d, and this program knows version %d", n, e.Version, render.Version)
			}
		}
		if e.Type == "look" {
			h = newHistory(e)
		} else if h != nil {
			h.add(e)
		}
		if last {
			break
		}
	}
	if h == nil {
		return nil, errors.New("there is no event of a run: 'cluster create' and 'cluster delete' write them with --progress json")
	}
	return h.report(), nil
}

// history collects the events of a run into a report.
type history struct {
	r     *Report
	plan  time.Time // when the plan began
	at    time.Time // of the last event
	all   []*resource
	known map[plan.ID]*resource
}

// resource is the history of one resource.
type resource struct {
	id      plan.ID
	action  plan.Action
	origin  string
	cloudID string
	needs   []render.Arrow
	state   render.BoxState
	err     string
	phases  []Phase
	open    bool // the last phase goes on
	called  bool // a call has begun: a cloud ID after it means that the resource exists
	exists  time.Duration
	ready   time.Duration // when it was done for the first time
	waited  []Need
	row     int
}

func newHistory(look render.Record) *history {
	return &history{
		r:    &Report{Verb: look.Verb, Cluster: look.Cluster, Region: look.Region, Program: look.Program, Began: look.At},
		plan: look.At, at: look.At, known: map[plan.ID]*resource{},
	}
}

func (h *history) add(e render.Record) {
	if h.r.Ended {
		return // notes
	}
	if e.At.After(h.at) {
		h.at = e.At
	}
	switch e.Type {
	case "plan":
		h.plan, h.r.Planned, h.r.Expected, h.r.Cost = e.At, true, duration(e.Expected), e.Cost
	case "step":
		if n := h.resource(e.Resource); e.StepRecord != nil {
			n.action, n.origin, n.needs, n.cloudID = e.Action, e.Origin, e.Needs, e.CloudID
		}
	case "resource":
		h.resource(e.Resource).event(e, e.At.Sub(h.plan))
	case "note":
		if text, ok := strings.CutPrefix(e.Text, "warning: "); ok {
			h.r.Warnings = append(h.r.Warnings, text)
		}
	case "calls":
		if e.Calls != nil {
			h.r.Calls = append(h.r.Calls, *e.Calls)
		}
	case "end":
		h.end(e)
	}
}

func (h *history) end(e render.Record) {
	h.r.Ended, h.r.Took = true, duration(e.Took)
	if x := e.Ending; x != nil {
		h.r.ExitCode, h.r.Errors = x.ExitCode, x.Errors
		h.r.Account, h.r.Caller, h.r.Profile = x.Account, x.Caller, x.Profile
	}
}

func (h *history) resource(id plan.ID) *resource {
	n := h.known[id]
	if n == nil {
		n = &resource{id: id, row: -1}
		h.known[id] = n
		h.all = append(h.all, n)
	}
	return n
}

// event adds an event at a time since the plan.
func (n *resource) event(e render.Record, at time.Duration) {
	phase := n.next(e, at)
	switch e.What {
	case plan.Creating, plan.Updating, plan.Deleting:
		phase.Kind, phase.Text, n.called = Calling, string(e.What), true
		n.phases, n.state = append(n.phases, phase), render.BoxBusy
	case plan.Waiting:
		n.phases, n.state = append(n.phases, phase), render.BoxBusy
	case plan.Done:
		n.finish(render.BoxDone, phase)
		if n.ready == 0 {
			n.ready = at
		}
	case plan.Failed:
		n.err = e.Error
		n.finish(render.BoxFailed, phase)
	case plan.Blocked:
		n.err = e.Detail
		if n.called { // the run was stopped
			n.finish(render.BoxBusy, phase)
		} else {
			n.finish(render.BoxBlocked, phase)
		}
	case plan.Kept:
		n.open = false
	}
}

// next ends the current phase of a resource at the time of an event, and returns the phase
// that the event begins or ends.
func (n *resource) next(e render.Record, at time.Duration) Phase {
	if n.open && len(n.phases) > 0 { // a version of later may have events that this one does not know
		n.phases[len(n.phases)-1].To = at
	}
	began := at
	if !n.open && e.What != plan.Blocked {
		began = max(at-duration(e.Took), n.lastEnd(), 0)
	}
	if e.CloudID != "" {
		n.cloudID = e.CloudID
		if n.called && n.exists == 0 {
			n.exists = at
		}
	}
	n.open = true
	return Phase{Kind: ForAWS, From: began, To: at, Text: e.Detail}
}

// finish ends the work on a resource, in which nothing may have been done.
func (n *resource) finish(state render.BoxState, whole Phase) {
	if len(n.phases) == 0 && state != render.BoxBlocked {
		whole.Text = ""
		n.phases = append(n.phases, whole)
	}
	n.open, n.state = false, state
}

func (n *resource) lastEnd() time.Duration {
	if len(n.phases) == 0 {
		return 0
	}
	return n.phases[len(n.phases)-1].To
}

func (n *resource) begins() time.Duration {
	if len(n.phases) == 0 {
		return 0
	}
	return n.phases[0].From
}

func duration(seconds *float64) time.Duration {
	if seconds == nil {
		return 0
	}
	return time.Duration(*seconds * float64(time.Second)).Round(time.Millisecond)
}
