package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWild(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		{"a*c", "abbbc", true},
		{"a*c", "abbbcd", false},
		{"*a*b", "xxaxxaxb", true},
		{"?", "ü", true},
		{"?", "", false},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a\?b`, "a?b", true},
		{"**", "", true},
		{"capa-ami-ubuntu-24.04-?1.34.2-*", "capa-ami-ubuntu-24.04-v1.34.2-1760000000", true},
		{"Canonical??Ubuntu??24.04??amd64?noble?image*", "Canonical, Ubuntu, 24.04, amd64 noble image", true},
	} {
		assert.Equal(t, c.want, Wild(c.pattern, c.value), "%s %s", c.pattern, c.value)
	}
}
