package render

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// svgRules are the CSS rules of all drawings but for their colours.
const svgRules = `text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:11px}
.title,.heading,.legend text{font-family:system-ui,"Segoe UI",Helvetica,Arial,sans-serif}
.title{font-size:17px;font-weight:600}
.heading{font-size:12px;font-weight:600}
.kind{font-weight:600}
.band rect{fill-opacity:.38;stroke-opacity:.3}
.behind{stroke-opacity:.6}
.arrow{fill:none;stroke-width:1.3;stroke-opacity:.75}
.long{stroke-opacity:.38}
`

// SVG draws a picture: a band for each area, time from left to right, and an arrow from
// each resource to those that need it.
func (p Picture) SVG(w io.Writer) error {
	d := layOut(p)
	rules := svgRules
	if p.brief {
		rules = strings.ReplaceAll(strings.ReplaceAll(rules, "font-size:11px", "font-size:13px"), "font-size:12px", "font-size:14px")
	}
	var b strings.Builder
	d.open(&b, p, ` xmlns="http://www.w3.org/2000/svg"`)
	b.WriteString("<style>\n" + rules + ".title{fill:#1f2328}.legend text{fill:#59636e}.legend path{stroke:#59636e}\n")
	for _, l := range d.lanes {
		c := PaletteOf(l.area)
		fmt.Fprintf(
			&b,
			".%s rect{fill:%s;stroke:%s}.%[1]s text{fill:%[4]s}.arrow.%[1]s{stroke:%[3]s}.tip.%[1]s{fill:%[3]s}\n",
			AreaClass(l.area),
			c.Fill,
			c.Line,
			c.Text,
		)
	}
	b.WriteString("</style>\n")
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" rx="10" fill="#ffffff"/>`+"\n", d.wide, d.high)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="%d">%s</text>`+"\n", margin, margin+14, html.EscapeString(visible(p.Title)))
	legend(&b, d.wide-margin-370)
	d.draw(&b)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Inline draws a picture for a page, which has to set the colours with CSS: the classes of
// areas, of states (marks), and title.
func (p Picture) Inline() string {
	d := layOut(p)
	var b strings.Builder
	d.open(&b, p, "")
	legend(&b, margin)
	d.draw(&b)
	b.WriteString("</svg>\n")
	return b.String()
}

// InlineRules are the CSS rules that Inline needs.
func InlineRules() string {
	return strings.ReplaceAll(".graph "+strings.ReplaceAll(strings.TrimSpace(svgRules), "\n", "\n.graph "), ",.", ",.graph .")
}

func (d *drawing) open(b *strings.Builder, p Picture, more string) {
	fmt.Fprintf(b, `<svg%s viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`+"\n",
		more, d.wide, d.high, d.wide, d.high, html.EscapeString(visible(p.Title)))
}

// draw draws all but the background and the title.
func (d *drawing) draw(b *strings.Builder) {
	for _, l := range d.lanes {
		class := AreaClass(l.area)
		fmt.Fprintf(b, `<g class="band %s"><rect x="%d" y="%.1f" width="%.1f" height="%.1f" rx="8"/><text class="heading" x="%d" y="%.1f">%s</text></g>`+"\n",
			class, margin, l.y, d.wide-2*margin, l.high, margin+lanePad, l.y+15, l.area)
		fmt.Fprintf(
			b,
			`<defs><marker id="tip-%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path class="tip %[1]s" d="M0,1L7,4L0,7z"/></marker></defs>`+"\n",
			class,
		)
	}
	for _, to := range d.boxes {
		for _, a := range to.Needs {
			if from := d.byID[a.ID]; from != nil {
				arrow(b, from, to, a)
			}
		}
	}
	for _, n := range d.boxes {
		n.draw(b)
	}
}

// legend explains the arrows, from x to the right.
func legend(b *strings.Builder, x float64) {
	y := float64(margin + 10)
	fmt.Fprintf(b, `<g class="legend"><path class="arrow" d="M%.0f,%.0fh26"/><text x="%.0f" y="%.0f">waits until it is ready</text>`, x, y, x+32, y+4)
	fmt.Fprintf(b, `<path class="arrow" stroke-dasharray="4 3" d="M%.0f,%.0fh26"/><text x="%.0f" y="%.0f">until it exists</text></g>`+"\n", x+212, y, x+244, y+4)
}

// arrow draws an edge as a curve from the right of one box to the left of another, in the
// colour of the area where it starts.
func arrow(b *strings.Builder, from, to *placed, a Arrow) {
	class, dash := AreaClass(from.Area), ""
	if to.column-from.column > 1 {
		class += " long" // it passes behind boxes
	}
	if a.Existing {
		dash = ` stroke-dasharray="4 3"`
	}
	x1, y1, x2, y2 := from.x+from.wide, from.y+from.high/2, to.x-1, to.y+to.high/2
	bend := max(columnGap*0.6, (x2-x1)*0.42)
	fmt.Fprintf(b, `<path class="arrow %s"%s marker-end="url(#tip-%s)" d="M%.1f,%.1fC%.1f,%.1f %.1f,%.1f %.1f,%.1f"/>`+"\n",
		class, dash, AreaClass(from.Area), x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
}

func (b *placed) draw(w *strings.Builder) {
	title, state := b.label(), ""
	if b.State != "" {
		title += ": " + string(b.State)
		state = " " + b.State.Class()
	}
	fmt.Fprintf(w, `<g class="box %s%s"><title>%s</title>`, AreaClass(b.Area), state, html.EscapeString(visible(title)))
	if b.Count > 1 { // several boxes
		fmt.Fprintf(w, `<rect class="behind" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5"/>`, b.x+4, b.y-4, b.wide, b.high)
	}
	fmt.Fprintf(w, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5"/>`, b.x, b.y, b.wide, b.high)
	kind, rest := b.words()
	if rest == "" {
		fmt.Fprintf(w, `<text class="kind" x="%.1f" y="%.1f">%s</text>`, b.x+10, b.y+b.high/2+4, html.EscapeString(visible(kind)))
	} else {
		fmt.Fprintf(w, `<text class="kind" x="%.1f" y="%.1f">%s</text>`, b.x+10, b.y+15, html.EscapeString(visible(kind)))
		fmt.Fprintf(w, `<text x="%.1f" y="%.1f">%s</text>`, b.x+10, b.y+29, html.EscapeString(visible(rest)))
	}
	b.mark(w)
	w.WriteString("</g>\n")
}

// mark draws the state on the corner of a box.
func (b *placed) mark(w *strings.Builder) {
	path := map[BoxState]string{
		BoxDone: "M-3,0l2,2.5l4,-5", BoxFailed: "M-2.5,-2.5l5,5m0,-5l-5,5", BoxBlocked: "M-3,0h6", BoxBusy: "M0,-3v3h2.5",
	}[b.State]
	if path != "" {
		fmt.Fprintf(w, `<g class="mark" transform="translate(%.1f %.1f)"><circle r="7"/><path d="%s"/></g>`, b.x+b.wide-2, b.y+2, path)
	}
}
