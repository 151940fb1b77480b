package eks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Fargate is a Fargate profile.
type Fargate struct {
	Name, ARN, RoleARN, Token string
	Subnets                   []string
	Selectors                 []Selector
	Tags                      map[string]string
	Born, Ready               time.Time
	CreateFailure             string // see Faults
	Deletion
}

// Selector selects the pods that run on Fargate.
type Selector struct {
	Namespace string
	Labels    map[string]string
}

const (
	// FargateTakes is how long a profile is CREATING.
	FargateTakes = 2 * time.Minute
	// FargateDeletes is how long a profile is DELETING.
	FargateDeletes = 2 * time.Minute
)

func (svc *Service) simulateFargate() {
	core.On(svc.Account, svc.createFargate, "ClusterName", "FargateProfileName", "PodExecutionRoleArn", "Subnets", "Selectors", "Tags", "ClientRequestToken")
	core.On(svc.Account, svc.describeFargate, "ClusterName", "FargateProfileName")
	core.On(svc.Account, svc.listFargate, "ClusterName", "MaxResults", "NextToken")
	core.On(svc.Account, svc.deleteFargate, "ClusterName", "FargateProfileName")
}

func (svc *Service) settleFargate(c *Cluster) {
	before := len(c.Fargate)
	maps.DeleteFunc(c.Fargate, func(_ string, f *Fargate) bool { return f.gone(svc.Now(), FargateDeletes) })
	if len(c.Fargate) == before {
		return
	}
	// The pods of a profile are deleted with it, and created again ("Delete a Fargate profile", EKS
	// user guide).
	for _, d := range c.Addons {
		d.OnFargate = d.OnFargate && svc.onFargate(c, d)
	}
}

func (f *Fargate) status(now time.Time) types.FargateProfileStatus {
	switch {
	case f.deletionFailed(now, FargateDeletes):
		return types.FargateProfileStatusDeleteFailed
	case !f.Deleted.IsZero():
		return types.FargateProfileStatusDeleting
	case now.Before(f.Ready):
		return types.FargateProfileStatusCreating
	case f.CreateFailure != "":
		return types.FargateProfileStatusCreateFailed
	}
	return types.FargateProfileStatusActive
}

// idleFargate returns an error while another profile of the cluster is being created or
// deleted: EKS permits one at a time.
func (svc *Service) idleFargate(c *Cluster) error {
	for _, f := range core.ByKey(c.Fargate) {
		if s := f.status(svc.Now()); s == types.FargateProfileStatusCreating || s == types.FargateProfileStatusDeleting {
			return &types.ResourceInUseException{
				Message:     aws.String(fmt.Sprintf("Fargate profile %s of cluster %s is currently %s: one can be created or deleted at a time", f.Name, c.Name, s)),
				ClusterName: &c.Name,
			}
		}
	}
	return nil
}

