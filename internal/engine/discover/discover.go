// Package discover makes a manifest of a cluster that exists in AWS. It reads the resources
// and writes the Cluster API objects from which they could have been made: it is the
// reverse of package topology.
//
// The machines of a self-managed cluster got their configuration when they booted, and AWS does
// not store it. It is put together from the tags of the machines, from what kubeadm keeps in the
// cluster, and from what is usual; what is not known is left out, with a comment.
package discover

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/podrole"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// EKS is an EKS cluster with its parts and its network.
type EKS struct {
	Name    string // of the Cluster object
	Region  string
	Cluster eks.ClusterState
	Owned   bool // it has the owned tag of Cluster API

	NodeGroups    []eks.NodeGroupState
	Templates     map[string]ec2.TemplateContent           // launch templates of the cluster's own, by the name of the node group
	Hooks         map[string][]expinfrav1.AWSLifecycleHook // by the name of the node group
	Booted        map[string]*boot.BootedEKS               // what nodes boot with, by the ID of the launch template; those that were read
	Fargate       []eks.FargateProfileState
	Addons        []eks.AddonState
	AccessEntries []eks.AccessEntryState
	PodIdentities []eks.PodIdentityState
	KarpenterRole string // ARN of the role that a run has made for Karpenter's controller; "": none

	AddonIdentities map[string][]eks.PodIdentityState // those that an add-on owns, by its name
	Identity        *eks.IdentityProviderState        // nil: none
	OIDC            *eks.OIDCProviderState            // nil: none
	Unread          []string                          // what could not be read, and why
	Policies        map[string][]string               // ARNs of the attached policies, by ARN of a role that the cluster owns
	PodPolicies     map[string][]string               // the same for roles that a run has made for pods

	Workers *SelfManaged // machines and Auto Scaling groups that are no node groups

	untagged map[plan.ID]bool // parts of a cluster that Cluster API owns which do not have its tags

	Network

	images map[string]eksImage // of launch templates and machines, by ID
}

// FindEKS returns the EKS cluster with a name: that of the EKS cluster, or that of its
// Cluster object, which is in its tags. It returns nil if there is none.
func FindEKS(ctx context.Context, c *cloud.Clients, name string) (*eks.ClusterState, error) {
	s, err := eks.ClusterByName(ctx, c, name)
	if s != nil || err != nil {
		return s, err
	}
	return eks.Tagged(ctx, c)
}

// ownerOf returns the name of the Cluster object that owns a resource, from its tags; "" if
// there is none.
func ownerOf(tags cloud.Tags) string {
	return cmp.Or(tags.Owners()...)
}

// ownerOfEKS is ownerOf for an EKS cluster, on which CAPA also puts the name of the EKS cluster.
func ownerOfEKS(cluster eks.ClusterState) string {
	tags := maps.Clone(cluster.Tags)
	delete(tags, cloud.ClusterTagPrefix+cluster.Name)
	return cmp.Or(ownerOf(tags), ownerOf(cluster.Tags))
}

