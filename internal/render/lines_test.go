package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// TestLinesMakeRoomForLongNames checks that the text of all events begins at the same
// column, also with long names.
func TestLinesMakeRoomForLongNames(t *testing.T) {
	long, short := reconcile.ID("retired/machine/demo-control-plane/0/i-07948ca79e935e72b"), reconcile.ID("vpc")
	var b bytes.Buffer
	p := NewLines(&b, Terminal{})
	p.Look(Run{Verb: "delete", Cluster: "demo", Region: "us-east-1"})
	p.Begin(reconcile.Plan{Steps: []reconcile.Step{{Resource: long, Action: reconcile.Remove}, {Resource: short, Action: reconcile.Remove}}})
	for _, id := range []reconcile.ID{long, short} {
		p.Event(reconcile.Event{Resource: id, What: reconcile.Deleting, At: time.Now()})
	}
	p.End()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[1:]
	assert.Len(t, lines, 2)
	assert.Equal(t, strings.Index(lines[0], "deleting"), strings.Index(lines[1], "deleting"), b.String())
}
