package graph

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Absence is the observation that a resource that Delete has deleted does not exist.
type Absence struct {
	Resource Resource
	CloudID  string // the ID that it had
	At       time.Time
}

// maxLooks is how often LookAgain looks for a resource that AWS still shows, and pauseBetweenLooks
// the time in between: an answer may be older than the deletion.
const (
	maxLooks          = 7
	pauseBetweenLooks = cloud.ConsistencyDelay / (maxLooks - 1)
)

// LookAgain looks once more for all resources that Delete has deleted, except for those to
// skip, by the IDs, names and tags that they and the resources that they refer to had. It
// returns those that do not exist, and those that still do. It leaves the snapshot of its last look.
func (x *Executor) LookAgain(ctx context.Context, g *Graph, skip func(Resource) bool) (absent []Absence, left []Resource, err error) {
	for _, n := range g.resources {
		if n.recall() && !skip(n) {
			left = append(left, n)
		}
	}
	defer func() {
		for _, n := range g.resources {
			n.forget()
		}
	}()
	x.Cloud.Snapshot()
	for look := 0; look < maxLooks && len(left) > 0; look++ {
		if look > 0 {
			if err := x.Cloud.Clock.Sleep(ctx, pauseBetweenLooks); err != nil {
				return absent, left, err
			}
			x.Cloud.Snapshot()
		}
		there := make([]bool, len(left))
		at := map[Resource]int{}
		for i, n := range left {
			at[n] = i
		}
		err := x.walk(cloud.InSnapshot(cloud.ReadOnly(ctx)), left, inAnyOrder, func(ctx context.Context, n Resource) (err error) {
			there[at[n]], err = n.there(ctx, x)
			return err
		})
		if err != nil {
			return absent, left, err
		}
		var still []Resource
		for i, n := range left {
			if there[i] {
				still = append(still, n)
			} else {
				absent = append(absent, Absence{n, n.CloudID(), x.Cloud.Clock.Now()})
			}
		}
		left = still
	}
	return absent, left, nil
}

// recall makes the state that the resource had before its deletion its state again, and
// reports whether Delete has deleted it.
func (n *resource) recall() bool {
	if n.removed != nil {
		n.set(n.removed)
	}
	return n.removed != nil
}

// forget undoes recall.
func (n *resource) forget() {
	if n.removed != nil {
		n.set(nil)
	}
}

// there reports whether AWS shows the resource: first by its desired
// name or tags, then by the ID that it had.
func (n *resource) there(ctx context.Context, x *Executor) (bool, error) {
	for _, last := range []State{nil, n.removed} {
		have, err := n.behaviour.find(ctx, x.Cloud, last, identity)
		if err != nil && !cloud.NotFound(err) {
			return false, fmt.Errorf("look again after the deletion: %w", err)
		}
		if have != nil {
			return true, nil
		}
	}
	return false, nil
}
