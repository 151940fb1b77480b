package eks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Addon is an EKS add-on (CAPA: AWSManagedControlPlane spec.addons).
type Addon struct {
	Cluster       *graph.Ref[ClusterState]
	Name, Version string // Version "" is the default version at creation, and any version later
	Configuration string // JSON or YAML
	RoleARN       string
	Conflicts     string // OVERWRITE, NONE or PRESERVE
	// Identities are the pod identity associations that it owns, if SetsIdentities is set; else they are not changed.
	Identities     []AddonIdentity
	SetsIdentities bool
	Preserve       bool // keep its Kubernetes objects when it is deleted
	Nodes          bool // the cluster has nodes for its pods, or a Fargate profile selects them
	Adopt          bool // it may be somebody else's: it gets the tags
	Tags           cloud.Tags
}

// PreserveTag is the tag of an add-on whose Kubernetes objects stay when it is deleted. It
// tells this to a run whose manifest does not have the add-on any more.
const PreserveTag = "clusterawsadm/preserve-on-delete"

// AddonState is an EKS add-on, as AWS describes it.
type AddonState struct {
	identity.Object                               // the ID is its ARN
	Cluster                                       string
	Name, Status, Version, Configuration, RoleARN string
	Issues                                        []string // "CODE: message"
	Foreign                                       bool     // somebody else has made it
	Associations                                  []string // ARNs of the pod identity associations that it owns
	Identities                                    []string // the same as text, if the manifest sets them
	lastUpdate
	final bool // one of the issues does not pass by itself
}

// condition returns the status and EKS's reasons for it.
func (s AddonState) condition() string {
	if s.Status == string(types.AddonStatusActive) {
		return s.Status
	}
	return condition(s.Status, s.Issues)
}

// condition returns a status and EKS's reasons for it.
func condition(status string, issues []string) string {
	return strings.Join(slices.DeleteFunc([]string{status, strings.Join(issues, "; ")}, func(s string) bool { return s == "" }), ": ")
}

// Failure implements graph.Failing.
func (s AddonState) Failure() string {
	switch types.AddonStatus(s.Status) {
	case types.AddonStatusCreateFailed, types.AddonStatusUpdateFailed, types.AddonStatusDeleteFailed:
		return s.condition()
	case types.AddonStatusDegraded:
		if s.final {
			return s.condition()
		}
	case types.AddonStatusActive, types.AddonStatusCreating, types.AddonStatusUpdating, types.AddonStatusDeleting:
	}
	return ""
}

// Deleting implements graph.Deleting.
func (s AddonState) Deleting() bool { return s.Status == string(types.AddonStatusDeleting) }

// IsOwned reports whether the cluster owns the add-on.
func (s AddonState) IsOwned(c *cloud.Clients) bool { return ownedByName(s.Object, c) }

var (
	_ graph.Checked              = (*Addon)(nil)
	_ graph.Doubted              = (*Addon)(nil)
	_ graph.Managed[AddonState]  = (*Addon)(nil)
	_ graph.Follower[AddonState] = (*Addon)(nil)
	_ graph.Timed                = (*Addon)(nil)
	_ graph.Failing              = AddonState{}
)

// Needs implements graph.Desired.
func (a *Addon) Needs() []graph.Edge {
	needs := graph.DeletedWith(a.Cluster)
	for _, x := range a.Identities {
		needs = append(needs, graph.On(x.Role)...)
	}
	return needs
}

// Takes implements graph.Timed.
func (a *Addon) Takes() (create, remove time.Duration) { return addonCreateTime, addonDeleteTime }

// Find implements graph.Desired.
func (a *Addon) Find(ctx context.Context, c *cloud.Clients) (*AddonState, error) {
	cluster, ok := a.Cluster.Found()
	if !ok {
		return nil, nil
	}
	s, err := AddonByName(ctx, c, cluster.Name, a.Name)
	if s == nil || err != nil {
		return nil, err
	}
	have := *s
	have.Foreign = !have.IsOwned(c)
	err = a.readIdentities(ctx, c, &have)
	return &have, err
}

// Follow implements graph.Follower. An update that has failed is an error.
func (a *Addon) Follow(ctx context.Context, c *cloud.Clients, last *AddonState) (*AddonState, error) {
	s, err := a.Find(ctx, c)
	if s == nil || err != nil {
		return s, err
	}
	have := *s
	have.lastUpdate, err = last.follow(ctx, c, have.Status, eks.DescribeUpdateInput{Name: &s.Cluster, AddonName: &a.Name})
	return &have, err
}

