package kind_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// boat and crew are the states of two kinds.
type (
	boat struct {
		identity.Object
		harbour string
	}
	crew struct{ identity.Object }
	// bare is a state without tags.
	bare string
)

func (b bare) CloudID() string { return string(b) }

// fleet deletes boats from a list.
type fleet struct{ boats []boat }

func (f *fleet) list(context.Context, *cloud.Clients, kind.Owner) ([]boat, error) {
	return f.boats, nil
}

// Delete implements graph.Deleter.
func (f *fleet) Delete(_ context.Context, _ *cloud.Clients, have *boat) error {
	for i, b := range f.boats {
		if b.ID == have.ID {
			f.boats = append(f.boats[:i:i], f.boats[i+1:]...)
			return nil
		}
	}
	return errors.New("it is not there")
}

// Takes implements graph.Timed.
func (f *fleet) Takes() (create, remove time.Duration) { return time.Hour, time.Minute }

// Blockers implements graph.Explained.
func (f *fleet) Blockers(_ context.Context, _ *cloud.Clients, have *boat) string {
	return have.ID + " is at sea"
}

func boats(names ...string) (out []boat) {
	for _, n := range names {
		out = append(out, boat{identity.Object{ID: n, Tags: cloud.Tags{"Name": n}}, "harbour of " + n})
	}
	return out
}

// A resource that is found has all that the functions of its kind say of it.
func TestFound(t *testing.T) {
	f := &fleet{boats: boats("b-1", "b-2")}
	one := func(prefix string) func(boat) []string {
		return func(b boat) []string { return []string{prefix + b.ID} }
	}
	k := kind.Of(kind.Kind{Name: "boat"}, kind.Functions[boat]{
		List: f.list, Delete: f, Refers: one("r "), Outlives: one("o "), Aliases: one("a "), Uses: one("u "),
		ID:      func(b boat) plan.ID { return plan.ID("boat/" + b.ID) },
		OwnerOf: func(b boat) kind.Owner { return kind.Owner{Cluster: b.harbour} },
	})
	require.True(t, k.Searchable())
	found, err := k.List(t.Context(), nil, kind.Owner{})
	require.NoError(t, err)
	require.Len(t, found, 2)
	b := found[1]
	require.Same(t, k, b.Kind)
	require.Equal(t, f.boats[1], b.State)
	require.Equal(t, "b-2", b.ID)
	require.Equal(t, cloud.Tags{"Name": "b-2"}, b.Tags)
	require.Equal(t, kind.Owner{Cluster: "harbour of b-2"}, b.Owner)
	require.Equal(t, plan.ID("boat/b-2"), b.InManifest)
	require.Equal(t, [][]string{{"r b-2"}, {"o b-2"}, {"a b-2"}, {"u b-2"}}, [][]string{b.Refers, b.Outlives, b.Aliases, b.Uses})
}

// A kind has only the functions that it declares.
func TestWithoutFunctions(t *testing.T) {
	k := kind.Of(kind.Kind{Name: "bare"}, kind.Functions[bare]{})
	require.False(t, k.Searchable())
	require.False(t, k.Protected())
	inside, err := k.InVPC(t.Context(), nil, "vpc-1")
	require.NoError(t, err)
	require.Empty(t, inside)
	why, err := k.Protection(t.Context(), nil, new(bare("x")))
	require.NoError(t, err)
	require.Empty(t, why)
	found, ok := kind.FromState([]*kind.Kind{k}, new(bare("x")))
	require.True(t, ok)
	require.Equal(t, "x", found.ID)
	require.Nil(t, found.Tags)
	state, detail := kind.Status([]*kind.Kind{k}, new(bare("x")))
	require.Empty(t, state+detail)
}

