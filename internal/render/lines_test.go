package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// TestLinesMakeRoomForLongNames has things with long names in a run: what is
// said about all of them begins at the same column.
func TestLinesMakeRoomForLongNames(t *testing.T) {
	long, short := graph.ID("retired/machine/demo-control-plane/0/i-07948ca79e935e72b"), graph.ID("vpc")
	var b bytes.Buffer
	p := NewLines(&b, Terminal{})
	p.Look(Run{Verb: "delete", Cluster: "demo", Region: "us-east-1"})
	p.Begin(graph.Plan{Steps: []graph.Step{{Resource: long, Action: graph.Remove}, {Resource: short, Action: graph.Remove}}}, 0)
	for _, id := range []graph.ID{long, short} {
		p.Event(graph.Event{Resource: id, What: graph.Deleting, At: time.Now()})
	}
	p.End()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[1:]
	assert.Len(t, lines, 2)
	assert.Equal(t, strings.Index(lines[0], "deleting"), strings.Index(lines[1], "deleting"), b.String())
}
