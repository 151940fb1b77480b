package graph

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// behaviour is a Desired[S] without its S, so that one executor works on all.
// Its states are *S, or nil for none.
type behaviour interface {
	wants() any // the Desired[S]
	find(ctx context.Context, c *cloud.Clients, last State, deep depth) (State, error)
	diff(have State) plan.Diff // a nil have means that the resource does not exist
	create(ctx context.Context, c *cloud.Clients) (State, error)
	update(ctx context.Context, c *cloud.Clients, have State, d plan.Diff) (State, error)
	remove(ctx context.Context, c *cloud.Clients, have State) error
	blockers(ctx context.Context, c *cloud.Clients, have State) string
}

// depth is how much of a resource is read.
type depth int

const (
	whole    depth = iota // all that Diff compares; what AWS is deleting does not exist
	identity              // what a deletion needs
	ending                // whole, also of what AWS is deleting
)

// desired is the behaviour of a Desired[S].
type desired[S State] struct{ Desired[S] }

func (r desired[S]) wants() any { return r.Desired }

func (r desired[S]) find(ctx context.Context, c *cloud.Clients, last State, deep depth) (State, error) {
	if r, ok := r.Desired.(Identified[S]); ok && deep == identity {
		return untyped(r.Identify(ctx, c, typed[S](last)))
	}
	if r, ok := r.Desired.(Follower[S]); ok && last != nil {
		return untyped(r.Follow(ctx, c, typed[S](last)))
	}
	return untyped(r.Find(ctx, c))
}

func (r desired[S]) diff(have State) plan.Diff {
	if have == nil {
		return r.Diff(new(S))
	}
	return r.Diff(typed[S](have))
}

// create does nothing for a kind without Create: something else creates it, as
// AWS does a VPC's default security group. The executor waits for it.
func (r desired[S]) create(ctx context.Context, c *cloud.Clients) (State, error) {
	if r, ok := r.Desired.(Creator[S]); ok {
		return untyped(r.Create(ctx, c))
	}
	return nil, nil
}

func (r desired[S]) update(ctx context.Context, c *cloud.Clients, have State, d plan.Diff) (State, error) {
	if r, ok := r.Desired.(Updater[S]); ok {
		return untyped(r.Update(ctx, c, typed[S](have), d))
	}
	return nil, fmt.Errorf("%s cannot be changed", d[0].Field)
}

// remove does nothing for a kind without Delete: it is deleted with the
// resource that it is a part of.
func (r desired[S]) remove(ctx context.Context, c *cloud.Clients, have State) error {
	if r, ok := r.Desired.(Deleter[S]); ok {
		return r.Delete(ctx, c, typed[S](have))
	}
	return nil
}

func (r desired[S]) blockers(ctx context.Context, c *cloud.Clients, have State) string {
	if r, ok := r.Desired.(Explained[S]); ok {
		return r.Blockers(ctx, c, typed[S](have))
	}
	return ""
}

// lookup is the behaviour of an existing resource, which only has a Find.
type lookup[S State] struct {
	desired[S]
	look    Lookup[S]
	deleted *S // its state in a deletion, which does not read it; nil: it does
}

func (l lookup[S]) wants() any { return nil }

func (l lookup[S]) find(ctx context.Context, c *cloud.Clients, _ State, deep depth) (State, error) {
	if deep == identity && l.deleted != nil {
		return untyped(l.deleted, nil)
	}
	return untyped(l.look(ctx, c))
}

func (l lookup[S]) diff(State) plan.Diff { return nil }

func (l lookup[S]) create(context.Context, *cloud.Clients) (State, error) {
	return nil, errExisting
}

func (l lookup[S]) update(context.Context, *cloud.Clients, State, plan.Diff) (State, error) {
	return nil, errExisting
}

func (l lookup[S]) remove(context.Context, *cloud.Clients, State) error { return errExisting }

var errExisting = errors.New("an existing resource is not changed")

// untyped converts a *S to a State; a nil *S becomes a nil State.
func untyped[S State](have *S, err error) (State, error) {
	if have == nil {
		return nil, err
	}
	state, _ := any(have).(State)
	return state, err
}

// typed converts a State from untyped back to its *S.
func typed[S State](have State) *S {
	s, _ := any(have).(*S)
	return s
}
