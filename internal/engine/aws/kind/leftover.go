package kind

import (
	"context"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// leftover is a resource that is only displayed and deleted.
type leftover[S graph.State] struct {
	graph.Deleter[S]
	find  graph.Lookup[S]
	needs []graph.Edge
	late  bool // a plan does not look for it
}

// Leftover returns a resource that was found by its tags, for graph.Retire.
func Leftover[S graph.State](find graph.Lookup[S], deleter graph.Deleter[S], needs []graph.Edge) interface {
	graph.Desired[S]
	graph.Deleter[S]
} {
	return &leftover[S]{Deleter: deleter, find: find, needs: needs}
}

// Retire adds the deletion of a resource that is not desired any more. after is what has used it, or could take its place.
func Retire[S graph.State](
	g *graph.Graph,
	id plan.ID,
	find graph.Lookup[S],
	deleter graph.Deleter[S],
	after []graph.Edge,
	opts ...graph.Option,
) graph.Resource {
	opts = append(opts, graph.From("no longer in the manifest"), graph.With(after))
	return graph.Retire(g, id, Leftover(find, deleter, nil), opts...)
}

// Listing lists resources of a kind.
type Listing[S graph.State] = func(context.Context, *cloud.Clients) ([]S, error)

// Listed looks up a resource in a list by its cloud ID.
func Listed[S graph.State](list Listing[S], id string) graph.Lookup[S] {
	return func(ctx context.Context, c *cloud.Clients) (*S, error) {
		all, err := list(ctx, c)
		for _, x := range all {
			if x.CloudID() == id {
				return &x, err
			}
		}
		return nil, err
	}
}

// LateLeftover is Leftover for a resource that is known only after others are deleted, for graph.Sweep.
func LateLeftover[S graph.State](find graph.Lookup[S], deleter graph.Deleter[S], needs []graph.Edge) interface {
	graph.Desired[S]
	graph.Deleter[S]
} {
	return &leftover[S]{Deleter: deleter, find: find, needs: needs, late: true}
}

// leftover returns the function that adds a listed resource to a graph.
func (f Functions[S]) leftover(k *Kind, s S, of Owner) func(*graph.Graph, plan.ID, []graph.Edge, string) graph.Resource {
	find := func(ctx context.Context, c *cloud.Clients) (*S, error) {
		all, err := f.List(ctx, c, of)
		for _, x := range all {
			if x.CloudID() == s.CloudID() {
				return &x, err
			}
		}
		return nil, err
	}
	if f.Find != nil {
		find = func(ctx context.Context, c *cloud.Clients) (*S, error) { return f.Find(ctx, c, s) }
	}
	return func(g *graph.Graph, id plan.ID, needs []graph.Edge, origin string) graph.Resource {
		return graph.Retire(
			g,
			id,
			Leftover(find, f.Delete, needs),
			graph.From(origin),
			graph.DeletedBehind(func(other plan.ID) bool { return k.Behind != "" && other.Kind() == k.Behind }),
		)
	}
}

// Needs implements graph.Desired.
func (l *leftover[S]) Needs() []graph.Edge { return l.needs }

// Find implements graph.Desired.
func (l *leftover[S]) Find(ctx context.Context, c *cloud.Clients) (*S, error) { return l.find(ctx, c) }

// Identify implements graph.Identified.
func (l *leftover[S]) Identify(ctx context.Context, c *cloud.Clients, _ *S) (*S, error) {
	if l.late {
		return nil, nil
	}
	return l.find(ctx, c)
}

// Diff implements graph.Desired.
func (l *leftover[S]) Diff(*S) plan.Diff { return nil }

// Takes implements graph.Timed.
func (l *leftover[S]) Takes() (create, remove time.Duration) {
	if t, ok := l.Deleter.(graph.Timed); ok {
		_, remove = t.Takes()
	}
	return 0, remove
}

// Lingers implements graph.Lingering.
func (l *leftover[S]) Lingers() time.Duration {
	if x, ok := l.Deleter.(graph.Lingering); ok {
		return x.Lingers()
	}
	return 0
}

// Blockers implements graph.Explained.
func (l *leftover[S]) Blockers(ctx context.Context, c *cloud.Clients, have *S) string {
	if e, ok := l.Deleter.(graph.Explained[S]); ok {
		return e.Blockers(ctx, c, have)
	}
	return ""
}
