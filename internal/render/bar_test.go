package render

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// work does 200 parts, one in each half of a second, of which two are bad; then nothing for a
// while.
func work(b *Bar, at func(step string)) {
	b.Begin(200)
	at("begin")
	for i := range 140 {
		time.Sleep(500 * time.Millisecond)
		b.Add(i == 30 || i == 90)
		switch i {
		case 20:
			at("without a bad one")
		case 99:
			b.Note("warning: a remark")
			at("half")
		}
	}
	time.Sleep(90 * time.Second)
	at("stuck")
	for range 60 {
		b.Add(false)
	}
	time.Sleep(time.Second)
	at("all")
	b.End()
	b.End()
	at("end")
}

func TestBar(t *testing.T) {
	var all strings.Builder
	for _, wide := range []int{120, 80, 60, 44, 20} {
		synctest.Test(t, func(t *testing.T) {
			s := &screen{}
			b := NewBar(NewOutput(s), Terminal{Style: Style{Colour: wide == 80}, Size: func() (int, int) { return wide, 24 }}, "killed and run again", "differ")
			work(b, func(step string) {
				time.Sleep(repaint / 2)
				synctest.Wait()
				frame := s.shown()
				all.WriteString("=== " + step + "\n" + frame)
				assert.Equal(t, step != "end", s.hidden, "the cursor")
				for line := range strings.Lines(frame) {
					assert.Less(t, width(strings.TrimSuffix(line, "\n")), wide, line)
				}
			})
			assert.Equal(t, "warning: a remark\n", s.shown(), "nothing else stays")
			assert.Equal(t, wide == 80, strings.Contains(s.raw.String(), "\x1b[3"), "colours only where they are wanted")
		})
	}
	golden.Assert(t, "bar.txt", all.String())
}

func TestBarOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		work(NewBarOfLines(&b, Terminal{}, "killed and run again", "differ"), func(string) {})
		golden.Assert(t, "bar-lines.txt", b.String())
		assert.NotContains(t, b.String(), "\x1b")
	})
}
