// Package identity finds the AWS resource of a graph resource by its tags.
package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Object contains the fields that the states of all resources with an ID and tags have.
type Object struct {
	ID   string
	Tags cloud.Tags
}

// CloudID implements graph.State.
func (o Object) CloudID() string { return o.ID }

// ResourceTags returns the tags.
func (o Object) ResourceTags() cloud.Tags { return o.Tags }

// IsOwned reports whether the resource has the owned tag of the cluster.
func (o Object) IsOwned(c *cloud.Clients) bool { return o.Tags[c.OwnerTag()] == cloud.Owned }

// Tagged is a state with tags.
type Tagged interface {
	graph.State
	ResourceTags() cloud.Tags
}

// FindOwned returns the result of a lookup if the cluster owns it, or nil.
func FindOwned[S graph.State](ctx context.Context, c *cloud.Clients, find graph.Lookup[S]) (*S, error) {
	s, err := find(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	if o, ok := any(*s).(interface{ IsOwned(*cloud.Clients) bool }); !ok || !o.IsOwned(c) {
		return nil, nil
	}
	return s, nil
}

// OwnedByName looks up a resource by its name, if the cluster owns it.
func OwnedByName[S graph.State](get func(ctx context.Context, c *cloud.Clients, name string) (*S, error), name string) graph.Lookup[S] {
	return func(ctx context.Context, c *cloud.Clients) (*S, error) {
		return FindOwned(ctx, c, func(ctx context.Context, c *cloud.Clients) (*S, error) { return get(ctx, c, name) })
	}
}

// FindListed lists resources and returns the one that the tags identify, or nil.
func FindListed[S Tagged](ctx context.Context, c *cloud.Clients, list func(context.Context, *cloud.Clients) ([]S, error), want cloud.Tags) (*S, error) {
	all, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	return Find(all, want)
}

// Find returns the resource of a list that the tags identify, or nil: by the identity
// tag, or by the name for a resource without it, which CAPA has created.
func Find[S Tagged](list []S, want cloud.Tags) (*S, error) {
	var found, named []S
	for _, s := range list {
		have := s.ResourceTags()
		switch id := have[cloud.ResourceTag]; {
		case id == want[cloud.ResourceTag] && id != "":
			found = append(found, s)
		case id == "" && have["Name"] == want["Name"]:
			named = append(named, s)
		}
	}
	if len(found) == 0 {
		found = named
	}
	return AtMostOne(found, want[cloud.ResourceTag])
}

// FindUsed is Find for resources that are created without a client token. A request that
// arrives after its run was killed, and another run has taken over, leaves a second one
// that nothing uses. FindUsed returns the resource in use, and the IDs of the others with
// its identity tag. If several are in use, that is an error.
func FindUsed[S Tagged](list []S, want cloud.Tags, used func(S) (bool, error)) (found *S, spare []string, err error) {
	same, other := split(list, func(s S) bool {
		return want[cloud.ResourceTag] != "" && s.ResourceTags()[cloud.ResourceTag] == want[cloud.ResourceTag]
	})
	if len(same) < 2 {
		found, err = Find(list, want)
		return found, nil, err
	}
	slices.SortFunc(same, func(a, b S) int { return strings.Compare(a.CloudID(), b.CloudID()) })
	var inUse []S
	for _, s := range same {
		is, err := used(s)
		if err != nil {
			return nil, nil, err
		}
		if is {
			inUse = append(inUse, s)
		}
	}
	if len(inUse) == 0 {
		inUse = same[:1]
	}
	if found, err = Find(append(inUse, other...), want); err != nil {
		return nil, nil, err
	}
	for _, s := range same {
		if s.CloudID() != (*found).CloudID() {
			spare = append(spare, s.CloudID())
		}
	}
	return found, spare, nil
}

// split divides a list into the elements with a property, and the others.
func split[S any](list []S, is func(S) bool) (yes, no []S) {
	for _, s := range list {
		if is(s) {
			yes = append(yes, s)
		} else {
			no = append(no, s)
		}
	}
	return yes, no
}

// PreferMatching narrows a list for Find. CAPA gives several resources the same name. If
// resources without an identity tag match, the others without one are removed.
func PreferMatching[S Tagged](list []S, match func(S) bool) []S {
	untagged := func(s S) bool { return s.ResourceTags()[cloud.ResourceTag] == "" }
	if !slices.ContainsFunc(list, func(s S) bool { return untagged(s) && match(s) }) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(s S) bool { return untagged(s) && !match(s) })
}

// AtMostOne returns the only element of a list, or nil if the list is empty. Several elements are an error: they have the same identity tag, or
// they have none and look the same.
func AtMostOne[S Tagged](list []S, id string) (*S, error) {
	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return &list[0], nil
	}
	var ids []string
	for _, s := range list {
		ids = append(ids, s.CloudID())
	}
	all := strings.Join(ids, " and ")
	if list[0].ResourceTags()[cloud.ResourceTag] == "" {
		return nil, fmt.Errorf(
			"%s may each be %s, because none has the tag %s: delete those that are not in use, or give the one in use the tag %[3]s=%[2]s",
			all,
			id,
			cloud.ResourceTag,
		)
	}
	return nil, fmt.Errorf("%s have the same tag %s=%s: delete those that are not in use", all, cloud.ResourceTag, id)
}

// CloudIDs returns the cloud IDs of resources; graph.Unknown for those that do not exist
// yet.
func CloudIDs[S graph.State](refs []*graph.Ref[S]) (out []string) {
	for _, r := range refs {
		out = append(out, r.CloudID())
	}
	return out
}

// TrueFirst compares two values of a property: true is less than false.
func TrueFirst(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}
