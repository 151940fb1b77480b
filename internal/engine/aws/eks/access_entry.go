package eks

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// AccessEntry gives an IAM principal access to an EKS cluster (CAPA:
// AWSManagedControlPlane spec.accessEntries).
type AccessEntry struct {
	Cluster   *graph.Ref[ClusterState]
	Principal string                    // ARN of the IAM principal, if Role is nil
	Role      *graph.Ref[iam.RoleState] // the principal, if it is a resource of the graph
	Type      string                    // STANDARD, EC2_LINUX…
	User      string                    // Kubernetes user name; "" for the default of EKS
	Groups    []string
	Policies  []AccessPolicy
	Tags      cloud.Tags
}

// AccessPolicy is an EKS access policy with its scope.
type AccessPolicy struct {
	ARN        string
	Namespaces []string // empty: the whole cluster
}

// String prints a policy and its scope.
func (p AccessPolicy) String() string {
	if len(p.Namespaces) == 0 {
		return p.ARN
	}
	return p.ARN + " in " + sortedList(p.Namespaces)
}

// AccessEntryState is an access entry that exists.
type AccessEntryState struct {
	identity.Object       // the ID is its ARN
	Cluster               string
	Principal, Type, User string
	Groups                []string
	Policies              []AccessPolicy
}

var _ graph.Managed[AccessEntryState] = (*AccessEntry)(nil)

// Needs implements graph.Desired.
func (a *AccessEntry) Needs() []graph.Edge {
	return append(graph.DeletedWith(a.Cluster), graph.On(a.Role)...)
}

// principal returns the ARN of the principal.
func (a *AccessEntry) principal() string {
	if a.Role != nil {
		return a.Role.CloudID()
	}
	return a.Principal
}

// Find implements graph.Desired.
func (a *AccessEntry) Find(ctx context.Context, c *cloud.Clients) (*AccessEntryState, error) {
	cluster, ok := a.Cluster.Found()
	if !ok || a.principal() == graph.Unknown {
		return nil, nil
	}
	all, err := accessPrincipals(ctx, c, cluster.Name)
	if err != nil || !slices.Contains(all, a.principal()) {
		return nil, err
	}
	return AccessEntryOf(ctx, c, cluster.Name, a.principal())
}

// Diff implements graph.Desired. EKS cannot change the type of an entry, so Update
// creates a new one.
func (a *AccessEntry) Diff(have *AccessEntryState) (d graph.Diff) {
	d.Set("type", have.Type, a.Type)
	if have.Type != "" && have.Type != a.Type {
		return d // the other fields are compared with the new entry
	}
	if a.Type != standardEntry {
		d.Tags(have.Tags, a.Tags)
		return d
	}
	if a.User != "" {
		d.Set("username", have.User, a.User)
	}
	d.Lines("group", have.Groups, a.Groups)
	d.Lines("policy", policyLines(have.Policies), policyLines(a.Policies))
	d.Tags(have.Tags, a.Tags)
	return d
}

const standardEntry = "STANDARD"

func policyLines(all []AccessPolicy) (out []string) {
	for _, p := range all {
		out = append(out, p.String())
	}
	return out
}

// Create implements graph.Creator. Update associates the policies.
func (a *AccessEntry) Create(ctx context.Context, c *cloud.Clients) (*AccessEntryState, error) {
	cluster, _ := a.Cluster.Found()
	principal := a.principal()
	in := &eks.CreateAccessEntryInput{
		ClusterName: &cluster.Name, PrincipalArn: &principal, Type: &a.Type, Tags: a.Tags, ClientRequestToken: c.Token("access-entry", cluster.Name, principal, a.Type),
	}
	if a.Type == standardEntry {
		in.KubernetesGroups = a.Groups
		if a.User != "" {
			in.Username = &a.User
		}
	}
	out, err := c.EKS.CreateAccessEntry(ctx, in)
	if err != nil {
		return nil, err
	}
	s := accessEntryState(out.AccessEntry)
	s.Cluster, s.Tags = cluster.Name, a.Tags
	return &s, nil
}

// Update implements graph.Updater.
func (a *AccessEntry) Update(ctx context.Context, c *cloud.Clients, have *AccessEntryState, d graph.Diff) (*AccessEntryState, error) {
	cluster, _ := a.Cluster.Found()
	if d.Has("type") {
		if err := a.Delete(ctx, c, have); err != nil {
			return nil, err
		}
		return a.Create(ctx, c)
	}
	if d.Has("username", "group") {
		in := &eks.UpdateAccessEntryInput{ClusterName: &cluster.Name, PrincipalArn: &have.Principal, KubernetesGroups: append([]string{}, a.Groups...)}
		if a.User != "" {
			in.Username = &a.User
		}
		if _, err := c.EKS.UpdateAccessEntry(ctx, in); err != nil {
			return nil, err
		}
	}
	if d.Has("policy") {
		if err := a.setPolicies(ctx, c, cluster.Name, have); err != nil {
			return nil, err
		}
	}
	after := *have
	if d.HasTags() {
		var err error
		if after.Object, err = setTags(ctx, c, have.Object, a.Tags); err != nil {
			return nil, err
		}
	}
	after.Groups, after.Policies = a.Groups, a.Policies
	if a.User != "" {
		after.User = a.User
	}
	return &after, nil
}

