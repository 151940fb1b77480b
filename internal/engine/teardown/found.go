package teardown

import (
	"context"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Found is a thing that was found by its tag, and is only there to be shown
// and removed. It is written for things, not for the state of each kind: of
// those there are many (docs/adr/0016-binary-size.md).
type Found struct {
	// Again looks for the thing: nil when it is gone.
	Again func(ctx context.Context, c *cloud.Clients) (graph.State, error)
	// Remove starts to remove it.
	Remove func(ctx context.Context, c *cloud.Clients, have graph.State) error
	// Goes is how long that usually takes; 0: it is gone at once.
	Goes time.Duration
	// Hangs are the things that have to outlive it.
	Hangs []graph.Edge
	// Origin says how it was found, or who made it.
	Origin string
}

// Thing is the state of a thing of any kind: a pointer to it.
type Thing struct{ graph.State }

var (
	_ graph.Desired[Thing]   = (*Found)(nil)
	_ graph.Deleter[Thing]   = (*Found)(nil)
	_ graph.Explained[Thing] = (*Found)(nil)
	_ graph.Timed            = (*Found)(nil)
)

// found makes a Found of what is known of the kind.
func found[S graph.State](again graph.Lookup[S], remove func(context.Context, *cloud.Clients, *S) error, goes time.Duration, hangs []graph.Edge) *Found {
	return &Found{
		Again: func(ctx context.Context, c *cloud.Clients) (graph.State, error) {
			s, err := again(ctx, c)
			if s == nil {
				return nil, err
			}
			state, _ := any(s).(graph.State)
			return state, err
		},
		Remove: func(ctx context.Context, c *cloud.Clients, have graph.State) error {
			s, _ := any(have).(*S)
			return remove(ctx, c, s)
		},
		Goes: goes, Hangs: hangs, Origin: "found by its tag",
	}
}

// Needs implements graph.Desired.
func (f *Found) Needs() []graph.Edge { return f.Hangs }

// Takes implements graph.Timed.
func (f *Found) Takes() (create, remove time.Duration) { return 0, f.Goes }

// Find implements graph.Desired.
func (f *Found) Find(ctx context.Context, c *cloud.Clients) (*Thing, error) {
	s, err := f.Again(ctx, c)
	if s == nil {
		return nil, err
	}
	return &Thing{s}, err
}

// Diff implements graph.Desired.
func (f *Found) Diff(*Thing) graph.Diff { return nil }

// Delete implements graph.Deleter.
func (f *Found) Delete(ctx context.Context, c *cloud.Clients, have *Thing) error {
	return f.Remove(ctx, c, have.State)
}

// Blockers implements graph.Explained.
func (f *Found) Blockers(ctx context.Context, c *cloud.Clients, have *Thing) string {
	switch s := have.State.(type) {
	case *ec2.SecurityGroupState:
		return (&ec2.SecurityGroup{}).Blockers(ctx, c, s)
	case *ec2.SubnetState:
		return (&ec2.Subnet{}).Blockers(ctx, c, s)
	}
	return ""
}

func (f *Found) retire(g *graph.Graph, id graph.ID, hangs []graph.Edge) graph.Resource {
	f.Hangs = hangs
	return graph.Retire(g, id, f, graph.From(f.Origin))
}

// listed makes a Lookup that finds the thing of that ID in a listing.
func listed[S graph.State](id string, list func(context.Context, *cloud.Clients) ([]S, error)) graph.Lookup[S] {
	return func(ctx context.Context, c *cloud.Clients) (*S, error) {
		all, err := list(ctx, c)
		for _, s := range all {
			if s.CloudID() == id {
				return &s, err
			}
		}
		return nil, err
	}
}
