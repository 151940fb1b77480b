package eks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
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
	Users     []RoleUser // nodes and pods with roles, of which one may be the principal
	Adopt     bool       // it may be somebody else's: it gets the tags
	Tags      cloud.Tags
}

// RoleUser are nodes or pods that authenticate with a role.
type RoleUser struct {
	Who  string                    // "node group batch (cluster.yaml:80 AWSManagedMachinePool/batch spec)"
	Role *graph.Ref[iam.RoleState] // nil: ARN is known
	ARN  string
	Type string // of the access entry with which EKS lets them in
}

// The types of access entries of nodes and of pods on Fargate ("Create access entries", EKS user
// guide).
const (
	EntryOfLinux   = "EC2_LINUX"
	EntryOfWindows = "EC2_WINDOWS"
	EntryOfFargate = "FARGATE_LINUX"
)

// is reports whether a principal is the role. A role that the run creates has no ARN yet.
func (u RoleUser) is(principal string) bool {
	if u.Role == nil {
		return u.ARN == principal
	}
	if arn := u.Role.CloudID(); arn != plan.Unknown {
		return arn == principal
	}
	return strings.TrimPrefix(string(u.Role.ID()), "role/") == iam.RoleName(principal)
}

// misfit says why the entry locks out nodes or pods that use its principal; "" if it does not.
func (a *AccessEntry) misfit() (want, reason string) {
	for _, u := range a.Users {
		if u.Type != a.Type && u.is(a.principal()) {
			return u.Type, fmt.Sprintf(
				"%s is the role of %s, which EKS lets in only by an access entry of the type %s: set the type %s, or name another principal",
				a.principal(),
				u.Who,
				u.Type,
				strings.ToLower(u.Type),
			)
		}
	}
	return "", ""
}

// Check implements graph.Checked: EKS refuses a principal and access policies that do not exist. A role that the run
// creates is there before the entry.
func (a *AccessEntry) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if _, refusal = a.misfit(); refusal != "" {
		return refusal, nil
	}
	refusal, err = a.missingPolicy(ctx, c)
	if refusal != "" || a.Role != nil || slices.ContainsFunc(a.Users, func(u RoleUser) bool { return u.is(a.Principal) }) {
		return refusal, err
	}
	refusal, unread := iam.MissingPrincipal(ctx, c, a.Principal)
	return refusal, cmp.Or(err, unread)
}

// missingPolicy returns a message about the first access policy of the entry that EKS does not offer; "" if it offers all of them.
func (a *AccessEntry) missingPolicy(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if len(a.Policies) == 0 {
		return "", nil
	}
	names, err := accessPolicyNames(ctx, c)
	if err != nil {
		return "", err
	}
	for _, p := range a.Policies {
		name := p.ARN[strings.LastIndex(p.ARN, "/")+1:]
		if slices.Contains(names, name) {
			continue
		}
		advice := "'aws eks list-access-policies' lists all"
		if meant := suggest.Nearest(name, names); meant != "" {
			advice = fmt.Sprintf("did you mean %s?", meant)
		}
		return fmt.Sprintf("EKS has no access policy %s: %s", p.ARN, advice), nil
	}
	return "", nil
}

// accessPolicyNames lists the access policies that EKS offers. They do not depend on the cluster.
func accessPolicyNames(ctx context.Context, c *cloud.Clients) ([]string, error) {
	return cloud.Remember(ctx, c, "names of access policies", func(ctx context.Context) (names []string, err error) {
		all, err := cloud.Pages(
			ctx,
			eks.NewListAccessPoliciesPaginator(c.EKS, &eks.ListAccessPoliciesInput{}),
			func(o *eks.ListAccessPoliciesOutput) []types.AccessPolicy {
				return o.AccessPolicies
			},
		)
		for _, p := range all {
			names = append(names, aws.ToString(p.Name))
		}
		return names, err
	})
}

