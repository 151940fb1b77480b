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

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Addon is an EKS add-on (CAPA: AWSManagedControlPlane spec.addons).
type Addon struct {
	Cluster       *graph.Ref[ClusterState]
	Name, Version string // Version "" is the default version at creation, and any version later
	Configuration string // JSON or YAML
	RoleARN       string
	Conflicts     string // OVERWRITE, NONE or PRESERVE
	Preserve      bool   // keep its Kubernetes objects when it is deleted
	Nodes         bool   // the cluster has nodes for its pods
	Tags          cloud.Tags
}

// AddonState is an add-on that exists.
type AddonState struct {
	identity.Object                               // the ID is its ARN
	Cluster                                       string
	Name, Status, Version, Configuration, RoleARN string
	Issues                                        []string
}

var (
	_ graph.Checked             = (*Addon)(nil)
	_ graph.Managed[AddonState] = (*Addon)(nil)
	_ graph.Timed               = (*Addon)(nil)
)

// Needs implements graph.Desired.
func (a *Addon) Needs() []graph.Edge { return graph.DeletedWith(a.Cluster) }

// Takes implements graph.Timed.
func (a *Addon) Takes() (create, remove time.Duration) { return addonCreateTime, addonDeleteTime }

// Find implements graph.Desired.
func (a *Addon) Find(ctx context.Context, c *cloud.Clients) (*AddonState, error) {
	cluster, ok := a.Cluster.Found()
	if !ok {
		return nil, nil
	}
	return AddonByName(ctx, c, cluster.Name, a.Name)
}

// Diff implements graph.Desired. Without nodes, the status of an add-on with pods stays
// DEGRADED.
func (a *Addon) Diff(have *AddonState) (d graph.Diff) {
	switch types.AddonStatus(have.Status) {
	case types.AddonStatusActive:
	case types.AddonStatusCreateFailed, types.AddonStatusUpdateFailed:
		d.Set("status", have.Status+": "+strings.Join(have.Issues, "; "), string(types.AddonStatusActive))
	case types.AddonStatusDegraded:
		if a.Nodes {
			d.Await("status", have.Status, string(types.AddonStatusActive))
		}
	case types.AddonStatusCreating, types.AddonStatusUpdating, types.AddonStatusDeleting, types.AddonStatusDeleteFailed:
		fallthrough
	default:
		d.Await("status", have.Status, string(types.AddonStatusActive))
	}
	if a.Version != "" {
		d.Set("version", have.Version, a.Version)
	}
	d.Set("configuration", have.Configuration, a.Configuration)
	d.Set("serviceAccountRoleARN", have.RoleARN, a.RoleARN)
	d.Tags(have.Tags, a.Tags)
	return d
}

// Create implements graph.Creator.
func (a *Addon) Create(ctx context.Context, c *cloud.Clients) (*AddonState, error) {
	cluster, _ := a.Cluster.Found()
	in := &eks.CreateAddonInput{
		ClusterName: &cluster.Name, AddonName: &a.Name, ResolveConflicts: types.ResolveConflicts(a.Conflicts), Tags: a.Tags,
		ClientRequestToken: c.Token("addon", cluster.Name, a.Name),
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
	s.Cluster, s.Tags = cluster.Name, a.Tags
	return &s, nil
}

// Update implements graph.Updater.
func (a *Addon) Update(ctx context.Context, c *cloud.Clients, have *AddonState, d graph.Diff) (*AddonState, error) {
	after := *have
	if d.HasTags() {
		var err error
		after.Object, err = setTags(ctx, c, have.Object, a.Tags)
		return &after, err
	}
	cluster, _ := a.Cluster.Found()
	in := &eks.UpdateAddonInput{
		ClusterName: &cluster.Name, AddonName: &a.Name, ResolveConflicts: types.ResolveConflicts(a.Conflicts), ConfigurationValues: &a.Configuration,
	}
	if a.Version != "" {
		in.AddonVersion = &a.Version
	}
	if a.RoleARN != "" {
		in.ServiceAccountRoleArn = &a.RoleARN
	}
	if _, err := c.EKS.UpdateAddon(ctx, in); err != nil {
		return nil, err
	}
	after.Status = string(types.AddonStatusUpdating)
	return &after, nil
}

// Delete implements graph.Deleter.
func (a *Addon) Delete(ctx context.Context, c *cloud.Clients, have *AddonState) error {
	if have.Status == string(types.AddonStatusDeleting) {
		return nil
	}
	_, err := c.EKS.DeleteAddon(ctx, &eks.DeleteAddonInput{ClusterName: &have.Cluster, AddonName: &have.Name, Preserve: a.Preserve})
	return err
}

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
		Object: identity.Object{ID: aws.ToString(x.AddonArn), Tags: x.Tags}, Name: aws.ToString(x.AddonName), Status: string(x.Status), Version: aws.ToString(x.AddonVersion),
		Configuration: aws.ToString(x.ConfigurationValues), RoleARN: aws.ToString(x.ServiceAccountRoleArn),
	}
	if x.Health != nil {
		for _, i := range x.Health.Issues {
			s.Issues = append(s.Issues, string(i.Code)+" "+aws.ToString(i.Message))
		}
	}
	return s
}

