package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// report converts the events to what the page shows.
func (h *history) report() *Report {
	r := h.r
	if !r.Ended {
		r.Took = h.at.Sub(h.plan)
	}
	for _, n := range h.all {
		h.settle(n)
		r.Counts.add(n)
	}
	h.waits()
	h.rows()
	h.path()
	h.picture()
	if len(r.Errors) == 0 {
		for _, n := range h.all {
			if n.state == render.BoxFailed {
				r.Errors = append(r.Errors, string(n.id)+": "+n.err)
			}
		}
	}
	r.Errors = foldErrors(r.Errors)
	return r
}

// settle sets the state of a resource at the end of the events.
func (h *history) settle(n *resource) {
	switch {
	case n.open: // the run was killed
		n.phases[len(n.phases)-1].To = h.r.Took
		n.open = false
	case n.state == "" && h.r.Ended && h.r.ExitCode != 0 && (plan.Step{Action: n.action}).Does():
		n.state = render.BoxBlocked
	case n.state == "" && !h.r.Ended && (plan.Step{Action: n.action}).Does():
		n.state = render.BoxBusy
	case n.state == "":
		n.state = render.BoxKept
	}
}

func (c *Counts) add(n *resource) {
	switch n.state {
	case render.BoxFailed:
		c.Failed++
	case render.BoxBlocked:
		c.NotStarted++
	case render.BoxBusy:
		c.Busy++
	case render.BoxKept:
		c.Unchanged++
	case render.BoxDone:
		switch n.action {
		case plan.Create:
			c.Created++
		case plan.Remove:
			c.Deleted++
		case plan.Settle, plan.Await:
			c.Awaited++
		case plan.Update, plan.Conflict, plan.Keep, plan.Existing, plan.Leave:
			c.Changed++
		}
	}
}

// waits finds out what each resource has waited for. A deletion has the order of the edges
// reversed, except for resources that outlive others.
func (h *history) waits() {
	for _, n := range h.all {
		for _, e := range n.needs {
			other := h.known[plan.ID(e.ID)]
			if other == nil || other == n {
				continue
			}
			switch {
			case h.r.Verb != "delete":
				h.wait(n, other, e.Existing)
			case e.Outlives:
				h.wait(n, other, false)
			case !e.Loose:
				h.wait(other, n, false)
			}
		}
	}
	for _, n := range h.all {
		slices.SortStableFunc(n.waited, func(a, b Need) int { return cmp.Compare(b.Ready, a.Ready) })
		if len(n.waited) > 0 && n.waited[0].Ready > 0 {
			n.waited[0].Last = true
		}
	}
}

// wait records that n has waited for another resource, unless that was ready from the start.
func (h *history) wait(n, other *resource, existing bool) {
	ready := other.ready
	if existing && other.exists > 0 {
		ready = other.exists
	}
	if len(other.phases) > 0 && ready > 0 && (len(n.phases) == 0 || ready <= n.begins()+tolerance) {
		n.waited = append(n.waited, Need{Row: -1, Name: string(other.id), Ready: ready})
	}
}

// tolerance is how long after the begin of the next resource the event of a resource may come.
const tolerance = 500 * time.Millisecond

// rows makes the rows of the timeline, in the order in which they begin.
func (h *history) rows() {
	alike := map[string][]*resource{}
	for _, n := range h.all {
		if n.worked() {
			alike[n.key()] = append(alike[n.key()], n)
		}
	}
	type draft struct {
		row     Row
		members []*resource
	}
	var drafts []draft
	for _, n := range h.all {
		members := alike[n.key()]
		switch {
		case !n.worked():
		case n.key() == "" || len(members) <= render.FewMachines:
			drafts = append(drafts, draft{h.single(n), []*resource{n}})
		case members[0] == n:
			drafts = append(drafts, draft{h.folded(members), members})
		}
	}
	slices.SortStableFunc(drafts, func(a, b draft) int {
		return cmp.Or(cmp.Compare(rank(a.row), rank(b.row)), cmp.Compare(a.row.Begins(), b.row.Begins()))
	})
	for i, d := range drafts {
		for _, n := range d.members {
			n.row = i
		}
		h.r.Rows = append(h.r.Rows, d.row)
	}
	for i := range h.r.Rows {
		for j := range h.r.Rows[i].Waited {
			need := &h.r.Rows[i].Waited[j]
			need.Row = h.known[plan.ID(need.Name)].row
		}
	}
}

// rank puts resources that were not started last.
func rank(r Row) int {
	if r.State == render.BoxBlocked {
		return 1
	}
	return 0
}

// worked reports whether the timeline shows the resource.
func (n *resource) worked() bool { return len(n.phases) > 0 || n.state == render.BoxBlocked }

// key is common to the resources that share a row; "" for one that has its own.
func (n *resource) key() string {
	g := n.id.Group()
	if g == "" {
		return ""
	}
	return g + "\n" + string(n.state) + "\n" + string(n.action)
}

func (h *history) single(n *resource) Row {
	row := Row{
		Name: string(n.id), Count: 1, Area: reconcile.AreaOf(n.id, n.origin), Action: n.action, State: n.state,
		CloudID: n.cloudID, Origin: n.origin, Error: n.err, Waited: slices.Clone(n.waited), First: n.lastEnd(), Last: n.lastEnd(),
	}
	begins := n.begins()
	if n.state == render.BoxBlocked && len(n.phases) == 0 {
		begins = h.r.Took
	}
	if begins > 0 {
		row.Phases = append(row.Phases, Phase{Kind: ForOthers, To: begins})
	}
	row.Phases = append(row.Phases, n.phases...)
	return row
}

// folded is the row of several resources: it shows the one that ended last.
func (h *history) folded(members []*resource) Row {
	slowest := slices.MaxFunc(members, func(a, b *resource) int { return cmp.Compare(a.lastEnd(), b.lastEnd()) })
	row := h.single(slowest)
	row.Name, row.Count, row.CloudID = slowest.id.Group()+"/…", len(members), ""
	for _, n := range members {
		row.First = min(row.First, n.lastEnd())
	}
	if row.Error != "" && row.State == render.BoxFailed {
		row.Error = fmt.Sprintf("%s: %s", slowest.id, row.Error)
	}
	return row
}

// picture makes the graph with the states.
func (h *history) picture() {
	var g plan.Graph
	seen := map[*resource]bool{}
	var visit func(n *resource)
	visit = func(n *resource) { // what a resource needs comes first
		if seen[n] {
			return
		}
		seen[n] = true
		r := plan.GraphResource{ID: n.id, Origin: n.origin}
		for _, e := range n.needs {
			if other := h.known[plan.ID(e.ID)]; other != nil {
				visit(other)
				r.Needs = append(r.Needs, plan.Need{Resource: other.id, Existing: e.Existing, Loose: e.Loose, Outlives: e.Outlives})
			}
		}
		g = append(g, r)
	}
	for _, n := range h.all {
		visit(n)
	}
	h.r.Picture = render.NewPicture(fmt.Sprintf("%s in %s", h.r.Cluster, h.r.Region), g, false)
	h.r.Picture.SetStates(func(id plan.ID) render.BoxState { return h.known[id].state }, g)
}
