// Package identity finds the AWS resource that a graph resource stands for, by its
// tags.
package identity

import (
	"context"
	"fmt"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Object is what the states of all things with an ID and tags have in common.
type Object struct {
	ID   string
	Tags cloud.Tags
}

// CloudID implements graph.State.
func (o Object) CloudID() string { return o.ID }

// ResourceTags returns the tags, of a state of any kind.
func (o Object) ResourceTags() cloud.Tags { return o.Tags }

// IsOwned reports whether a thing carries the tag of the cluster.
func (o Object) IsOwned(c *cloud.Clients) bool { return o.Tags[c.OwnerTag()] == cloud.Owned }

// FindOwned returns what a lookup finds, if it carries the tag of the cluster.
func FindOwned[S graph.State](ctx context.Context, c *cloud.Clients, find graph.Lookup[S]) (*S, error) {
	s, err := find(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	if t, ok := any(*s).(interface{ ResourceTags() cloud.Tags }); !ok || t.ResourceTags()[c.OwnerTag()] != cloud.Owned {
		return nil, nil
	}
	return s, nil
}

// Find returns the one thing of the list that the wanted tags identify: by
// the node tag, or, for what Cluster API made, which has none, by its name.
func Find[T any](list []T, want cloud.Tags, tagsOf func(T) cloud.Tags) (*T, error) {
	var found, named []T
	for _, t := range list {
		have := tagsOf(t)
		switch node := have[cloud.ResourceTag]; {
		case node == want[cloud.ResourceTag] && node != "":
			found = append(found, t)
		case node == "" && have["Name"] == want["Name"]:
			named = append(named, t)
		}
	}
	if len(found) == 0 {
		found = named
	}
	return AtMostOne(found, want[cloud.ResourceTag])
}

// PreferMatching leaves out things that do not say which they are, as those that
// Cluster API made do not, where a better sign than their name tells that
// another one is meant.
func PreferMatching[T any](list []T, tagsOf func(T) cloud.Tags, meant func(T) bool) []T {
	nameless := func(t T) bool { return tagsOf(t)[cloud.ResourceTag] == "" }
	if !slices.ContainsFunc(list, func(t T) bool { return nameless(t) && meant(t) }) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(t T) bool { return nameless(t) && !meant(t) })
}

// AtMostOne returns the only element of a list, nil when it is empty, and an error
// when there are several: two things that claim to be the same one.
func AtMostOne[T any](list []T, what string) (*T, error) {
	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return &list[0], nil
	}
	return nil, fmt.Errorf("found %d things in AWS that are tagged as %s; delete the ones that are not in use", len(list), what)
}

// CloudIDs returns what AWS calls resources; graph.Unknown for those that do not
// exist yet.
func CloudIDs[S graph.State](refs []*graph.Ref[S]) (out []string) {
	for _, r := range refs {
		out = append(out, r.CloudID())
	}
	return out
}

// TrueFirst orders two things of which one may have a property: that one first.
func TrueFirst(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}
