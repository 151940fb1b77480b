package teardown

import (
	"cmp"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Add adds leftovers to a graph, to be deleted with its resources; with an empty graph,
// only the name of the cluster is known. The graph must have been planned, so that cloud
// IDs are known. The order of deletion follows from the references of the leftovers and
// three rules. First, resources that controllers in the cluster created are deleted after
// everything that runs pods, because controllers might create them again, and before the
// resources that they use, by which the cluster is found. Second, network interfaces that
// are left behind are deleted after everything that runs pods. Third, the secrets with
// which the cluster is reached are deleted last: if the
// deletion stops halfway, the keys of machines that exist are still there.
func Add(g *graph.Graph, all Leftovers) {
	a := newAdder(g)
	var own, created, secrets []*pending
	for _, l := range all {
		if p := a.pending(l); p != nil {
			switch {
			case l.Kind.Secret:
				secrets = append(secrets, p)
			case l.Created:
				created = append(created, p)
			default:
				own = append(own, p)
			}
		}
	}
	for _, list := range [][]*pending{own, created, secrets} { // the order in which AWS lists resources has no effect
		slices.SortStableFunc(list, byID) // of two resources with one ID, the first that its kind lists
	}
	for _, p := range inOrder(own) {
		a.add(p, a.rules(p)...)
	}
	edges := a.edgesOfCreated()
	for _, p := range inOrder(created) {
		a.add(p, edges...)
	}
	slices.SortStableFunc(secrets, func(x, y *pending) int { return identity.TrueFirst(x.Kind.OfMachines, y.Kind.OfMachines) })
	runs, rest := a.runsPods(), slices.Clone(g.Resources())
	for _, p := range secrets {
		if p.Kind.OfMachines {
			rest = append(rest, a.add(p, graph.Outlives(runs...)...))
		} else {
			a.add(p, graph.Outlives(rest...)...)
		}
	}
}

// pending is a leftover to be added to a graph.
type pending struct {
	Leftover
	id plan.ID
}

func byID(x, y *pending) int { return cmp.Compare(x.id, y.id) }

// names are the ID and the aliases; a leftover for network interfaces has no ID.
func (p *pending) names() []string {
	if p.State == nil {
		return p.Aliases
	}
	return append(slices.Clone(p.Aliases), p.ID)
}

// adder adds leftovers to a graph.
type adder struct {
	g         *graph.Graph
	kinds     []*kind.Kind
	claimed   map[string]bool
	named     map[string][]graph.Resource // by ID and alias
	referrers map[string][]graph.Resource // resources of the graph, by ID and alias of what they refer to
	known     []graph.Resource            // resources that others refer to
}

func newAdder(g *graph.Graph) *adder {
	a := &adder{g: g, kinds: aws.Kinds(), claimed: Claimed(g), named: map[string][]graph.Resource{}, referrers: map[string][]graph.Resource{}}
	for _, n := range g.Resources() {
		if n.CloudID() != plan.Unknown {
			a.named[n.CloudID()] = append(a.named[n.CloudID()], n)
		}
		if f, ok := kind.FromState(a.kinds, n.Observed()); ok {
			for _, alias := range f.Aliases {
				a.named[alias] = append(a.named[alias], n)
			}
			a.note(n, f)
		}
		if n.ID() == ec2.InterfacesKind { // it has no state before the others are deleted
			for _, e := range n.Needs() {
				alias := ec2.InterfacesAlias(e.Resource.CloudID())
				a.named[alias] = append(a.named[alias], n)
			}
		}
	}
	return a
}

// note records what a resource refers to.
func (a *adder) note(n graph.Resource, f kind.Found) {
	for _, r := range f.Refers {
		a.referrers[r] = append(a.referrers[r], n)
	}
	if f.Owner.EKS {
		a.known = append(a.known, n)
	}
}

// pending returns a leftover to add; nil if it is in the graph.
func (a *adder) pending(l Leftover) *pending {
	p := &pending{l, plan.ID(l.Kind.Name + "/" + shortID(l.ID))}
	if l.Kind.Single {
		p.id = plan.ID(l.Kind.Name)
	}
	swept := l.Kind.Name == ec2.InterfacesKind && !l.Created && a.g.Resource(ec2.InterfacesKind) != nil
	if swept || a.claimed[l.ID] || a.g.Resource(p.id) != nil {
		return nil
	}
	tagged := plan.ID(l.Tags.Printable(cloud.ResourceTag))
	if l.Kind.Name == ec2.VolumeKind { // it has the tag of its machine
		tagged = ""
	}
	for _, id := range []plan.ID{tagged, l.InManifest} {
		if id != "" && a.g.Resource(id) == nil {
			p.id = id
			break
		}
	}
	return p
}

// shortID returns an ID, or the part of an ARN after the resource type.
func shortID(id string) string {
	if _, short, is := strings.Cut(id, "/"); is && strings.HasPrefix(id, "arn:") {
		return short
	}
	return id
}

// add adds a leftover with edges to the resources that it refers to, and to those that
// refer to it.
func (a *adder) add(p *pending, more ...graph.Edge) graph.Resource {
	needs := slices.Clone(more)
	for _, r := range p.Refers {
		needs = append(needs, graph.Exists(a.named[r]...)...)
	}
	for _, r := range p.Outlives {
		needs = append(needs, graph.Outlives(a.named[r]...)...)
	}
	for _, name := range p.names() {
		for _, n := range a.referrers[name] {
			if !a.deletedAfter(n, needs) {
				needs = append(needs, graph.Outlives(n)...)
			}
		}
	}
	if a.g.Resource(p.id) != nil { // two resources have the same identity tag
		p.id = plan.ID(p.Kind.Name + "/" + shortID(p.ID))
	}
	n := p.Add(a.g, p.id, needs, p.Origin)
	for _, name := range p.names() {
		a.named[name] = append(a.named[name], n)
	}
	a.note(n, p.Found)
	return n
}

// deletedAfter reports whether n is deleted after one of the resources that outlive a
// leftover with these needs.
func (a *adder) deletedAfter(n graph.Resource, needs []graph.Edge) bool {
	before := a.g.Before(n)
	return slices.ContainsFunc(needs, func(e graph.Edge) bool {
		return !e.Outlives && !e.Loose && (e.Resource == n || before[e.Resource])
	})
}

// rules are the edges of a leftover that do not follow from its references: resources
// that run pods are deleted before the network interfaces that are left behind, and
// before the EKS cluster that they are a part of. Of a kind that is OneByOne, each is
// deleted before those that are in the graph already.
func (a *adder) rules(p *pending) []graph.Edge {
	if p.Kind.Name == ec2.InterfacesKind {
		return graph.Outlives(a.runsPods()...)
	}
	var edges []graph.Edge
	if p.Kind.RunsPods {
		edges = append(graph.Exists(a.known...), graph.Exists(a.ofKind(ec2.InterfacesKind)...)...)
	}
	if p.Kind.OneByOne {
		edges = append(edges, graph.Exists(a.ofKind(p.Kind.Name)...)...)
	}
	return edges
}

// ofKind lists the resources of a kind that are in the graph.
func (a *adder) ofKind(name string) (all []graph.Resource) {
	for _, n := range a.g.Resources() {
		if n.ID().Kind() == name {
			all = append(all, n)
		}
	}
	return all
}

// runsPods lists the resources that run pods.
func (a *adder) runsPods() (out []graph.Resource) {
	for _, n := range a.g.Resources() {
		f, _ := kind.FromState(a.kinds, n.Observed())
		if f.Kind != nil && f.Kind.RunsPods || slices.ContainsFunc(a.kinds, func(k *kind.Kind) bool { return k.RunsPods && k.Name == n.ID().Kind() }) {
			out = append(out, n)
		}
	}
	return out
}

// edgesOfCreated are the edges of resources that controllers in the cluster created: they are
// deleted after resources that run pods, and before those that they use. If nothing runs
// pods, they are deleted before everything that others refer to.
func (a *adder) edgesOfCreated() []graph.Edge {
	runs := a.runsPods()
	users, first := runs, map[graph.Resource]bool{}
	if len(runs) == 0 {
		users = a.g.Resources()
	}
	for _, n := range runs {
		first[n] = true
		for x := range a.g.Before(n) {
			first[x] = true
		}
	}
	used := map[graph.Resource]bool{}
	var use func(n graph.Resource)
	use = func(n graph.Resource) {
		for _, e := range n.Needs() {
			if !e.Loose && !used[e.Resource] {
				used[e.Resource] = true
				use(e.Resource)
			}
		}
	}
	for _, n := range users {
		use(n)
	}
	edges := graph.Outlives(runs...)
	for _, n := range a.g.Resources() {
		if used[n] && !first[n] {
			edges = append(edges, graph.Exists(n)...)
		}
	}
	return edges
}

// inOrder sorts leftovers so that each comes after those that it refers to, and those
// that it outlives. Resources that run pods come after network interfaces that are left
// behind, and after an EKS cluster. Circular references are ignored.
func inOrder(all []*pending) (sorted []*pending) {
	named := map[string][]*pending{}
	var before []*pending // before resources that run pods
	for _, p := range all {
		for _, name := range p.names() {
			named[name] = append(named[name], p)
		}
		if p.Kind.Name == ec2.InterfacesKind || p.Owner.EKS {
			before = append(before, p)
		}
	}
	visited := map[*pending]bool{}
	var visit func(p *pending)
	visit = func(p *pending) {
		if visited[p] {
			return
		}
		visited[p] = true
		var referred []*pending
		for _, r := range append(slices.Clone(p.Refers), p.Outlives...) {
			referred = append(referred, named[r]...)
		}
		slices.SortFunc(referred, byID)
		for _, x := range referred {
			visit(x)
		}
		if p.Kind.RunsPods {
			for _, x := range before {
				visit(x)
			}
		}
		sorted = append(sorted, p)
	}
	for _, p := range all {
		visit(p)
	}
	return sorted
}
