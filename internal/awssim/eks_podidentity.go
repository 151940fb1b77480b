package awssim

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EKSPodIdentity is the association of a service account with a role.
type EKSPodIdentity struct {
	ID, Namespace, ServiceAccount, RoleARN, Token string
	Tags                                          map[string]string
	Born, Modified                                time.Time
}

// podService is who assumes a role on behalf of a pod.
const podService = "pods.eks.amazonaws.com"

func (a *AWS) simulatePodIdentities() {
	on(a, a.createPodIdentity, "ClusterName", "Namespace", "ServiceAccount", "RoleArn", "Tags", "ClientRequestToken")
	on(a, a.describePodIdentity, "ClusterName", "AssociationId")
	on(a, a.listPodIdentities, "ClusterName", "Namespace", "ServiceAccount", "MaxResults", "NextToken")
	on(a, a.updatePodIdentity, "ClusterName", "AssociationId", "RoleArn", "ClientRequestToken")
	on(a, a.deletePodIdentity, "ClusterName", "AssociationId")
}

// podRole checks the role of an association: an ARN, of a role that is there
// and that lets EKS assume it for pods.
func (a *AWS) podRole(arn *string) error {
	if !strings.HasPrefix(aws.ToString(arn), "arn:") {
		return invalidEKS("Invalid role ARN: %s", aws.ToString(arn))
	}
	r := a.RoleOfARN(aws.ToString(arn))
	switch {
	case r == nil:
		return invalidEKS("Role provided in the request does not exist.")
	case !a.letsAssume(r, podService):
		return invalidEKS("Trust policy of the role provided is invalid. Follow the official documentation to resolve the issue.")
	}
	return nil
}

// letsAssume reports whether a role's trust policy lets a service assume it.
// That AWS looks for sts:TagSession too is not verified; conditions are not
// looked at.
func (a *AWS) letsAssume(r *Role, service string) bool {
	document, err := url.QueryUnescape(aws.ToString(a.showRole(r).AssumeRolePolicyDocument))
	if err != nil {
		return false
	}
	var policy struct {
		Statement []struct {
			Effect            string
			Principal, Action any
		}
	}
	if err := json.Unmarshal([]byte(document), &policy); err != nil {
		return false
	}
	has := func(v any, word string) bool {
		list, _ := v.([]any)
		return v == word || slices.Contains(list, any(word))
	}
	for _, s := range policy.Statement {
		principal, _ := s.Principal.(map[string]any)
		if s.Effect == "Allow" && has(principal["Service"], service) && has(s.Action, "sts:AssumeRole") {
			return true
		}
	}
	return false
}

// podIdentity returns the association that a call names.
func (a *AWS) podIdentity(cluster, id *string) (*EKSCluster, *EKSPodIdentity, error) {
	c, err := a.eksCluster(cluster)
	if err != nil {
		return nil, nil, err
	}
	p, ok := c.PodIdentities[aws.ToString(id)]
	if !ok {
		return nil, nil, &types.ResourceNotFoundException{Message: aws.String("The association ID " + aws.ToString(id) + " was not found."), ClusterName: cluster}
	}
	return c, p, nil
}

func (a *AWS) podIdentityARN(c *EKSCluster, p *EKSPodIdentity) string {
	return a.regionalARN("eks", "podidentityassociation/"+c.Name+"/"+p.ID)
}

func (a *AWS) podIdentityOut(c *EKSCluster, p *EKSPodIdentity) *types.PodIdentityAssociation {
	return &types.PodIdentityAssociation{
		AssociationArn: aws.String(a.podIdentityARN(c, p)), AssociationId: aws.String(p.ID), ClusterName: aws.String(c.Name), Namespace: aws.String(p.Namespace),
		ServiceAccount: aws.String(p.ServiceAccount), RoleArn: aws.String(p.RoleARN), CreatedAt: aws.Time(p.Born), ModifiedAt: aws.Time(p.Modified),
		Tags: maps.Clone(p.Tags), DisableSessionTags: aws.Bool(false),
	}
}