func (a *AccessEntry) setPolicies(ctx context.Context, c *cloud.Clients, cluster string, have *AccessEntryState) error {
	for _, p := range have.Policies {
		if !slices.ContainsFunc(a.Policies, func(x AccessPolicy) bool { return x.ARN == p.ARN }) {
			if _, err := c.EKS.DisassociateAccessPolicy(ctx, &eks.DisassociateAccessPolicyInput{
				ClusterName: &cluster, PrincipalArn: &have.Principal, PolicyArn: &p.ARN,
			}); cloud.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	for _, p := range a.Policies {
		if slices.Contains(policyLines(have.Policies), p.String()) {
			continue
		}
		scope := &types.AccessScope{Type: types.AccessScopeTypeCluster}
		if len(p.Namespaces) > 0 {
			scope = &types.AccessScope{Type: types.AccessScopeTypeNamespace, Namespaces: p.Namespaces}
		}
		if _, err := c.EKS.AssociateAccessPolicy(ctx, &eks.AssociateAccessPolicyInput{
			ClusterName: &cluster, PrincipalArn: &have.Principal, PolicyArn: &p.ARN, AccessScope: scope,
		}); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements graph.Deleter.
func (a *AccessEntry) Delete(ctx context.Context, c *cloud.Clients, have *AccessEntryState) error {
	_, err := c.EKS.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &have.Cluster, PrincipalArn: &have.Principal})
	return cloud.IgnoreNotFound(err)
}

// AccessEntryOf returns the access entry of a principal with its policies, or nil.
func AccessEntryOf(ctx context.Context, c *cloud.Clients, cluster, principal string) (*AccessEntryState, error) {
	return cloud.Remember(ctx, c, "access entry "+principal, func(ctx context.Context) (*AccessEntryState, error) {
		out, err := c.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &cluster, PrincipalArn: &principal})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := accessEntryState(out.AccessEntry)
		s.Cluster = cluster
		if s.Type != standardEntry || cloud.IsBrief(ctx) {
			return &s, nil
		}
		p := eks.NewListAssociatedAccessPoliciesPaginator(c.EKS, &eks.ListAssociatedAccessPoliciesInput{ClusterName: &cluster, PrincipalArn: &principal})
		s.Policies, err = cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.ListAssociatedAccessPoliciesOutput, error) { return p.NextPage(ctx) },
			func(o *eks.ListAssociatedAccessPoliciesOutput) (out []AccessPolicy) {
				for _, x := range o.AssociatedAccessPolicies {
					policy := AccessPolicy{ARN: aws.ToString(x.PolicyArn)}
					if x.AccessScope != nil {
						policy.Namespaces = x.AccessScope.Namespaces
					}
					out = append(out, policy)
				}
				return out
			})
		slices.SortStableFunc(s.Policies, func(x, y AccessPolicy) int { return strings.Compare(x.ARN, y.ARN) })
		return &s, err
	})
}

func accessEntryState(x *types.AccessEntry) AccessEntryState {
	return AccessEntryState{
		Object: identity.Object{ID: aws.ToString(x.AccessEntryArn), Tags: x.Tags}, Principal: aws.ToString(x.PrincipalArn), Type: aws.ToString(x.Type), User: aws.ToString(x.Username), Groups: x.KubernetesGroups,
	}
}

// accessEntryKind declares access entries.
func accessEntryKind() *kind.Any {
	return kind.Of(kind.Kind[AccessEntryState]{
		Name: "access-entry", Area: kind.AreaSecurity,
		ReadActions: []string{"eks:DescribeAccessEntry", "eks:ListAccessEntries", "eks:ListAssociatedAccessPolicies"}, Statement: kind.EKS,
		Actions: []string{"eks:AssociateAccessPolicy", "eks:CreateAccessEntry", "eks:DeleteAccessEntry", "eks:DisassociateAccessPolicy", "eks:TagResource", "eks:UpdateAccessEntry"},
	})
}

// accessPrincipals lists the principals of the access entries. For a cluster with the
// authentication mode CONFIG_MAP, ListAccessEntries fails and there are none.
func accessPrincipals(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "principals of access entries", func(ctx context.Context) ([]string, error) {
		p := eks.NewListAccessEntriesPaginator(c.EKS, &eks.ListAccessEntriesInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.ListAccessEntriesOutput, error) { return p.NextPage(ctx) },
			func(o *eks.ListAccessEntriesOutput) []string { return o.AccessEntries })
		if cloud.Is(err, "InvalidRequestException") {
			return nil, nil
		}
		return out, cloud.IgnoreNotFound(err)
	})
}