// Diff implements graph.Desired. Without nodes, the status of an add-on with pods stays
// DEGRADED.
func (a *Addon) Diff(have *AddonState) (d plan.Diff) {
	if have.Foreign && !a.Adopt {
		return notOwned()
	}
	if have.ID == "" && a.Conflicts == string(types.ResolveConflictsPreserve) {
		d.Set("conflictResolution", "", "none: EKS knows preserve for updates only")
	}
	if a.Version != "" {
		d.Set("version", have.Version, a.Version)
	}
	d.Set("configuration", withoutEnd(have.Configuration), withoutEnd(a.Configuration))
	if a.SetsIdentities {
		d.Lines("podIdentityAssociation", have.Identities, a.identityLines())
	}
	if a.RoleARN == "" && len(a.Identities) > 0 {
		d.Set("serviceAccountRoleARN", have.RoleARN, "") // EKS removes it for the associations
	} else if a.RoleARN == "" {
		d.Fixed("serviceAccountRoleARN", have.RoleARN, "")
		d.Advise(
			"EKS keeps the role of an add-on when an update names none: set it again, or name another role, or associate roles by the annotation clusterawsadm/addon-pod-identities, which replace it; or make the add-on again: set preserveOnDelete, so that its pods stay, run the command, remove the add-on from spec.addons, run it, and add the add-on again",
		)
	} else {
		d.Set("serviceAccountRoleARN", have.RoleARN, a.RoleARN)
	}
	switch active := string(types.AddonStatusActive); {
	case have.Failure() != "":
		d.Set("status", have.condition(), active) // another update may succeed
	case have.Status == string(types.AddonStatusDegraded) && (!a.Nodes || len(d) > 0): // EKS takes the update, which may be the cure
	default:
		d.Await("status", have.condition(), active)
	}
	d.Tags(have.Tags, a.tags(have))
	return d
}

// tags returns the desired tags. PreserveTag is removed if the manifest does not set
// preserveOnDelete any more.
func (a *Addon) tags(have *AddonState) cloud.Tags {
	switch _, noted := have.Tags[PreserveTag]; {
	case a.Preserve:
		return a.Tags.With(cloud.Tags{PreserveTag: "true"})
	case noted:
		return a.Tags.With(cloud.Tags{PreserveTag: "false"})
	}
	return a.Tags
}

// Create implements graph.Creator.
func (a *Addon) Create(ctx context.Context, c *cloud.Clients) (*AddonState, error) {
	cluster, _ := a.Cluster.Found()
	tags := a.tags(&AddonState{})
	in := &eks.CreateAddonInput{
		ClusterName: &cluster.Name, AddonName: &a.Name, ResolveConflicts: types.ResolveConflicts(a.Conflicts), Tags: tags,
		ClientRequestToken: c.Token("addon", cluster.Name, a.Name), PodIdentityAssociations: a.identities(),
	}
	if a.Conflicts == string(types.ResolveConflictsPreserve) {
		in.ResolveConflicts = types.ResolveConflictsNone // CreateAddon does not accept PRESERVE
	}
	set := func(to **string, value string) {
		if value != "" {
			*to = &value
		}
	}
	set(&in.AddonVersion, a.Version)
	set(&in.ConfigurationValues, a.Configuration)
	set(&in.ServiceAccountRoleArn, a.RoleARN)
	out, err := c.EKS.CreateAddon(ctx, in)
	if err != nil {
		return nil, err
	}
	s := addonState(out.Addon)
	s.Cluster, s.Tags = cluster.Name, tags
	return &s, nil
}

// Update implements graph.Updater.
func (a *Addon) Update(ctx context.Context, c *cloud.Clients, have *AddonState, d plan.Diff) (*AddonState, error) {
	after := *have
	if d.HasTags() {
		var err error
		after.Object, err = changeTags(ctx, c, have.Object, a.tags(have), d)
		after.Foreign = false
		return &after, err
	}
	cluster, _ := a.Cluster.Found()
	in := &eks.UpdateAddonInput{
		ClusterName: &cluster.Name, AddonName: &a.Name, ResolveConflicts: types.ResolveConflicts(a.Conflicts), ConfigurationValues: &a.Configuration,
	}
	if d.Has("podIdentityAssociation", "serviceAccountRoleARN") {
		in.PodIdentityAssociations = a.identities()
	}
	if a.Version != "" {
		in.AddonVersion = &a.Version
	}
	if a.RoleARN != "" {
		in.ServiceAccountRoleArn = &a.RoleARN
	}
	out, err := c.EKS.UpdateAddon(ctx, in)
	if err != nil {
		return nil, err
	}
	after.Status, after.lastUpdate = string(types.AddonStatusUpdating), begun(out.Update)
	return &after, nil
}

