package eks

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/podrole"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Parts are an EKS cluster and the names of its parts.
type Parts struct {
	Cluster                                    *ClusterState // nil if it does not exist
	NodeGroups, Addons, Fargate, AccessEntries []string
	PodIdentities                              []string // service accounts: "kube-system/aws-node"
	PodRoles                                   []string // names of the roles that were made for pods
	Leaving                                    Leaving
}

// Leaving are parts that the cluster owns and that are not in the manifest any more, if the
// cluster needs them.
type Leaving struct {
	Addons map[string]bool // whether their Kubernetes objects stay, by name
	Admins []string        // principals of the last entries of administrators
	Roles  []string        // ARNs of the roles of node groups and Fargate profiles that leave, or have left
	// OIDCProvider is true if the cluster owns an OIDC provider, and the manifest does not ask for one.
	OIDCProvider bool
	// IdentityProvider is the name of an identity provider that the manifest does not name; "" for none.
	IdentityProvider string
	// Others are node groups and Fargate profiles that the manifest does not have and the cluster does not own: "node-group/batch". Runs leave
	// them as they are.
	Others []string
}

// Kept are the names of the parts that the manifest has: they do not leave.
type Kept struct {
	NodeGroups, Fargate, Addons map[string]bool
	Entries                     map[string]bool // by principal: whether it is an administrator
	Roles                       map[string]bool // names of the roles of nodes
	MakesRoles                  bool            // runs make the roles of nodes
	OIDCProvider                bool            // the manifest asks for one
	IdentityProvider            string          // "" for none
}

// LeavingParts reads which parts leave.
func LeavingParts(ctx context.Context, c *cloud.Clients, p Parts, kept Kept) (out Leaving, err error) {
	out.Addons = map[string]bool{}
	addons, err := ownedParts(ctx, c, p.Cluster.Name, p.Addons, kept.Addons, AddonByName)
	if err != nil {
		return out, err
	}
	for _, s := range addons {
		out.Addons[s.Name] = s.Preserved()
	}
	if out.Others, err = otherParts(ctx, c, p, kept); err != nil {
		return out, err
	}
	if out.IdentityProvider, err = otherIdentityProvider(ctx, c, p.Cluster.Name, kept.IdentityProvider); err != nil {
		return out, err
	}
	if !kept.OIDCProvider {
		s, err := OIDCProviderOf(ctx, c, *p.Cluster)
		if err != nil && !cloud.Denied(err) { // who may not read it has not made it
			return out, err
		}
		out.OIDCProvider = s != nil && s.IsOwned(c)
	}
	if out.Admins, err = lastAdmins(ctx, c, p, kept.Entries); err != nil || !kept.MakesRoles {
		return out, err
	}
	out.Roles, err = leavingRoles(ctx, c, p, kept)
	return out, err
}

// otherParts lists node groups and Fargate profiles of somebody else.
func otherParts(ctx context.Context, c *cloud.Clients, p Parts, kept Kept) ([]string, error) {
	groups, err := others(ctx, c, p, NodeGroupKind, p.NodeGroups, kept.NodeGroups, NodeGroupByName)
	if err != nil {
		return nil, err
	}
	profiles, err := others(ctx, c, p, FargateProfileKind, p.Fargate, kept.Fargate, FargateProfileByName)
	return append(groups, profiles...), err
}

// others lists the parts of a kind that the manifest does not keep, that the cluster does not own, and that stay: "node-group/batch".
func others[S interface {
	IsOwned(c *cloud.Clients) bool
	Deleting() bool
}](
	ctx context.Context, c *cloud.Clients, p Parts, kind string, names []string, kept map[string]bool,
	get func(ctx context.Context, c *cloud.Clients, cluster, name string) (*S, error),
) (ids []string, err error) {
	for _, name := range names {
		if kept[name] {
			continue
		}
		s, err := get(ctx, c, p.Cluster.Name, name)
		if err != nil {
			return nil, err
		}
		if s != nil && !(*s).IsOwned(c) && !(*s).Deleting() {
			ids = append(ids, kind+"/"+name)
		}
	}
	return ids, nil
}

