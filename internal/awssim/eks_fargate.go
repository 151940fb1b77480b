package awssim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EKSFargate is a Fargate profile.
type EKSFargate struct {
	Name, ARN, RoleARN, Token string
	Subnets                   []string
	Selectors                 []EKSSelector
	Tags                      map[string]string
	Born, Ready               time.Time
	Deleted                   time.Time // when deletion was asked for; zero: not
}

// EKSSelector says which pods run on Fargate.
type EKSSelector struct {
	Namespace string
	Labels    map[string]string
}

const (
	// EKSFargateTakes is how long a profile is CREATING.
	EKSFargateTakes = 2 * time.Minute
	// EKSFargateDeletes is how long it is DELETING.
	EKSFargateDeletes = 2 * time.Minute
)

func (a *AWS) simulateEKSFargate() {
	on(a, a.createFargate, "ClusterName", "FargateProfileName", "PodExecutionRoleArn", "Subnets", "Selectors", "Tags", "ClientRequestToken")
	on(a, a.describeFargate, "ClusterName", "FargateProfileName")
	on(a, a.listFargate, "ClusterName", "MaxResults", "NextToken")
	on(a, a.deleteFargate, "ClusterName", "FargateProfileName")
}

func (a *AWS) settleEKSFargate(c *EKSCluster) {
	maps.DeleteFunc(c.Fargate, func(_ string, f *EKSFargate) bool {
		return !f.Deleted.IsZero() && a.now().Sub(f.Deleted) >= EKSFargateDeletes
	})
}

func (f *EKSFargate) status(now time.Time) types.FargateProfileStatus {
	switch {
	case !f.Deleted.IsZero():
		return types.FargateProfileStatusDeleting
	case now.Before(f.Ready):
		return types.FargateProfileStatusCreating
	}
	return types.FargateProfileStatusActive
}

// idleFargate refuses while another profile of the cluster comes or goes:
// there may be only one.
func (a *AWS) idleFargate(c *EKSCluster) error {
	for _, f := range byKey(c.Fargate) {
		if s := f.status(a.now()); s != types.FargateProfileStatusActive {
			return &types.ResourceInUseException{
				Message:     aws.String(fmt.Sprintf("Fargate profile %s of cluster %s is currently %s: one can be created or deleted at a time", f.Name, c.Name, s)),
				ClusterName: &c.Name,
			}
		}
	}
	return nil
}