// Delete implements graph.Deleter. Without preserve, EKS deletes the Kubernetes objects too.
func (a *Addon) Delete(ctx context.Context, c *cloud.Clients, have *AddonState) error {
	if have.Deleting() {
		return nil
	}
	_, err := c.EKS.DeleteAddon(ctx, &eks.DeleteAddonInput{ClusterName: &have.Cluster, AddonName: &have.Name, Preserve: have.Preserved()})
	return err
}

// Preserved reports whether the Kubernetes objects of the add-on stay when it is deleted.
func (s AddonState) Preserved() bool { return s.Tags[PreserveTag] == "true" }

// How long EKS usually takes to create and to delete an add-on.
const (
	addonCreateTime = time.Minute
	addonDeleteTime = time.Minute
)

// AddonByName returns an add-on, or nil.
func AddonByName(ctx context.Context, c *cloud.Clients, cluster, name string) (*AddonState, error) {
	return cloud.Remember(ctx, c, "add-on "+name, func(ctx context.Context) (*AddonState, error) {
		out, err := c.EKS.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: &cluster, AddonName: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := addonState(out.Addon)
		s.Cluster = cluster
		return &s, nil
	})
}

func addonState(x *types.Addon) AddonState {
	s := AddonState{
		Object: identity.Object{
			ID:   aws.ToString(x.AddonArn),
			Tags: x.Tags,
		},
		Name:          aws.ToString(x.AddonName),
		Status:        string(x.Status),
		Version:       aws.ToString(x.AddonVersion),
		Configuration: aws.ToString(x.ConfigurationValues),
		RoleARN:       aws.ToString(x.ServiceAccountRoleArn),
		Associations:  x.PodIdentityAssociations,
	}
	if x.Health != nil {
		for _, i := range x.Health.Issues {
			s.Issues = append(s.Issues, string(i.Code)+": "+aws.ToString(i.Message)+remedyOf(i.Code))
			s.final = s.final || isFinal(i.Code)
		}
	}
	return s
}

// isFinal reports whether an issue stays until somebody changes the add-on or the cluster.
// Others pass, as a lack of nodes does.
func isFinal(code types.AddonIssueCode) bool {
	return slices.Contains([]types.AddonIssueCode{
		types.AddonIssueCodeConfigurationConflict,
		types.AddonIssueCodeUnsupportedAddonModification,
		types.AddonIssueCodeAddonSubscriptionNeeded,
		types.AddonIssueCodeAddonPermissionFailure,
	}, code)
}

// remedyOf says what to do about an issue; "" if its message does.
func remedyOf(code types.AddonIssueCode) string {
	if code == types.AddonIssueCodeConfigurationConflict {
		return " (conflictResolution: overwrite replaces the objects that conflict)"
	}
	return ""
}

// AddonKind is the kind of add-ons.
const AddonKind = "addon"

// addonKind declares add-ons.
func addonKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: AddonKind, Rehearsed: true, Area: plan.AreaKubernetes,
		ReadActions: []string{
			"eks:DescribeAddon",
			"eks:DescribeAddonConfiguration",
			"eks:DescribeAddonVersions",
			"eks:DescribePodIdentityAssociation",
			"eks:DescribeUpdate",
			"eks:ListAddons",
		},
		Statement: kind.EKS,
		Actions:   []string{"eks:CreateAddon", "eks:DeleteAddon", "eks:TagResource", "eks:UntagResource", "eks:UpdateAddon"},
	}, kind.Functions[AddonState]{
		Status: func(s AddonState) (state, detail string) {
			return strings.ToLower(s.Status), kind.Join(s.Version, strings.Join(s.Issues, "; "))
		},
	})
}

// Check implements graph.Checked: EKS refuses versions that it does not offer for the Kubernetes version of the cluster, and
// configurations that do not fit the schema of the version.
func (a *Addon) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	for _, x := range a.Identities {
		if refusal := distrusts(x.Role, iam.ServicePods, true); refusal != "" {
			return refusal, nil
		}
	}
	cluster, _ := a.Cluster.Desired().(*Cluster)
	if a.Version == "" && a.Configuration == "" && len(a.Identities) == 0 || cluster == nil || cluster.Version == "" {
		return "", nil
	}
	if offered, err := cluster.offered(ctx, c); !offered || err != nil {
		return "", err // the cluster is refused: there is no add-on for its version, whichever it is
	}
	offered, err := AddonVersions(ctx, c, a.Name, cluster.Version)
	if refusal, err = a.checkVersion(cluster.Version, offered, err); refusal != "" || err != nil {
		return refusal, err
	}
	return a.checkConfiguration(ctx, c, offered)
}

