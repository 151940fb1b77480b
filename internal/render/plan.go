package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// PlanView says how to show a plan, and the cluster that it is for.
type PlanView struct {
	Cluster, Region string
	Full            bool // list every machine and every tag
	Deletes         bool // the plan is that of a deletion
	Style           Style

	Account string // ID; "" if it is not known
	Caller  string // ARN of who calls AWS
	Profile string // the profile with the credentials; "" if none is named

	Notes []string // what the plan leads to, in a sentence each

	Width int // of the terminal, to which sentences are broken; 0: they are one line each
}

// sentence breaks a line of words to the width of the terminal.
func (v PlanView) sentence(line string) string {
	if v.Width == 0 {
		return line
	}
	return text.Wrap(line, v.Width)
}

// Who says in which account a plan is, and who has made it: "account 123456789012, us-east-1,
// as arn:aws:iam::123456789012:user/ada (profile dev)"; "" if it is not known.
func (v PlanView) Who() string {
	if v.Account == "" {
		return ""
	}
	who := fmt.Sprintf("account %s, %s, as %s", v.Account, v.Region, v.Caller)
	if v.Profile != "" {
		who += " (profile " + v.Profile + ")"
	}
	return who
}

// Plan prints a plan in the style of Terraform: a block for each resource that changes,
// and a summary of the others.
func Plan(w io.Writer, p plan.Plan, v PlanView) error {
	var b strings.Builder
	if who := v.Who(); who != "" {
		b.WriteString(v.Style.paint(dim, v.sentence(heading(who))) + "\n\n")
	}
	all := sections(p, v.Full)
	if len(all) > 0 { // the reader of a long plan begins with what it comes to
		b.WriteString(v.sentence(Headline(p, v)) + "\n" + briefCost(p.Cost, v) + "\n")
	}
	b.WriteString(marks(all, v.Style))
	for _, s := range all {
		b.WriteString(v.Style.paint(bold, heading(s.area)) + "\n\n")
		origin := ""
		for i, k := range s.blocks {
			if k.origin != "" && k.origin != origin {
				b.WriteString("  " + v.Style.paint(dim, "# "+k.origin) + "\n")
			}
			origin = k.origin
			k.write(&b, v)
			if i == len(s.blocks)-1 || len(k.lines) > 0 || s.blocks[i+1].origin != origin || len(s.blocks[i+1].lines) > 0 {
				b.WriteString("\n")
			}
		}
	}
	b.WriteString(unchanged(p, v))
	b.WriteString(quotas(p.Quotas, v))
	if err := writePermissions(&b, p.Permissions, v.Style); err != nil {
		return err
	}
	for _, note := range v.Notes {
		b.WriteString(v.sentence(v.Style.paint(yellow, "Note:")+" "+note) + "\n\n")
	}
	b.WriteString(v.sentence(Headline(p, v)) + "\n" + costs(p.Cost, v))
	_, err := io.WriteString(w, b.String())
	return err
}

// Headline summarizes a plan in one sentence.
func Headline(p plan.Plan, v PlanView) string {
	if p.Empty() {
		return v.Style.paint(bold, "No changes:") + " " + nothing(p, v)
	}
	s := counts(p)
	var parts []string
	if s.Replace > 0 {
		parts = append(parts, fmt.Sprintf("%d to replace", s.Replace))
	}
	parts = append(parts,
		fmt.Sprintf("%d to create", s.Create), fmt.Sprintf("%d to change", s.Update), fmt.Sprintf("%d to delete", s.Delete),
	)
	if s.Settle > 0 {
		parts = append(parts, fmt.Sprintf("%d in progress", s.Settle))
	}
	if s.Await > 0 {
		parts = append(parts, fmt.Sprintf("%d to wait for", s.Await))
	}
	if s.Conflict > 0 {
		parts = append(parts, v.Style.paint(red, text.Count(s.Conflict, "conflict")))
	}
	text := v.Style.paint(bold, "Plan:") + " " + strings.Join(parts, ", ")
	switch {
	case s.Conflict > 0:
		return text + ". A conflict is a difference that cannot be changed in place: nothing will be changed."
	case p.Expected > 0:
		return text + "; AWS takes about " + roughly(p.Expected) + "."
	}
	return text + "."
}

