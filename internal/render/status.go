package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// manyAlike is the largest number of machines of one group in one state that are listed
// one by one.
const manyAlike = 12

// StatusView says how to show a cluster.
type StatusView struct {
	Full  bool // list every machine
	Named bool // without a manifest: there is no desired state
	Style Style
	Now   time.Time // for the age of the cluster
	Width int       // of the terminal, to which lines of resources are cut; 0: they are not cut
}

// head is the first line of a status. The endpoint gets one of its own on a terminal that is too narrow.
func (v StatusView) head(s cluster.Status) string {
	parts := []string{s.Name, s.Region}
	if s.Version != "" {
		parts = append(parts, "Kubernetes "+s.Version)
	}
	endpoint := text.Prefixed("https://", s.Endpoint)
	age := ""
	if s.Since != nil {
		age = Age(*s.Since, v.Now) + " old"
	}
	line := func(more ...string) string {
		all := slices.DeleteFunc(append(slices.Clone(parts), more...), func(part string) bool { return part == "" })
		return strings.Join(all, "  ")
	}
	whole := line(endpoint, age)
	if v.Width > 0 && width(whole) > v.Width && endpoint != "" {
		whole = line(age) + "\n" + endpoint
	}
	return v.Style.paint(bold, s.Name) + strings.TrimPrefix(whole, s.Name)
}

// sentence breaks a line of words to the width of the terminal.
func (v StatusView) sentence(line string) string {
	if v.Width == 0 {
		return line
	}
	return text.Wrap(line, v.Width)
}

// LastRun says which run works on a cluster, or has not finished, and what to do; "" for none.
func LastRun(r *cluster.LastRun, now time.Time) string {
	if r == nil {
		return ""
	}
	which := fmt.Sprintf("'cluster %s' of %s, begun %s ago,", r.Command, r.Who, Age(r.Since, now))
	switch {
	case r.State == cluster.RunActive:
		return which + " is working on this cluster."
	case r.Deletes():
		return which + " has not finished: parts of the cluster are deleted. 'cluster delete' deletes the rest, " +
			"'cluster create' with the manifest makes it whole again, unless its control plane is gone."
	}
	return which + " was interrupted: run it again."
}

// RunStatus returns what a table shows as the status of a cluster: the last run if it has not finished, such as "create interrupted",
// and the given status otherwise.
func RunStatus(r *cluster.LastRun, otherwise string) string {
	switch {
	case r == nil:
		return otherwise
	case r.State == cluster.RunActive:
		return r.Command + " runs"
	}
	return r.Command + " " + string(r.State)
}

// stopped says since when a cluster is stopped, and how it is started; "" if it is not.
func stopped(s cluster.Status, now time.Time) string {
	if s.Stopped == nil {
		return ""
	}
	return fmt.Sprintf("Stopped %s ago: 'cluster start %s' starts its machines.", Age(*s.Stopped, now), s.Name)
}

