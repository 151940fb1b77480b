// Package kind declares kinds of AWS resources: what the engine has to know of
// one besides how to create it. Deletion by name, the commands describe, list and
// policy, and the search for what is left all follow from these declarations.
package kind

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Kind is one kind of resource, of which S is the state. Each kind is declared
// once, in the file of its Desired, and listed once, in its package's Kinds.
type Kind[S graph.State] struct {
	Name string // the first word of the IDs of its resources
	Area Area

	// Type is what DescribeTags of EC2 calls the kind; "" for other services. IDPrefix
	// tells the kind where an emulator has another name for the type.
	Type     types.ResourceType
	IDPrefix string
	// Existing lists the IDs of those that exist, whatever cluster they belong
	// to, for a kind of which AWS shows the tags for an hour after its deletion.
	Existing func(ctx context.Context, c *cloud.Clients, tagged types.Filter) ([]string, error)

	// List lists what belongs to a cluster. A kind without is not searched for.
	List func(ctx context.Context, c *cloud.Clients, of Owner) ([]S, error)
	// SearchedWith is a type of EC2's of which every cluster has something that
	// has this kind: without the one, the other is not searched for.
	SearchedWith types.ResourceType
	// InCluster: controllers in a cluster create such resources, too; InClusterOnly:
	// nothing else does, or they are deleted with something else.
	InCluster, InClusterOnly bool
	// ByNameOnly: not searched for when there is a manifest, which names it.
	ByNameOnly bool
	// Find looks for one of the list again; nil: List does.
	Find func(ctx context.Context, c *cloud.Clients, seen S) (*S, error)
	// Delete is a Desired of the kind, of which nothing but the deletion is used:
	// Delete, Takes and Blockers.
	Delete graph.Deleter[S]

	// Refers lists the IDs, or the aliases, of resources that have to exist as
	// long as this one: they are deleted after it.
	Refers func(S) []string
	// Outlives lists those that are deleted before it.
	Outlives func(S) []string
	// Aliases are names, besides its ID, by which others refer to a resource.
	Aliases func(S) []string
	// OwnerOf returns what a resource says of the cluster that it belongs to.
	OwnerOf func(S) Owner

	RunsPods bool // it runs pods, among them controllers that create AWS resources
	Secret   bool // access to the cluster needs it: it is deleted last
	Single   bool // a cluster has one of it, which is called by the kind alone

	// Status returns how AWS calls the condition of a resource, and what a reader
	// looks for in a status line: an address, a version.
	Status func(S) (state, detail string)

	// ReadActions are the IAM actions of calls that AWS does not limit to a resource,
	// Actions those of the others, and Statement is the part of the policy document
	// that Actions are in.
	ReadActions, Actions []string
	Statement            Statement
}

// Statement names a part of the policy document that "cluster policy" prints.
type Statement string

// The statements.
const (
	Network         Statement = "network"
	Machines        Statement = "machines"
	Pools           Statement = "pools"
	LaunchTemplates Statement = "launch templates"
	LoadBalancers   Statement = "load balancers"
	Parameters      Statement = "parameters"
	Secrets         Statement = "secrets"
	Buckets         Statement = "buckets"
	EKS             Statement = "EKS"
	Roles           Statement = "roles"
	OIDCProviders   Statement = "OIDC providers"
)

// Area is the part of a cluster to which the resources of a kind belong: output is
// grouped by it.
type Area string

// The areas. That of a machine is the control plane or the workers.
const (
	AreaPrerequisites Area = "prerequisites"
	AreaNetwork       Area = "network"
	AreaSecurity      Area = "security"
	AreaLoadBalancer  Area = "load balancer"
	AreaControlPlane  Area = "control plane"
	AreaWorkers       Area = "workers"
	AreaMachines      Area = "machines"
	AreaKubernetes    Area = "kubernetes"
)

