package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Page returns the page: HTML that loads nothing from elsewhere, also if a text in it should
// be understood as markup.
func (r *Report) Page() string {
	m := begin(r.Verb + " " + r.Cluster + ": " + r.Result())
	r.header(m)
	r.summary(m)
	messages(m, "errors", "Errors", r.Errors)
	messages(m, "warnings", "Warnings", r.Warnings)
	r.timeline(m)
	r.criticalPath(m)
	r.graph(m)
	costs(m, r.Cost)
	calls(m, r.Calls, "The calls of the lock are included. Some errors are expected, such as the answer that a resource does not exist.")
	return finish(m, "Made from the events of the run by clusterawsadm "+r.Program)
}

// begin begins a page with its head.
func begin(title string) *markup {
	m := &markup{}
	m.raw("<!DOCTYPE html>\n")
	m.open("html", "lang", "en")
	style := style()
	m.open("head")
	m.void("meta", "charset", "utf-8")
	m.void("meta", "http-equiv", "Content-Security-Policy", "content",
		"default-src 'none'; img-src data:; style-src '"+hash(style)+"'; script-src '"+hash(script)+"'")
	m.void("meta", "name", "viewport", "content", "width=device-width, initial-scale=1")
	m.void("meta", "name", "color-scheme", "content", "light dark")
	m.void("link", "rel", "icon", "href", "data:,")
	m.text("title", title)
	m.raw("<style>" + style + "</style>")
	m.end("head")
	m.open("body")
	m.open("main")
	return m
}

// finish ends a page, and returns it.
func finish(m *markup, footer string) string {
	m.end("main")
	m.text("footer", footer)
	m.raw("<script>" + script + "</script>")
	m.end("body", "html")
	return m.String()
}

// hash is the source of a script or style for the security policy of the page.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (r *Report) header(m *markup) {
	m.open("header")
	m.text("p", "cluster "+r.Verb, "class", "eyebrow")
	m.open("h1")
	m.raw(escape(r.Cluster) + " ")
	m.text("span", r.Result(), "class", "pill "+r.tone())
	m.end("h1")
	m.open("dl", "class", "facts")
	fact(m, "Region", r.Region)
	fact(m, "Account", r.Account)
	fact(m, "Identity", r.Caller)
	fact(m, "Profile", r.Profile)
	fact(m, "Began", r.Began.UTC().Format("2 January 2006, 15:04:05 UTC"))
	if r.Ended {
		fact(m, "Exit code", strconv.Itoa(r.ExitCode))
	} else {
		fact(m, "Exit code", "unknown: the events end before the run")
	}
	fact(m, "Program", r.Program)
	m.end("dl", "header")
}

// tone is the colour of the result.
func (r *Report) tone() string {
	switch {
	case r.Ended && r.ExitCode == 0:
		return "good"
	case !r.Ended || r.ExitCode == 130:
		return "odd"
	}
	return "bad"
}

func (r *Report) summary(m *markup) {
	m.open("section", "aria-label", "Summary", "class", "cards")
	took := "in total"
	if r.Expected > 0 {
		took = "AWS usually takes " + span(r.Expected)
	}
	card(m, "card", span(r.Took), took)
	c := r.Counts
	for _, x := range []struct {
		n           int
		name, class string
	}{
		{c.Created, "created", "good"},
		{c.Changed, "changed", "good"},
		{c.Deleted, "deleted", "good"},
		{c.Awaited, "waited for", "good"},
		{c.Failed, "failed", "bad"},
		{c.NotStarted, "not started", "odd"},
		{c.Busy, "not finished", "odd"},
		{c.Unchanged, "unchanged", ""},
	} {
		if x.n > 0 {
			card(m, "card "+x.class, number(x.n), x.name)
		}
	}
	if calls, writes, repeated := totals(r.Calls); calls > 0 {
		note := "calls, " + text.Count(writes, "write")
		if repeated > 0 {
			note += ", " + number(repeated) + " repeated"
		}
		card(m, "card", number(calls), note)
	}
	m.end("section")
}

// card is one number of a summary.
func card(m *markup, class, value, note string) {
	m.open("div", "class", class)
	m.text("b", value)
	m.text("span", note)
	m.end("div")
}

func totals(all []render.Calls) (calls, writes, repeated int) {
	for _, c := range all {
		calls += c.Count
		repeated += c.Attempts - c.Count
		if c.Writes {
			writes += c.Count
		}
	}
	return calls, writes, repeated
}

// number formats a number with separators: "12,345".
func number(n int) string { return text.Thousands(strconv.Itoa(n)) }

