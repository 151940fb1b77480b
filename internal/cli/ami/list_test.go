package ami

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSpans(t *testing.T) {
	few := []string{"v1.27.0", "v1.27.1", "v1.28.0"}
	assert.Equal(t, few, spans(few))
	many := []string{
		"v1.27.0",
		"v1.27.1",
		"v1.27.9",
		"v1.27.10",
		"v1.28.0",
		"v1.29.0",
		"v1.29.1",
		"v1.29.2",
		"v1.29.3",
		"v1.29.4",
		"v1.29.5",
		"v1.29.6",
		"v1.30.0-rc.1",
	}
	assert.Equal(t, []string{"v1.27.0 to v1.27.10 (4)", "v1.28.0", "v1.29.0 to v1.29.6 (7)", "v1.30.0-rc.1"}, spans(many))
}
