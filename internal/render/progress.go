package render

import (
	"cmp"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// Progress shows a run while it goes on. Look and Begin are each called at most
// once, in this order; End is always called. All methods may be called
// concurrently.
type Progress interface {
	// Look is called when the run starts to read the state.
	Look(Run)
	// Pause clears the screen for a question to the user, until Begin.
	Pause()
	// Begin is called when the run starts to execute a plan.
	Begin(p plan.Plan)
	// Event is called for every event of a resource.
	Event(e plan.Event)
	// Note prints a line that is not about a resource, such as a warning.
	Note(text string)
	// Result is called once before End, with how the run has ended.
	Result(e Ending)
	// End is called when the run is over, and restores the terminal. Only notes may
	// follow.
	End()
}

// Run describes a run: its verb and its cluster.
type Run struct {
	Verb            string // "create", "delete"
	Cluster, Region string
	Program         string // version of the program
}

// doing is the present participle of the verb: "creating".
func (r Run) doing() string {
	return r.Verb[:len(r.Verb)-1] + "ing" // create, delete
}

// Terminal describes the terminal that the progress is shown on.
type Terminal struct {
	Style Style
	Clock *clock.Clock               // clock of the run; nil: the system clock
	Size  func() (width, height int) // zero if unknown; may be nil
}

// item is the state of one resource of the plan.
type item struct {
	plan.Event
	began time.Time
	order int // number of its first event
	area  plan.Area
	group string
}

// active reports whether work on the resource is in progress.
func (n *item) active() bool {
	switch n.What {
	case plan.Creating, plan.Updating, plan.Deleting, plan.Waiting:
		return true
	case plan.Done, plan.Kept, plan.Failed, plan.Blocked:
	}
	return false
}

// tally counts the events of a run.
type tally struct {
	run      Run
	began    time.Time
	expected time.Duration
	items    map[plan.ID]*item
	planned  map[plan.ID]plan.Area // the resources that the plan changes
	total    map[plan.Area]int
	groups   map[string]int // the size of each group
	deleting map[plan.ID]bool
	kept     int
}

func newTally(r Run, now time.Time) *tally {
	return &tally{
		run: r, began: now, items: map[plan.ID]*item{}, planned: map[plan.ID]plan.Area{},
		total: map[plan.Area]int{}, groups: map[string]int{}, deleting: map[plan.ID]bool{},
	}
}

// plan records the steps of a plan.
func (t *tally) plan(p plan.Plan, now time.Time) {
	t.began, t.expected = now, p.Expected
	for _, s := range p.Steps {
		if s.Does() {
			t.add(s.Resource, s.Origin)
		}
	}
}

func (t *tally) add(id plan.ID, origin string) {
	if t.planned[id] != "" {
		return
	}
	t.planned[id] = reconcile.AreaOf(id, origin)
	t.total[t.planned[id]]++
	t.groups[id.Group()]++
}

// note records an event, and returns it as it is shown, and whether to show it.
func (t *tally) note(e plan.Event) (plan.Event, bool) {
	if e.What == plan.Kept {
		if t.planned[e.Resource] == "" {
			t.kept++
			return e, false
		}
		e.What = plan.Done // what the plan waits for was there at once
	}
	t.add(e.Resource, "")
	if e.What == plan.Deleting {
		t.deleting[e.Resource] = true
	}
	n := t.items[e.Resource]
	if n == nil {
		n = &item{order: len(t.items), area: t.planned[e.Resource], group: e.Resource.Group()}
		t.items[e.Resource] = n
	}
	if !n.active() {
		n.began = e.At.Add(-e.Took)
	}
	if e.CloudID == "" {
		e.CloudID = n.CloudID
	}
	n.Event = e
	return e, e.What != plan.Blocked
}

// count returns how many resources of an area have one of these as their last event.
func (t *tally) count(a plan.Area, ends ...plan.What) (c int) {
	for _, n := range t.items {
		if (a == "" || n.area == a) && slices.Contains(ends, n.What) {
			c++
		}
	}
	return c
}

func (t *tally) all() (c int) {
	for _, n := range t.total {
		c += n
	}
	return c
}

// active lists the resources of an area that are in progress, sorted by remaining time;
// the area "" means all.
func (t *tally) active(a plan.Area) (out []*item) {
	for _, n := range t.items {
		if n.active() && (a == "" || n.area == a) {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(x, y *item) int {
		return cmp.Or(y.began.Add(y.Expected).Compare(x.began.Add(x.Expected)), cmp.Compare(x.order, y.order))
	})
	return out
}

// text describes the progress: "waiting 42s of ~1m40s".
func (n *item) text(now time.Time) string {
	text := string(n.What) + " " + short(now.Sub(n.began))
	if n.Expected >= 5*time.Second {
		text += " of ~" + short(n.Expected)
	}
	return text
}

// NewNone returns a Progress that shows only notes.
func NewNone(note func(string)) Progress { return none{note} }

type none struct{ note func(string) }

func (none) Look(Run)           {}
func (none) Pause()             {}
func (none) Begin(plan.Plan)    {}
func (none) Event(plan.Event)   {}
func (n none) Note(text string) { n.note(text) }
func (none) Result(Ending)      {}
func (none) End()               {}

// Both returns a Progress that passes everything on to two others.
func Both(a, b Progress) Progress { return both{a, b} }

type both struct{ a, b Progress }

func (p both) Look(r Run) {
	p.a.Look(r)
	p.b.Look(r)
}

func (p both) Pause() {
	p.a.Pause()
	p.b.Pause()
}

func (p both) Begin(plan plan.Plan) {
	p.a.Begin(plan)
	p.b.Begin(plan)
}

func (p both) Event(e plan.Event) {
	p.a.Event(e)
	p.b.Event(e)
}

func (p both) Note(text string) {
	p.a.Note(text)
	p.b.Note(text)
}

func (p both) Result(e Ending) {
	p.a.Result(e)
	p.b.Result(e)
}

func (p both) End() {
	p.a.End()
	p.b.End()
}
