package render

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// SVG draws a picture: a band for each area, time from left to right, and an arrow from
// each resource to those that need it.
func (p Picture) SVG(w io.Writer) error {
	d := layOut(p)
	wide := max(d.wide, 640)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="%s">`+"\n",
		wide, d.high, wide, d.high, html.EscapeString(p.Title))
	b.WriteString(`<style>
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:11px}
.title{font-family:system-ui,"Segoe UI",Helvetica,Arial,sans-serif;font-size:17px;font-weight:600;fill:#1f2328}
.lane{font-family:system-ui,"Segoe UI",Helvetica,Arial,sans-serif;font-size:12px;font-weight:600}
.legend{font-family:system-ui,"Segoe UI",Helvetica,Arial,sans-serif;fill:#59636e}
.kind{font-weight:600}
.arrow{fill:none;stroke-width:1.3}
</style>
`)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" rx="10" fill="#ffffff"/>`+"\n", wide, d.high)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="%d">%s</text>`+"\n", margin, margin+14, html.EscapeString(p.Title))
	legend(&b, wide)
	for i, l := range d.lanes {
		fill, stroke, text := palette(l.area)
		fmt.Fprintf(&b, `<rect x="%d" y="%.1f" width="%.1f" height="%.1f" rx="8" fill="%s" fill-opacity=".38" stroke="%s" stroke-opacity=".3"/>`+"\n",
			margin, l.y, wide-2*margin, l.high, fill, stroke)
		fmt.Fprintf(&b, `<text class="lane" x="%d" y="%.1f" fill="%s">%s</text>`+"\n", margin+lanePad, l.y+15, text, l.area)
		fmt.Fprintf(&b, `<defs><marker id="tip%d" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0,1L7,4L0,7z" fill="%s"/></marker></defs>`+"\n", i, stroke)
	}
	for _, to := range d.boxes {
		for _, a := range to.Needs {
			if from := d.byID[a.ID]; from != nil {
				d.arrow(&b, from, to, a)
			}
		}
	}
	for _, n := range d.boxes {
		n.draw(&b)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func legend(b *strings.Builder, wide float64) {
	x, y := wide-margin, float64(margin+10)
	fmt.Fprintf(b, `<path class="arrow" stroke="#59636e" d="M%.0f,%.0fh26"/><text class="legend" x="%.0f" y="%.0f">waits until it is ready</text>`+"\n", x-330, y, x-298, y+4)
	fmt.Fprintf(b, `<path class="arrow" stroke="#59636e" stroke-dasharray="4 3" d="M%.0f,%.0fh26"/><text class="legend" x="%.0f" y="%.0f">until it exists</text>`+"\n", x-118, y, x-86, y+4)
}

// arrow draws an edge as a curve from the right of one box to the left of another, in the
// colour of the area where it starts.
func (d *drawing) arrow(b *strings.Builder, from, to *placed, a Arrow) {
	lane := 0
	for i, l := range d.lanes {
		if l.area == from.Area {
			lane = i
		}
	}
	_, stroke, _ := palette(from.Area)
	dash := ""
	if a.Existing {
		dash = ` stroke-dasharray="4 3"`
	}
	x1, y1, x2, y2 := from.x+from.wide, from.y+from.high/2, to.x-1, to.y+to.high/2
	bend := max(columnGap*0.6, (x2-x1)*0.42)
	opacity := 0.75
	if to.column-from.column > 1 {
		opacity = 0.38 // a long one passes behind boxes
	}
	fmt.Fprintf(b, `<path class="arrow" stroke="%s" stroke-opacity="%.2f"%s marker-end="url(#tip%d)" d="M%.1f,%.1fC%.1f,%.1f %.1f,%.1f %.1f,%.1f"/>`+"\n",
		stroke, opacity, dash, lane, x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
}

func (b *placed) draw(w *strings.Builder) {
	fill, stroke, text := palette(b.Area)
	if b.Count > 1 { // several boxes
		fmt.Fprintf(w, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5" fill="%s" stroke="%s" stroke-opacity=".6"/>`+"\n", b.x+4, b.y-4, b.wide, b.high, fill, stroke)
	}
	fmt.Fprintf(w, `<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5" fill="%s" stroke="%s"/>`,
		html.EscapeString(b.label()), b.x, b.y, b.wide, b.high, fill, stroke)
	kind, rest := b.words()
	if rest == "" {
		fmt.Fprintf(w, `<text class="kind" x="%.1f" y="%.1f" fill="%s">%s</text></g>`+"\n", b.x+10, b.y+b.high/2+4, text, html.EscapeString(kind))
		return
	}
	fmt.Fprintf(w, `<text class="kind" x="%.1f" y="%.1f" fill="%s">%s</text>`, b.x+10, b.y+15, text, html.EscapeString(kind))
	fmt.Fprintf(w, `<text x="%.1f" y="%.1f" fill="%s">%s</text></g>`+"\n", b.x+10, b.y+29, text, html.EscapeString(rest))
}
