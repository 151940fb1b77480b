package render

import (
	"io"
	"strings"
	"time"

	words "github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Control sequences of a terminal.
const (
	hideCursor = introducer + "?25l"
	showCursor = introducer + "?25h"
	holdFrame  = introducer + "?2026h" // synchronized output: draw nothing ...
	drawFrame  = introducer + "?2026l" // ... until the frame is complete
	clearRight = introducer + "K"
	clearBelow = introducer + "J"
	// ClearLine erases the line of the cursor.
	ClearLine   = firstColumn + clearRight
	firstColumn = introducer + "G"
	// ClearScreen erases the terminal, and puts the cursor at its top.
	ClearScreen = introducer + "H" + introducer + "2J" + introducer + "3J"
	up          = introducer + "%dA"
)

// repaint is the interval between two repaints.
const repaint = 100 * time.Millisecond

// tree is a Progress that repaints the areas of a cluster in place.
type tree struct {
	animation
	tally   *tally
	looking bool
}

// NewTree returns a Progress for a terminal that can be repainted.
func NewTree(w io.Writer, t Terminal) Progress {
	return &tree{animation: animation{canvas: canvas{w: w, t: t}}}
}

// Look implements Progress.
func (t *tree) Look(r Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally, t.looking = newTally(r, t.t.Clock.Now()), true
	t.start(t.paint)
	t.paint()
}

// Pause implements Progress.
func (t *tree) Pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looking = false
	t.write(t.erase() + showCursor)
}

// Begin implements Progress.
func (t *tree) Begin(p plan.Plan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looking = false
	t.tally.plan(p, t.t.Clock.Now())
	t.write(hideCursor)
	t.paint()
}

// Event implements Progress.
func (t *tree) Event(e plan.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, show := t.tally.note(e); show && e.What == plan.Failed {
		t.above(t.t.Style.paint(red, "✗ "+string(e.Resource)+": ") + strings.ToValidUTF8(e.Err.Error(), "\uFFFD"))
	}
}

// Note implements Progress.
func (t *tree) Note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.above(text)
}

// Result implements Progress.
func (*tree) Result(Ending) {}

// End implements Progress.
func (t *tree) End() {
	t.mu.Lock()
	if t.ended || t.stop == nil {
		t.ended = true
		t.mu.Unlock()
		return
	}
	t.ended, t.looking = true, false
	lines := []string(nil)
	if len(t.tally.items) > 0 {
		lines = t.final()
	}
	var b strings.Builder
	b.WriteString(t.erase())
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	t.write(b.String() + showCursor)
	close(t.stop)
	t.mu.Unlock()
	t.stopped.Wait()
}

// above prints a line that stays, above the tree.
func (t *tree) above(text string) {
	wide, _ := t.size()
	t.write(t.erase() + words.WrapMessage(text, wide) + "\n")
	t.paint()
}

// paint draws the current state over the previous frame.
func (t *tree) paint() {
	if t.ended || t.tally == nil || !t.looking && len(t.tally.planned) == 0 {
		return
	}
	wide, high := t.size()
	t.draw(t.frame(wide-1, high-1))
}