// addonKind declares add-ons.
func addonKind() *kind.Any {
	return kind.Of(kind.Kind[AddonState]{
		Name: "addon", Area: kind.AreaKubernetes,
		Status: func(s AddonState) (state, detail string) {
			return strings.ToLower(s.Status), kind.Join(s.Version, strings.Join(s.Issues, "; "))
		},
		ReadActions: []string{"eks:DescribeAddon", "eks:DescribeAddonVersions", "eks:ListAddons"}, Statement: kind.EKS,
		Actions: []string{"eks:CreateAddon", "eks:DeleteAddon", "eks:TagResource", "eks:UpdateAddon"},
	})
}

// Check implements graph.Checked: EKS refuses versions that it does not offer for the
// Kubernetes version of the cluster.
func (a *Addon) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	cluster, _ := a.Cluster.Desired().(*Cluster)
	if a.Version == "" || cluster == nil || cluster.Version == "" {
		return "", nil
	}
	offered, err := AddonVersions(ctx, c, a.Name, cluster.Version)
	switch {
	case err != nil || slices.Contains(offered, a.Version):
		return "", err
	case len(offered) == 0:
		return fmt.Sprintf("EKS has no add-on %s for Kubernetes %s: 'aws eks describe-addon-versions --kubernetes-version %[2]s' lists all", a.Name, cluster.Version), nil
	}
	return fmt.Sprintf("EKS has no version %s of the add-on %s for Kubernetes %s: use one of %s", a.Version, a.Name, cluster.Version, strings.Join(offered[:min(5, len(offered))], ", ")), nil
}

// AddonVersions lists the versions of an add-on for a version of Kubernetes, in the order of
// EKS: the newest first.
func AddonVersions(ctx context.Context, c *cloud.Clients, addon, kubernetes string) (versions []string, err error) {
	p := eks.NewDescribeAddonVersionsPaginator(c.EKS, &eks.DescribeAddonVersionsInput{AddonName: &addon, KubernetesVersion: &kubernetes})
	all, err := cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.DescribeAddonVersionsOutput, error) { return p.NextPage(ctx) },
		func(o *eks.DescribeAddonVersionsOutput) []types.AddonInfo { return o.Addons })
	for _, x := range all {
		for _, v := range x.AddonVersions {
			versions = append(versions, aws.ToString(v.AddonVersion))
		}
	}
	return versions, err
}

// addonNames lists the EKS add-ons of a cluster.
func addonNames(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "names of add-ons", func(ctx context.Context) ([]string, error) {
		p := eks.NewListAddonsPaginator(c.EKS, &eks.ListAddonsInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.ListAddonsOutput, error) { return p.NextPage(ctx) },
			func(o *eks.ListAddonsOutput) []string { return o.Addons })
		return out, cloud.IgnoreNotFound(err)
	})
}