// nothing says why a plan has no changes.
func nothing(p plan.Plan, v PlanView) string {
	if v.Deletes && p.Count(plan.Keep) > 0 {
		return "there is nothing to delete; " + text.Count(p.Count(plan.Keep), "resource") + " would be kept."
	}
	if len(p.Steps) == 0 || p.Count(plan.Keep, plan.Leave) == 0 {
		return "the cluster has no resources."
	}
	return "everything is up to date (" + text.Count(p.Count(plan.Keep, plan.Existing, plan.Leave), "resource") + ")."
}

func heading[T ~string](text T) string { return strings.ToUpper(string(text[:1])) + string(text[1:]) }

// section is the part of a plan in one area.
type section struct {
	area   plan.Area
	blocks []block
}

// sections groups the blocks of a plan by area, in order of first appearance.
func sections(p plan.Plan, full bool) (out []section) {
	for _, k := range blocks(p, full) {
		at := slices.IndexFunc(out, func(s section) bool { return s.area == k.area })
		if at < 0 {
			out = append(out, section{area: k.area})
			at = len(out) - 1
		}
		out[at].blocks = append(out[at].blocks, k)
	}
	return out
}

// write prints one block.
func (k block) write(b *strings.Builder, v PlanView) {
	code, mark := symbol(k.action)
	b.WriteString("  " + v.Style.paint(code, mark) + " " + k.title)
	if k.count > 1 {
		b.WriteString(v.Style.paint(bold, " ×"+strconv.Itoa(k.count)))
	}
	if k.id != "" {
		b.WriteString(" " + v.Style.paint(dim, "("+brief(k.id)+")"))
	}
	b.WriteString("\n")
	wide := 0
	for _, l := range k.lines {
		wide = max(wide, min(24, width(l.field)))
	}
	for _, l := range k.lines {
		b.WriteString("      " + l.text(wide, k.action, v.Style) + "\n")
	}
}

// symbol returns the mark of an action.
func symbol(a plan.Action) (code, mark string) {
	switch a {
	case plan.Create:
		return green, "+"
	case plan.Update:
		return yellow, "~"
	case plan.Remove:
		return red, "-"
	case replace:
		return red, "-/+"
	case plan.Conflict:
		return red, "!"
	case plan.Settle, plan.Await:
		return cyan, "…"
	case plan.Keep, plan.Existing, plan.Leave:
	}
	return dim, " "
}

// line is one field of a block.
type line struct {
	field, have, want string
	remedy            plan.Remedy
	origin            string // position in the manifest
	plain             bool   // it is no difference
}

// lineOf returns the line of a difference.
func lineOf(c plan.Change) line {
	at, _, _ := strings.Cut(c.Origin, " ")
	return line{field: c.Field, have: c.Have, want: c.Want, remedy: c.Remedy, origin: at}
}

func (l line) text(wide int, a plan.Action, s Style) string {
	field := pad(l.field, wide)
	if a == replace || a == plan.Remove {
		return l.reason(field, s)
	}
	switch {
	case l.plain:
		return s.paint(cyan, "…") + " " + field + "  " + l.want
	case a == plan.Create:
		return s.paint(green, "+") + " " + field + "  " + l.value(l.want, s)
	case l.remedy == plan.ByItself:
		return s.paint(cyan, "…") + " " + field + "  " + l.value(l.have, s) + " → " + l.value(l.want, s)
	case l.remedy == plan.Replace:
		return s.paint(red, "!") + " " + field + "  " + l.value(l.have, s) + " → " + l.value(l.want, s) + s.paint(red, "  cannot be changed")
	case l.have == "":
		return s.paint(green, "+") + " " + field + "  " + l.value(l.want, s)
	case l.want == "":
		return s.paint(red, "-") + " " + field + "  " + l.value(l.have, s)
	}
	return s.paint(yellow, "~") + " " + field + "  " + l.value(l.have, s) + " → " + l.value(l.want, s)
}