// Doubts implements graph.Doubted. EKS installs some add-ons with a new cluster, and the creation of an add-on that does not overwrite
// what is there may fail (resolveConflicts of CreateAddon in the EKS API).
func (a *Addon) Doubts(ctx context.Context, c *cloud.Clients) (warnings []string, err error) {
	cluster, own := a.Cluster.Desired().(*Cluster)
	if !own || cluster.SkipSelfManagedAddons || a.Conflicts == string(types.ResolveConflictsOverwrite) ||
		!slices.Contains([]string{"vpc-cni", "coredns", "kube-proxy"}, a.Name) {
		return nil, nil
	}
	if have, err := a.Find(ctx, c); have != nil || err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf(
		"conflictResolution %s: EKS installs %s with the cluster, and the add-on may fail because of it (ConfigurationConflict): write overwrite",
		strings.ToLower(a.Conflicts),
		a.Name,
	)}, nil
}

// checkVersion compares the version with those that EKS offers, or with the error that EKS has answered.
func (a *Addon) checkVersion(kubernetes string, offered []AddonVersion, err error) (string, error) {
	switch {
	case cloud.Is(err, "InvalidParameterException"), cloud.Is(err, "ResourceNotFoundException"):
		return fmt.Sprintf("EKS has no add-on %s: 'aws eks describe-addon-versions --kubernetes-version %s' lists all", a.Name, kubernetes), nil
	case err != nil || a.Version == "" || slices.ContainsFunc(offered, func(v AddonVersion) bool { return v.Name == a.Version }):
		return "", err
	case len(offered) == 0:
		return fmt.Sprintf("EKS has no add-on %s for Kubernetes %s: 'aws eks describe-addon-versions --kubernetes-version %[2]s' lists all", a.Name, kubernetes), nil
	}
	var names []string
	for _, v := range offered[:min(5, len(offered))] {
		names = append(names, v.Name)
	}
	return fmt.Sprintf("EKS has no version %s of the add-on %s for Kubernetes %s: use one of %s", a.Version, a.Name, kubernetes, strings.Join(names, ", ")), nil
}

// AddonVersion is a version of an add-on that EKS offers.
type AddonVersion struct {
	Name    string // v1.20.4-eksbuild.1
	Default bool   // CreateAddon uses it if the call names none
}

// AddonVersions lists the versions of an add-on for a version of Kubernetes, the newest first.
func AddonVersions(ctx context.Context, c *cloud.Clients, addon, kubernetes string) (versions []AddonVersion, err error) {
	p := eks.NewDescribeAddonVersionsPaginator(c.EKS, &eks.DescribeAddonVersionsInput{AddonName: &addon, KubernetesVersion: &kubernetes})
	all, err := cloud.Pages(ctx, p, func(o *eks.DescribeAddonVersionsOutput) []types.AddonInfo { return o.Addons })
	for _, x := range all {
		for _, v := range x.AddonVersions {
			isDefault := slices.ContainsFunc(v.Compatibilities, func(k types.Compatibility) bool { return k.DefaultVersion })
			versions = append(versions, AddonVersion{aws.ToString(v.AddonVersion), isDefault})
		}
	}
	newestFirst(versions)
	return versions, err
}

// newestFirst sorts versions such as v1.20.4-eksbuild.1, because EKS does not promise an order. If a version has another form, the order stays
// as it is.
func newestFirst(versions []AddonVersion) {
	parsed := map[string]semver.Version{}
	for _, v := range versions {
		p, err := semver.ParseTolerant(v.Name)
		if err != nil {
			return
		}
		parsed[v.Name] = p
	}
	slices.SortStableFunc(versions, func(a, b AddonVersion) int { return parsed[b.Name].Compare(parsed[a.Name]) })
}

// addonNames lists the EKS add-ons of a cluster.
func addonNames(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "names of add-ons", func(ctx context.Context) ([]string, error) {
		p := eks.NewListAddonsPaginator(c.EKS, &eks.ListAddonsInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p, func(o *eks.ListAddonsOutput) []string { return o.Addons })
		return out, cloud.IgnoreNotFound(err)
	})
}
