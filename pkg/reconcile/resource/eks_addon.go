package resource

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// EKSAddon is an add-on that EKS installs and keeps (CAPA:
// AWSManagedControlPlane spec.addons; facts E.7).
type EKSAddon struct {
	Cluster       *graph.Ref[EKSClusterState]
	Name, Version string // version "" for EKS's default, and then for whatever there is
	Configuration string // JSON or YAML
	RoleARN       string
	Conflicts     string // OVERWRITE, NONE or PRESERVE
	Preserve      bool   // what it has installed stays when it is removed
	Nodes         bool   // there are nodes that it can run on
	Tags          cloud.Tags
}

// EKSAddonState is an add-on that is installed.
type EKSAddonState struct {
	Object                                        // the ID is its ARN
	Name, Status, Version, Configuration, RoleARN string
	Issues                                        []string
}

var _ graph.Resource[EKSAddonState] = (*EKSAddon)(nil)

// Needs implements graph.Resource.
func (a *EKSAddon) Needs() []graph.Edge { return graph.GoesWith(a.Cluster) }

// Takes implements graph.Timed.
func (a *EKSAddon) Takes() (create, remove time.Duration) { return eksAddonTakes, eksAddonGoes }

// Find implements graph.Resource. One that could not be made is removed before
// it is made again.
func (a *EKSAddon) Find(ctx context.Context, c *cloud.Clients) (*EKSAddonState, error) {
	cluster, ok := a.Cluster.Found()
	if !ok {
		return nil, nil //nolint:nilnil // none is Find's documented answer
	}
	return addonNamed(ctx, c, cluster.Name, a.Name)
}

// Diff implements graph.Resource. An add-on without nodes to run on is
// degraded, and as good as it gets.
func (a *EKSAddon) Diff(have *EKSAddonState) (d graph.Diff) {
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

// Create implements graph.Resource.
func (a *EKSAddon) Create(ctx context.Context, c *cloud.Clients) (*EKSAddonState, error) {
	cluster, _ := a.Cluster.Found()
	in := &eks.CreateAddonInput{
		ClusterName: &cluster.Name, AddonName: &a.Name, ResolveConflicts: types.ResolveConflicts(a.Conflicts), Tags: a.Tags,
		ClientRequestToken: c.Token("addon", cluster.Name, a.Name),
	}
	if a.Conflicts == string(types.ResolveConflictsPreserve) {
		in.ResolveConflicts = types.ResolveConflictsNone // there is nothing to preserve yet, and EKS does not take it
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
		return nil, eksNotYet(err)
	}
	s := addonSeen(out.Addon)
	s.Tags = a.Tags
	return &s, nil
}

// Update implements graph.Resource.
func (a *EKSAddon) Update(ctx context.Context, c *cloud.Clients, have *EKSAddonState, d graph.Diff) (*EKSAddonState, error) {
	after := *have
	if d.HasTags() {
		var err error
		after.Object, err = eksRetagged(ctx, c, have.Object, a.Tags)
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

// Delete implements graph.Resource.
func (a *EKSAddon) Delete(ctx context.Context, c *cloud.Clients, have *EKSAddonState) error {
	cluster, ok := a.Cluster.Found()
	if !ok {
		return nil
	}
	return deleteAddon(ctx, c, cluster.Name, have, a.Preserve)
}

func deleteAddon(ctx context.Context, c *cloud.Clients, cluster string, have *EKSAddonState, preserve bool) error {
	if have.Status == string(types.AddonStatusDeleting) {
		return nil
	}
	_, err := c.EKS.DeleteAddon(ctx, &eks.DeleteAddonInput{ClusterName: &cluster, AddonName: &have.Name, Preserve: preserve})
	return err
}

// addonNamed returns an add-on, or nil.
func addonNamed(ctx context.Context, c *cloud.Clients, cluster, name string) (*EKSAddonState, error) {
	return cloud.Remember(ctx, c, "add-on "+name, func(ctx context.Context) (*EKSAddonState, error) {
		out, err := c.EKS.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: &cluster, AddonName: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := addonSeen(out.Addon)
		return &s, nil
	})
}

func addonSeen(x *types.Addon) EKSAddonState {
	s := EKSAddonState{
		Object: Object{aws.ToString(x.AddonArn), x.Tags}, Name: aws.ToString(x.AddonName), Status: string(x.Status), Version: aws.ToString(x.AddonVersion),
		Configuration: aws.ToString(x.ConfigurationValues), RoleARN: aws.ToString(x.ServiceAccountRoleArn),
	}
	if x.Health != nil {
		for _, i := range x.Health.Issues {
			s.Issues = append(s.Issues, string(i.Code)+" "+aws.ToString(i.Message))
		}
	}
	return s
}