// reason formats a line of a resource that is deleted: why that is.
func (l line) reason(field string, s Style) string {
	at := ""
	if l.origin != "" {
		at = s.paint(dim, "  # "+l.origin)
	}
	switch {
	case l.plain:
		return "  " + field + "  " + l.want
	case l.want == plan.NotShown && l.have == "":
		return s.paint(green, "+") + " " + field + "  set" + at
	case l.want == plan.NotShown:
		return s.paint(yellow, "~") + " " + field + "  changed" + at
	case l.have == "":
		return s.paint(green, "+") + " " + field + "  " + l.value(l.want, s) + at
	case l.want == "":
		return s.paint(red, "-") + " " + field + "  " + l.value(l.have, s) + at
	}
	return s.paint(yellow, "~") + " " + field + "  " + l.value(l.have, s) + " → " + l.value(l.want, s) + at
}

// value formats a value, with quotes where needed.
func (l line) value(v string, s Style) string {
	switch {
	case v == plan.Unknown:
		return s.paint(dim, v)
	case v == "":
		return s.paint(dim, "(none)")
	case strings.ContainsAny(v, "\n\t"):
		v = strconv.Quote(v)
	}
	return cut(v, 160)
}

// unchanged summarizes in at most three lines what the plan does not change.
func unchanged(p plan.Plan, v PlanView) string {
	if p.Empty() {
		return ""
	}
	keep := "Unchanged"
	if v.Deletes {
		keep = "Kept"
	}
	var b strings.Builder
	for _, l := range []struct {
		action plan.Action
		text   string
	}{{plan.Keep, keep}, {plan.Existing, "Existing, not managed"}, {plan.Leave, "Managed by the cluster"}} {
		if what := kinds(p, l.action); what != "" {
			b.WriteString(v.Style.paint(dim, l.text+": "+what) + "\n")
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// quotas lists the quotas that a plan needs some of.
func quotas(all []plan.Quota, v PlanView) string {
	s := v.Style
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(s.paint(dim, "Quotas:") + "\n")
	wide := 0
	for _, q := range all {
		wide = max(wide, width(q.Name))
	}
	for _, q := range all {
		code := dim
		if q.Exceeded() {
			code = red
		}
		line := fmt.Sprintf("%s  %d needed, %d of %d in use (%s %s)", pad(q.Name, wide), q.Needed, q.Used, q.Limit, q.Service, q.Code)
		if v.Width > 0 && width(line)+2 > v.Width && !q.Exceeded() { // the code is for a request
			line = fmt.Sprintf("%s  %d needed, %d of %d in use", pad(q.Name, wide), q.Needed, q.Used, q.Limit)
		}
		b.WriteString("  " + s.paint(code, line) + "\n")
	}
	return b.String() + "\n"
}

// kinds counts the steps with an action by their kind: "3 subnets, 1 vpc".
func kinds(p plan.Plan, a plan.Action) string {
	n := map[string]int{}
	var order []string
	for _, s := range p.Steps {
		if s.Action != a || a == plan.Keep && s.CloudID == "" {
			continue
		}
		if n[s.Resource.Kind()]++; n[s.Resource.Kind()] == 1 {
			order = append(order, s.Resource.Kind())
		}
	}
	slices.SortStableFunc(order, func(x, y string) int { return cmp.Compare(n[y], n[x]) })
	parts := make([]string, len(order))
	for i, k := range order {
		if parts[i] = text.Count(n[k], k); a == plan.Leave {
			parts[i] = k // the number is unknown
		}
	}
	return strings.Join(parts, ", ")
}
