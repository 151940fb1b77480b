package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Rehearsal is what the page of a rehearsal shows.
type Rehearsal struct {
	render.Rehearsal

	Program  string    // version
	Began    time.Time // on the clock of the machine
	Errors   []string
	ExitCode int
	// Events are those of the creation and of the deletion, as --progress json writes them.
	Events []func() io.Reader
}

// Page returns the page: HTML that loads nothing from elsewhere.
func (r *Rehearsal) Page() string {
	m := begin("rehearse " + r.Cluster + ": " + r.result())
	r.header(m)
	r.summary(m)
	messages(m, "errors", "Errors", foldErrors(r.Errors))
	r.left(m)
	r.kills(m)
	runs := r.reports()
	for _, run := range runs {
		messages(m, "warnings", "Warnings of "+run.part, run.Warnings)
		run.timeline(m)
		run.criticalPath(m)
	}
	if len(runs) > 0 {
		runs[0].graph(m)
	}
	r.quotas(m)
	r.policy(m)
	costs(m, r.Cost)
	calls(
		m,
		r.Calls,
		"The calls of a plan, the creation, another plan and the deletion, with those of the lock. Some errors are expected, such as the answer that a resource does not exist.",
	)
	return finish(m, "Made by clusterawsadm "+r.Program)
}

// reports are the runs, as far as they have begun.
func (r *Rehearsal) reports() (out []*Report) {
	for _, events := range r.Events {
		if run, err := Read(events()); err == nil { // the program wrote them
			run.part = run.Verb
			out = append(out, run)
		}
	}
	return out
}

func (r *Rehearsal) result() string {
	switch r.ExitCode {
	case 0:
		return "succeeded"
	case 130:
		return "interrupted"
	}
	return "failed"
}

func (r *Rehearsal) header(m *markup) {
	m.open("header")
	m.text("p", "cluster rehearse", "class", "eyebrow")
	m.open("h1")
	m.raw(escape(r.Cluster) + " ")
	m.text("span", r.result(), "class", "pill "+map[string]string{"succeeded": "good", "interrupted": "odd", "failed": "bad"}[r.result()])
	m.end("h1")
	m.open("dl", "class", "facts")
	fact(m, "In a copy of", map[string]string{"account": "the account", "simulated": "the simulated account"}[r.Source])
	fact(m, "Account", r.Account)
	fact(m, "Region", r.Region)
	fact(m, "Faults", r.Faults)
	fact(m, "Began", r.Began.UTC().Format("2 January 2006, 15:04:05 UTC"))
	fact(m, "Program", r.Program)
	m.end("dl", "header")
}

func (r *Rehearsal) summary(m *markup) {
	m.open("section", "aria-label", "Summary", "class", "cards")
	for _, run := range r.Runs {
		card(m, "card", span(took(run)), "AWS takes for "+run.Run)
	}
	if calls, writes, _ := totals(r.Calls); calls > 0 {
		card(m, "card", number(calls), "calls, "+text.Count(writes, "write"))
	}
	if r.Cost != nil {
		card(m, "card", render.Monthly(r.Cost), "a month")
	}
	if len(r.Runs) > 1 {
		card(m, "card "+tone(len(r.Left)), number(len(r.Left)), "left by delete")
	}
	if k := r.Kills; k != nil {
		card(m, "card", number(len(k.Runs)), "killed and run again")
		card(m, "card "+tone(k.Differ), number(k.Differ), "of them differ")
	}
	m.end("section")
}

// tone is the colour of a number that should be 0.
func tone(n int) string {
	if n > 0 {
		return "bad"
	}
	return "good"
}

func took(run render.RehearsedRun) time.Duration {
	return time.Duration(run.Took * float64(time.Second))
}

// left lists what is not as it should be after the runs that were not killed.
func (r *Rehearsal) left(m *markup) {
	messages(m, "errors", "Left by delete", r.Left)
	var changes []string
	for _, id := range r.Changes {
		changes = append(changes, string(id))
	}
	messages(m, "errors", "What a plan after create would change", changes)
}

func (r *Rehearsal) quotas(m *markup) {
	if len(r.Quotas) == 0 {
		return
	}
	section(m, "Quotas", "Of each quota that the plan needs some of: what is used before, what the cluster needs in addition, and the limit.")
	table(m, "Quota", "Used", "Needed", "Limit")
	m.open("tbody")
	for _, q := range r.Quotas {
		class := ""
		if render.NearlyUsedUp(q) {
			class = "bad"
		}
		m.open("tr", "class", class)
		m.open("th", "scope", "row")
		m.raw(escape(q.Name))
		near := ""
		if class != "" {
			near = ", nearly used up"
		}
		m.text("span", q.Service+" "+q.Code+near, "class", "item")
		m.end("th")
		for _, n := range []int{q.Used, q.Needed, q.Limit} {
			m.text("td", number(n))
		}
		m.end("tr")
	}
	m.end("tbody", "table", "section")
}

// policy is what the caller must be allowed.
func (r *Rehearsal) policy(m *markup) {
	if len(r.Policy) == 0 {
		return
	}
	m.open("section")
	m.text("h2", "Permissions")
	if p := r.Permissions; p != nil {
		m.text("p", render.PermissionsLine(p), "class", "lead")
		m.open("ul")
		for _, l := range p.Lacking {
			m.text("li", l.Action+" for "+string(l.Resource))
		}
		m.end("ul")
	}
	m.open("details", "class", "all")
	m.text("summary", fmt.Sprintf("The policy must allow %s: %s", text.Count(len(r.Policy), "action"), r.ActionsByService()))
	m.open("ul")
	for _, a := range r.Policy {
		m.text("li", a)
	}
	m.end("ul", "details", "section")
}

// changed says what a run has changed: "3 created, 2 deleted".
func changed(c render.Counts) string {
	var parts []string
	for _, x := range []struct {
		n    int
		word string
	}{{c.Create, "created"}, {c.Update, "changed"}, {c.Delete, "deleted"}} {
		if x.n > 0 {
			parts = append(parts, number(x.n)+" "+x.word)
		}
	}
	if len(parts) == 0 {
		return "nothing changed"
	}
	return strings.Join(parts, ", ")
}