func (svc *Service) createFargate(in *eks.CreateFargateProfileInput) (*eks.CreateFargateProfileOutput, error) {
	c, err := svc.activeCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	name := aws.ToString(in.FargateProfileName)
	if old, ok := c.Fargate[name]; ok {
		if old.Token == aws.ToString(in.ClientRequestToken) && old.Deleted.IsZero() {
			return &eks.CreateFargateProfileOutput{FargateProfile: svc.fargateOut(c, old)}, nil
		}
		return nil, busy("A Fargate Profile already exists with this name in this cluster.")
	}
	if err := svc.idleFargate(c); err != nil {
		return nil, err
	}
	f := &Fargate{
		Name: name, ARN: svc.RegionalARN("eks", "fargateprofile/"+c.Name+"/"+name+"/"+svc.Hash()[:8]), RoleARN: aws.ToString(in.PodExecutionRoleArn),
		Token: aws.ToString(in.ClientRequestToken), Subnets: slices.Clone(in.Subnets), Born: svc.Now(), Ready: svc.Now().Add(FargateTakes),
		CreateFailure: svc.state.Faults.CreateFargate,
	}
	switch {
	case !regex.Of(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`).MatchString(name):
		return nil, invalid("The Fargate profile name %q is not valid", name)
	case !svc.iam.Assumable(f.RoleARN):
		return nil, invalid("Pod execution role %s does not exist", f.RoleARN)
	case !svc.iam.Trusts(f.RoleARN, "eks-fargate-pods.amazonaws.com"): // "Amazon EKS Pod execution IAM role", EKS user guide
		return nil, invalid("Misconfigured PodExecutionRole Trust Policy; Please add the eks-fargate-pods.amazonaws.com Service Principal to your role.")
	case len(in.Selectors) < 1 || len(in.Selectors) > 5:
		return nil, invalid("Fargate profile must have between 1 and 5 selectors.")
	}
	for _, s := range in.Selectors {
		if aws.ToString(s.Namespace) == "" {
			return nil, invalid("Fargate profile selector must have a namespace")
		}
		f.Selectors = append(f.Selectors, Selector{*s.Namespace, maps.Clone(s.Labels)})
	}
	if err := svc.privateSubnets(c, f.Subnets); err != nil {
		return nil, err
	}
	if f.Tags, err = checkTags(in.Tags); err != nil {
		return nil, err
	}
	c.Fargate[name] = f
	svc.letIn(c, f.RoleARN, "FARGATE_LINUX")
	return &eks.CreateFargateProfileOutput{FargateProfile: svc.fargateOut(c, f)}, nil
}

// privateSubnets checks that the subnets are in the cluster's VPC, and have no route to
// an internet gateway, as Fargate requires.
func (svc *Service) privateSubnets(c *Cluster, ids []string) error {
	if len(ids) == 0 {
		return invalid("Fargate profile must have at least one subnet")
	}
	for _, id := range ids {
		s := svc.ec2.Subnet(id)
		switch {
		case s == nil || !svc.ec2.Known(s.Thing):
			return invalid("The subnet ID '%s' does not exist", id)
		case s.VPC != c.VPC:
			return invalid("Subnet %s is not in the VPC of the cluster", id)
		case svc.ec2.LeadsToInternetGateway(s):
			return invalid("Subnet %s provided in Fargate Profile is not a private subnet", id)
		}
	}
	return nil
}

// fargate returns a Fargate profile.
func (svc *Service) fargate(cluster, name *string) (*Cluster, *Fargate, error) {
	return part(svc.cluster, cluster, func(c *Cluster) map[string]*Fargate { return c.Fargate }, name,
		&types.ResourceNotFoundException{
			Message: aws.String("No Fargate Profile found with name: " + aws.ToString(name) + "."), ClusterName: cluster, FargateProfileName: name,
		})
}

func (svc *Service) fargateOut(c *Cluster, f *Fargate) *types.FargateProfile {
	out := &types.FargateProfile{
		FargateProfileName: aws.String(f.Name), FargateProfileArn: aws.String(f.ARN), ClusterName: aws.String(c.Name), PodExecutionRoleArn: aws.String(f.RoleARN),
		Subnets: slices.Clone(f.Subnets), Status: f.status(svc.Now()), Tags: maps.Clone(f.Tags), CreatedAt: aws.Time(f.Born),
		Selectors: core.Each(f.Selectors, func(s Selector) types.FargateProfileSelector {
			return types.FargateProfileSelector{Namespace: aws.String(s.Namespace), Labels: maps.Clone(s.Labels)}
		}),
		Health: &types.FargateProfileHealth{Issues: []types.FargateProfileIssue{}},
	}
	failure := map[types.FargateProfileStatus]string{
		types.FargateProfileStatusCreateFailed: f.CreateFailure,
		types.FargateProfileStatusDeleteFailed: f.DeleteFailure,
	}[out.Status]
	if code, message, failed := strings.Cut(failure, ": "); failed {
		out.Health.Issues = append(out.Health.Issues, types.FargateProfileIssue{Code: types.FargateProfileIssueCode(code), Message: &message})
	}
	return out
}

func (svc *Service) describeFargate(in *eks.DescribeFargateProfileInput) (*eks.DescribeFargateProfileOutput, error) {
	c, f, err := svc.fargate(in.ClusterName, in.FargateProfileName)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeFargateProfileOutput{FargateProfile: svc.fargateOut(c, f)}, nil
}

func (svc *Service) listFargate(in *eks.ListFargateProfilesInput) (*eks.ListFargateProfilesOutput, error) {
	c, err := svc.cluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	part, next, err := page(svc, visible(svc, c.Fargate, func(f *Fargate) time.Time { return f.Born }), in.NextToken, in.MaxResults)
	return &eks.ListFargateProfilesOutput{FargateProfileNames: part, NextToken: next}, err
}

func (svc *Service) deleteFargate(in *eks.DeleteFargateProfileInput) (*eks.DeleteFargateProfileOutput, error) {
	c, f, err := svc.fargate(in.ClusterName, in.FargateProfileName)
	if err != nil {
		return nil, err
	}
	if err := svc.idleFargate(c); err != nil {
		return nil, err
	}
	f.Deleted, f.DeleteFailure = svc.Now(), svc.state.Faults.DeleteFargate
	return &eks.DeleteFargateProfileOutput{FargateProfile: svc.fargateOut(c, f)}, nil
}
