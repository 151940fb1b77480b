package cluster

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func lines(from, to int) (out []string) {
	for n := from; n < to; n++ {
		out = append(out, fmt.Sprint("line ", n))
	}
	return out
}

func TestAddedLines(t *testing.T) {
	for name, tt := range map[string]struct {
		before, now, added []string
		gap                bool
	}{
		"the first output":                  {nil, lines(0, 3), lines(0, 3), false},
		"nothing yet":                       {nil, nil, nil, false},
		"as before":                         {lines(0, 3), lines(0, 3), nil, false},
		"more":                              {lines(0, 3), lines(0, 5), lines(3, 5), false},
		"the same line again":               {[]string{"a", "a"}, []string{"a", "a", "a"}, []string{"a"}, false},
		"its beginning is not kept":         {lines(0, 50), append([]string{"9"}, lines(30, 60)...), lines(50, 60), false},
		"nothing of what was shown is kept": {lines(0, 50), lines(60, 90), lines(60, 90), true},
		"the machine has started again":     {lines(0, 50), lines(0, 5), lines(0, 5), true},
	} {
		added, gap := addedLines(tt.before, tt.now)
		assert.Equal(t, tt.added, append([]string(nil), added...), name)
		assert.Equal(t, tt.gap, gap, name)
	}
}