// Status prints a cluster as a tree: its areas, and in each the resources with
// their state.
func Status(w io.Writer, s cluster.Status, v StatusView) error {
	var b strings.Builder
	b.WriteString(v.head(s) + "\n")
	b.WriteString(health(s, v.Style))
	if told := stopped(s, v.Now); told != "" {
		b.WriteString(v.sentence(v.Style.paint(yellow, told)) + "\n")
	}
	if told := LastRun(s.LastRun, v.Now); told != "" {
		b.WriteString(v.sentence(v.Style.paint(yellow, told)) + "\n")
	}
	var shown []branch
	for _, a := range Areas() {
		k := branchOf(a, s.Resources, v)
		if a == plan.AreaKubernetes {
			k = k.with(nodesOf(s, v.Full))
		}
		if len(k.leaves) > 0 {
			shown = append(shown, k)
		}
	}
	wide := columns(shown)
	for i, k := range shown {
		k.write(&b, i == len(shown)-1, wide, v)
	}
	b.WriteString(verdict(s, v) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// health says whether the API server answers, and how many Nodes there are.
func health(s cluster.Status, style Style) string {
	if s.API == nil {
		return ""
	}
	switch s.API.State {
	case cluster.APINone:
		return style.paint(dim, "API server: no control plane runs") + "\n"
	case cluster.APIUnavailable:
		return style.paint(yellow, "API server: does not answer"+text.Prefixed(": ", s.API.Detail)) + "\n"
	case cluster.APIReady:
	}
	ready := 0
	for _, n := range s.Nodes {
		if n.Ready {
			ready++
		}
	}
	return fmt.Sprintf("API server: ready (%s)  Nodes: %d joined, %d ready\n", s.API.Version, len(s.Nodes), ready)
}

// with returns a branch with the leaves of another one.
func (k branch) with(more branch) branch {
	k.ok, k.of, k.leaves = k.ok+more.ok, k.of+more.of, append(k.leaves, more.leaves...)
	if rank(more.worst) > rank(k.worst) {
		k.worst = more.worst
	}
	return k
}

// nodesOf is the part of the tree with the Nodes that are no resource of the manifest. The Node of a machine has
// the name that the manifest gives to it.
func nodesOf(s cluster.Status, full bool) branch {
	k := branch{area: plan.AreaKubernetes, worst: "ok"}
	told, names := map[string]bool{}, map[string]string{}
	for _, r := range s.Resources {
		told[r.CloudID] = told[r.CloudID] || r.Resource.Kind() == reconcile.KindNode
		if of, is := strings.CutPrefix(string(r.Resource), "machine/"); is {
			names[r.CloudID] = string(reconcile.KindNode) + "/" + of
		}
	}
	for _, n := range s.Nodes {
		if told[n.Name] {
			continue
		}
		l := leaf{state: "ok", title: n.Name, id: n.Machine, detail: strings.TrimSpace(strings.Join(n.Roles, ",") + " " + n.Version)}
		if name := names[n.Machine]; name != "" {
			l.title, l.id = name, n.Name
		}
		k.of++
		if n.Ready {
			k.ok++
		}
		switch {
		case !n.Ready:
			l.state, k.worst = "pending", "pending"
			l.detail += "  NotReady"
		case n.Cordon:
			l.detail += "  SchedulingDisabled"
		}
		k.leaves = append(k.leaves, l)
	}
	if full || k.ok <= manyAlike {
		return k
	}
	k.leaves = slices.DeleteFunc(k.leaves, func(l leaf) bool { return l.state == "ok" })
	k.leaves = append(k.leaves, leaf{state: "ok", title: "ready Nodes…", id: "×" + strconv.Itoa(k.ok)})
	return k
}

// Age prints how long ago something was: "4h12m"; "0s" if it is later, because the clock of this
// machine is behind that of AWS.
func Age(since, now time.Time) string { return duration.HumanDuration(max(0, now.Sub(since))) }

// branch is one area of the tree.
type branch struct {
	area   plan.Area
	ok, of int
	worst  string // the state that is shown for the area
	leaves []leaf
}

// leaf is one line of the tree.
type leaf struct {
	state, title, id, detail string
	changes                  plan.Diff
}

func branchOf(a plan.Area, all []cluster.ResourceStatus, v StatusView) branch {
	k := branch{area: a, worst: "ok"}
	alike := map[string]int{}
	for _, n := range all {
		alike[n.Resource.Group()+" "+n.State]++
	}
	told := map[string]bool{}
	for _, n := range all {
		if reconcile.AreaOf(n.Resource, n.Origin) != a {
			continue
		}
		if k.of++; fine(n.State) {
			k.ok++
		} else if rank(n.State) > rank(k.worst) {
			k.worst = n.State
		}
		g := n.Resource.Group() + " " + n.State
		switch {
		case v.Full || n.Resource.Group() == "" || alike[g] <= manyAlike:
			k.leaves = append(k.leaves, leaf{n.State, string(n.Resource), n.CloudID, n.Detail, n.Changes})
		case !told[g]:
			told[g] = true
			k.leaves = append(k.leaves, leaf{state: n.State, title: n.Resource.Group() + "/…", id: "×" + strconv.Itoa(alike[g])})
		}
	}
	return k
}

// fine reports whether a state needs no attention.
func fine(state string) bool { return state == "ok" || state == "existing" }

// rank orders states by how much attention they need.
func rank(state string) int {
	switch state {
	case "ok", "existing":
		return 0
	case "pending", "stopped":
		return 1
	case "unknown":
		return 2
	case "extra":
		return 3
	case "differs":
		return 4
	case "missing":
		return 5
	}
	return 6
}

// mark returns the mark of a state.
func mark(state string, s Style) string {
	switch state {
	case "ok":
		return s.paint(green, "✓")
	case "existing":
		return s.paint(dim, "✓")
	case "pending":
		return s.paint(cyan, "…")
	case "stopped":
		return s.paint(yellow, "■")
	case "unknown":
		return s.paint(cyan, "?")
	case "extra":
		return s.paint(yellow, "-")
	case "differs":
		return s.paint(yellow, "~")
	case "missing":
		return s.paint(red, "✗")
	}
	return s.paint(red, "!")
}

// columns returns the widths of the columns of titles and IDs. A few long ones do not make
// the column of all others wide.
func columns(shown []branch) (wide [2]int) {
	for _, k := range shown {
		for _, l := range k.leaves {
			if n := width(l.title); n <= 48 {
				wide[0] = max(wide[0], n)
			}
			if n := width(brief(l.id)); n <= 26 {
				wide[1] = max(wide[1], n)
			}
		}
	}
	return wide
}

// indent is the width of what is before the title of a leaf.
const indent = 8

// leastID is the smallest number of columns in which an ID says something.
const leastID = 12

// columns returns the title, the ID and the detail of a leaf, padded to the columns. On a terminal that is too
// narrow for all three, the state and the detail are seen, and the ID gives way.
func (l leaf) columns(wide [2]int, v StatusView) (title, id, detail string) {
	title, id, detail = pad(l.title, wide[0]), brief(l.id), l.detail
	if l.state != "ok" && l.title != "" && !strings.HasSuffix(l.title, "…") {
		detail = strings.TrimSpace(stateText(l.state) + "  " + detail)
	}
	if detail != "" {
		id = pad(id, wide[1])
	}
	if v.Width == 0 {
		return title, id, detail
	}
	room := v.Width - indent
	if over := width(title) + 2 + width(detail) - room; over > 0 && detail != "" {
		title = pad(cut(strings.TrimRight(l.title, " "), max(room/2, width(title)-over)), min(wide[0], max(room/2, width(title)-over)))
	}
	title = cut(title, room)
	detail = cutWords(detail, room-width(title)-2)
	left := room - width(title) - 2
	if detail != "" {
		left -= width(detail) + 2
	}
	switch whole := strings.TrimRight(id, " "); {
	case width(id) <= left:
	case width(whole) <= left:
		id = pad(whole, left)
	case left < leastID:
		id = ""
	default:
		id = cut(whole, left)
	}
	return title, id, detail
}

func (k branch) write(b *strings.Builder, last bool, wide [2]int, v StatusView) {
	s := v.Style
	stem, rail := "├─ ", "│  "
	if last {
		stem, rail = "└─ ", "   "
	}
	fmt.Fprintf(b, "%s%s %s %s\n", s.paint(dim, stem), mark(k.worst, s), s.paint(bold, string(k.area)), s.paint(dim, fmt.Sprintf("%d/%d", k.ok, k.of)))
	for i, l := range k.leaves {
		twig, below := "├─ ", "│  "
		if i == len(k.leaves)-1 {
			twig, below = "└─ ", "   "
		}
		title, id, detail := l.columns(wide, v)
		row := title + text.Prefixed("  ", s.paint(dim, id)) + text.Prefixed("  ", detail)
		b.WriteString(s.paint(dim, rail+twig) + mark(l.state, s) + " " + strings.TrimRight(row, " ") + "\n")
		var changes []line
		for _, c := range l.changes {
			changes = append(changes, lineOf(c))
		}
		for _, change := range recorded(changes, plan.Update) {
			b.WriteString(s.paint(dim, rail+below) + "    " + change.text(width(change.field), plan.Update, s) + "\n")
		}
	}
}

// stateText returns the text for a state.
func stateText(state string) string {
	switch state {
	case "existing":
		return "existing, not managed"
	case "extra":
		return "no longer wanted"
	}
	return state
}

// verdict summarizes a cluster in one line.
func verdict(s cluster.Status, v StatusView) string {
	n := map[string]int{}
	for _, k := range s.Resources {
		n[k.State]++
	}
	fine := n["ok"] + n["existing"]
	parts := []string{fmt.Sprintf("%d of %d up to date", fine, len(s.Resources))}
	switch {
	case len(s.Resources) == 0:
		return "The cluster has no resources."
	case v.Named:
		parts[0] = text.Count(len(s.Resources), "resource") + " found"
	case fine == len(s.Resources):
		return v.Style.paint(green, fmt.Sprintf("All %d resources are up to date.", len(s.Resources)))
	}
	for _, state := range []string{"conflict", "missing", "differs", "extra", "unknown", "pending", "stopped"} {
		if n[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[state], stateText(state)))
		}
	}
	return strings.Join(parts, ", ") + "."
}