// Any is a Kind without its S.
type Any struct {
	Name                                 string
	Area                                 Area
	Type, SearchedWith                   types.ResourceType
	IDPrefix                             string
	Existing                             func(ctx context.Context, c *cloud.Clients, tagged types.Filter) ([]string, error)
	ByNameOnly, RunsPods, Secret, Single bool
	InCluster, InClusterOnly             bool
	ReadActions, Actions                 []string
	Statement                            Statement

	list      func(ctx context.Context, c *cloud.Clients, of Owner) ([]Found, error)
	status    func(graph.State) (state, detail string)
	fromState func(graph.State) (Found, bool)
}

// Of drops the S of a kind.
func Of[S graph.State](k Kind[S]) *Any {
	a := &Any{
		Name: k.Name, Area: k.Area, Type: k.Type, IDPrefix: k.IDPrefix, Existing: k.Existing, SearchedWith: k.SearchedWith,
		InCluster: k.InCluster, InClusterOnly: k.InClusterOnly, ByNameOnly: k.ByNameOnly, RunsPods: k.RunsPods, Secret: k.Secret, Single: k.Single, ReadActions: k.ReadActions, Actions: k.Actions, Statement: k.Statement,
	}
	a.fromState = func(have graph.State) (Found, bool) {
		s, is := any(have).(*S)
		if !is || s == nil {
			return Found{}, false
		}
		return k.found(a, *s), true
	}
	a.status = func(have graph.State) (state, detail string) {
		s, _ := any(have).(*S)
		if s == nil || k.Status == nil {
			return "", ""
		}
		return k.Status(*s)
	}
	if k.List != nil {
		a.list = func(ctx context.Context, c *cloud.Clients, of Owner) (out []Found, err error) {
			all, err := k.List(ctx, c, of)
			for _, s := range all {
				f := k.found(a, s)
				f.add = k.leftover(s, of)
				out = append(out, f)
			}
			return out, err
		}
	}
	return a
}

// Found is a resource as a look has shown it.
type Found struct {
	Kind  *Any
	State graph.State
	ID    string // what AWS calls it
	Tags  cloud.Tags
	Owner Owner // what it says of its cluster

	Refers, Outlives, Aliases []string

	add func(g *graph.Graph, id graph.ID, needs []graph.Edge, origin string) graph.Resource
}

func (k Kind[S]) found(a *Any, s S) Found {
	f := Found{Kind: a, State: s, ID: s.CloudID()}
	if t, ok := any(s).(interface{ ResourceTags() cloud.Tags }); ok {
		f.Tags = t.ResourceTags()
	}
	list := func(get func(S) []string) []string {
		if get == nil {
			return nil
		}
		return get(s)
	}
	f.Refers, f.Outlives, f.Aliases = list(k.Refers), list(k.Outlives), list(k.Aliases)
	if k.OwnerOf != nil {
		f.Owner = k.OwnerOf(s)
	}
	return f
}

// WithAdd returns the resource with another way of adding it to a graph.
func (f Found) WithAdd(add func(g *graph.Graph, id graph.ID, needs []graph.Edge, origin string) graph.Resource) Found {
	f.add = add
	return f
}

// Add puts the resource into a graph, to be deleted.
func (f Found) Add(g *graph.Graph, id graph.ID, needs []graph.Edge, origin string) graph.Resource {
	return f.add(g, id, needs, origin)
}

// Searchable reports whether there is a way to find resources of the kind.
func (a *Any) Searchable() bool { return a.list != nil }

// List lists what belongs to a cluster.
func (a *Any) List(ctx context.Context, c *cloud.Clients, of Owner) ([]Found, error) {
	return a.list(ctx, c, of)
}

// FromState returns what a state says, if it is one of the kinds'.
func FromState(kinds []*Any, have graph.State) (Found, bool) {
	for _, k := range kinds {
		if k.fromState == nil {
			continue // it has no state of its own
		}
		if f, ok := k.fromState(have); ok {
			return f, true
		}
	}
	return Found{}, false
}

// Status returns the status line of a state; "" where its kind has none.
func Status(kinds []*Any, have graph.State) (state, detail string) {
	if f, ok := FromState(kinds, have); ok {
		return f.Kind.status(have)
	}
	return "", ""
}

// Join joins the parts of a status line that are not empty.
func Join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}