// The type of a state determines its kind. A nil state of the type is none.
func TestFromState(t *testing.T) {
	sea := kind.Of(kind.Kind{Name: "boat"}, kind.Functions[boat]{
		Status: func(b boat) (state, detail string) { return "afloat", b.harbour },
		Protection: func(_ context.Context, _ *cloud.Clients, b boat) (string, error) {
			return b.ID + " is moored: cast off", nil
		},
		InVPC: func(_ context.Context, _ *cloud.Clients, vpc string) ([]boat, error) {
			return boats("b of " + vpc), nil
		},
	})
	all := []*kind.Kind{{Name: "without a state"}, kind.Of(kind.Kind{Name: "crew"}, kind.Functions[crew]{}), sea}
	b := boats("b-1")[0]
	found, ok := kind.FromState(all, &b)
	require.True(t, ok)
	require.Equal(t, "boat", found.Kind.Name)
	state, detail := kind.Status(all, &b)
	require.Equal(t, []string{"afloat", "harbour of b-1"}, []string{state, detail})
	why, err := sea.Protection(t.Context(), nil, &b)
	require.NoError(t, err)
	require.Equal(t, "b-1 is moored: cast off", why)
	inside, err := sea.InVPC(t.Context(), nil, "vpc-1")
	require.NoError(t, err)
	require.Equal(t, "b of vpc-1", inside[0].ID)

	for name, other := range map[string]graph.State{"nil": nil, "a nil boat": (*boat)(nil), "another type": new(bare("x"))} {
		_, ok = kind.FromState(all, other)
		require.False(t, ok, name)
		state, detail = kind.Status(all, other)
		require.Empty(t, state+detail, name)
		why, err = sea.Protection(t.Context(), nil, other)
		require.NoError(t, err, name)
		require.Empty(t, why, name)
	}
}

// A listed resource that is added to a graph is planned as a deletion, and deleted. It is looked for with Find if the kind has it.
func TestLeftoverIsDeleted(t *testing.T) {
	for name, finds := range map[string]bool{"by List": false, "by Find": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, looked := &fleet{boats: boats("b-1", "b-2")}, 0
				functions := kind.Functions[boat]{List: f.list, Delete: f}
				if finds {
					functions.Find = func(_ context.Context, _ *cloud.Clients, listed boat) (*boat, error) {
						looked++
						for _, b := range f.boats {
							if b.ID == listed.ID {
								return &b, nil
							}
						}
						return nil, nil
					}
				}
				found, err := kind.Of(kind.Kind{Name: "boat"}, functions).List(t.Context(), nil, kind.Owner{})
				require.NoError(t, err)
				g := graph.New()
				r := found[0].Add(g, "boat/leftover", nil, "found by its tag")
				require.Equal(t, plan.ID("boat/leftover"), r.ID())
				x := &graph.Executor{Cloud: cloud.New(awssim.New(awssim.Options{}).Config(), "demo", cloud.Options{})}
				p, err := x.PlanDelete(t.Context(), g)
				require.NoError(t, err)
				require.Len(t, p.Steps, 1)
				require.Equal(t, plan.Remove, p.Steps[0].Action)
				require.Equal(t, "found by its tag", p.Steps[0].Origin)
				require.Len(t, f.boats, 2, "a plan deletes nothing")
				require.NoError(t, x.Delete(t.Context(), g))
				require.Equal(t, boats("b-2"), f.boats)
				require.Equal(t, finds, looked > 0)
			})
		})
	}
}

// A leftover has the time of its deletion, not one of a creation, and says what its deleter knows of its use.
func TestLeftover(t *testing.T) {
	f := &fleet{boats: boats("b-1", "b-2")}
	list := func(context.Context, *cloud.Clients) ([]boat, error) { return f.boats, nil }
	early := kind.Leftover(kind.Listed(list, "b-2"), graph.Deleter[boat](f), nil)
	late := kind.LateLeftover(kind.Listed(list, "b-2"), graph.Deleter[boat](f), nil)
	for _, l := range []graph.Desired[boat]{early, late} {
		have, err := l.Find(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "b-2", have.ID)
		require.Empty(t, l.Diff(have), "it is only displayed and deleted")
		create, remove := l.(graph.Timed).Takes()
		require.Zero(t, create)
		require.Equal(t, time.Minute, remove)
		require.Equal(t, "b-2 is at sea", l.(graph.Explained[boat]).Blockers(t.Context(), nil, have))
	}
	have, err := early.(graph.Identified[boat]).Identify(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Equal(t, "b-2", have.ID)
	have, err = late.(graph.Identified[boat]).Identify(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Nil(t, have, "a plan does not look for it")

	none, err := kind.Listed(list, "b-3")(t.Context(), nil)
	require.NoError(t, err)
	require.Nil(t, none)
	broken := errors.New("no answer")
	_, err = kind.Listed(func(context.Context, *cloud.Clients) ([]boat, error) { return nil, broken }, "b-2")(t.Context(), nil)
	require.ErrorIs(t, err, broken, "what could not be listed is not gone")
}

func TestJoin(t *testing.T) {
	require.Equal(t, "a b", kind.Join("", "a", "", "b", ""))
	require.Empty(t, kind.Join("", ""))
}
