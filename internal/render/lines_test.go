package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/assert"
)

// TestLinesMakeRoomForLongNames checks that the text of all events begins at the same
// column, also with long names.
func TestLinesMakeRoomForLongNames(t *testing.T) {
	long, short := plan.ID("retired/machine/demo-control-plane/0/i-07948ca79e935e72b"), plan.ID("vpc")
	var b bytes.Buffer
	p := NewLines(&b, Terminal{})
	p.Look(Run{Verb: "delete", Cluster: "demo", Region: "us-east-1"})
	p.Begin(plan.Plan{Steps: []plan.Step{{Resource: long, Action: plan.Remove}, {Resource: short, Action: plan.Remove}}})
	for _, id := range []plan.ID{long, short} {
		p.Event(plan.Event{Resource: id, What: plan.Deleting, At: time.Now()})
	}
	p.End()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[1:]
	assert.Len(t, lines, 2)
	assert.Equal(t, strings.Index(lines[0], "deleting"), strings.Index(lines[1], "deleting"), b.String())
}
