package report

import (
	"fmt"
	"html"
	"strings"
	"time"
	"unicode"
)

// markup writes HTML. Elements and the names of attributes are constants of this package;
// all texts and values of attributes are escaped.
type markup struct{ b strings.Builder }

// raw writes a text as it is.
func (m *markup) raw(text string) { m.b.WriteString(text) }

// String returns what has been written.
func (m *markup) String() string { return m.b.String() }

// open writes the start of an element; attributes are pairs of a name and a value.
func (m *markup) open(element string, attributes ...string) {
	m.start(element, attributes)
	m.raw(">")
}

// void writes an element that has no content, and in HTML no end.
func (m *markup) void(element string, attributes ...string) {
	m.start(element, attributes)
	m.raw("/>")
}

func (m *markup) start(element string, attributes []string) {
	m.raw("<" + element)
	for i := 0; i+1 < len(attributes); i += 2 {
		m.raw(" " + attributes[i] + `="` + escape(attributes[i+1]) + `"`)
	}
}

// end writes the ends of elements.
func (m *markup) end(elements ...string) {
	for _, e := range elements {
		m.raw("</" + e + ">")
	}
	m.raw("\n")
}

// text writes an element with a text.
func (m *markup) text(element, text string, attributes ...string) {
	m.open(element, attributes...)
	m.raw(escape(text) + "</" + element + ">")
}

// empty writes an element without content.
func (m *markup) empty(element string, attributes ...string) {
	m.open(element, attributes...)
	m.raw("</" + element + ">")
}

// escape returns a text for HTML. Characters that control a terminal or the direction of the
// text become visible.
func escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0xfffe || r == 0xffff) {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd")))
}

// span formats a duration: "0.4 s", "42 s", "2 m 05 s", "1 h 10 m".
func span(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	switch {
	case d > 0 && d < 50*time.Millisecond:
		return "<\u00a00.1\u00a0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f\u00a0s", d.Seconds())
	case s < 60:
		return fmt.Sprintf("%d\u00a0s", s)
	case s < 3600:
		return fmt.Sprintf("%d\u00a0m\u00a0%02d\u00a0s", s/60, s%60)
	}
	return fmt.Sprintf("%d\u00a0h\u00a0%02d\u00a0m", s/3600, s%3600/60)
}

// clock formats a time since the begin of the run: "0:04", "12:30", "1:02:03".
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s%3600/60, s%60)
}