func (a *AWS) createFargate(in *eks.CreateFargateProfileInput) (*eks.CreateFargateProfileOutput, error) {
	c, err := a.activeEKSCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	name := aws.ToString(in.FargateProfileName)
	if old, ok := c.Fargate[name]; ok {
		if old.Token == aws.ToString(in.ClientRequestToken) && old.Deleted.IsZero() {
			return &eks.CreateFargateProfileOutput{FargateProfile: a.fargateOut(c, old)}, nil
		}
		return nil, busyEKS("A Fargate Profile already exists with this name in this cluster.")
	}
	if err := a.idleFargate(c); err != nil {
		return nil, err
	}
	f := &EKSFargate{
		Name: name, ARN: a.regionalARN("eks", "fargateprofile/"+c.Name+"/"+name+"/"+a.hash()[:8]), RoleARN: aws.ToString(in.PodExecutionRoleArn),
		Token: aws.ToString(in.ClientRequestToken), Subnets: slices.Clone(in.Subnets), Born: a.now(), Ready: a.now().Add(EKSFargateTakes),
	}
	switch {
	case !regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`).MatchString(name):
		return nil, invalidEKS("The Fargate profile name %q is not valid", name)
	case !a.assumable(f.RoleARN):
		return nil, invalidEKS("Pod execution role %s does not exist", f.RoleARN)
	case len(in.Selectors) < 1 || len(in.Selectors) > 5:
		return nil, invalidEKS("Fargate profile must have between 1 and 5 selectors.")
	}
	for _, s := range in.Selectors {
		if aws.ToString(s.Namespace) == "" {
			return nil, invalidEKS("Fargate profile selector must have a namespace")
		}
		f.Selectors = append(f.Selectors, EKSSelector{*s.Namespace, maps.Clone(s.Labels)})
	}
	if err := a.privateSubnets(c, f.Subnets); err != nil {
		return nil, err
	}
	if f.Tags, err = eksTags(in.Tags); err != nil {
		return nil, err
	}
	c.Fargate[name] = f
	a.letIn(c, f.RoleARN, "FARGATE_LINUX")
	return &eks.CreateFargateProfileOutput{FargateProfile: a.fargateOut(c, f)}, nil
}

// privateSubnets makes sure that the subnets are of the cluster's VPC, and
// have no way to the internet of their own: Fargate does not take others.
func (a *AWS) privateSubnets(c *EKSCluster, ids []string) error {
	if len(ids) == 0 {
		return invalidEKS("Fargate profile must have at least one subnet")
	}
	for _, id := range ids {
		s := a.Subnet(id)
		switch {
		case s == nil || !a.known(s.Thing):
			return invalidEKS("The subnet ID '%s' does not exist", id)
		case s.VPC != c.VPC:
			return invalidEKS("Subnet %s is not in the VPC of the cluster", id)
		case a.public(s):
			return invalidEKS("Subnet %s provided in Fargate Profile is not a private subnet", id)
		}
	}
	return nil
}

// fargate returns the profile that a call names.
func (a *AWS) fargate(cluster, name *string) (*EKSCluster, *EKSFargate, error) {
	c, err := a.eksCluster(cluster)
	if err != nil {
		return nil, nil, err
	}
	f, ok := c.Fargate[aws.ToString(name)]
	if !ok {
		return nil, nil, &types.ResourceNotFoundException{
			Message: aws.String("No Fargate Profile found with name: " + aws.ToString(name) + "."), ClusterName: cluster, FargateProfileName: name,
		}
	}
	return c, f, nil
}

func (a *AWS) fargateOut(c *EKSCluster, f *EKSFargate) *types.FargateProfile {
	return &types.FargateProfile{
		FargateProfileName: aws.String(f.Name), FargateProfileArn: aws.String(f.ARN), ClusterName: aws.String(c.Name), PodExecutionRoleArn: aws.String(f.RoleARN),
		Subnets: slices.Clone(f.Subnets), Status: f.status(a.now()), Tags: maps.Clone(f.Tags), CreatedAt: aws.Time(f.Born),
		Selectors: each(f.Selectors, func(s EKSSelector) types.FargateProfileSelector {
			return types.FargateProfileSelector{Namespace: aws.String(s.Namespace), Labels: maps.Clone(s.Labels)}
		}),
	}
}

func (a *AWS) describeFargate(in *eks.DescribeFargateProfileInput) (*eks.DescribeFargateProfileOutput, error) {
	c, f, err := a.fargate(in.ClusterName, in.FargateProfileName)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeFargateProfileOutput{FargateProfile: a.fargateOut(c, f)}, nil
}

func (a *AWS) listFargate(in *eks.ListFargateProfilesInput) (*eks.ListFargateProfilesOutput, error) {
	c, err := a.eksCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range byKey(c.Fargate) {
		if a.visible(f.Born) {
			names = append(names, f.Name)
		}
	}
	part, next, err := eksPage(a, names, in.NextToken, in.MaxResults)
	return &eks.ListFargateProfilesOutput{FargateProfileNames: part, NextToken: next}, err
}

func (a *AWS) deleteFargate(in *eks.DeleteFargateProfileInput) (*eks.DeleteFargateProfileOutput, error) {
	c, f, err := a.fargate(in.ClusterName, in.FargateProfileName)
	if err != nil {
		return nil, err
	}
	if err := a.idleFargate(c); err != nil {
		return nil, err
	}
	f.Deleted = a.now()
	return &eks.DeleteFargateProfileOutput{FargateProfile: a.fargateOut(c, f)}, nil
}
