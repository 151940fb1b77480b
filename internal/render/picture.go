package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// Picture is a graph to draw.
type Picture struct {
	Version   int    `json:"version"`
	Title     string `json:"title"`
	Resources []Box  `json:"resources"` // each after those that it needs

	brief bool // a box for each kind
}

// Box is one resource of a picture.
type Box struct {
	ID    string    `json:"id"`
	Area  plan.Area `json:"area"`
	Count int       `json:"count,omitempty"` // more than 1 for a box that stands for many
	Needs []Arrow   `json:"needs,omitempty"`
	State BoxState  `json:"state,omitempty"` // at the end of a run; "" in a picture of a manifest
}

// BoxState is the state in which a run has left a resource.
type BoxState string

// The states of boxes, the most important one first. A box that stands for several resources has
// the most important of their states.
const (
	BoxFailed  BoxState = "failed"
	BoxBlocked BoxState = "not started"
	BoxBusy    BoxState = "in progress"
	BoxDone    BoxState = "done"
	BoxKept    BoxState = "unchanged"
)

// Class is the CSS class of a state.
func (s BoxState) Class() string { return strings.ReplaceAll(string(s), " ", "-") }

// Arrow is an edge from one box to another.
type Arrow struct {
	ID       string `json:"id"`
	Existing bool   `json:"existing,omitempty"` // it is enough that the other resource exists
	Loose    bool   `json:"loose,omitempty"`    // either may be deleted first
	Outlives bool   `json:"outlives,omitempty"` // the box is deleted after the other
}

// NewPicture returns the picture of a graph. Unless full is set, machines that differ
// only in name share a box, and arrows that follow from others are left out.
func NewPicture(title string, g plan.Graph, full bool) Picture {
	p := Picture{Version: Version, Title: title}
	name, boxes := map[plan.ID]string{}, map[string]int{}
	sizes := map[string]int{}
	for _, n := range g {
		sizes[n.ID.Group()]++
	}
	for _, n := range g {
		id := string(n.ID)
		if k := n.ID.Group(); !full && k != "" && sizes[k] > FewMachines {
			id = k + "/…"
		}
		name[n.ID] = id
		at, ok := boxes[id]
		if !ok {
			at = len(p.Resources)
			boxes[id] = at
			p.Resources = append(p.Resources, Box{ID: id, Area: reconcile.AreaOf(n.ID, n.Origin)})
		}
		box := &p.Resources[at]
		box.Count++
		for _, e := range n.Needs {
			a := Arrow{name[e.Resource], e.Existing, e.Loose, e.Outlives}
			if a.ID != id && !slices.ContainsFunc(box.Needs, func(b Arrow) bool { return b.ID == a.ID }) {
				box.Needs = append(box.Needs, a)
			}
		}
	}
	if !full {
		p.reduce()
	}
	return p
}

// Summary returns the picture with one box for each kind in an area. What the manifest only refers to is left out.
func (p Picture) Summary() Picture {
	s := Picture{Version: p.Version, Title: p.Title, brief: true}
	name, at := map[string]string{}, map[string]int{}
	for _, b := range p.Resources {
		if b.Area == plan.AreaPrerequisites {
			continue
		}
		kind, _, _ := strings.Cut(b.ID, "/")
		id := kind
		if first, ok := at[id]; ok && s.Resources[first].Area != b.Area {
			id += "/" + string(b.Area)
		}
		name[b.ID] = id
		i, ok := at[id]
		if !ok {
			i = len(s.Resources)
			at[id] = i
			s.Resources = append(s.Resources, Box{ID: id, Area: b.Area})
		}
		box := &s.Resources[i]
		box.Count += max(b.Count, 1)
		for _, a := range b.Needs {
			to := a
			to.ID = name[a.ID]
			if j, placed := at[to.ID]; placed && j < i && !slices.ContainsFunc(box.Needs, func(b Arrow) bool { return b.ID == to.ID }) {
				box.Needs = append(box.Needs, to)
			}
		}
	}
	s.reduce()
	return s
}

// SetStates sets the states of the boxes from those of the resources of the graph.
func (p *Picture) SetStates(of func(plan.ID) BoxState, g plan.Graph) {
	at := map[string]*Box{}
	for i := range p.Resources {
		at[p.Resources[i].ID] = &p.Resources[i]
	}
	rank := []BoxState{BoxKept, BoxDone, BoxBusy, BoxBlocked, BoxFailed}
	for _, n := range g {
		box := at[string(n.ID)]
		if box == nil {
			box = at[n.ID.Group()+"/…"]
		}
		if state := of(n.ID); slices.Index(rank, state) > slices.Index(rank, box.State) {
			box.State = state
		}
	}
}

