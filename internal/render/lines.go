package render

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// heartbeat is how often plain progress lists what is in progress.
const heartbeat = 30 * time.Second

// manyMachines is the largest group of machines of which each gets its own lines.
const manyMachines = 10

// The column of names is that wide, and up to that wide in a run that has
// longer ones.
const (
	usualName  = 40
	widestName = 72
)

// lines is a Progress that writes one line for each event.
type lines struct {
	w io.Writer
	t Terminal

	mu      sync.Mutex
	tally   *tally
	began   time.Time
	wide    int // of the names of resources
	ended   bool
	cancel  context.CancelFunc
	stopped sync.WaitGroup
}

// NewLines returns a Progress for logs: one plain line for each event, and every
// 30 seconds a line with what is in progress.
func NewLines(w io.Writer, t Terminal) Progress { return &lines{w: w, t: t} }

// Look implements Progress.
func (l *lines) Look(r Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = l.t.Clock.Now()
	l.tally = newTally(r, l.began)
	l.print(l.began, fmt.Sprintf("reading the state of cluster %s in %s", r.Cluster, r.Region))
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // ends with End, not with the context of the run
	l.cancel = cancel
	l.stopped.Go(func() { l.live(ctx) })
}

// Pause implements Progress.
func (*lines) Pause() {}

// Begin implements Progress.
func (l *lines) Begin(p plan.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tally.plan(p, l.t.Clock.Now())
	for id := range l.tally.planned {
		if l.tally.groups[id.Group()] <= manyMachines || id.Group() == "" {
			l.wide = max(l.wide, min(width(string(id)), widestName))
		}
	}
}

// Event implements Progress.
func (l *lines) Event(e plan.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, show := l.tally.note(e)
	if !show {
		return
	}
	g := e.Resource.Group()
	if e.What != plan.Failed && g != "" && l.tally.groups[g] > manyMachines {
		if of := l.tally.groups[g]; e.What == plan.Done && l.done(g) == of {
			l.print(e.At, l.column(g+"/…")+fmt.Sprintf("all %d done", of))
		}
		return
	}
	l.print(e.At, l.column(string(e.Resource))+l.tally.sentence(e))
}

// sentence describes an event.
func (t *tally) sentence(e plan.Event) string {
	text := string(e.What)
	switch e.What {
	case plan.Waiting:
		return text + " for " + strings.ToValidUTF8(e.Detail, "\uFFFD")
	case plan.Done:
		if t.deleting[e.Resource] {
			text = "deleted"
		}
		if e.Took >= time.Second {
			text += " after " + short(e.Took)
		}
		if e.CloudID != "" {
			text += "  " + brief(e.CloudID)
		}
		return text
	case plan.Failed:
		return text + ": " + strings.ToValidUTF8(e.Err.Error(), "\uFFFD")
	case plan.Creating, plan.Updating, plan.Deleting, plan.Kept, plan.Blocked:
		if e.CloudID != "" {
			text += "  " + brief(e.CloudID)
		}
	}
	if e.Expected >= 5*time.Second {
		text += " (usually " + short(e.Expected) + ")"
	}
	return text
}

// Note implements Progress.
func (l *lines) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.w, text+"\n")
}

// Result implements Progress.
func (*lines) Result(Ending) {}

// End implements Progress.
func (l *lines) End() {
	l.mu.Lock()
	if l.ended || l.tally == nil {
		l.ended = true
		l.mu.Unlock()
		return
	}
	l.ended = true
	if n := l.tally.count("", plan.Blocked); n > 0 {
		l.print(l.t.Clock.Now(), text.Count(n, "resource")+" not started")
	}
	l.cancel()
	l.mu.Unlock()
	l.stopped.Wait()
}

// live prints what is in progress from time to time.
func (l *lines) live(ctx context.Context) {
	for l.t.Clock.Sleep(ctx, heartbeat) == nil {
		l.mu.Lock()
		if text := l.waiting(); text != "" && !l.ended {
			l.print(l.t.Clock.Now(), text)
		}
		l.mu.Unlock()
	}
}

// waiting lists what is in progress.
func (l *lines) waiting() string {
	active := l.tally.active("")
	if len(active) == 0 {
		return ""
	}
	now := l.t.Clock.Now()
	var parts, told []string
	rest := 0
	for _, n := range active {
		g := n.group
		switch {
		case g != "" && l.tally.groups[g] > manyMachines:
			if !slices.Contains(told, g) {
				told = append(told, g)
				parts = append(parts, fmt.Sprintf("%s/… %d of %d done", g, l.done(g), l.tally.groups[g]))
			}
		case len(parts) < named:
			parts = append(parts, string(n.Resource)+" "+n.text(now))
		default:
			rest++
		}
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	return "still in progress: " + strings.Join(parts, "; ")
}

// done counts the resources of a group that are done.
func (l *lines) done(g string) (c int) {
	for _, n := range l.tally.items {
		if n.What == plan.Done && n.group == g {
			c++
		}
	}
	return c
}

// print writes a line that begins with the time since the run began.
func (l *lines) print(at time.Time, text string) {
	_, _ = fmt.Fprintf(l.w, "%6s  %s\n", short(at.Sub(l.began)), text)
}

// column returns a name, padded to the width of the column of names.
func (l *lines) column(name string) string { return pad(name, max(usualName, l.wide)) + "  " }