func messages(m *markup, class, title string, all []string) {
	if len(all) == 0 {
		return
	}
	m.open("section", "class", "messages "+class)
	m.text("h2", title)
	m.open("ul")
	for _, text := range all {
		m.text("li", text)
	}
	m.end("ul", "section")
}

// section opens a section with a title and a sentence about it.
func section(m *markup, title, lead string, attributes ...string) {
	m.open("section", attributes...)
	m.text("h2", title)
	m.text("p", lead, "class", "lead")
}

// table opens a table with its header.
func table(m *markup, headers ...string) {
	m.open("table")
	m.open("thead")
	m.open("tr")
	for _, h := range headers {
		m.text("th", h, "scope", "col")
	}
	m.end("tr", "thead")
}

func (r *Report) criticalPath(m *markup) {
	if len(r.Path) == 0 {
		return
	}
	section(
		m,
		r.titled("Critical path"),
		"The resource that was ready last, before it the one that it waited for last, and so on. The run becomes faster only if these become faster.",
	)
	m.open("ol", "class", "path")
	for _, s := range r.Path {
		m.open("li")
		m.text("a", s.Name, "href", "#"+r.id(s.Row))
		m.text("span", span(max(s.To-s.From, 0)), "class", "took")
		m.text("span", clock(s.From)+" – "+clock(s.To), "class", "when")
		m.end("li")
	}
	m.end("ol", "section")
}

func (r *Report) graph(m *markup) {
	if len(r.Picture.Resources) == 0 {
		return
	}
	section(m, "Graph", "All resources at the end of the run, with what each needs.")
	m.open("ul", "class", "legend")
	for _, state := range []render.BoxState{render.BoxDone, render.BoxFailed, render.BoxBlocked, render.BoxBusy, render.BoxKept} {
		if slices.ContainsFunc(r.Picture.Resources, func(b render.Box) bool { return b.State == state }) {
			m.open("li", "class", state.Class())
			m.empty("i")
			m.raw(escape(string(state)))
			m.end("li")
		}
	}
	m.end("ul")
	m.open("div", "class", "graph scroll", "tabindex", "0", "role", "region", "aria-label", "Graph of the resources")
	m.raw(r.Picture.Inline())
	m.end("div", "section")
}

// costs writes a table with the costs of the cluster, with every item.
func costs(m *markup, c *plan.Cost) {
	if c == nil {
		return
	}
	rows := render.CostRows(c)
	const firstAmount = 3 // after the resource, the item and its unit price, which are in one cell here
	section(m, "Cost", "A month has 730 hours. Prices of "+c.Prices+". "+render.NotIncluded(c))
	var headers []string
	for _, h := range slices.Concat(rows[0][:1], rows[0][firstAmount:]) {
		headers = append(headers, h[:1]+strings.ToLower(h[1:]))
	}
	table(m, headers...)
	m.open("tbody")
	for _, cells := range rows[1:] {
		m.open("tr")
		m.open("th", "scope", "row")
		m.raw(escape(cmp.Or(cells[0], "Total")))
		if cells[0] != "" {
			m.text("span", cells[1]+", "+cells[2], "class", "item")
		}
		m.end("th")
		for _, amount := range cells[firstAmount:] {
			m.text("td", amount)
		}
		m.end("tr")
	}
	m.end("tbody", "table", "section")
}

func calls(m *markup, all []render.Calls, lead string) {
	if len(all) == 0 {
		return
	}
	section(m, "Calls", lead)
	table(m, "Operation", "Calls", "Repeated", "Time each")
	service := ""
	for i, c := range all {
		if c.Service != service {
			if i > 0 {
				m.end("tbody")
			}
			service = c.Service
			m.open("tbody")
			m.open("tr", "class", "service")
			m.text("th", service, "scope", "rowgroup", "colspan", "4")
			m.end("tr")
		}
		m.open("tr")
		m.open("th", "scope", "row")
		m.raw(escape(c.Operation))
		if c.Writes {
			m.text("span", "write", "class", "tag")
		}
		for _, e := range c.Failures {
			m.text("span", fmt.Sprintf("%s × %s", number(e.Count), e.Code), "class", "code")
		}
		m.end("th")
		m.text("td", number(c.Count))
		repeated := ""
		if c.Attempts > c.Count {
			repeated = number(c.Attempts - c.Count)
		}
		m.text("td", repeated)
		m.text("td", span(time.Duration(c.Seconds/float64(max(c.Count, 1))*float64(time.Second))))
		m.end("tr")
	}
	m.end("tbody", "table", "section")
}
