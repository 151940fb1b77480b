package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Sizes of the drawing, in pixels.
const (
	letter      = 6.7 // width of a letter of the boxes' font
	mostLetters = 28  // of a name; the whole one is in the box's tool tip
	briefLetter = 8.0 // width of a letter in a summary
	briefGap    = 26  // between the columns of a summary
	boxHigh     = 36
	boxGap      = 9
	columnGap   = 46
	laneGap     = 12
	lanePad     = 14
	laneHead    = 22
	margin      = 24
	titleHigh   = 40
)

// placed is a box with its place in the drawing.
type placed struct {
	Box
	brief            bool
	column, row      int // row counts within the lane and the column
	x, y, wide, high float64
}

// lane is the band of one area.
type lane struct {
	area    plan.Area
	y, high float64
}

// drawing is a picture that has been laid out: a column for each step of the
// longest way to a box, a band for each area.
type drawing struct {
	boxes      []*placed
	byID       map[string]*placed
	lanes      []lane
	wide, high float64
	gap        float64 // between columns
}

func layOut(p Picture) *drawing {
	d := &drawing{byID: map[string]*placed{}, gap: columnGap}
	width, pad := letter, 20.0
	if p.brief {
		d.gap, width, pad = briefGap, briefLetter, 14
	}
	for _, n := range p.Resources {
		b := &placed{Box: n, high: boxHigh, brief: p.brief}
		for _, a := range n.Needs {
			if from := d.byID[a.ID]; from != nil {
				b.column = max(b.column, from.column+1)
			}
		}
		kind, rest := b.words()
		b.wide = float64(max(len([]rune(kind)), len([]rune(rest))))*width + pad
		d.boxes, d.byID[n.ID] = append(d.boxes, b), b
	}
	d.sort(p)
	d.columns()
	d.rows(p)
	return d
}

// words are the two lines of text in a box: the kind, and what is left of the
// ID.
func (b *placed) words() (kind, rest string) {
	kind, rest, _ = strings.Cut(b.ID, "/")
	if b.Count > 1 {
		_, count, _ := strings.Cut(b.label(), " ")
		kind += " " + count
	}
	if b.brief { // two lines of about the same length
		return halves(kind)
	}
	return kind, cut(rest, mostLetters)
}

// halves breaks a kind of three words, or a long one of two, into two lines.
func halves(kind string) (first, second string) {
	const long = 12
	if len([]rune(kind)) <= long {
		return kind, ""
	}
	best := -1
	for i, r := range kind {
		if (r == '-' || r == ' ') && (best < 0 || max(i, len(kind)-i) < max(best, len(kind)-best)) {
			best = i
		}
	}
	if best < 0 {
		return kind, ""
	}
	return strings.TrimSpace(kind[:best+1]), kind[best+1:]
}

// cell lists the boxes of one area in one column, from top to bottom.
func (d *drawing) cell(a plan.Area, column int) (out []*placed) {
	for _, b := range d.boxes {
		if b.Area == a && b.column == column {
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(x, y *placed) int { return cmp.Compare(x.row, y.row) })
	return out
}

func (d *drawing) depth() (columns int) {
	for _, b := range d.boxes {
		columns = max(columns, b.column+1)
	}
	return columns
}

// sort orders the boxes of each cell: kind by kind as they come in the
// picture, and by name in each, so that the zones always stand in one order.
func (d *drawing) sort(p Picture) {
	rank := map[string]int{}
	for _, b := range d.boxes {
		if kind, _ := b.words(); rank[kind] == 0 {
			rank[kind] = len(rank) + 1
		}
	}
	for _, a := range p.Areas() {
		for c := range d.depth() {
			cell := d.cell(a, c)
			slices.SortStableFunc(cell, func(x, y *placed) int {
				kind, name := x.words()
				other, otherName := y.words()
				return cmp.Or(cmp.Compare(rank[kind], rank[other]), cmp.Compare(name, otherName))
			})
			for row, b := range cell {
				b.row = row
			}
		}
	}
}

// columns sets where each column begins, as wide as its widest box.
func (d *drawing) columns() {
	x := float64(margin + lanePad)
	for c := range d.depth() {
		wide := 0.0
		for _, b := range d.boxes {
			if b.column == c {
				wide = max(wide, b.wide)
			}
		}
		for _, b := range d.boxes {
			if b.column == c {
				b.x, b.wide = x, wide
			}
		}
		x += wide + d.gap
	}
	d.wide = max(x-d.gap+lanePad+margin, 640)
}

// rows sets where each lane and each box in it stands. The boxes of a cell
// are centred in their lane.
func (d *drawing) rows(p Picture) {
	y := float64(margin + titleHigh)
	for _, a := range p.Areas() {
		most := 0
		for c := range d.depth() {
			most = max(most, len(d.cell(a, c)))
		}
		inside := float64(most*boxHigh + (most-1)*boxGap)
		for c := range d.depth() {
			cell := d.cell(a, c)
			top := y + laneHead + (inside-float64(len(cell)*boxHigh+(len(cell)-1)*boxGap))/2
			for i, b := range cell {
				b.y = top + float64(i*(boxHigh+boxGap))
			}
		}
		high := inside + laneHead + lanePad
		d.lanes = append(d.lanes, lane{a, y, high})
		y += high + laneGap
	}
	d.high = y - laneGap + margin
}
