package eks

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// FargateProfile selects the pods that run on Fargate (CAPA: AWSFargateProfile). EKS
// creates or deletes only one profile of a cluster at a time.
type FargateProfile struct {
	Cluster   *graph.Ref[ClusterState]
	Name      string
	Role      *graph.Ref[iam.RoleState]
	Subnets   []*graph.Ref[ec2.SubnetState] // private ones
	SubnetIDs []string                      // from the manifest
	Selectors []Selector
	Adopt     bool // it may be somebody else's: it gets the tags
	Tags      cloud.Tags
}

// Selector selects pods by namespace and labels.
type Selector struct {
	Namespace string
	Labels    map[string]string
}

// String prints a selector.
func (s Selector) String() string {
	return strings.Join(append([]string{s.Namespace}, pairs(s.Labels)...), " ")
}

// FargateProfileState is a Fargate profile, as AWS describes it.
type FargateProfileState struct {
	identity.Object       // the ID is its ARN
	Cluster               string
	Name, Status, RoleARN string
	Subnets               []string
	Selectors             []Selector
	Issues                []string // "CODE: message"
	Foreign               bool     // somebody else has made it
}

// Failure implements graph.Failing.
func (s FargateProfileState) Failure() string {
	switch types.FargateProfileStatus(s.Status) {
	case types.FargateProfileStatusCreateFailed, types.FargateProfileStatusDeleteFailed:
		return condition(s.Status, s.Issues)
	case types.FargateProfileStatusActive, types.FargateProfileStatusCreating, types.FargateProfileStatusDeleting:
	}
	return ""
}

// Deleting implements graph.Deleting.
func (s FargateProfileState) Deleting() bool {
	return s.Status == string(types.FargateProfileStatusDeleting)
}

// IsOwned reports whether the cluster owns the profile. The tag with the name of its Cluster
// object is enough: CAPA removes others.
func (s FargateProfileState) IsOwned(c *cloud.Clients) bool { return ownedByName(s.Object, c) }

var (
	_ graph.Checked                      = (*FargateProfile)(nil)
	_ graph.Managed[FargateProfileState] = (*FargateProfile)(nil)
	_ graph.Timed                        = (*FargateProfile)(nil)
	_ graph.Failing                      = FargateProfileState{}
)

// Needs implements graph.Desired.
func (f *FargateProfile) Needs() []graph.Edge {
	needs := append(graph.On(f.Cluster), graph.On(f.Role)...)
	for _, s := range f.Subnets {
		needs = append(needs, graph.On(s)...)
	}
	return needs
}

// Takes implements graph.Timed.
func (f *FargateProfile) Takes() (create, remove time.Duration) {
	return fargateProfileCreateTime, fargateProfileDeleteTime
}

// Identify implements graph.Identified. A deletion does not delete a profile that somebody else has made.
func (f *FargateProfile) Identify(ctx context.Context, c *cloud.Clients, _ *FargateProfileState) (*FargateProfileState, error) {
	return identity.FindOwned(ctx, c, f.read)
}

// read returns the profile, whoever has made it.
func (f *FargateProfile) read(ctx context.Context, c *cloud.Clients) (*FargateProfileState, error) {
	cluster, ok := f.Cluster.Found()
	if !ok {
		return nil, nil
	}
	return FargateProfileByName(ctx, c, cluster.Name, f.Name)
}

