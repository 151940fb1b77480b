package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bar shows how many of many equal parts are done, and how long the rest takes at the rate so
// far. All methods may be called concurrently.
type Bar struct {
	canvas
	title string // "killed and run again"
	bad   string // what the parts that count as bad do: "differ"
	paint bool   // on a terminal; else a line at each tenth, and at least every minute

	mu        sync.Mutex
	all       int
	done, odd int
	began     time.Time
	shown     time.Time
	told      int // the tenths that have a line
	ended     bool
	stop      chan struct{} // nil before Begin
	stopped   sync.WaitGroup
}

// NewBar returns a Bar for a terminal that can be repainted.
func NewBar(w io.Writer, t Terminal, title, bad string) *Bar {
	return &Bar{canvas: canvas{w: w, t: t}, title: title, bad: bad, paint: true}
}

// NewBarOfLines returns a Bar for logs: a line at each tenth, and at least every minute.
func NewBarOfLines(w io.Writer, t Terminal, title, bad string) *Bar {
	return &Bar{canvas: canvas{w: w, t: t}, title: title, bad: bad}
}

// Begin sets the number of parts, and shows the bar.
func (b *Bar) Begin(all int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all, b.began = all, b.t.Clock.Now()
	b.shown = b.began
	every := heartbeat
	if b.paint {
		every = repaint
		b.write(hideCursor)
		b.show()
	}
	b.stop = make(chan struct{})
	b.stopped.Go(func() { b.live(every) })
}

// live shows the time.
func (b *Bar) live(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-tick.C:
			b.mu.Lock()
			if b.paint || b.t.Clock.Since(b.shown) >= every {
				b.show()
			}
			b.mu.Unlock()
		}
	}
}

// Add counts one part as done.
func (b *Bar) Add(bad bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	if bad {
		b.odd++
	}
	if tenths := b.done * 10 / max(1, b.all); !b.paint && tenths > b.told {
		b.told = tenths
		b.show()
	}
}

// Note prints a line above the bar.
func (b *Bar) Note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.paint || b.ended {
		b.write(text + "\n")
		return
	}
	b.write(b.erase() + text + "\n")
	b.show()
}

// End removes the bar from a terminal.
func (b *Bar) End() {
	b.mu.Lock()
	if b.ended || b.stop == nil {
		b.ended = true
		b.mu.Unlock()
		return
	}
	b.ended = true
	if b.paint {
		b.write(b.erase() + showCursor)
	}
	close(b.stop)
	b.mu.Unlock()
	b.stopped.Wait()
}

func (b *Bar) show() {
	b.shown = b.t.Clock.Now()
	switch {
	case b.ended:
	case b.paint:
		wide, _ := b.size()
		b.draw([]string{b.frame(wide - 1)})
	default:
		b.write(fmt.Sprintf("%6s  %s\n", short(b.t.Clock.Since(b.began)), b.line()))
	}
}

// line is what a log shows.
func (b *Bar) line() string {
	text := fmt.Sprintf("%s: %d of %d", b.title, b.done, b.all)
	if b.odd > 0 {
		text += fmt.Sprintf(", %d %s", b.odd, b.bad)
	}
	if left := b.left(); left > 0 {
		text += ", about " + short(left) + " left"
	}
	return text
}

// widestTime is the room that a terminal has for the time, so that the bar keeps its length.
const widestTime = "  59m59s, about 59m59s left"

// frame is what a terminal shows, in at most that many columns. In a narrow one, the bar becomes
// shorter, then the title is omitted, then the end of the line.
func (b *Bar) frame(wide int) string {
	s := b.t.Style
	title := heading(b.title)
	all := strconv.Itoa(b.all)
	count := "  " + strings.Repeat(" ", len(all)-len(strconv.Itoa(b.done))) + strconv.Itoa(b.done) + "/" + all
	odd := ""
	if b.odd > 0 {
		odd = fmt.Sprintf("  %d %s", b.odd, b.bad)
	}
	took := "  " + short(b.t.Clock.Since(b.began))
	if left := b.left(); left > 0 {
		took += ", about " + short(left) + " left"
	}
	used := width(count+odd) + max(width(widestTime), width(took))
	if width(title)+used > wide {
		title = ""
	}
	gauge := ""
	if room := wide - width(title) - used - 2; room >= 10 {
		gauge = "  " + s.gauge(b.done, b.all, min(room, 40))
	}
	if title == "" {
		gauge = strings.TrimSpace(gauge)
	}
	if title+gauge == "" {
		return cut(strings.TrimSpace(count+odd+took), wide)
	}
	return s.paint(bold, title) + gauge + count + s.paint(red, odd) + s.paint(dim, took)
}

// left is how long the rest takes at the rate so far, and 0 as long as there is none.
func (b *Bar) left() time.Duration {
	if b.done == 0 || b.done >= b.all {
		return 0
	}
	took := b.t.Clock.Since(b.began)
	return time.Duration(float64(took) / float64(b.done) * float64(b.all-b.done)).Round(time.Second)
}
