package render

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// canvas is the end of a terminal: its lines are drawn again and again, in place.
type canvas struct {
	w       io.Writer
	t       Terminal
	painted []string // the lines on the screen, without colours
}

// animation is a canvas that is repainted all the time, until it has ended.
type animation struct {
	canvas
	mu      sync.Mutex
	ended   bool
	beats   int           // repaints so far, for spinners
	stop    chan struct{} // nil before start
	stopped sync.WaitGroup
}

// start hides the cursor and calls paint at regular intervals until stop is closed. start locks mu for each call.
func (a *animation) start(paint func()) {
	a.stop = make(chan struct{})
	a.write(hideCursor)
	a.stopped.Go(func() {
		tick := time.NewTicker(repaint)
		defer tick.Stop()
		for {
			select {
			case <-a.stop:
				return
			case <-tick.C:
				a.mu.Lock()
				a.beats++
				paint()
				a.mu.Unlock()
			}
		}
	})
}

// size returns the size of the terminal.
func (c *canvas) size() (wide, high int) {
	if c.t.Size != nil {
		wide, high = c.t.Size()
	}
	if wide <= 0 {
		wide = 80
	}
	if high <= 0 {
		high = 24
	}
	return wide, high
}

// draw draws lines over the previous ones.
func (c *canvas) draw(lines []string) {
	wide, _ := c.size()
	var b strings.Builder
	b.WriteString(holdFrame + c.home(wide))
	c.painted = c.painted[:0]
	for _, l := range lines {
		b.WriteString(l + clearRight + "\n")
		c.painted = append(c.painted, visible(plain(l)))
	}
	b.WriteString(clearBelow + drawFrame)
	c.write(b.String())
}

// erase returns the sequence that erases the lines.
func (c *canvas) erase() string {
	wide, _ := c.size()
	s := c.home(wide) + clearBelow
	c.painted = c.painted[:0]
	return s
}

// home returns the sequence that moves the cursor to the first line. If the terminal has
// become narrower, the lines are wrapped.
func (c *canvas) home(wide int) string {
	rows := 0
	for _, l := range c.painted {
		rows += max(1, (width(l)+wide-1)/wide)
	}
	if rows == 0 {
		return firstColumn
	}
	return firstColumn + fmt.Sprintf(up, rows)
}

// write writes to the terminal. Errors are ignored, so that a closed terminal does not
// stop the run.
func (c *canvas) write(s string) { _, _ = io.WriteString(c.w, s) }

// plain removes the colours of a text.
func plain(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, introducer)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(after, "m")
	}
}

// gauge draws how much of a whole is done, in that many columns.
func (s Style) gauge(done, all, wide int) string {
	filled := wide * done / max(1, all)
	return s.paint(green, strings.Repeat("━", filled)) + s.paint(dim, strings.Repeat("─", wide-filled))
}