// leavingRoles lists the roles of nodes and pods that the manifest does not name: those of node groups and Fargate profiles that leave, and those of
// parts that a run that was interrupted has deleted, or has not created yet.
func leavingRoles(ctx context.Context, c *cloud.Clients, p Parts, kept Kept) ([]string, error) {
	groups, err := ownedParts(ctx, c, p.Cluster.Name, p.NodeGroups, kept.NodeGroups, NodeGroupByName)
	if err != nil {
		return nil, err
	}
	profiles, err := ownedParts(ctx, c, p.Cluster.Name, p.Fargate, kept.Fargate, FargateProfileByName)
	if err != nil {
		return nil, err
	}
	entries, err := rolesWithEntries(ctx, c, p, kept)
	if err != nil {
		return nil, err
	}
	roles := map[string]bool{}
	for _, s := range groups {
		roles[s.RoleARN] = true
	}
	for _, s := range profiles {
		roles[s.RoleARN] = true
	}
	for _, arn := range entries {
		roles[arn] = true
	}
	unused, err := unusedRoles(ctx, c, p)
	if err != nil {
		return nil, err
	}
	for _, arn := range unused {
		roles[arn] = true
	}
	maps.DeleteFunc(roles, func(arn string, _ bool) bool { return arn == "" || kept.Roles[iam.RoleName(arn)] })
	return slices.Sorted(maps.Keys(roles)), nil
}

// unusedRoles lists the roles of the cluster that no part of it has, without those of pods (Parts.PodRoles).
func unusedRoles(ctx context.Context, c *cloud.Clients, p Parts) (arns []string, err error) {
	all, err := iam.OwnedRoles(ctx, c)
	if cloud.Denied(err) { // who may not list them has not made them
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	used := map[string]bool{p.Cluster.RoleARN: true, p.Cluster.Auto.Role: true}
	for _, name := range p.NodeGroups {
		s, err := NodeGroupByName(ctx, c, p.Cluster.Name, name)
		if err != nil {
			return nil, err
		}
		if s != nil {
			used[s.RoleARN] = true
		}
	}
	for _, name := range p.Fargate {
		s, err := FargateProfileByName(ctx, c, p.Cluster.Name, name)
		if err != nil {
			return nil, err
		}
		if s != nil {
			used[s.RoleARN] = true
		}
	}
	for _, r := range all {
		if !used[r.ID] && !strings.HasPrefix(r.Path, podrole.Root) {
			arns = append(arns, r.ID)
		}
	}
	return arns, nil
}

// ownedParts reads the parts with the given names. It returns those that the cluster owns, without those that are kept.
func ownedParts[S graph.State](
	ctx context.Context,
	c *cloud.Clients,
	cluster string,
	names []string,
	kept map[string]bool,
	get byName[S],
) (out []S, err error) {
	for _, name := range names {
		if kept[name] {
			continue
		}
		s, err := identity.FindOwned(ctx, c, get.in(cluster, name))
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, *s)
		}
	}
	return out, nil
}

// rolesWithEntries lists the roles that have an access entry of nodes or pods, and that the manifest does not name.
func rolesWithEntries(ctx context.Context, c *cloud.Clients, p Parts, kept Kept) (arns []string, err error) {
	for _, principal := range p.AccessEntries {
		if _, named := kept.Entries[principal]; named || kept.Roles[iam.RoleName(principal)] {
			continue
		}
		s, err := AccessEntryOf(ctx, c, p.Cluster.Name, principal)
		if err != nil {
			return nil, err
		}
		if s != nil && s.Type != standardEntry {
			arns = append(arns, principal)
		}
	}
	return arns, nil
}

