package identity_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
)

// state is a resource with tags, and whether something uses it.
type state struct {
	identity.Object
	used bool
}

// named is a resource of CAPA, which has no identity tag.
func named(id, name string) state {
	return state{Object: identity.Object{ID: id, Tags: cloud.Tags{"Name": name}}}
}

// tagged is a resource with an identity tag.
func tagged(id, tag string) state {
	return state{Object: identity.Object{ID: id, Tags: cloud.Tags{"Name": "renamed by a user", cloud.ResourceTag: tag}}}
}

func inUse(s state) state {
	s.used = true
	return s
}

// want are the tags of the subnet that is looked for.
func want() cloud.Tags { return cloud.Tags{"Name": "demo-a", cloud.ResourceTag: "subnet/a"} }

// idOf is the ID of a resource; "" for none.
func idOf(s *state) string {
	if s == nil {
		return ""
	}
	return s.ID
}

// The identity tag identifies a resource, whatever its name is. The name does so only without any identity tag.
func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		list   []state
		id     string
		refuse string
	}{
		"none":                        {nil, "", ""},
		"by the tag, renamed":         {[]state{named("s-1", "other"), tagged("s-2", "subnet/a")}, "s-2", ""},
		"by the name":                 {[]state{named("s-1", "other"), named("s-2", "demo-a")}, "s-2", ""},
		"the tag before the name":     {[]state{named("s-1", "demo-a"), tagged("s-2", "subnet/a")}, "s-2", ""},
		"the tag of another resource": {[]state{{Object: identity.Object{ID: "s-1", Tags: want().With(cloud.Tags{cloud.ResourceTag: "subnet/b"})}}}, "", ""},
		"the same tag twice": {
			[]state{tagged("s-1", "subnet/a"), tagged("s-2", "subnet/a")},
			"",
			"s-1 and s-2 have the same tag clusterawsadm/resource=subnet/a: delete",
		},
		"the same name twice, no tags": {
			[]state{named("s-1", "demo-a"), named("s-2", "demo-a")},
			"",
			"s-1 and s-2 may each be subnet/a, because none has the tag clusterawsadm/resource: delete",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := identity.Find(c.list, want())
			if c.refuse != "" {
				require.ErrorContains(t, err, c.refuse)
				require.Nil(t, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.id, idOf(got))
		})
	}
	one := named("s-1", "")
	got, err := identity.Find([]state{one}, cloud.Tags{"Name": "demo-a"})
	require.NoError(t, err)
	require.Nil(t, got, "two resources without an identity tag have no identity in common")
}

// Of duplicates that a late request has left, the one in use is the resource, and the others are spare.
func TestFindUsed(t *testing.T) {
	for name, c := range map[string]struct {
		list   []state
		id     string
		spare  []string
		refuse string
	}{
		"none":                  {nil, "", nil, ""},
		"one, not in use":       {[]state{tagged("s-1", "subnet/a")}, "s-1", nil, ""},
		"one by its name":       {[]state{named("s-1", "demo-a")}, "s-1", nil, ""},
		"two, one in use":       {[]state{tagged("s-1", "subnet/a"), inUse(tagged("s-2", "subnet/a"))}, "s-2", []string{"s-1"}, ""},
		"three, one in use":     {[]state{tagged("s-3", "subnet/a"), tagged("s-1", "subnet/a"), inUse(tagged("s-2", "subnet/a"))}, "s-2", []string{"s-1", "s-3"}, ""},
		"two, none in use":      {[]state{tagged("s-2", "subnet/a"), tagged("s-1", "subnet/a")}, "s-1", []string{"s-2"}, ""},
		"two, both in use":      {[]state{inUse(tagged("s-2", "subnet/a")), inUse(tagged("s-1", "subnet/a"))}, "", nil, "s-1 and s-2 have the same tag"},
		"a name does not count": {[]state{inUse(named("s-0", "demo-a")), tagged("s-1", "subnet/a"), inUse(tagged("s-2", "subnet/a"))}, "s-2", []string{"s-1"}, ""},
		"another's are not": {
			[]state{tagged("s-0", "subnet/b"), tagged("s-3", "subnet/b"), tagged("s-1", "subnet/a"), inUse(tagged("s-2", "subnet/a"))},
			"s-2",
			[]string{"s-1"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, spare, err := identity.FindUsed(c.list, want(), func(s state) (bool, error) { return s.used, nil })
			if c.refuse != "" {
				require.ErrorContains(t, err, c.refuse)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.id, idOf(got))
			require.Equal(t, c.spare, spare)
		})
	}
	unknown := errors.New("no answer")
	two := []state{tagged("s-1", "subnet/a"), tagged("s-2", "subnet/a")}
	got, spare, err := identity.FindUsed(two, want(), func(state) (bool, error) { return false, unknown })
	require.ErrorIs(t, err, unknown, "nothing is spare as long as it is not known what is in use")
	require.Nil(t, got)
	require.Empty(t, spare)
}