// ReadEKS reads an EKS cluster with its parts. They are parts whatever their tags are: also those
// that somebody else has added to a cluster of Cluster API's. The clients are those of a cluster
// with the name of ClusterName.
func ReadEKS(ctx context.Context, c *cloud.Clients, cluster eks.ClusterState) (*EKS, error) {
	e := &EKS{Name: ClusterName(cluster), Region: c.Region, Cluster: cluster, Owned: cluster.IsOwned(c), untagged: map[plan.ID]bool{}}
	for _, read := range []func(context.Context, *cloud.Clients) error{e.readParts, e.readProviders, e.readRoles, e.readNetwork, e.readWorkers, e.readImages} {
		if err := read(ctx, c); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// ClusterName returns the name of the Cluster object of an EKS cluster: that in its tags, or
// one that is made from its name.
func ClusterName(cluster eks.ClusterState) string {
	if owner := ownerOfEKS(cluster); owner != "" {
		return owner
	}
	name, _ := objectName(cluster.Name, kubernetesName(cluster.Name), longestClusterName)
	return name
}

// Owns reports whether the cluster is Cluster API's, and a part has its tags: a run deletes such a
// part if the manifest does not have it.
func (e *EKS) Owns(kind, name string) bool { return e.Owned && !e.untagged[plan.ID(kind+"/"+name)] }

func (e *EKS) readParts(ctx context.Context, c *cloud.Clients) error {
	parts, err := eks.PartsOf(ctx, c, e.Cluster.Name)
	if err != nil {
		return fmt.Errorf("parts of the EKS cluster: %w", err)
	}
	if e.NodeGroups, err = readAll(ctx, c, e, eks.NodeGroupKind, parts.NodeGroups, eks.NodeGroupByName); err != nil {
		return fmt.Errorf("node groups: %w", err)
	}
	if err := e.readTemplates(ctx, c); err != nil {
		return err
	}
	if e.Fargate, err = readAll(ctx, c, e, eks.FargateProfileKind, parts.Fargate, eks.FargateProfileByName); err != nil {
		return fmt.Errorf("fargate profiles: %w", err)
	}
	if e.Addons, err = readAll(ctx, c, e, eks.AddonKind, parts.Addons, eks.AddonByName); err != nil {
		return fmt.Errorf("add-ons: %w", err)
	}
	e.AddonIdentities = map[string][]eks.PodIdentityState{}
	for _, a := range e.Addons {
		if e.AddonIdentities[a.Name], err = eks.AddonIdentities(ctx, c, a); err != nil {
			return fmt.Errorf("pod identity associations of %s: %w", a.Name, err)
		}
	}
	if e.AccessEntries, err = readAll(ctx, c, e, eks.AccessEntryKind, parts.AccessEntries, eks.AccessEntryOf); err != nil {
		return fmt.Errorf("access entries: %w", err)
	}
	e.leaveCreator()
	if e.PodIdentities, err = readAll(ctx, c, e, eks.PodIdentityKind, parts.PodIdentities, eks.PodIdentityOf); err != nil {
		return fmt.Errorf("pod identity associations: %w", err)
	}
	return e.readPodRoles(ctx, c)
}

// leaveCreator removes the access entry that EKS has made for who created the cluster
// ("bootstrapClusterCreatorAdminPermissions", EKS, CreateCluster): it has no tags, and a manifest need not
// have it. If several look like it, somebody has added others.
func (e *EKS) leaveCreator() {
	isCreators := func(a eks.AccessEntryState) bool {
		return e.untagged[plan.ID(eks.AccessEntryKind+"/"+a.Principal)] && len(a.Tags)+len(a.Groups) == 0 && a.IsAdmin()
	}
	first := slices.IndexFunc(e.AccessEntries, isCreators)
	if first >= 0 && !slices.ContainsFunc(e.AccessEntries[first+1:], isCreators) {
		e.AccessEntries = slices.Delete(e.AccessEntries, first, first+1)
	}
}

// readPodRoles reads the policies of the roles that a run has made for pods.
func (e *EKS) readPodRoles(ctx context.Context, c *cloud.Clients) error {
	e.PodPolicies = map[string][]string{}
	path := ":role" + podrole.Path(e.Cluster.Name, c.Region)
	for _, p := range slices.Concat(append(slices.Collect(maps.Values(e.AddonIdentities)), e.PodIdentities)...) {
		if !strings.Contains(p.RoleARN, path) {
			continue
		}
		if podrole.IsKarpenter(p.RoleARN, e.Cluster.Name, c.Region) {
			e.KarpenterRole = p.RoleARN
			continue
		}
		role, err := iam.GetRole(ctx, c, roleName(p.RoleARN))
		if err == nil && role != nil && role.IsOwned(c) {
			e.PodPolicies[p.RoleARN], err = iam.AttachedPolicies(ctx, c, role.Name)
		}
		if err != nil {
			return fmt.Errorf("role %s: %w", p.RoleARN, err)
		}
	}
	return nil
}

// readAll reads the parts of a kind.
func readAll[S interface{ IsOwned(*cloud.Clients) bool }](
	ctx context.Context,
	c *cloud.Clients,
	e *EKS,
	kind string,
	names []string,
	get func(ctx context.Context, c *cloud.Clients, cluster, name string) (*S, error),
) (out []S, err error) {
	for _, name := range names {
		s, err := get(ctx, c, e.Cluster.Name, name)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		out = append(out, *s)
		e.untagged[plan.ID(kind+"/"+name)] = e.Owned && !(*s).IsOwned(c)
	}
	return out, nil
}

func (e *EKS) readProviders(ctx context.Context, c *cloud.Clients) error {
	names, err := eks.IdentityProviderNames(ctx, c, e.Cluster.Name)
	if cloud.Denied(err) { // the policy of runs does not allow it
		e.Unread = append(e.Unread, "an identity provider for users, because the caller lacks eks:ListIdentityProviderConfigs")
	} else if err != nil {
		return fmt.Errorf("identity providers: %w", err)
	}
	found, err := readAll(ctx, c, e, eks.IdentityProviderKind, names, eks.IdentityProviderByName)
	if err != nil {
		return fmt.Errorf("identity provider: %w", err)
	}
	if len(found) > 0 { // EKS allows one
		e.Identity = &found[0]
	}
	if e.OIDC, err = eks.OIDCProviderOf(ctx, c, e.Cluster); err != nil {
		return fmt.Errorf("OIDC provider: %w", err)
	}
	e.untagged[eks.OIDCProviderKind+"/"] = e.Owned && e.OIDC != nil && !e.OIDC.IsOwned(c)
	return nil
}

// readRoles reads the policies of the roles that were made with the cluster.
func (e *EKS) readRoles(ctx context.Context, c *cloud.Clients) error {
	e.Policies = map[string][]string{}
	arns := []string{e.Cluster.RoleARN}
	for _, g := range e.NodeGroups {
		arns = append(arns, g.RoleARN)
	}
	for _, arn := range arns {
		role, err := iam.GetRole(ctx, c, roleName(arn))
		if err == nil && role != nil && role.IsOwned(c) {
			e.Policies[arn], err = iam.AttachedPolicies(ctx, c, role.Name)
		}
		if err != nil {
			return fmt.Errorf("role %s: %w", roleName(arn), err)
		}
	}
	return nil
}

// OwnsRoles reports whether roles were made with the cluster. Runs manage them only if CAPA's
// feature gate EKSEnableIAM is on.
func (e *EKS) OwnsRoles() bool { return len(e.Policies) > 0 }

// additionalPolicies lists the policies of a role of the cluster that not every role of its
// kind has.
func (e *EKS) additionalPolicies(arn string, usual []string) (out []any) {
	for _, p := range e.Policies[arn] {
		if !slices.Contains(usual, p[strings.LastIndexByte(p, '/')+1:]) {
			out = append(out, p)
		}
	}
	return out
}

func (e *EKS) readNetwork(ctx context.Context, c *cloud.Clients) (err error) {
	e.Network, err = readNetwork(ctx, c, e.Cluster.VPC)
	return err
}

// ownsVPC reports whether the VPC was made with the cluster, and is deleted with it.
func (e *EKS) ownsVPC() bool { return e.Network.Owned }

// Without removes a part of the cluster by its kind and name. It
// reports whether there was one. A run then leaves the part alone, if it is not owned.
func (e *EKS) Without(kind, name string) bool {
	before := e.parts()
	switch kind {
	case eks.NodeGroupKind:
		e.NodeGroups = slices.DeleteFunc(e.NodeGroups, func(s eks.NodeGroupState) bool { return s.Name == name })
	case eks.FargateProfileKind:
		e.Fargate = slices.DeleteFunc(e.Fargate, func(s eks.FargateProfileState) bool { return s.Name == name })
	case eks.AddonKind:
		e.Addons = slices.DeleteFunc(e.Addons, func(s eks.AddonState) bool { return s.Name == name })
	case eks.AccessEntryKind:
		e.AccessEntries = slices.DeleteFunc(e.AccessEntries, func(s eks.AccessEntryState) bool { return s.Principal == name })
	case eks.PodIdentityKind:
		e.PodIdentities = slices.DeleteFunc(e.PodIdentities, func(s eks.PodIdentityState) bool { return s.Account() == name })
	case eks.OIDCProviderKind:
		had := e.OIDC != nil
		e.OIDC = nil
		return had
	case eks.IdentityProviderKind:
		had := e.Identity != nil
		e.Identity = nil
		return had
	}
	return e.parts() < before
}

// parts is how many parts the cluster has that can be left out.
func (e *EKS) parts() int {
	return len(e.NodeGroups) + len(e.Fargate) + len(e.Addons) + len(e.AccessEntries) + len(e.PodIdentities)
}
