package sweep

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPart(t *testing.T) {
	for s, want := range map[string][2]int{"": {0, 0}, "1": {0, 1}, "1/1": {0, 1}, "1/3": {0, 3}, "3/3": {2, 3}} {
		part, of := parse(s)
		assert.Equal(t, want, [2]int{part, of}, s)
	}
	for _, s := range []string{"0/3", "4/3", "2", "yes", "1/3x", "01/3"} {
		assert.Panics(t, func() { parse(s) }, s)
	}
}
