package eks

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

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// PodIdentity is the association of a service account with a role.
type PodIdentity struct {
	ID, Namespace, ServiceAccount, RoleARN, Token string
	Owner                                         string // ARN of the add-on that owns it; "" for none
	Tags                                          map[string]string
	Born, Modified                                time.Time
}

func (svc *Service) simulatePodIdentities() {
	core.On(svc.Account, svc.createPodIdentity, "ClusterName", "Namespace", "ServiceAccount", "RoleArn", "Tags", "ClientRequestToken")
	core.On(svc.Account, svc.describePodIdentity, "ClusterName", "AssociationId")
	core.On(svc.Account, svc.listPodIdentities, "ClusterName", "Namespace", "ServiceAccount", "MaxResults", "NextToken")
	core.On(svc.Account, svc.updatePodIdentity, "ClusterName", "AssociationId", "RoleArn", "ClientRequestToken")
	core.On(svc.Account, svc.deletePodIdentity, "ClusterName", "AssociationId")
}

// podRole validates the role of an association: the ARN of an existing role that EKS can
// assume for pods.
func (svc *Service) podRole(arn *string) error {
	if !strings.HasPrefix(aws.ToString(arn), "arn:") {
		return invalid("Invalid role ARN: %s", aws.ToString(arn))
	}
	r := svc.iam.RoleOfARN(aws.ToString(arn))
	switch {
	case r == nil:
		return invalid("Role provided in the request does not exist.")
	case !svc.letsAssume(r, iam.PodService):
		return invalid("Trust policy of the role provided is invalid. Follow the official documentation to resolve the issue.")
	}
	return nil
}

// letsAssume reports whether a role's trust policy permits a service to assume it with session tags: EKS Pod Identity
// tags its sessions ("Create IAM role with trust policy required by EKS Pod Identity", EKS user guide). That EKS refuses a role
// without sts:TagSession at once is not verified; conditions are ignored.
func (svc *Service) letsAssume(r *iam.Role, service string) bool {
	document, err := url.QueryUnescape(aws.ToString(svc.iam.ShowRole(r).AssumeRolePolicyDocument))
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
		if s.Effect == "Allow" && has(principal["Service"], service) && has(s.Action, "sts:AssumeRole") && has(s.Action, "sts:TagSession") {
			return true
		}
	}
	return false
}

// podIdentity returns an association of a cluster.
func (svc *Service) podIdentity(cluster, id *string) (*Cluster, *PodIdentity, error) {
	return part(svc.cluster, cluster, func(c *Cluster) map[string]*PodIdentity { return c.PodIdentities }, id,
		&types.ResourceNotFoundException{Message: aws.String("The association ID " + aws.ToString(id) + " was not found."), ClusterName: cluster})
}

func (svc *Service) podIdentityARN(c *Cluster, p *PodIdentity) string {
	return svc.RegionalARN("eks", "podidentityassociation/"+c.Name+"/"+p.ID)
}

func (svc *Service) podIdentityOut(c *Cluster, p *PodIdentity) *types.PodIdentityAssociation {
	return &types.PodIdentityAssociation{
		AssociationArn: aws.String(svc.podIdentityARN(c, p)), AssociationId: aws.String(p.ID), ClusterName: aws.String(c.Name), Namespace: aws.String(p.Namespace),
		ServiceAccount: aws.String(p.ServiceAccount), RoleArn: aws.String(p.RoleARN), CreatedAt: aws.Time(p.Born), ModifiedAt: aws.Time(p.Modified),
		Tags: maps.Clone(p.Tags), DisableSessionTags: aws.Bool(false), OwnerArn: core.Text(p.Owner),
	}
}

