package graph

import (
	"context"
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// behaviour is a Resource[S], or a Lookup[S] of somebody else's, to those who need
// not know S. Its states are *S, or nil for none.
type behaviour interface {
	wants() any // the resource, or nil
	wanted() Diff
	find(ctx context.Context, c *cloud.Clients) (State, error)
	diff(have State) Diff
	create(ctx context.Context, c *cloud.Clients) (State, error)
	update(ctx context.Context, c *cloud.Clients, have State, d Diff) (State, error)
	remove(ctx context.Context, c *cloud.Clients, have State) error
	blockers(ctx context.Context, c *cloud.Clients, have State) string
}

// managedBehaviour is a thing that we own.
type managedBehaviour[S State] struct{ resource Desired[S] }

func (o *managedBehaviour[S]) wants() any { return o.resource }

func (o *managedBehaviour[S]) wanted() Diff { return o.resource.Diff(new(S)).wanted() }

func (o *managedBehaviour[S]) find(ctx context.Context, c *cloud.Clients) (State, error) {
	return state(o.resource.Find(ctx, c))
}

func (o *managedBehaviour[S]) diff(have State) Diff { return o.resource.Diff(of[S](have)) }

func (o *managedBehaviour[S]) create(ctx context.Context, c *cloud.Clients) (State, error) {
	return state(o.resource.Create(ctx, c))
}

func (o *managedBehaviour[S]) update(ctx context.Context, c *cloud.Clients, have State, d Diff) (State, error) {
	return state(o.resource.Update(ctx, c, of[S](have), d))
}

func (o *managedBehaviour[S]) remove(ctx context.Context, c *cloud.Clients, have State) error {
	return o.resource.Delete(ctx, c, of[S](have))
}

func (o *managedBehaviour[S]) blockers(ctx context.Context, c *cloud.Clients, have State) string {
	if e, ok := o.resource.(Explained[S]); ok {
		return e.Blockers(ctx, c, of[S](have))
	}
	return ""
}

// existingBehaviour is a thing that somebody else owns. It is looked at, and no more:
// all that acts on a thing asks for its role first.
type existingBehaviour[S State] struct {
	behaviour
	lookup Lookup[S]
}

func (t *existingBehaviour[S]) wants() any { return nil }

func (t *existingBehaviour[S]) wanted() Diff { return nil }

func (t *existingBehaviour[S]) find(ctx context.Context, c *cloud.Clients) (State, error) {
	return state(t.lookup(ctx, c))
}

// expectedBehaviour is a thing that comes by itself.
type expectedBehaviour[S State] struct {
	behaviour
	expected Expected[S]
}

func (c *expectedBehaviour[S]) wants() any { return c.expected }

func (c *expectedBehaviour[S]) wanted() Diff { return c.expected.Diff(new(S)) }

func (c *expectedBehaviour[S]) find(ctx context.Context, cl *cloud.Clients) (State, error) {
	return state(c.expected.Find(ctx, cl))
}

func (c *expectedBehaviour[S]) diff(have State) Diff { return c.expected.Diff(of[S](have)) }

func (c *expectedBehaviour[S]) update(ctx context.Context, cl *cloud.Clients, have State, d Diff) (State, error) {
	if t, ok := c.expected.(Tended[S]); ok {
		return state(t.Update(ctx, cl, of[S](have), d))
	}
	return nil, fmt.Errorf("%s is not ours to change", d[0].Field)
}

// state drops S: a *S is a State because S is one.
func state[S State](have *S, err error) (State, error) {
	if have == nil {
		return nil, err
	}
	dropped, _ := any(have).(State)
	return dropped, err
}

// of says again what state has dropped.
func of[S State](have State) *S {
	said, _ := any(have).(*S)
	return said
}
