package eks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// PodIdentity is the role that a service account should have.
type PodIdentity struct {
	Cluster, Namespace, ServiceAccount string
	RoleName                           string // name, with or without path, or ARN
}

// Outcome says what Associate did.
type Outcome string

// The outcomes.
const (
	Created   Outcome = "created"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
)

// Association is an existing pod identity association.
type Association struct {
	ID, RoleARN string
	Outcome     Outcome
}

// Associate associates a service account with a role by EKS Pod Identity. It changes
// nothing if the association exists. If creating is not nil, it is called before an
// association is created.
func Associate(ctx context.Context, cfg aws.Config, p PodIdentity, creating func()) (Association, error) {
	role, err := roleARN(ctx, cfg, p.RoleName)
	if err != nil {
		return Association{}, err
	}
	c := eks.NewFromConfig(awshttp.Checked(cfg))
	id, err := associated(ctx, c, cfg.Region, p)
	if err != nil {
		return Association{}, err
	}
	if id == "" {
		if creating != nil {
			creating()
		}
		made, err := c.CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{
			ClusterName: &p.Cluster, Namespace: &p.Namespace, ServiceAccount: &p.ServiceAccount, RoleArn: &role,
		})
		if err != nil {
			return Association{}, fmt.Errorf("create the pod identity association of service account %s/%s: %w", p.Namespace, p.ServiceAccount, distrusted(err, role))
		}
		return Association{aws.ToString(made.Association.AssociationId), role, Created}, nil
	}
	is, err := c.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{ClusterName: &p.Cluster, AssociationId: &id})
	if err != nil {
		return Association{}, fmt.Errorf("look up pod identity association %s of cluster %s: %w", id, p.Cluster, err)
	}
	if aws.ToString(is.Association.RoleArn) == role {
		return Association{id, role, Unchanged}, nil
	}
	if _, err := c.UpdatePodIdentityAssociation(
		ctx,
		&eks.UpdatePodIdentityAssociationInput{ClusterName: &p.Cluster, AssociationId: &id, RoleArn: &role},
	); err != nil {
		return Association{}, fmt.Errorf("update pod identity association %s of cluster %s: %w", id, p.Cluster, distrusted(err, role))
	}
	return Association{id, role, Updated}, nil
}

// roleARN returns the ARN of a role.
func roleARN(ctx context.Context, cfg aws.Config, name string) (string, error) {
	short := name[strings.LastIndex(name, "/")+1:]
	out, err := iam.NewFromConfig(awshttp.Checked(cfg)).GetRole(ctx, &iam.GetRoleInput{RoleName: &short})
	switch {
	case cloud.NotFound(err):
		return "", fmt.Errorf("there is no IAM role %s; 'clusterawsadm bootstrap iam create-cloudformation-stack' creates the default roles: %w", name, err)
	case err != nil:
		return "", fmt.Errorf("look up role %s: %w", name, err)
	}
	arn := aws.ToString(out.Role.Arn)
	if strings.HasPrefix(name, "arn:") && arn != name {
		return "", fmt.Errorf("there is no IAM role %s in this account; the role with that name is %s", name, arn)
	}
	return arn, nil
}

// associated returns the ID of the association of a service account, or "" if it has
// none.
func associated(ctx context.Context, c *eks.Client, region string, p PodIdentity) (string, error) {
	pages := eks.NewListPodIdentityAssociationsPaginator(c, &eks.ListPodIdentityAssociationsInput{
		ClusterName: &p.Cluster, Namespace: &p.Namespace, ServiceAccount: &p.ServiceAccount,
	})
	ctx = awshttp.Listing(ctx)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", explain(err, p.Cluster, region, "list the pod identity associations of cluster")
		}
		for _, a := range page.Associations {
			if aws.ToString(a.Namespace) == p.Namespace && aws.ToString(a.ServiceAccount) == p.ServiceAccount {
				return aws.ToString(a.AssociationId), nil
			}
		}
	}
	return "", nil
}

// distrusted adds to an error how to permit pods to use a role; the roles of the
// bootstrap stack do not permit it by default.
func distrusted(err error, role string) error {
	var invalid *types.InvalidParameterException
	if !errors.As(err, &invalid) || !strings.Contains(strings.ToLower(invalid.ErrorMessage()), "trust policy") {
		return err
	}
	return fmt.Errorf("%w\nThe trust policy of %s must permit the actions sts:AssumeRole and sts:TagSession to pods.eks.amazonaws.com:\n"+
		"add this to spec.clusterAPIControllers.trustStatements of the AWSIAMConfiguration and update the stack", err, role)
}
