// Package kind declares the properties of a kind of AWS resource, besides how to create
// it. Deletion by cluster name, the search for leftovers, and the commands describe, list
// and policy use these declarations.
package kind

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Kind is a kind of resource. It is declared in the file of its desired resource, and listed
// in Kinds of its package. A kind without a state is a literal; Of adds the functions of a
// kind that has one.
type Kind struct {
	Name string // the first word of the IDs of its resources
	Area plan.Area

	// Type is the resource type in DescribeTags of EC2; "" for other services. IDPrefix
	// identifies the kind for emulators that return another type.
	Type     types.ResourceType
	IDPrefix string
	// Existing lists the IDs of resources that exist, of any cluster. It is set if
	// DescribeTags returns tags for some time after the resource is deleted.
	Existing func(ctx context.Context, c *cloud.Clients, tagged types.Filter) ([]string, error)

	// SearchedWith is an EC2 resource type that every cluster with this kind has. If the
	// cluster has no resource of that type, this kind is not searched for.
	SearchedWith types.ResourceType
	InCluster    bool // controllers in a cluster create such resources, too
	// ByNameOnly: searched for only without a manifest; a manifest names it.
	ByNameOnly bool
	// Behind names a kind. AWS has accepted the deletion of all its resources before one of this kind is
	// deleted: a machine that AWS does not terminate keeps the load balancer by whose name it is reached.
	Behind string
	// OneByOne: AWS refuses to delete one of a cluster while it deletes another.
	OneByOne bool

	// Borrowed: the cloud ID is that of an object that another kind deletes, such as the
	// machine in the init marker, or the security group of rules. That a resource of this
	// kind is in a graph does not mean that the object is deleted.
	Borrowed bool

	// Rehearsed: a plan calls Create and Update with nothing sent, and compares the first request with AWS's API model.
	// Both build that request from what a plan knows.
	Rehearsed bool

	RunsPods bool // it runs pods, which may be controllers that create AWS resources
	Secret   bool // it is needed to access the cluster, so it is deleted last
	// OfMachines: it records something about machines, and is deleted as soon as they are,
	// although it is a Secret.
	OfMachines bool
	Single     bool // a cluster has at most one; its ID is the name of the kind

	// ReadActions are read-only IAM actions that the policy allows for all resources.
	// Actions are the others; Statement is the statement of the policy for them.
	ReadActions, Actions []string
	Statement            Statement

	Quota *Quota // nil for a kind whose quota is not checked

	// The Functions, for any state. Of sets them.
	list      func(ctx context.Context, c *cloud.Clients, of Owner) ([]Found, error)
	inVPC     func(ctx context.Context, c *cloud.Clients, vpc string) ([]Found, error)
	protects  func(ctx context.Context, c *cloud.Clients, have graph.State) (string, error)
	status    func(graph.State) (state, detail string)
	fromState func(graph.State) (Found, bool)
}

// Functions are the functions of a kind that depend on the type S of its state.
type Functions[S graph.State] struct {
	// List lists the resources of a cluster. If it is nil, the kind is not searched for.
	List func(ctx context.Context, c *cloud.Clients, of Owner) ([]S, error)
	// InVPC lists the resources in a VPC, of any owner: a VPC that contains one cannot be
	// deleted. It is nil for kinds that are not in a VPC, and for those that have a
	// network interface there.
	InVPC func(ctx context.Context, c *cloud.Clients, vpc string) ([]S, error)
	// Find finds a listed resource again; if it is nil, List is used.
	Find func(ctx context.Context, c *cloud.Clients, listed S) (*S, error)
	// Delete is a desired resource of the kind, for its methods Delete, Takes and
	// Blockers.
	Delete graph.Deleter[S]

	// Refers lists the cloud IDs or aliases of resources that are deleted after it.
	Refers func(S) []string
	// Outlives lists the cloud IDs or aliases of resources that are deleted before it.
	Outlives func(S) []string
	// Uses lists the cloud IDs among Refers of EC2 resources that were made only for it, such
	// as the address of a NAT gateway.
	Uses func(S) []string
	// Protection says why AWS would not delete the resource, and which command turns the
	// protection off; "" if it would. It is nil for kinds that AWS does not protect.
	Protection func(ctx context.Context, c *cloud.Clients, have S) (string, error)
	// Aliases are names besides the cloud ID for Refers and Outlives of other kinds.
	Aliases func(S) []string
	// ID is the ID that a manifest gives to the resource, for kinds without an identity tag; "" if it is not known.
	ID func(S) plan.ID
	// OwnerOf returns what the state contains about the cluster of a resource.
	OwnerOf func(S) Owner

	// Status returns the state that AWS reports, and details for a status line, such as
	// an address or a version.
	Status func(S) (state, detail string)
}

// Quota is a limit of Service Quotas to the resources of a kind.
type Quota struct {
	Service, Code string // "vpc", "L-F678F1CE"
	Name          string // the plural of what it limits: "VPCs"
	// Default is the limit if Service Quotas does not return one, as the documentation of
	// GetServiceQuota says of some quotas; 0 if it differs between accounts.
	Default int
	// Rare is set for a quota that is at least Default in each account, and of which few plans need more: Service Quotas is only asked
	// for the limit if a plan does.
	Rare bool

	// Takes returns how much of the quota a desired resource takes, and of which part of
	// the region, such as a zone; "" is the whole region. nil means that each takes one.
	Takes func(desired any) (n int, scope string)
	// Used returns how much is in use, by scope, whoever owns it. nil means that all
	// resources that count are in the plan, which then counts those that exist, too.
	Used func(context.Context, *cloud.Clients) (map[string]int, error)
}

