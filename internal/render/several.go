package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// prefixed writes lines that begin with the name of a cluster. A Write is whole lines.
type prefixed struct {
	w      io.Writer
	prefix string
}

// NewPrefixed returns a writer of lines that begin with the name of one of several clusters.
func NewPrefixed(w io.Writer, name string) io.Writer { return &prefixed{w, "[" + name + "] "} }

// Write implements io.Writer.
func (p *prefixed) Write(lines []byte) (int, error) {
	var b bytes.Buffer
	for line := range bytes.Lines(lines) {
		b.WriteString(p.prefix)
		b.Write(line)
	}
	if _, err := p.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// Locked returns a writer that several goroutines may use: each Write is written as a whole.
func Locked(w io.Writer) io.Writer { return &locked{w: w} }

type locked struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *locked) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(data)
}

// Board shows the runs of several clusters on a terminal, each on one line.
type Board struct {
	animation
	rows   []*row
	paused bool
}

// NewBoard returns a Board.
func NewBoard(w io.Writer, t Terminal) *Board {
	return &Board{animation: animation{canvas: canvas{w: w, t: t}}}
}

// row is the Progress of one cluster on a Board.
type row struct {
	board *Board
	name  string
	tally *tally
	state string // instead of numbers: "reading", "waiting for the answer", "done"
	bad   bool
}

// Of returns the Progress of a cluster, on a line below those of the clusters before.
func (b *Board) Of(name string) Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &row{board: b, name: name}
	b.rows = append(b.rows, r)
	return r
}

// Note prints a line above the board.
func (b *Board) Note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.above(text)
}

// Pause clears the screen, until Continue.
func (b *Board) Pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = true
	b.write(b.erase() + showCursor)
}

// Continue shows the board again after Pause.
func (b *Board) Continue() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = false
	b.write(hideCursor)
	b.paint()
}

// End restores the terminal; the last state stays on it.
func (b *Board) End() {
	b.mu.Lock()
	if b.ended || b.stop == nil {
		b.ended = true
		b.mu.Unlock()
		return
	}
	b.paint()
	b.ended = true
	b.write(showCursor)
	close(b.stop)
	b.mu.Unlock()
	b.stopped.Wait()
}

func (b *Board) above(text string) {
	if b.stop == nil || b.ended || b.paused {
		b.write(text + "\n")
		return
	}
	b.write(b.erase() + text + "\n")
	b.paint()
}

func (b *Board) paint() {
	if b.ended || b.paused || b.stop == nil {
		return
	}
	wide, high := b.size()
	longest := 0
	for _, r := range b.rows {
		longest = max(longest, width(r.name))
	}
	var lines []string
	for i, r := range b.rows {
		if i == high-2 && len(b.rows) > high-1 {
			lines = append(lines, fmt.Sprintf("… and %d more clusters", len(b.rows)-i))
			break
		}
		lines = append(lines, r.line(longest, wide-1))
	}
	b.draw(lines)
}

// line is the state of a cluster, in at most that many columns.
func (r *row) line(name, wide int) string {
	s := r.board.t.Style
	text := r.state
	mark, colour := spinner(r.board.beats), cyan
	switch {
	case r.state == "done":
		mark, colour = "✓", green
	case r.bad:
		mark, colour = "✗", red
	}
	if r.tally != nil && len(r.tally.planned) > 0 {
		text = fmt.Sprintf("%d/%d", r.tally.count("", plan.Done), r.tally.all()) + strings.TrimRight("  "+text, " ")
		if active := r.tally.active(""); len(active) > 0 && r.state == "" {
			text += "  " + string(active[0].Resource) + " " + active[0].text(r.board.t.Clock.Now())
		}
	}
	return s.paint(colour, mark) + " " + s.paint(bold, pad(r.name, name)) + "  " + cut(text, wide-name-4)
}

// change changes a row, and shows it.
func (r *row) change(do func()) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	do()
	r.board.paint()
}

// Look implements Progress.
func (r *row) Look(run Run) {
	r.change(func() {
		b := r.board
		r.tally, r.state = newTally(run, b.t.Clock.Now()), "reading its state"
		if b.stop == nil {
			b.start(b.paint)
		}
	})
}

// Pause implements Progress: this cluster waits for the others, or for the user.
func (r *row) Pause() { r.change(func() { r.state = "planned" }) }

// Begin implements Progress.
func (r *row) Begin(p plan.Plan) {
	r.change(func() {
		r.state = ""
		r.tally.plan(p, r.board.t.Clock.Now())
	})
}

// Event implements Progress.
func (r *row) Event(e plan.Event) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	if _, show := r.tally.note(e); show && e.What == plan.Failed {
		r.board.above(r.board.t.Style.paint(red, "✗ "+r.name+" "+string(e.Resource)+": ") + strings.ToValidUTF8(e.Err.Error(), "\uFFFD"))
	}
}

// Note implements Progress.
func (r *row) Note(text string) { r.board.Note("[" + r.name + "] " + text) }

// Result implements Progress.
func (r *row) Result(e Ending) {
	r.change(func() {
		r.state = "done"
		if r.bad = e.ExitCode != 0; r.bad {
			r.state = "failed"
		}
	})
}

// End implements Progress.
func (*row) End() {}
