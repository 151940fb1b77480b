package render

import (
	"cmp"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// Progress shows a run while it goes on. Look and Begin each come at most
// once, in this order; End comes always. All methods may be called
// from several goroutines.
type Progress interface {
	// Look says that the run has begun to look at what there is.
	Look(Run)
	// Pause makes room for a question to the user, until Begin.
	Pause()
	// Begin says that the run carries out a plan from now on.
	Begin(p reconcile.Plan)
	// Event tells of one node.
	Event(e reconcile.Event)
	// Note tells what is not about a node, such as a warning.
	Note(text string)
	// End says that the run is over: a terminal is as it was before. Only
	// notes may follow.
	End()
}

// Run names what a run does to which cluster.
type Run struct {
	Verb            string // "create", "delete"
	Cluster, Region string
}

// doing is the verb as it is going on: "creating".
func (r Run) doing() string {
	return r.Verb[:len(r.Verb)-1] + "ing" // create, delete
}

// Terminal says what the progress is shown on.
type Terminal struct {
	Style Style
	Clock *clock.Clock               // that of the run; nil: the machine's own
	Size  func() (width, height int) // zero where that is unknown; may be nil
}

// node is what is known of one node that something is done to.
type node struct {
	reconcile.Event
	began time.Time
	order int // when it was first heard of
	area  Area
	group string
}

// active reports whether something goes on with the node.
func (n *node) active() bool {
	switch n.What {
	case reconcile.Creating, reconcile.Updating, reconcile.Deleting, reconcile.Waiting:
		return true
	case reconcile.Done, reconcile.Kept, reconcile.Failed, reconcile.Blocked:
	}
	return false
}

// tally counts what has become of the nodes of a run.
type tally struct {
	run      Run
	began    time.Time
	expected time.Duration
	nodes    map[reconcile.ID]*node
	planned  map[reconcile.ID]Area // what there is something to do with
	total    map[Area]int
	groups   map[string]int // how many nodes of a group there is something to do for
	deleting map[reconcile.ID]bool
	kept     int
}

func newTally(r Run, now time.Time) *tally {
	return &tally{
		run: r, began: now, nodes: map[reconcile.ID]*node{}, planned: map[reconcile.ID]Area{},
		total: map[Area]int{}, groups: map[string]int{}, deleting: map[reconcile.ID]bool{},
	}
}

// plan notes what there is to do.
func (t *tally) plan(p reconcile.Plan, now time.Time) {
	t.began, t.expected = now, p.Expected
	for _, s := range p.Steps {
		if s.Does() {
			t.add(s.Resource, s.Origin)
		}
	}
}

func (t *tally) add(id reconcile.ID, origin string) {
	if t.planned[id] != "" {
		return
	}
	t.planned[id] = AreaOf(id, origin)
	t.total[t.planned[id]]++
	t.groups[group(id)]++
}

// note takes in an event, and reports whether it is worth telling.
func (t *tally) note(e reconcile.Event) bool {
	if e.What == reconcile.Kept {
		t.kept++
		return false
	}
	t.add(e.Resource, "")
	if e.What == reconcile.Deleting {
		t.deleting[e.Resource] = true
	}
	n := t.nodes[e.Resource]
	if n == nil {
		n = &node{order: len(t.nodes), area: t.planned[e.Resource], group: group(e.Resource)}
		t.nodes[e.Resource] = n
	}
	if !n.active() {
		n.began = e.At.Add(-e.Took)
	}
	if e.CloudID == "" {
		e.CloudID = n.CloudID
	}
	n.Event = e
	return e.What != reconcile.Blocked
}

// count returns how many nodes of an area ended in one of the ways.
func (t *tally) count(a Area, ends ...reconcile.What) (c int) {
	for _, n := range t.nodes {
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

// active lists the nodes of an area with which something goes on, the one
// that will take longest first; the area "" stands for all.
func (t *tally) active(a Area) (out []*node) {
	for _, n := range t.nodes {
		if n.active() && (a == "" || n.area == a) {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(x, y *node) int {
		return cmp.Or(y.began.Add(y.Expected).Compare(x.began.Add(x.Expected)), cmp.Compare(x.order, y.order))
	})
	return out
}

// text says what goes on with a node: "waiting 42s of ~1m40s".
func (n *node) text(now time.Time) string {
	text := string(n.What) + " " + short(now.Sub(n.began))
	if n.Expected >= 5*time.Second {
		text += " of ~" + short(n.Expected)
	}
	return text
}

// NewNone returns a Progress that shows nothing but notes.
func NewNone(note func(string)) Progress { return none{note} }

type none struct{ note func(string) }

func (none) Look(Run)              {}
func (none) Pause()                {}
func (none) Begin(reconcile.Plan)  {}
func (none) Event(reconcile.Event) {}
func (n none) Note(text string)    { n.note(text) }
func (none) End()                  {}
