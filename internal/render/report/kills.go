package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// kills shows the runs of --every-call.
func (r *Rehearsal) kills(m *markup) {
	k := r.Kills
	if k == nil {
		return
	}
	m.open("section", "class", "kills")
	m.text("h2", "Killed runs")
	m.text("p", killsLead(k), "class", "lead")
	differences(m, k)
	m.open("ul", "class", "legend")
	for _, l := range [][2]string{{"same", "the same result"}, {"differs", "another result"}, {"none", "not tried, or the run ended before"}} {
		m.open("li")
		m.empty("i", "class", l[0])
		m.raw(escape(l[1]))
		m.end("li")
	}
	m.end("ul")
	for _, run := range []struct {
		name  string
		calls int
	}{{"create", k.CreateCalls}, {"delete", k.DeleteCalls}} {
		m.text("h3", fmt.Sprintf("Calls of %s, in their order: above killed before the call, below after it", run.name))
		callMap(m, k, run.name, run.calls)
	}
	servicesOf(m, k)
	for _, name := range []string{"create", "delete"} {
		list(m, k, name)
	}
	m.end("section")
}

func killsLead(k *render.Kills) string {
	lead := "Each run was in another copy of the account. It was killed before or after one of its calls, and run again; then the account is compared with the one of a run that was not killed: all resources with their attributes and tags."
	if done := len(k.Runs) + k.NotReached; done < k.Planned {
		lead += fmt.Sprintf(" %s of %s were tried.", number(done), number(k.Planned))
	}
	return lead
}

// differences are the kills with another result, with what differs.
func differences(m *markup, k *render.Kills) {
	if k.Differ == 0 {
		return
	}
	m.open("div", "class", "messages errors")
	m.text("h2", "Another result")
	m.open("ul")
	for _, run := range k.Runs {
		if run.Same() {
			continue
		}
		m.open("li")
		m.text("b", fmt.Sprintf("%s, killed %s %s %s (call %d)", run.Run, run.When(), run.Service, run.Operation, run.Call))
		for _, line := range run.Differences() {
			m.raw("\n" + escape(line))
		}
		m.end("li")
	}
	m.end("ul", "div")
}

// callMap is a mark for each call, of which the upper half is the kill before it, and the lower
// half the one after it.
func callMap(m *markup, k *render.Kills, name string, calls int) {
	found := map[string]render.Kill{}
	for _, run := range k.Runs {
		if run.Run == name {
			found[run.When()+strconv.Itoa(run.Call)] = run
		}
	}
	m.open("div", "class", "calls", "aria-hidden", "true")
	for call := k.Every; call <= calls; call += k.Every {
		title := fmt.Sprintf("call %d", call)
		var classes []string
		for _, when := range []string{"before", "after"} {
			run, ok := found[when+strconv.Itoa(call)]
			class := "none"
			if ok {
				class = map[bool]string{true: "same", false: "bad"}[run.Same()]
				title += fmt.Sprintf("\n%s %s %s: %s", when, run.Service, run.Operation, outcome(run))
			}
			classes = append(classes, class)
		}
		m.open("b", "title", title)
		for _, class := range classes {
			m.empty("i", "class", class)
		}
		m.end("b")
	}
	m.end("div")
}

// outcome is the result of a killed run in a few words.
func outcome(run render.Kill) string {
	switch {
	case run.Error != "":
		return "✗ failed"
	case !run.Same():
		return "✗ differs"
	}
	return "✓ same"
}

// servicesOf counts the killed runs by the service of the call.
func servicesOf(m *markup, k *render.Kills) {
	type count struct{ killed, differ int }
	services := map[string]*count{}
	for _, run := range k.Runs {
		c := services[run.Service]
		if c == nil {
			c = &count{}
			services[run.Service] = c
		}
		c.killed++
		if !run.Same() {
			c.differ++
		}
	}
	if len(services) == 0 {
		return
	}
	table(m, "Service of the call", "Killed runs", "Another result")
	m.open("tbody")
	for _, name := range slices.Sorted(maps.Keys(services)) {
		c := services[name]
		m.open("tr")
		m.text("th", name, "scope", "row")
		m.text("td", number(c.killed))
		m.text("td", number(c.differ), "class", map[bool]string{true: "bad"}[c.differ > 0])
		m.end("tr")
	}
	m.end("tbody", "table")
}

// list lists all kills of one run.
func list(m *markup, k *render.Kills, name string) {
	var of []render.Kill
	for _, run := range k.Runs {
		if run.Run == name {
			of = append(of, run)
		}
	}
	if len(of) == 0 {
		return
	}
	m.open("details", "class", "all")
	m.text("summary", fmt.Sprintf("All %s of %s", text.Count(len(of), "killed run"), name))
	table(m, "Killed", "Run again", "Result")
	m.open("tbody")
	for _, run := range of {
		m.open("tr")
		m.open("th", "scope", "row")
		m.raw(escape(fmt.Sprintf("%d %s %s", run.Call, run.Service, run.Operation)))
		m.text("span", run.When(), "class", "tag")
		at := time.Duration(run.At * float64(time.Second))
		m.text(
			"span",
			fmt.Sprintf("killed at %s; run again: %s, %s", clock(at), changed(run.Again.Changed), text.Count(int(run.Again.Reads+run.Again.Writes), "call")),
			"class",
			"item",
		)
		m.end("th")
		m.text("td", span(took(run.Again)))
		m.text("td", outcome(run), "class", map[bool]string{true: "good", false: "bad"}[run.Same()])
		m.end("tr")
	}
	m.end("tbody", "table", "details")
}