func (a *AWS) createPodIdentity(in *eks.CreatePodIdentityAssociationInput) (*eks.CreatePodIdentityAssociationOutput, error) {
	c, err := a.eksCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	namespace, account := aws.ToString(in.Namespace), aws.ToString(in.ServiceAccount)
	if namespace == "" || account == "" {
		return nil, invalidEKS("namespace and serviceAccount must not be empty")
	}
	for _, p := range c.PodIdentities {
		if p.Namespace == namespace && p.ServiceAccount == account {
			if p.Token == aws.ToString(in.ClientRequestToken) {
				return &eks.CreatePodIdentityAssociationOutput{Association: a.podIdentityOut(c, p)}, nil
			}
			return nil, busyEKS("Association already exists: %s", p.ID)
		}
	}
	if err := a.podRole(in.RoleArn); err != nil {
		return nil, err
	}
	tags, err := eksTags(in.Tags)
	if err != nil {
		return nil, err
	}
	p := &EKSPodIdentity{
		ID: a.id("a"), Namespace: namespace, ServiceAccount: account, RoleARN: *in.RoleArn, Token: aws.ToString(in.ClientRequestToken),
		Tags: tags, Born: a.now(), Modified: a.now(),
	}
	c.PodIdentities[p.ID] = p
	return &eks.CreatePodIdentityAssociationOutput{Association: a.podIdentityOut(c, p)}, nil
}

func (a *AWS) describePodIdentity(in *eks.DescribePodIdentityAssociationInput) (*eks.DescribePodIdentityAssociationOutput, error) {
	c, p, err := a.podIdentity(in.ClusterName, in.AssociationId)
	if err != nil {
		return nil, err
	}
	return &eks.DescribePodIdentityAssociationOutput{Association: a.podIdentityOut(c, p)}, nil
}

func (a *AWS) listPodIdentities(in *eks.ListPodIdentityAssociationsInput) (*eks.ListPodIdentityAssociationsOutput, error) {
	c, err := a.eksCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	var list []types.PodIdentityAssociationSummary
	for _, p := range byKey(c.PodIdentities) {
		if in.Namespace != nil && p.Namespace != *in.Namespace || in.ServiceAccount != nil && p.ServiceAccount != *in.ServiceAccount || !a.visible(p.Born) {
			continue
		}
		list = append(list, types.PodIdentityAssociationSummary{
			AssociationArn: aws.String(a.podIdentityARN(c, p)), AssociationId: aws.String(p.ID), ClusterName: aws.String(c.Name),
			Namespace: aws.String(p.Namespace), ServiceAccount: aws.String(p.ServiceAccount),
		})
	}
	part, next, err := eksPage(a, list, in.NextToken, in.MaxResults)
	return &eks.ListPodIdentityAssociationsOutput{Associations: part, NextToken: next}, err
}

func (a *AWS) updatePodIdentity(in *eks.UpdatePodIdentityAssociationInput) (*eks.UpdatePodIdentityAssociationOutput, error) {
	c, p, err := a.podIdentity(in.ClusterName, in.AssociationId)
	if err != nil {
		return nil, err
	}
	if in.RoleArn != nil {
		if err := a.podRole(in.RoleArn); err != nil {
			return nil, err
		}
		p.RoleARN, p.Modified = *in.RoleArn, a.now()
	}
	return &eks.UpdatePodIdentityAssociationOutput{Association: a.podIdentityOut(c, p)}, nil
}

func (a *AWS) deletePodIdentity(in *eks.DeletePodIdentityAssociationInput) (*eks.DeletePodIdentityAssociationOutput, error) {
	c, p, err := a.podIdentity(in.ClusterName, in.AssociationId)
	if err != nil {
		return nil, err
	}
	delete(c.PodIdentities, p.ID)
	return &eks.DeletePodIdentityAssociationOutput{Association: a.podIdentityOut(c, p)}, nil
}