// Among resources of CAPA with one name, those that match are kept. Resources with an identity tag stay, and so does a list
// in which nothing matches. The given list, which others share, is not changed.
func TestPreferMatching(t *testing.T) {
	list := []state{named("s-1", "demo"), named("s-2", "demo"), tagged("s-3", "subnet/b")}
	ids := func(list []state) (out []string) {
		for _, s := range list {
			out = append(out, s.ID)
		}
		return out
	}
	is := func(id string) func(state) bool { return func(s state) bool { return s.ID == id } }
	require.Equal(t, []string{"s-2", "s-3"}, ids(identity.PreferMatching(list, is("s-2"))))
	require.Equal(t, []string{"s-1", "s-2", "s-3"}, ids(identity.PreferMatching(list, is("s-9"))))
	require.Equal(t, []string{"s-1", "s-2", "s-3"}, ids(identity.PreferMatching(list, is("s-3"))), "it is not narrowed by one that has its tag")
	require.Equal(t, []string{"s-1", "s-2", "s-3"}, ids(list))
}

// untagged is a state that does not know its owner.
type untagged string

func (u untagged) CloudID() string { return string(u) }

// What another cluster owns, or nobody, is not found.
func TestFindOwned(t *testing.T) {
	c := &cloud.Clients{Cluster: "demo"}
	owned := func(cluster, value string) state {
		return state{Object: identity.Object{ID: "s-1", Tags: cloud.Tags{cloud.ClusterTagPrefix + cluster: value}}}
	}
	for name, x := range map[string]struct {
		have state
		id   string
	}{
		"owned":            {owned("demo", cloud.Owned), "s-1"},
		"shared":           {owned("demo", "shared"), ""},
		"another cluster":  {owned("demo-2", cloud.Owned), ""},
		"without any tags": {state{Object: identity.Object{ID: "s-1"}}, ""},
	} {
		asked := ""
		got, err := identity.OwnedByName(func(_ context.Context, _ *cloud.Clients, name string) (*state, error) {
			asked = name
			return &x.have, nil
		}, "the name")(t.Context(), c)
		require.NoError(t, err, name)
		require.Equal(t, x.id, idOf(got), name)
		require.Equal(t, "the name", asked)
	}
	none, err := identity.FindOwned(t.Context(), c, func(context.Context, *cloud.Clients) (*state, error) { return nil, nil })
	require.NoError(t, err)
	require.Nil(t, none)
	plain, err := identity.FindOwned(t.Context(), c, func(context.Context, *cloud.Clients) (*untagged, error) { return new(untagged("u")), nil })
	require.NoError(t, err)
	require.Nil(t, plain, "nobody knows that the cluster owns it")
	failed := errors.New("no answer")
	_, err = identity.FindOwned(t.Context(), c, func(context.Context, *cloud.Clients) (*state, error) { return nil, failed })
	require.ErrorIs(t, err, failed)
	_, err = identity.FindListed(t.Context(), c, func(context.Context, *cloud.Clients) ([]state, error) { return nil, failed }, want())
	require.ErrorIs(t, err, failed)
}
