package yamldoc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestScanner finds the comments of a text. Each begins with "#!"; no other # is one.
func TestScanner(t *testing.T) {
	for _, text := range []string{
		"a: b #! comment",
		"#! comment\n  #! comment",
		"a: b#c",
		"a: 'b # c' #! comment",
		`a: "b \" # c" #! comment`,
		"a: 'b '' # c' #! comment",
		"a: it's #! a quote in a plain scalar",
		"a: \"b # c\n  d # e\" #! comment",
		"- 'b # c'\n- [ 'd # e', \"f # g\", {\"h # i\": 'j # k'}] #! comment",
		`{"a":"b # c","d":{"e # f":"{{ g }} # h"},"i":["j # k"]} #! comment`,
		`{'a':'b # c'} #! comment`,
		`a:"b #! a plain scalar`,
		"a: | #! comment\n  # text\n\n   # text\nb: c #! comment",
		"- a: >-\n    # text\n  b: c #! comment",
		"- |\n # text\n- b #! comment",
		"- - a: |2+\n      # text\n  - b #! comment",
		"a: b | #! comment\n#! comment",
	} {
		var s Scanner
		for line := range strings.SplitSeq(text, "\n") {
			want := strings.Index(line, "#!")
			if want < 0 {
				want = len(line)
			}
			assert.Equal(t, want, s.Comment(line), "%s\nin\n%s", line, text)
		}
	}
}
