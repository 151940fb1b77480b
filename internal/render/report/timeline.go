package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// timeline draws a bar for each row. Bars have their places in percent, so that the drawing fits
// every screen.
func (r *Report) timeline(m *markup) {
	if len(r.Rows) == 0 {
		return
	}
	section(m, r.titled("Timeline"), "Open a line to see what it waited for. The red line is the critical path.", "class", "timeline")
	m.open("ul", "class", "legend")
	for _, l := range [][2]string{{"others", "waits for other resources"}, {"calling", "calls AWS or the API server"}, {"aws", "waits for AWS"}} {
		m.open("li")
		m.open("svg", "class", "key", "width", "26", "height", "12", "aria-hidden", "true")
		m.empty("rect", "class", l[0], "x", "0", "width", "26")
		m.end("svg")
		m.raw(escape(l[1]))
		m.end("li")
	}
	for _, a := range r.Picture.Areas() {
		m.open("li", "class", render.AreaClass(a))
		m.empty("i")
		m.raw(escape(string(a)))
		m.end("li")
	}
	m.end("ul")
	m.open("div", "class", "axis", "aria-hidden", "true")
	m.open("svg", "width", "100%", "height", "16")
	for _, t := range r.ticks() {
		m.text("text", clock(t), "x", r.place(t), "y", "12")
	}
	m.end("svg", "div")
	m.open("ol", "class", "rows")
	for i := range r.Rows {
		r.row(m, i)
	}
	m.end("ol", "section")
}

// id is the ID of a row in the page.
func (r *Report) id(row int) string {
	if r.part != "" {
		return r.part + "-r" + strconv.Itoa(row)
	}
	return "r" + strconv.Itoa(row)
}

// titled is the title of a section of the run: in a page of several runs, with the name of the run.
func (r *Report) titled(title string) string { return title + text.Prefixed(" of ", r.part) }

func (r *Report) row(m *markup, i int) {
	row := r.Rows[i]
	class, waits := "row "+render.AreaClass(row.Area), []string{}
	if row.Path {
		class += " critical"
	}
	for _, n := range row.Waited {
		if id := r.id(n.Row); n.Row >= 0 && !slices.Contains(waits, id) {
			waits = append(waits, id)
		}
	}
	m.open("li", "id", r.id(i), "class", class, "data-waits", strings.Join(waits, " "))
	m.open("details")
	m.open("summary")
	m.open("span", "class", "name")
	m.raw(escape(row.Name))
	if row.Count > 1 {
		m.text("span", "×"+number(row.Count), "class", "tag")
	}
	m.end("span")
	r.bars(m, i)
	m.text("span", row.outcome(), "class", "took "+row.State.Class())
	m.end("summary")
	r.details(m, row)
	m.end("details", "li")
}

// outcome is the last column of a row.
func (row Row) outcome() string {
	took := span(max(row.Ends()-row.Begins(), 0))
	switch row.State {
	case render.BoxFailed:
		return "✗ " + took
	case render.BoxBlocked:
		return "not started"
	case render.BoxBusy:
		return took + " …"
	case render.BoxDone, render.BoxKept:
	}
	return took
}

// bars draws the phases of a row, and the part of the critical path that passes it.
func (r *Report) bars(m *markup, i int) {
	row := r.Rows[i]
	m.open("svg", "class", "bars", "width", "100%", "height", "100%", "aria-hidden", "true")
	for _, t := range r.ticks() {
		m.empty("rect", "class", "grid", "x", r.place(t), "width", "1")
	}
	for _, p := range row.Phases {
		m.open("rect", "class", string(p.Kind), "x", r.place(p.From), "width", r.width(p.To-p.From))
		m.text("title", p.sentence())
		m.end("rect")
	}
	if row.State == render.BoxFailed {
		m.empty("rect", "class", "end", "x", r.place(row.Ends()), "width", "4")
	}
	for k := 1; k < len(r.Path); k++ {
		from, to, x := r.Path[k-1].Row, r.Path[k].Row, r.place(r.Path[k-1].To)
		class := ""
		switch low, high := min(from, to), max(from, to); {
		case low == high:
		case i == low:
			class = "thread below"
		case i == high:
			class = "thread above"
		case i > low && i < high:
			class = "thread"
		}
		if class != "" {
			m.empty("rect", "class", class, "x", x, "width", "2")
		}
	}
	m.end("svg")
}

// details writes the part of a row that is shown when it is opened.
func (r *Report) details(m *markup, row Row) {
	m.open("dl")
	if row.Count > 1 {
		fact(
			m,
			"Resources",
			fmt.Sprintf("%s; the first ended at %s, the last, which is drawn, at %s", text.Count(row.Count, "resource"), clock(row.First), clock(row.Last)),
		)
	}
	if row.Error != "" {
		fact(m, map[bool]string{true: "Error", false: "Because of"}[row.State == render.BoxFailed], row.Error)
	}
	if len(row.Waited) > 0 {
		m.open("div")
		m.text("dt", "Waited for")
		m.open("dd")
		for i, n := range row.Waited {
			if i == 5 {
				m.raw(escape(fmt.Sprintf(", and %d more", len(row.Waited)-i)))
				break
			}
			if i > 0 {
				m.raw(", ")
			}
			m.text("a", n.Name, "href", "#"+r.id(n.Row))
			m.raw(escape(" (ready at " + clock(n.Ready) + ")"))
		}
		m.end("dd", "div")
	}
	m.open("div")
	m.text("dt", "Phases")
	m.open("dd")
	m.open("ul")
	for _, p := range row.Phases {
		m.text("li", clock(p.From)+" – "+clock(p.To)+"  "+p.sentence())
	}
	m.end("ul", "dd", "div")
	fact(m, "In AWS", row.CloudID)
	fact(m, "From", row.Origin)
	m.end("dl")
}

func fact(m *markup, name, value string) {
	if value == "" {
		return
	}
	m.open("div")
	m.text("dt", name)
	m.text("dd", value)
	m.end("div")
}

// sentence describes a phase.
func (p Phase) sentence() string {
	took := " (" + span(p.To-p.From) + ")"
	switch {
	case p.Kind == ForOthers:
		return "waits for other resources" + took
	case p.Kind == Calling:
		return p.Text + took
	case p.Text == "":
		return "in progress" + took
	}
	return "waits for " + p.Text + took
}

// total is the time that the timeline shows.
func (r *Report) total() time.Duration {
	total := max(r.Took, time.Second)
	for _, row := range r.Rows {
		total = max(total, row.Ends())
	}
	return total
}

// place is the place of a time on the timeline.
func (r *Report) place(at time.Duration) string {
	return fmt.Sprintf("%.2f%%", 100*at.Seconds()/r.total().Seconds())
}

// width is the width of a duration on the timeline: at least what one can see.
func (r *Report) width(d time.Duration) string {
	return fmt.Sprintf("%.2f%%", max(0.3, 100*d.Seconds()/r.total().Seconds()))
}

// ticks are the times with a line across the timeline: three to six.
func (r *Report) ticks() (out []time.Duration) {
	total := r.total()
	step := time.Second
	for _, seconds := range []int{5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200} {
		if total/step > 6 {
			step = time.Duration(seconds) * time.Second
		}
	}
	for t := time.Duration(0); t <= total-step/3; t += step {
		out = append(out, t)
	}
	return out
}