// Find implements graph.Desired.
func (f *FargateProfile) Find(ctx context.Context, c *cloud.Clients) (*FargateProfileState, error) {
	s, err := f.read(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	have := *s
	have.Foreign = !have.IsOwned(c)
	return &have, nil
}

// Diff implements graph.Desired. EKS can change only the tags of a profile. One that it could
// not create is deleted and created again.
func (f *FargateProfile) Diff(have *FargateProfileState) (d plan.Diff) {
	if have.Foreign && !f.Adopt {
		return notOwned()
	}
	if have.Status == string(types.FargateProfileStatusCreateFailed) {
		d.Set("status", have.Failure(), "created again")
		return d
	}
	d.Await("status", have.Status, string(types.FargateProfileStatusActive))
	fixedRole("role", have.RoleARN, f.Role, &d)
	d.Fixed("subnets", sortedList(have.Subnets), idList(append(identity.CloudIDs(f.Subnets), f.SubnetIDs...)))
	d.Fixed("selectors", selectorList(have.Selectors), selectorList(f.Selectors))
	d.Advise("set spec.profileName of the AWSFargateProfile to another name: a profile with the new name is created and this one is deleted")
	d.Tags(have.Tags, f.Tags)
	return d
}

func selectorList(all []Selector) string {
	var out []string
	for _, s := range all {
		out = append(out, s.String())
	}
	slices.Sort(out)
	return sortedList(slices.Compact(out))
}

// Create implements graph.Creator.
func (f *FargateProfile) Create(ctx context.Context, c *cloud.Clients) (*FargateProfileState, error) {
	cluster, _ := f.Cluster.Found()
	in := &eks.CreateFargateProfileInput{
		ClusterName:         &cluster.Name,
		FargateProfileName:  &f.Name,
		PodExecutionRoleArn: aws.String(f.Role.CloudID()),
		Subnets: append(
			identity.CloudIDs(f.Subnets),
			f.SubnetIDs...),
		Tags:               f.Tags,
		ClientRequestToken: c.Token("fargate-profile", cluster.Name, f.Name, f.Role.CloudID()),
	}
	for _, s := range f.Selectors {
		in.Selectors = append(in.Selectors, types.FargateProfileSelector{Namespace: aws.String(s.Namespace), Labels: s.Labels})
	}
	out, err := c.EKS.CreateFargateProfile(ctx, in)
	if err != nil {
		return nil, err
	}
	s := fargateProfileState(out.FargateProfile)
	s.Cluster, s.Tags = cluster.Name, f.Tags
	return &s, nil
}

// Update implements graph.Updater.
func (f *FargateProfile) Update(ctx context.Context, c *cloud.Clients, have *FargateProfileState, d plan.Diff) (*FargateProfileState, error) {
	after := *have
	if d.Has("status") {
		after.Status = string(types.FargateProfileStatusDeleting)
		return &after, f.Delete(ctx, c, have)
	}
	var err error
	after.Object, err = changeTags(ctx, c, have.Object, f.Tags, d)
	after.Foreign = false
	return &after, err
}

// Delete implements graph.Deleter.
func (f *FargateProfile) Delete(ctx context.Context, c *cloud.Clients, have *FargateProfileState) error {
	if have.Deleting() {
		return nil
	}
	_, err := c.EKS.DeleteFargateProfile(ctx, &eks.DeleteFargateProfileInput{ClusterName: &have.Cluster, FargateProfileName: &have.Name})
	return err // EKS deletes one profile at a time
}

// How long EKS usually takes to create and to delete a Fargate profile.
const (
	fargateProfileCreateTime = 2 * time.Minute
	fargateProfileDeleteTime = 2 * time.Minute
)

// FargateProfileByName returns a profile, or nil.
func FargateProfileByName(ctx context.Context, c *cloud.Clients, cluster, name string) (*FargateProfileState, error) {
	return cloud.Remember(ctx, c, "Fargate profile "+name, func(ctx context.Context) (*FargateProfileState, error) {
		out, err := c.EKS.DescribeFargateProfile(ctx, &eks.DescribeFargateProfileInput{ClusterName: &cluster, FargateProfileName: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := fargateProfileState(out.FargateProfile)
		s.Cluster = cluster
		return &s, nil
	})
}

func fargateProfileState(x *types.FargateProfile) FargateProfileState {
	s := FargateProfileState{
		Object: identity.Object{
			ID:   aws.ToString(x.FargateProfileArn),
			Tags: x.Tags,
		},
		Name:    aws.ToString(x.FargateProfileName),
		Status:  string(x.Status),
		RoleARN: aws.ToString(x.PodExecutionRoleArn),
		Subnets: x.Subnets,
	}
	if x.Health != nil {
		for _, i := range x.Health.Issues {
			s.Issues = append(s.Issues, string(i.Code)+": "+aws.ToString(i.Message))
		}
	}
	for _, sel := range x.Selectors {
		s.Selectors = append(s.Selectors, Selector{aws.ToString(sel.Namespace), sel.Labels})
	}
	return s
}

// FargateProfileKind is the kind of Fargate profiles.
const FargateProfileKind = "fargate-profile"

// fargateProfileKind declares Fargate profiles.
func fargateProfileKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: FargateProfileKind, Rehearsed: true, Area: plan.AreaWorkers, ByNameOnly: true, RunsPods: true, OneByOne: true,
		ReadActions: []string{"eks:DescribeFargateProfile", "eks:ListFargateProfiles"}, Statement: kind.EKS,
		Actions: []string{"eks:CreateFargateProfile", "eks:DeleteFargateProfile", "eks:TagResource", "eks:UntagResource"},
	}, kind.Functions[FargateProfileState]{
		Delete: &FargateProfile{},
		ID:     func(s FargateProfileState) plan.ID { return plan.ID(FargateProfileKind + "/" + s.Name) },
		List:   partsOf(fargateProfileNames, FargateProfileByName),
		Find: func(ctx context.Context, c *cloud.Clients, s FargateProfileState) (*FargateProfileState, error) {
			return FargateProfileByName(ctx, c, s.Cluster, s.Name)
		},
		Refers: func(s FargateProfileState) []string {
			return append(slices.Clone(s.Subnets), clusterAlias(s.Cluster), s.RoleARN)
		},
		Status: func(s FargateProfileState) (state, detail string) { return strings.ToLower(s.Status), "" },
	})
}

// fargateProfileNames lists the Fargate profiles of a cluster.
func fargateProfileNames(ctx context.Context, c *cloud.Clients, cluster string) ([]string, error) {
	return cloud.Remember(ctx, c, "names of Fargate profiles", func(ctx context.Context) ([]string, error) {
		p := eks.NewListFargateProfilesPaginator(c.EKS, &eks.ListFargateProfilesInput{ClusterName: &cluster})
		out, err := cloud.Pages(ctx, p, func(o *eks.ListFargateProfilesOutput) []string { return o.FargateProfileNames })
		return out, cloud.IgnoreNotFound(err)
	})
}

// Check implements graph.Checked: with an access entry of another type, no pod starts.
func (f *FargateProfile) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	return checkEntry(ctx, c, f.Cluster, f.Role, EntryOfFargate)
}
