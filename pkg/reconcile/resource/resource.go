// Package resource holds one file for each kind of thing in AWS that a
// cluster is made of: what it should be, and how to find, make, mend and
// remove it. No resource knows what cluster it is in; none waits or retries.
//
// Each file keeps one order: the wanted thing, its state, Needs, Find, Diff,
// Create, Update, Delete, the listing that all of the kind share, lookups of
// things that are somebody else's.
package resource

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile/graph"
)

// Object is what the states of all things with an ID and tags have in common.
type Object struct {
	ID   string
	Tags cloud.Tags
}

// CloudID implements graph.State.
func (o Object) CloudID() string { return o.ID }

func (o Object) object() Object { return o }

// ours reports whether a thing carries the tag of the cluster.
func (o Object) ours(c *cloud.Clients) bool { return o.Tags[c.OwnerTag()] == cloud.Owned }

// ifOwned returns what a lookup has found if it carries the tag of the cluster.
func ifOwned(c *cloud.Clients, s graph.State, err error) (graph.State, error) {
	if o, ok := s.(interface{ object() Object }); err != nil || !ok || !o.object().ours(c) {
		return nil, err
	}
	return s, nil
}

// mine returns the one thing of the list that the wanted tags identify: by
// the node tag, or, for what Cluster API made, which has none, by its name.
func mine[T any](list []T, want cloud.Tags, tagsOf func(T) cloud.Tags) (*T, error) {
	var found, named []T
	for _, t := range list {
		have := tagsOf(t)
		switch node := have[cloud.NodeTag]; {
		case node == want[cloud.NodeTag] && node != "":
			found = append(found, t)
		case node == "" && have["Name"] == want["Name"]:
			named = append(named, t)
		}
	}
	if len(found) == 0 {
		found = named
	}
	return one(found, want[cloud.NodeTag])
}

// narrowed leaves out things that do not say which they are, as those that
// Cluster API made do not, where a better sign than their name tells that
// another one is meant.
func narrowed[T any](list []T, tagsOf func(T) cloud.Tags, meant func(T) bool) []T {
	nameless := func(t T) bool { return tagsOf(t)[cloud.NodeTag] == "" }
	if !slices.ContainsFunc(list, func(t T) bool { return nameless(t) && meant(t) }) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(t T) bool { return nameless(t) && !meant(t) })
}

// one returns the only element of a list, nil when it is empty, and an error
// when there are several: two things that claim to be the same one.
func one[T any](list []T, what string) (*T, error) {
	switch len(list) {
	case 0:
		return nil, nil //nolint:nilnil // none is Find's documented answer
	case 1:
		return &list[0], nil
	}
	return nil, fmt.Errorf("found %d things in AWS that are tagged as %s; delete the ones that are not in use", len(list), what)
}

// tag sets tags on a thing of EC2.
func tag(ctx context.Context, c *cloud.Clients, id string, tags cloud.Tags) error {
	_, err := c.EC2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tags.EC2()})
	return err
}

// retagged sets tags on a thing of EC2 and returns its object as it is then.
func retagged(ctx context.Context, c *cloud.Clients, have Object, tags cloud.Tags) (Object, error) {
	have.Tags = have.Tags.With(tags)
	return have, tag(ctx, c, have.ID, tags)
}

// eksRetagged sets tags on a thing of EKS and returns its object as it is then.
func eksRetagged(ctx context.Context, c *cloud.Clients, have Object, tags cloud.Tags) (Object, error) {
	have.Tags = have.Tags.With(tags)
	_, err := c.EKS.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &have.ID, Tags: tags})
	return have, err
}

// How long AWS usually takes, for polling and for messages.
const (
	natGatewayTakes   = 100 * time.Second
	natGatewayGoes    = 60 * time.Second
	loadBalancerTakes = 150 * time.Second
	interfacesGo      = 75 * time.Second
	instanceTakes     = 30 * time.Second
	instanceGoes      = 35 * time.Second
	endpointGoes      = 10 * time.Second

	// From when its machine runs.
	apiServerTakes = 100 * time.Second
	nodeTakes      = 60 * time.Second
)

// anywhereIPv4 is every IPv4 address.
const anywhereIPv4 = "0.0.0.0/0"

func ec2Tags[T any](get func(T) []types.Tag) func(T) cloud.Tags {
	return func(t T) cloud.Tags { return cloud.FromEC2(get(t)) }
}

// pages collects all pages of a listing.
func pages[P, T any](ctx context.Context, more func() bool, next func(context.Context) (P, error), items func(P) []T) (out []T, err error) {
	for more() {
		p, err := next(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, items(p)...)
	}
	return out, nil
}

// idList writes IDs down; it is unknown until all of them are there.
func idList(ids []string) string {
	if slices.Contains(ids, graph.Unknown) {
		return graph.Unknown
	}
	return sortedList(ids)
}

func sortedList(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), ",") }

func str(p *string) string { return aws.ToString(p) }

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