// lastAdmins lists the principals who are administrators now, if none is with the entries of the
// manifest.
func lastAdmins(ctx context.Context, c *cloud.Clients, p Parts, entries map[string]bool) (admins []string, err error) {
	for _, isAdmin := range entries {
		if isAdmin {
			return nil, nil
		}
	}
	for _, principal := range p.AccessEntries {
		s, err := AccessEntryOf(ctx, c, p.Cluster.Name, principal)
		if s == nil || err != nil {
			return nil, err
		}
		_, stays := entries[principal]
		switch {
		case !s.IsAdmin():
		case stays || s.IsOwned(c):
			admins = append(admins, principal)
		default: // it is not the program's to delete
			return nil, nil
		}
	}
	return admins, nil
}

// PartsOf lists the parts of an EKS cluster.
func PartsOf(ctx context.Context, c *cloud.Clients, name string) (Parts, error) {
	p, err := PartsToDelete(ctx, c, name)
	if err != nil || p.Cluster == nil {
		return p, err
	}
	if p.Addons, err = addonNames(ctx, c, name); err != nil {
		return p, err
	}
	slices.Sort(p.Addons)
	if p.AccessEntries, err = AccessPrincipals(ctx, c, name); err != nil {
		return p, err
	}
	slices.Sort(p.AccessEntries)
	if slices.Contains(p.Addons, PodIdentityAgent) { // without it, associations have no effect
		if p.PodIdentities, err = podIdentityAccounts(ctx, c, name); err != nil {
			return p, err
		}
		slices.Sort(p.PodIdentities)
		p.PodRoles, err = iam.RolesWithPath(ctx, c, podrole.Path(name, c.Region))
		if cloud.Denied(err) { // then there are none that a run has made
			err = nil
		}
	}
	return p, err
}

// PartsToDelete is PartsOf without those that EKS deletes with the cluster: its add-ons and access
// entries.
func PartsToDelete(ctx context.Context, c *cloud.Clients, name string) (p Parts, err error) {
	if p.Cluster, err = ClusterByName(ctx, c, name); err != nil || p.Cluster == nil {
		return p, err
	}
	for _, part := range []struct {
		to   *[]string
		list func(context.Context, *cloud.Clients, string) ([]string, error)
	}{
		{&p.NodeGroups, nodeGroupNames}, {&p.Fargate, fargateProfileNames},
	} {
		if *part.to, err = part.list(ctx, c, name); err != nil {
			return p, err
		}
		slices.Sort(*part.to)
	}
	return p, nil
}

// byName looks up a part of an EKS cluster.
type byName[S graph.State] func(ctx context.Context, c *cloud.Clients, cluster, name string) (*S, error)

// partsOf lists owned parts of an EKS cluster. If the cluster does not exist, there are
// none: EKS does not delete a cluster before its parts.
func partsOf[S graph.State](
	names func(context.Context, *cloud.Clients, string) ([]string, error),
	get byName[S],
) func(context.Context, *cloud.Clients, kind.Owner) ([]S, error) {
	return func(ctx context.Context, c *cloud.Clients, of kind.Owner) (out []S, err error) {
		if !of.EKS {
			return nil, nil
		}
		if in, err := ClusterByName(ctx, c, of.Kubernetes); err != nil || in == nil {
			return nil, err
		}
		all, err := names(ctx, c, of.Kubernetes)
		if err != nil {
			return nil, err
		}
		return ownedParts(ctx, c, of.Kubernetes, slices.Sorted(slices.Values(all)), nil, get)
	}
}

func (get byName[S]) in(cluster, name string) graph.Lookup[S] {
	return func(ctx context.Context, c *cloud.Clients) (*S, error) { return get(ctx, c, cluster, name) }
}

// RetireNodeGroup adds the deletion of a node group that is not desired any more, if the
// cluster owns it. after is what may take its place.
func RetireNodeGroup(g *graph.Graph, id plan.ID, name string, cluster *graph.Ref[ClusterState], after []graph.Edge) {
	retire(g, id, name, cluster, NodeGroupByName, &NodeGroup{}, after)
}

// RetireFargateProfile does the same for a Fargate profile.
func RetireFargateProfile(g *graph.Graph, id plan.ID, name string, cluster *graph.Ref[ClusterState], after []graph.Edge) {
	retire(g, id, name, cluster, FargateProfileByName, &FargateProfile{}, after)
}