// checkEntry says why an existing access entry of a role locks out the nodes or pods that use
// the role; "" if it does not. EKS makes the entry if there is none, and does not change one.
func checkEntry(ctx context.Context, c *cloud.Clients, in *graph.Ref[ClusterState], role *graph.Ref[iam.RoleState], want string) (refusal string, err error) {
	cluster, ok := in.Found()
	arn := role.CloudID()
	if !ok || arn == plan.Unknown || cluster.Authentication == string(types.AuthenticationModeConfigMap) {
		return "", nil
	}
	all, err := AccessPrincipals(ctx, c, cluster.Name)
	if err != nil || !slices.Contains(all, arn) {
		return "", err
	}
	s, err := AccessEntryOf(ctx, c, cluster.Name, arn)
	if s == nil || err != nil || s.Type == want {
		return "", err
	}
	return fmt.Sprintf(
		"the access entry of its role %s has the type %s, and EKS lets it in only by one of the type %s: delete the entry with 'aws eks delete-access-entry --cluster-name %s --principal-arn %s', or use another role",
		arn,
		s.Type,
		want,
		cluster.Name,
		arn,
	), nil
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

// AccessEntryState is an EKS access entry, as AWS describes it.
type AccessEntryState struct {
	identity.Object       // the ID is its ARN
	Cluster               string
	Principal, Type, User string
	Groups                []string
	Policies              []AccessPolicy
	Modified              time.Time
	Foreign               bool // EKS or somebody else has made it
}

// IsOwned reports whether the cluster owns the entry.
func (s AccessEntryState) IsOwned(c *cloud.Clients) bool { return ownedByName(s.Object, c) }

// adminPolicy is the access policy of administrators.
const adminPolicy = "cluster-access-policy/AmazonEKSClusterAdminPolicy"

// IsAdmin reports whether the entry permits everything in the cluster.
func (s AccessEntryState) IsAdmin() bool {
	return slices.ContainsFunc(s.Policies, func(p AccessPolicy) bool { return strings.HasSuffix(p.ARN, adminPolicy) && len(p.Namespaces) == 0 })
}

var (
	_ graph.Checked                   = (*AccessEntry)(nil)
	_ graph.Managed[AccessEntryState] = (*AccessEntry)(nil)
)

// Needs implements graph.Desired.
func (a *AccessEntry) Needs() []graph.Edge {
	needs := append(graph.DeletedWith(a.Cluster), graph.On(a.Role)...)
	for _, u := range a.Users {
		needs = append(needs, graph.Reads(u.Role)...)
	}
	return needs
}

// principal returns the ARN of the principal.
func (a *AccessEntry) principal() string {
	if a.Role != nil {
		return a.Role.CloudID()
	}
	return a.Principal
}

// Identify implements graph.Identified.
func (a *AccessEntry) Identify(ctx context.Context, c *cloud.Clients, _ *AccessEntryState) (*AccessEntryState, error) {
	s, err := a.find(ctx, c, describeAccessEntry)
	if s == nil || err != nil {
		return nil, err
	}
	have := *s
	have.Foreign = !have.IsOwned(c)
	return &have, nil
}

// find reads the entry if EKS lists it.
func (a *AccessEntry) find(ctx context.Context, c *cloud.Clients, read byName[AccessEntryState]) (*AccessEntryState, error) {
	cluster, ok := a.Cluster.Found()
	if !ok || a.principal() == plan.Unknown {
		return nil, nil
	}
	all, err := AccessPrincipals(ctx, c, cluster.Name)
	if err != nil || !slices.Contains(all, a.principal()) {
		return nil, err
	}
	return read(ctx, c, cluster.Name, a.principal())
}

// Find implements graph.Desired.
func (a *AccessEntry) Find(ctx context.Context, c *cloud.Clients) (*AccessEntryState, error) {
	s, err := a.find(ctx, c, AccessEntryOf)
	if s == nil || err != nil {
		return nil, err
	}
	have := *s
	if have.Foreign = !have.IsOwned(c); have.Foreign {
		var creators bool
		creators, err = have.isCreators(ctx, c)
		have.Foreign = !creators
	}
	return &have, err
}

// isCreators reports whether EKS has made the entry for who creates the cluster with this run:
// the caller ("bootstrapClusterCreatorAdminPermissions", EKS, CreateCluster). It has no tags.
func (s AccessEntryState) isCreators(ctx context.Context, c *cloud.Clients) (bool, error) {
	if len(s.Tags) > 0 || !s.IsAdmin() {
		return false, nil
	}
	who, err := iam.Caller(ctx, c)
	return samePrincipal(who.ARN, s.Principal), err
}

// samePrincipal reports whether a caller is a principal of IAM. The ARN of the session of a role
// has the name of the role, without its path.
func samePrincipal(caller, principal string) bool {
	head, session, isSession := strings.Cut(caller, ":assumed-role/")
	if !isSession {
		return caller == principal
	}
	name, _, _ := strings.Cut(session, "/")
	account, role, isRole := strings.Cut(principal, ":role/")
	return isRole && role[strings.LastIndex(role, "/")+1:] == name && strings.Replace(head, ":sts:", ":iam:", 1) == account
}

// Diff implements graph.Desired. EKS cannot change the type of an entry, so Update deletes the
// entry and creates a new one, if a run has made the first one. Entries of nodes that EKS has
// made stay as they are.
func (a *AccessEntry) Diff(have *AccessEntryState) (d plan.Diff) {
	if want, reason := a.misfit(); want != "" {
		d.Fixed("type", a.Type, want)
		d.Advise(reason)
		return d
	}
	if have.Foreign && !a.Adopt || have.Foreign && have.Type != a.Type {
		if have.Type == a.Type && a.Type != standardEntry {
			return nil
		}
		return notOwned()
	}
	d.Set("type", have.Type, a.Type)
	if have.Type != "" && have.Type != a.Type {
		return d // the other fields are compared with the new entry
	}
	if a.Type != standardEntry {
		if takesPolicies(a.Type) {
			d.Lines("policy", policyLines(have.Policies), policyLines(a.Policies))
		}
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

// takesPolicies reports whether EKS associates access policies with entries of a type. EC2 is that of nodes of Auto Mode ("Create a Node Class for
// Amazon EKS", EKS user guide).
func takesPolicies(entryType string) bool { return entryType == standardEntry || entryType == "EC2" }

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
		ClusterName:        &cluster.Name,
		PrincipalArn:       &principal,
		Type:               &a.Type,
		Tags:               a.Tags,
		ClientRequestToken: c.Token("access-entry", cluster.Name, principal, a.Type),
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
func (a *AccessEntry) Update(ctx context.Context, c *cloud.Clients, have *AccessEntryState, d plan.Diff) (*AccessEntryState, error) {
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
		if after.Object, err = changeTags(ctx, c, have.Object, a.Tags, d); err != nil {
			return nil, err
		}
	}
	after.Groups, after.Policies, after.Foreign = a.Groups, a.Policies, false
	if a.User != "" {
		after.User = a.User
	}
	return &after, nil
}

// setPolicies associates the new policies before it removes others: a caller who changes their
// own entry has permissions all the time.
func (a *AccessEntry) setPolicies(ctx context.Context, c *cloud.Clients, cluster string, have *AccessEntryState) error {
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
	for _, p := range have.Policies {
		if !slices.ContainsFunc(a.Policies, func(x AccessPolicy) bool { return x.ARN == p.ARN }) {
			if _, err := c.EKS.DisassociateAccessPolicy(ctx, &eks.DisassociateAccessPolicyInput{
				ClusterName: &cluster, PrincipalArn: &have.Principal, PolicyArn: &p.ARN,
			}); cloud.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// Delete implements graph.Deleter.
func (a *AccessEntry) Delete(ctx context.Context, c *cloud.Clients, have *AccessEntryState) error {
	_, err := c.EKS.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &have.Cluster, PrincipalArn: &have.Principal})
	return cloud.IgnoreNotFound(err)
}

// describeAccessEntry reads the access entry of a principal without its policies; nil if there is
// none.
func describeAccessEntry(ctx context.Context, c *cloud.Clients, cluster, principal string) (*AccessEntryState, error) {
	out, err := c.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &cluster, PrincipalArn: &principal})
	if err != nil {
		return nil, cloud.IgnoreNotFound(err)
	}
	s := accessEntryState(out.AccessEntry)
	s.Cluster = cluster
	return &s, nil
}

// AccessEntryOf returns the access entry of a principal with its policies, or nil.
func AccessEntryOf(ctx context.Context, c *cloud.Clients, cluster, principal string) (*AccessEntryState, error) {
	return cloud.Remember(ctx, c, "access entry "+principal, func(ctx context.Context) (*AccessEntryState, error) {
		s, err := describeAccessEntry(ctx, c, cluster, principal)
		if s == nil || err != nil || !takesPolicies(s.Type) {
			return s, err
		}
		p := eks.NewListAssociatedAccessPoliciesPaginator(c.EKS, &eks.ListAssociatedAccessPoliciesInput{ClusterName: &cluster, PrincipalArn: &principal})
		s.Policies, err = cloud.Pages(ctx, p, func(o *eks.ListAssociatedAccessPoliciesOutput) (out []AccessPolicy) {
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
		return s, err
	})
}

func accessEntryState(x *types.AccessEntry) AccessEntryState {
	return AccessEntryState{
		Object: identity.Object{
			ID:   aws.ToString(x.AccessEntryArn),
			Tags: x.Tags,
		},
		Principal: aws.ToString(x.PrincipalArn),
		Type:      aws.ToString(x.Type),
		User:      aws.ToString(x.Username),
		Groups:    x.KubernetesGroups,
		Modified:  aws.ToTime(x.ModifiedAt),
	}
}

// AccessEntryKind is the kind of access entries.
const AccessEntryKind = "access-entry"

// accessEntryKind declares access entries.
func accessEntryKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        AccessEntryKind,
		Rehearsed:   true,
		Area:        plan.AreaSecurity,
		ReadActions: []string{"eks:DescribeAccessEntry", "eks:ListAccessEntries", "eks:ListAccessPolicies", "eks:ListAssociatedAccessPolicies"},
		Statement:   kind.EKS,
		Actions: []string{
			"eks:AssociateAccessPolicy",
			"eks:CreateAccessEntry",
			"eks:DeleteAccessEntry",
			"eks:DisassociateAccessPolicy",
			"eks:TagResource", "eks:UntagResource",
			"eks:UpdateAccessEntry",
		},
	}, kind.Functions[AccessEntryState]{})
}

// AccessPrincipals lists the principals of the access entries. For a cluster with the
// authentication mode CONFIG_MAP, ListAccessEntries fails and there are none.
func AccessPrincipals(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "principals of access entries", func(ctx context.Context) ([]string, error) {
		p := eks.NewListAccessEntriesPaginator(c.EKS, &eks.ListAccessEntriesInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p, func(o *eks.ListAccessEntriesOutput) []string { return o.AccessEntries })
		if cloud.Is(err, "InvalidRequestException") {
			return nil, nil
		}
		return out, cloud.IgnoreNotFound(err)
	})
}