// Statement is a statement of the IAM policy that "cluster policy" prints.
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
	Karpenter       Statement = "Karpenter"
)

// The areas. A machine belongs to the control plane or to the workers.
const (
	AreaMachines plan.Area = "machines"
)

// Of returns a kind with functions for its state.
func Of[S graph.State](k Kind, f Functions[S]) *Kind {
	k.fromState = func(have graph.State) (Found, bool) {
		s, is := any(have).(*S)
		if !is || s == nil {
			return Found{}, false
		}
		return f.found(&k, *s), true
	}
	k.status = func(have graph.State) (state, detail string) {
		s, _ := any(have).(*S)
		if s == nil || f.Status == nil {
			return "", ""
		}
		return f.Status(*s)
	}
	if f.Protection != nil {
		k.protects = func(ctx context.Context, c *cloud.Clients, have graph.State) (string, error) {
			s, _ := any(have).(*S)
			if s == nil {
				return "", nil
			}
			return f.Protection(ctx, c, *s)
		}
	}
	if f.InVPC != nil {
		k.inVPC = func(ctx context.Context, c *cloud.Clients, vpc string) (out []Found, err error) {
			all, err := f.InVPC(ctx, c, vpc)
			for _, s := range all {
				out = append(out, f.found(&k, s))
			}
			return out, err
		}
	}
	if f.List != nil {
		k.list = func(ctx context.Context, c *cloud.Clients, of Owner) (out []Found, err error) {
			all, err := f.List(ctx, c, of)
			for _, s := range all {
				found := f.found(&k, s)
				found.add = f.leftover(&k, s, of)
				out = append(out, found)
			}
			return out, err
		}
	}
	return &k
}

// Found is a resource that was found in the account.
type Found struct {
	Kind  *Kind
	State graph.State
	ID    string // cloud ID
	Tags  cloud.Tags
	Owner Owner // from Functions.OwnerOf

	InManifest plan.ID // from Functions.ID

	Refers, Outlives, Aliases, Uses []string

	add func(g *graph.Graph, id plan.ID, needs []graph.Edge, origin string) graph.Resource
}

func (f Functions[S]) found(k *Kind, s S) Found {
	found := Found{Kind: k, State: s, ID: s.CloudID()}
	if t, ok := any(s).(interface{ ResourceTags() cloud.Tags }); ok {
		found.Tags = t.ResourceTags()
	}
	list := func(get func(S) []string) []string {
		if get == nil {
			return nil
		}
		return get(s)
	}
	found.Refers, found.Outlives, found.Aliases, found.Uses = list(f.Refers), list(f.Outlives), list(f.Aliases), list(f.Uses)
	if f.ID != nil {
		found.InManifest = f.ID(s)
	}
	if f.OwnerOf != nil {
		found.Owner = f.OwnerOf(s)
	}
	return found
}

// WithAdd returns the resource with another implementation of Add.
func (f Found) WithAdd(add func(g *graph.Graph, id plan.ID, needs []graph.Edge, origin string) graph.Resource) Found {
	f.add = add
	return f
}

// Add adds the resource to a graph, to be deleted.
func (f Found) Add(g *graph.Graph, id plan.ID, needs []graph.Edge, origin string) graph.Resource {
	return f.add(g, id, needs, origin)
}

// Searchable reports whether the kind has a List function.
func (k *Kind) Searchable() bool { return k.list != nil }

// List lists the resources of a cluster.
func (k *Kind) List(ctx context.Context, c *cloud.Clients, of Owner) ([]Found, error) {
	return k.list(ctx, c, of)
}

// InVPC lists the resources in a VPC, of any owner; none for a kind without Functions.InVPC.
func (k *Kind) InVPC(ctx context.Context, c *cloud.Clients, vpc string) ([]Found, error) {
	if k.inVPC == nil {
		return nil, nil
	}
	return k.inVPC(ctx, c, vpc)
}

// Protected reports whether the kind has a Protection function.
func (k *Kind) Protected() bool { return k.protects != nil }

// Protection says why AWS would not delete a resource, and how to turn that off; "" if it
// would, as for each resource of a kind without Functions.Protection.
func (k *Kind) Protection(ctx context.Context, c *cloud.Clients, have graph.State) (string, error) {
	if k.protects == nil {
		return "", nil
	}
	return k.protects(ctx, c, have)
}

// FromState converts a state of one of the kinds.
func FromState(kinds []*Kind, have graph.State) (Found, bool) {
	for _, k := range kinds {
		if k.fromState == nil {
			continue // kinds without a state
		}
		if f, ok := k.fromState(have); ok {
			return f, true
		}
	}
	return Found{}, false
}

// Status returns the status line of a state; "" if its kind has none.
func Status(kinds []*Kind, have graph.State) (state, detail string) {
	if f, ok := FromState(kinds, have); ok {
		return f.Kind.status(have)
	}
	return "", ""
}

// Join joins the non-empty parts of a status line.
func Join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}