// RetireAddon does the same for an add-on.
func RetireAddon(g *graph.Graph, id plan.ID, name string, cluster *graph.Ref[ClusterState], after []graph.Edge) {
	retire(g, id, name, cluster, AddonByName, &Addon{}, after)
}

// RetireAccessEntry does the same for an access entry.
func RetireAccessEntry(g *graph.Graph, id plan.ID, principal string, cluster *graph.Ref[ClusterState], after []graph.Edge) {
	retire(g, id, principal, cluster, AccessEntryOf, &AccessEntry{}, after)
}

// RetirePodIdentity does the same for the pod identity association of a service account.
func RetirePodIdentity(g *graph.Graph, id plan.ID, account string, cluster *graph.Ref[ClusterState]) {
	retire(g, id, account, cluster, PodIdentityOf, &PodIdentity{}, nil)
}

// RetireOIDCProvider does the same for the OIDC provider of the cluster.
func RetireOIDCProvider(g *graph.Graph, id plan.ID, cluster *graph.Ref[ClusterState], after []graph.Edge) {
	get := func(ctx context.Context, c *cloud.Clients, _, _ string) (*OIDCProviderState, error) {
		in, _ := cluster.Found()
		return OIDCProviderOf(ctx, c, in)
	}
	retire(g, id, "", cluster, get, &OIDCProvider{}, after)
}

// RetireRoleOfNodes adds the deletion of a role of nodes that is not desired any more, if the cluster owns it, and after it that of the access
// entry that EKS has made for the role. after are the nodes.
func RetireRoleOfNodes(g *graph.Graph, arn string, cluster *graph.Ref[ClusterState], after []graph.Edge) {
	name := iam.RoleName(arn)
	entry := &AccessEntry{Cluster: cluster, Principal: arn}
	ofOwnedRole := identity.OwnedByName(iam.GetRole, name)
	role := kind.Retire(g, plan.ID("role/"+name), ofOwnedRole, &roleOfNodes{entry: entry}, append(graph.On(cluster), after...))
	find := func(ctx context.Context, c *cloud.Clients) (*AccessEntryState, error) {
		s, err := entry.find(ctx, c, AccessEntryOf)
		if s == nil || err != nil || s.IsOwned(c) {
			return s, err
		}
		if role, err := ofOwnedRole(ctx, c); role == nil || err != nil {
			return nil, err
		}
		return s, nil
	}
	kind.Retire(g, plan.ID(AccessEntryKind+"/"+arn), find, entry, append(graph.On(cluster), graph.Awaits(role)...))
}

// roleOfNodes is the role of a node group or of a Fargate profile. EKS has created an access entry for the role.
type roleOfNodes struct {
	iam.Role
	entry *AccessEntry
}

// Delete implements graph.Deleter. The access entry is deleted after the role, because a run that follows a killed one finds the role by the
// entry. Before the role is deleted, the entry gets the tag of the cluster: EKS has not set tags, and without the role nothing else shows that the
// entry belongs to the cluster.
func (r *roleOfNodes) Delete(ctx context.Context, c *cloud.Clients, have *iam.RoleState) error {
	s, err := r.entry.find(ctx, c, describeAccessEntry)
	if err != nil {
		return err
	}
	if s != nil && !s.IsOwned(c) {
		if err := setTags(ctx, c, s.ID, cloud.Tags{c.OwnerTag(): cloud.Owned}); cloud.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return r.Role.Delete(ctx, c, have)
}

func retire[S graph.State](
	g *graph.Graph,
	id plan.ID,
	name string,
	cluster *graph.Ref[ClusterState],
	get byName[S],
	deleter graph.Deleter[S],
	after []graph.Edge,
) {
	find := func(ctx context.Context, c *cloud.Clients) (*S, error) {
		in, ok := cluster.Found()
		if !ok {
			return nil, nil
		}
		return identity.FindOwned(ctx, c, get.in(in.Name, name))
	}
	kind.Retire(g, id, find, deleter, append(graph.On(cluster), after...))
}