// reduce removes the arrows that follow from others: from a to c, if a needs b and b
// needs c.
func (p *Picture) reduce() {
	above := map[string]map[string]bool{} // all direct and indirect needs of a box
	for i := range p.Resources {
		box := &p.Resources[i]
		far := map[string]bool{}
		for _, a := range box.Needs {
			for id := range above[a.ID] {
				far[id] = true
			}
		}
		all := map[string]bool{}
		for id := range far {
			all[id] = true
		}
		for _, a := range box.Needs {
			all[a.ID] = true
		}
		above[box.ID] = all
		box.Needs = slices.DeleteFunc(box.Needs, func(a Arrow) bool { return far[a.ID] })
	}
}

func (b Box) label() string {
	if b.Count > 1 {
		return b.ID + " ×" + strconv.Itoa(b.Count)
	}
	return b.ID
}

// Outline prints a picture as text: below each resource what it needs.
func (p Picture) Outline(w io.Writer, s Style) error {
	var b strings.Builder
	for _, a := range p.Areas() {
		b.WriteString(s.paint(bold, heading(a)) + "\n")
		for _, n := range p.in(a) {
			b.WriteString("  " + n.label() + "\n")
			for _, k := range n.Needs {
				b.WriteString("    " + s.paint(dim, "← "+k.ID+k.note()) + "\n")
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// note describes an arrow, if it is special.
func (a Arrow) note() string {
	switch {
	case a.Outlives:
		return " (deleted before it)"
	case a.Existing && a.Loose:
		return " (only reads it)"
	case a.Existing:
		return " (as soon as it exists)"
	case a.Loose:
		return " (waits for it)"
	}
	return ""
}

// Mermaid prints a picture in the language of mermaid.js, which GitHub draws.
func (p Picture) Mermaid(w io.Writer) error {
	var b strings.Builder
	name := p.names()
	b.WriteString("flowchart LR\n")
	for i, a := range p.Areas() {
		fmt.Fprintf(&b, "  subgraph area%d[\"%s\"]\n", i, a)
		for _, n := range p.in(a) {
			fmt.Fprintf(&b, "    %s[\"%s\"]\n", name[n.ID], n.label())
		}
		b.WriteString("  end\n")
	}
	for _, n := range p.Resources {
		for _, k := range n.Needs {
			arrow := "-->"
			if k.Existing {
				arrow = "-.->"
			}
			fmt.Fprintf(&b, "  %s %s %s\n", name[k.ID], arrow, name[n.ID])
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// DOT prints a picture in the language of Graphviz.
func (p Picture) DOT(w io.Writer) error {
	var b strings.Builder
	name := p.names()
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11];\n", strconv.Quote(p.Title))
	for i, a := range p.Areas() {
		c := PaletteOf(a)
		fmt.Fprintf(
			&b,
			"  subgraph cluster_%d {\n    label=%s; color=\"%s\"; node [fillcolor=\"%s\", color=\"%s\"];\n",
			i,
			strconv.Quote(string(a)),
			c.Line,
			c.Fill,
			c.Line,
		)
		for _, n := range p.in(a) {
			fmt.Fprintf(&b, "    %s [label=%s];\n", name[n.ID], strconv.Quote(n.label()))
		}
		b.WriteString("  }\n")
	}
	for _, n := range p.Resources {
		for _, k := range n.Needs {
			style := ""
			if k.Existing {
				style = " [style=dashed]"
			}
			fmt.Fprintf(&b, "  %s -> %s%s;\n", name[k.ID], name[n.ID], style)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// names returns for every box a name that is valid in all languages.
func (p Picture) names() map[string]string {
	out := map[string]string{}
	for i, n := range p.Resources {
		out[n.ID] = "n" + strconv.Itoa(i)
	}
	return out
}

// Areas lists the areas with resources in the picture.
func (p Picture) Areas() []plan.Area {
	return slices.DeleteFunc(Areas(), func(a plan.Area) bool { return len(p.in(a)) == 0 })
}

func (p Picture) in(a plan.Area) (out []Box) {
	for _, n := range p.Resources {
		if n.Area == a {
			out = append(out, n)
		}
	}
	return out
}
