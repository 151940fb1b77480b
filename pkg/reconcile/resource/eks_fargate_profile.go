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

// EKSFargateProfile says which pods run on Fargate (CAPA: AWSFargateProfile;
// facts E.11). EKS makes or removes one at a time.
type EKSFargateProfile struct {
	Cluster   *graph.Ref[EKSClusterState]
	Name      string
	Role      *graph.Ref[IAMRoleState]
	Subnets   []*graph.Ref[SubnetState] // private ones
	SubnetIDs []string                  // that the manifest names
	Selectors []EKSSelector
	Tags      cloud.Tags
}

// EKSSelector selects pods by namespace and labels.
type EKSSelector struct {
	Namespace string
	Labels    map[string]string
}

// String prints a selector.
func (s EKSSelector) String() string {
	return strings.Join(append([]string{s.Namespace}, pairs(s.Labels)...), " ")
}

// EKSFargateProfileState is a profile that exists.
type EKSFargateProfileState struct {
	Object                // the ID is its ARN
	Name, Status, RoleARN string
	Subnets               []string
	Selectors             []EKSSelector
}

var _ graph.Resource[EKSFargateProfileState] = (*EKSFargateProfile)(nil)

// Needs implements graph.Resource.
func (f *EKSFargateProfile) Needs() []graph.Edge {
	needs := append(graph.On(f.Cluster), graph.On(f.Role)...)
	for _, s := range f.Subnets {
		needs = append(needs, graph.On(s)...)
	}
	return needs
}

// Takes implements graph.Timed.
func (f *EKSFargateProfile) Takes() (create, remove time.Duration) {
	return eksFargateTakes, eksFargateGoes
}

// Find implements graph.Resource.
func (f *EKSFargateProfile) Find(ctx context.Context, c *cloud.Clients) (*EKSFargateProfileState, error) {
	cluster, ok := f.Cluster.Found()
	if !ok {
		return nil, nil //nolint:nilnil // none is Find's documented answer
	}
	return fargateNamed(ctx, c, cluster.Name, f.Name)
}

// Diff implements graph.Resource. Nothing of a profile can be changed but its
// tags.
func (f *EKSFargateProfile) Diff(have *EKSFargateProfileState) (d graph.Diff) {
	if have.Status == string(types.FargateProfileStatusCreateFailed) {
		d.Fixed("status", have.Status, string(types.FargateProfileStatusActive))
		d.Advise("EKS could not make it; delete the profile and run this again")
		return d
	}
	d.Await("status", have.Status, string(types.FargateProfileStatusActive))
	d.Fixed("role", have.RoleARN, f.Role.CloudID())
	d.Fixed("subnets", sortedList(have.Subnets), idList(append(idsOf(f.Subnets), f.SubnetIDs...)))
	d.Fixed("selectors", selectorList(have.Selectors), selectorList(f.Selectors))
	d.Advise("set spec.profileName of the AWSFargateProfile to another name: the profile of the new name is made, this one removed")
	d.Tags(have.Tags, f.Tags)
	return d
}

func selectorList(all []EKSSelector) string {
	var out []string
	for _, s := range all {
		out = append(out, s.String())
	}
	return sortedList(out)
}

// Create implements graph.Resource.
func (f *EKSFargateProfile) Create(ctx context.Context, c *cloud.Clients) (*EKSFargateProfileState, error) {
	cluster, _ := f.Cluster.Found()
	in := &eks.CreateFargateProfileInput{
		ClusterName: &cluster.Name, FargateProfileName: &f.Name, PodExecutionRoleArn: aws.String(f.Role.CloudID()),
		Subnets: append(idsOf(f.Subnets), f.SubnetIDs...), Tags: f.Tags, ClientRequestToken: c.Token("fargate-profile", cluster.Name, f.Name, f.Role.CloudID()),
	}
	for _, s := range f.Selectors {
		in.Selectors = append(in.Selectors, types.FargateProfileSelector{Namespace: aws.String(s.Namespace), Labels: s.Labels})
	}
	out, err := c.EKS.CreateFargateProfile(ctx, in)
	if err != nil {
		return nil, eksNotYet(err)
	}
	s := fargateSeen(out.FargateProfile)
	s.Tags = f.Tags
	return &s, nil
}

// Update implements graph.Resource.
func (f *EKSFargateProfile) Update(ctx context.Context, c *cloud.Clients, have *EKSFargateProfileState, _ graph.Diff) (*EKSFargateProfileState, error) {
	after := *have
	var err error
	after.Object, err = eksRetagged(ctx, c, have.Object, f.Tags)
	return &after, err
}

// Delete implements graph.Resource.
func (f *EKSFargateProfile) Delete(ctx context.Context, c *cloud.Clients, have *EKSFargateProfileState) error {
	cluster, _ := f.Cluster.Found()
	return deleteFargate(ctx, c, cluster.Name, have)
}

func deleteFargate(ctx context.Context, c *cloud.Clients, cluster string, have *EKSFargateProfileState) error {
	if have.Status == string(types.FargateProfileStatusDeleting) {
		return nil
	}
	_, err := c.EKS.DeleteFargateProfile(ctx, &eks.DeleteFargateProfileInput{ClusterName: &cluster, FargateProfileName: &have.Name})
	return eksNotYet(err) // one at a time
}

// fargateNamed returns a profile, or nil.
func fargateNamed(ctx context.Context, c *cloud.Clients, cluster, name string) (*EKSFargateProfileState, error) {
	return cloud.Remember(ctx, c, "Fargate profile "+name, func(ctx context.Context) (*EKSFargateProfileState, error) {
		out, err := c.EKS.DescribeFargateProfile(ctx, &eks.DescribeFargateProfileInput{ClusterName: &cluster, FargateProfileName: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := fargateSeen(out.FargateProfile)
		return &s, nil
	})
}

func fargateSeen(x *types.FargateProfile) EKSFargateProfileState {
	s := EKSFargateProfileState{
		Object: Object{aws.ToString(x.FargateProfileArn), x.Tags}, Name: aws.ToString(x.FargateProfileName), Status: string(x.Status), RoleARN: aws.ToString(x.PodExecutionRoleArn), Subnets: x.Subnets,
	}
	for _, sel := range x.Selectors {
		s.Selectors = append(s.Selectors, EKSSelector{aws.ToString(sel.Namespace), sel.Labels})
	}
	return s
}
