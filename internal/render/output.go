package render

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// introducer begins each control sequence of this package. UTF-8 does not contain its
// first byte, so that no name from a manifest, AWS or Kubernetes can contain a sequence.
const introducer = "\xff["

// Output is the only writer for a terminal. It escapes control characters, with which a
// name could move the cursor, hide text or send input, and writes the control sequences
// of this package. It is for concurrent use.
type Output struct {
	mu   sync.Mutex
	w    io.Writer
	rest []byte // the beginning of a character or of a sequence
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := append(o.rest, p...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && complete(text) {
		r, size := utf8.DecodeRune(text)
		if bytes.HasPrefix(text, []byte(introducer)) {
			out = append(out, '\x1b') // the rest of the sequence follows as text
		} else {
			out = appendVisible(out, r)
		}
		text = text[size:]
	}
	o.rest = append([]byte(nil), text...)
	if _, err := o.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// appendVisible appends a character, or its escape if it is a control character or changes
// the direction of the text. JSON and YAML have the same escapes.
func appendVisible(to []byte, r rune) []byte {
	if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
		return fmt.Appendf(to, `\u%04x`, r)
	}
	return utf8.AppendRune(to, r)
}

// visible returns a text as an Output shows it.
func visible(text string) string {
	var b []byte
	for _, r := range text {
		b = appendVisible(b, r)
	}
	return string(b)
}

// complete reports whether a text begins with a whole character or introducer.
func complete(text []byte) bool {
	return utf8.FullRune(text) && (len(text) > 1 || text[0] != introducer[0])
}