func (svc *Service) createPodIdentity(in *eks.CreatePodIdentityAssociationInput) (*eks.CreatePodIdentityAssociationOutput, error) {
	c, err := svc.cluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	namespace, account := aws.ToString(in.Namespace), aws.ToString(in.ServiceAccount)
	if namespace == "" || account == "" {
		return nil, invalid("namespace and serviceAccount must not be empty")
	}
	for _, p := range c.PodIdentities {
		if p.Namespace == namespace && p.ServiceAccount == account {
			if p.Token == aws.ToString(in.ClientRequestToken) {
				return &eks.CreatePodIdentityAssociationOutput{Association: svc.podIdentityOut(c, p)}, nil
			}
			return nil, busy("Association already exists: %s", p.ID)
		}
	}
	if err := svc.podRole(in.RoleArn); err != nil {
		return nil, err
	}
	tags, err := checkTags(in.Tags)
	if err != nil {
		return nil, err
	}
	p := &PodIdentity{
		ID: svc.ID("a"), Namespace: namespace, ServiceAccount: account, RoleARN: *in.RoleArn, Token: aws.ToString(in.ClientRequestToken),
		Tags: tags, Born: svc.Now(), Modified: svc.Now(),
	}
	c.PodIdentities[p.ID] = p
	return &eks.CreatePodIdentityAssociationOutput{Association: svc.podIdentityOut(c, p)}, nil
}

func (svc *Service) describePodIdentity(in *eks.DescribePodIdentityAssociationInput) (*eks.DescribePodIdentityAssociationOutput, error) {
	c, p, err := svc.podIdentity(in.ClusterName, in.AssociationId)
	if err != nil {
		return nil, err
	}
	return &eks.DescribePodIdentityAssociationOutput{Association: svc.podIdentityOut(c, p)}, nil
}

func (svc *Service) listPodIdentities(in *eks.ListPodIdentityAssociationsInput) (*eks.ListPodIdentityAssociationsOutput, error) {
	c, err := svc.cluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	var list []types.PodIdentityAssociationSummary
	for _, p := range core.ByKey(c.PodIdentities) {
		if in.Namespace != nil && p.Namespace != *in.Namespace || in.ServiceAccount != nil && p.ServiceAccount != *in.ServiceAccount || !svc.Visible(p.Born) {
			continue
		}
		list = append(list, types.PodIdentityAssociationSummary{
			AssociationArn: aws.String(svc.podIdentityARN(c, p)), AssociationId: aws.String(p.ID), ClusterName: aws.String(c.Name),
			Namespace: aws.String(p.Namespace), ServiceAccount: aws.String(p.ServiceAccount),
		})
	}
	part, next, err := page(svc, list, in.NextToken, in.MaxResults)
	return &eks.ListPodIdentityAssociationsOutput{Associations: part, NextToken: next}, err
}

func (svc *Service) updatePodIdentity(in *eks.UpdatePodIdentityAssociationInput) (*eks.UpdatePodIdentityAssociationOutput, error) {
	c, p, err := svc.podIdentity(in.ClusterName, in.AssociationId)
	if err != nil {
		return nil, err
	}
	if err := p.owned(); err != nil {
		return nil, err
	}
	if in.RoleArn != nil {
		if err := svc.podRole(in.RoleArn); err != nil {
			return nil, err
		}
		p.RoleARN, p.Modified = *in.RoleArn, svc.Now()
	}
	return &eks.UpdatePodIdentityAssociationOutput{Association: svc.podIdentityOut(c, p)}, nil
}

func (svc *Service) deletePodIdentity(in *eks.DeletePodIdentityAssociationInput) (*eks.DeletePodIdentityAssociationOutput, error) {
	c, p, err := svc.podIdentity(in.ClusterName, in.AssociationId)
	if err != nil {
		return nil, err
	}
	if err := p.owned(); err != nil {
		return nil, err
	}
	delete(c.PodIdentities, p.ID)
	return &eks.DeletePodIdentityAssociationOutput{Association: svc.podIdentityOut(c, p)}, nil
}

