package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// named is how many active resources an area lists at most.
const named = 5

// spinner returns the n-th frame of a spinner.
func spinner(n int) string {
	const wheel = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	r := []rune(wheel)
	return string(r[n%len(r)])
}

// frame returns the text that the terminal shows now, in at most that many columns and
// lines.
func (t *tree) frame(wide, high int) []string {
	now := t.t.Clock.Now()
	if t.looking {
		text := fmt.Sprintf("reading the state of cluster %s in %s  %s", t.tally.run.Cluster, t.tally.run.Region, short(now.Sub(t.tally.began)))
		return []string{t.t.Style.paint(cyan, spinner(t.beats)) + " " + cut(text, wide-2)}
	}
	lines := t.tell(wide, named)
	if len(lines) > high-1 {
		lines = t.tell(wide, 1)
	}
	if room := max(0, high-1); len(lines) > room {
		lines = lines[:room]
	}
	return append([]string{t.header(wide, now)}, lines...)
}

// header shows the verb and the cluster, the progress, and the elapsed and the
// expected time.
func (t *tree) header(wide int, now time.Time) string {
	s := t.t.Style
	elapsed := now.Sub(t.tally.began)
	took := short(elapsed)
	if t.tally.expected > 0 {
		took += " of about " + short(t.tally.expected)
	}
	done, all := t.tally.count("", plan.Done), t.tally.all()
	title := fmt.Sprintf("%s %s in %s", heading(t.tally.run.doing()), t.tally.run.Cluster, t.tally.run.Region)
	text := fmt.Sprintf("  %d/%d  %s", done, all, took)
	bar := ""
	if room := wide - width(title) - width(text) - 2; room >= 10 {
		bar = "  " + s.gauge(done, all, min(room, 24))
	}
	if width(title)+width(text) > wide {
		return cut(title+text, wide)
	}
	return s.paint(bold, title) + bar + text
}

// tell returns the lines of the areas, each with at most that many of its active
// resources.
func (t *tree) tell(wide, most int) (out []string) {
	for _, a := range Areas() {
		if t.tally.total[a] == 0 {
			continue
		}
		active := t.tally.active(a)
		if most == 1 || len(active) <= 1 {
			out = append(out, t.area(a, wide, active))
			continue
		}
		out = append(out, t.area(a, wide, nil))
		for i, n := range active {
			if i == most-1 && len(active) > most {
				out = append(out, t.t.Style.paint(dim, cut(fmt.Sprintf("    and %d more", len(active)-i), wide)))
				break
			}
			out = append(out, t.working(n, wide))
		}
	}
	return out
}

// area is the line of one area, with what takes longest in it.
func (t *tree) area(a plan.Area, wide int, active []*item) string {
	s := t.t.Style
	code, mark := t.mark(a)
	head := pad(string(a), 14) + " " + pad(fmt.Sprintf("%d/%d", t.tally.count(a, plan.Done), t.tally.total[a]), 9)
	if failed := t.tally.count(a, plan.Failed); failed > 0 {
		head += " " + fmt.Sprintf("%d failed", failed)
	}
	detail := ""
	if len(active) > 0 {
		detail = " " + string(active[0].Resource) + " " + active[0].text(t.t.Clock.Now())
		if len(active) > 1 {
			detail += fmt.Sprintf(", and %d more", len(active)-1)
		} else {
			detail += active[0].detail()
		}
	}
	head = cut(head, wide-2)
	return s.paint(code, mark) + " " + strings.TrimRight(head+s.paint(dim, cut(detail, wide-2-width(head))), " ")
}

// working is the line of one active resource.
func (t *tree) working(n *item, wide int) string {
	text := n.text(t.t.Clock.Now()) + n.detail()
	return cut("    "+pad(string(n.Resource), 36)+" ", wide) + t.t.Style.paint(dim, cut(text, wide-max(41, width(string(n.Resource))+5)))
}

// detail returns what the resource waits for, or "" if it is not waiting.
func (n *item) detail() string {
	if n.What != plan.Waiting || n.Detail == "" {
		return ""
	}
	return " for " + strings.ReplaceAll(n.Detail, "\n", " ")
}

// mark returns the symbol of the state of an area, and its colour.
func (t *tree) mark(a plan.Area) (code, mark string) {
	total := t.tally.total[a]
	switch {
	case t.tally.count(a, plan.Failed) > 0:
		return red, "✗"
	case t.tally.count(a, plan.Done) == total:
		return green, "✓"
	case len(t.tally.active(a)) > 0:
		return cyan, spinner(t.beats)
	}
	return dim, "·"
}

// final returns the lines that stay on the screen after the run.
func (t *tree) final() (out []string) {
	wide, _ := t.size()
	for _, a := range Areas() {
		if t.tally.total[a] == 0 {
			continue
		}
		line := t.area(a, wide-1, nil)
		if code, m := t.mark(a); m != "✓" && m != "✗" {
			line = t.t.Style.paint(code, "·") + strings.TrimPrefix(line, t.t.Style.paint(code, m))
		}
		out = append(out, line)
	}
	return out
}