// owned refuses a call for an association of an add-on, which changes with the add-on. Code and text are not verified.
func (p *PodIdentity) owned() error {
	if p.Owner == "" {
		return nil
	}
	return &types.InvalidRequestException{Message: aws.String("The association " + p.ID + " is owned by " + p.Owner)}
}

// accountsOf lists the service accounts for which an add-on takes associations, with their namespace ("IAM roles for Amazon
// EKS add-ons", EKS user guide).
func accountsOf(addon string) (accounts []string, namespace string) {
	switch addon {
	case "vpc-cni":
		return []string{"aws-node"}, "kube-system"
	case "aws-ebs-csi-driver":
		return []string{"ebs-csi-controller-sa"}, "kube-system"
	case "aws-efs-csi-driver":
		return []string{"efs-csi-controller-sa"}, "kube-system"
	case "aws-mountpoint-s3-csi-driver":
		return []string{"s3-csi-driver-sa"}, "kube-system"
	case "amazon-cloudwatch-observability":
		return []string{"cloudwatch-agent"}, "amazon-cloudwatch"
	}
	return nil, ""
}

// checkIdentities validates the associations in a call for an add-on
// (https://github.com/terraform-aws-modules/terraform-aws-eks/issues/3520 has the texts of EKS).
func (svc *Service) checkIdentities(c *Cluster, addon, version string, in []types.AddonPodIdentityAssociations) error {
	accounts, namespace := accountsOf(addon)
	if len(in) > 0 && len(accounts) == 0 {
		return invalid("Pod Identity feature is not supported for addon version: %s", version)
	}
	for i, x := range in {
		account := aws.ToString(x.ServiceAccount)
		if !slices.Contains(accounts, account) {
			return invalid("Service account %s in pod identity configuration is not supported for addon %s", account, addon)
		}
		for _, other := range in[:i] {
			if aws.ToString(other.ServiceAccount) == account {
				return invalid("Service account %s is in the pod identity configuration twice", account)
			}
		}
		for _, p := range c.PodIdentities {
			if own := c.Addons[addon]; p.Namespace == namespace && p.ServiceAccount == account && (own == nil || p.Owner != own.ARN) {
				return busy("Association already exists: %s", p.ID)
			}
		}
		if err := svc.podRole(x.RoleArn); err != nil {
			return err
		}
	}
	return nil
}

// setIdentities replaces the associations of an add-on; nil keeps them. With associations, EKS removes the role of the add-on
// (https://github.com/hashicorp/terraform-provider-aws/issues/30645). Here both happen at once.
func (svc *Service) setIdentities(c *Cluster, d *Addon, in []types.AddonPodIdentityAssociations) {
	if in == nil {
		return
	}
	_, namespace := accountsOf(d.Name)
	kept := map[string]bool{}
	for _, x := range in {
		var p *PodIdentity
		for _, old := range c.PodIdentities {
			if old.Owner == d.ARN && old.ServiceAccount == *x.ServiceAccount {
				p = old
			}
		}
		if p == nil {
			p = &PodIdentity{ID: svc.ID("a"), Namespace: namespace, ServiceAccount: *x.ServiceAccount, Owner: d.ARN, Tags: map[string]string{}, Born: svc.Now()}
			c.PodIdentities[p.ID] = p
		}
		p.RoleARN, p.Modified, kept[p.ID] = *x.RoleArn, svc.Now(), true
	}
	maps.DeleteFunc(c.PodIdentities, func(id string, p *PodIdentity) bool { return p.Owner == d.ARN && !kept[id] })
	if len(in) > 0 {
		d.RoleARN = ""
	}
}

// identitiesOf lists the ARNs of the associations that an add-on owns, sorted.
func (svc *Service) identitiesOf(c *Cluster, d *Addon) (arns []string) {
	for _, p := range core.ByKey(c.PodIdentities) {
		if p.Owner == d.ARN {
			arns = append(arns, svc.podIdentityARN(c, p))
		}
	}
	return arns
}
