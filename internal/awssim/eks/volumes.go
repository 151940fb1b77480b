package eks

import (
	"slices"
	"strings"
)

// EBSDriver is the name of the add-on with the EBS CSI driver.
const EBSDriver = "aws-ebs-csi-driver"

// MakesVolumes reports whether the EBS CSI driver of a cluster may create volumes. Its service account needs a role with
// AmazonEBSCSIDriverPolicy ("Use Kubernetes volume storage with Amazon EBS", EKS user guide): by an association, for which the
// agent runs on the nodes, or of the add-on (IAM roles for service accounts). The driver may also use the role of nodes.
func (svc *Service) MakesVolumes(c *Cluster) bool {
	if c == nil {
		return false
	}
	agent := c.Addons["eks-pod-identity-agent"]
	for _, p := range c.PodIdentities {
		if p.Namespace == "kube-system" && p.ServiceAccount == "ebs-csi-controller-sa" {
			return agent != nil && agent.Deleted.IsZero() && !svc.Now().Before(agent.Ready) && svc.holdsVolumePolicy(p.RoleARN)
		}
	}
	if d := c.Addons[EBSDriver]; d != nil && d.RoleARN != "" {
		return svc.HasCredentials(c, d.Name) && svc.holdsVolumePolicy(d.RoleARN)
	}
	for _, g := range c.NodeGroups {
		if svc.holdsVolumePolicy(g.RoleARN) {
			return true
		}
	}
	return false
}

// HasCredentials reports whether pods of an add-on get credentials, if they ask STS for those of a role: STS knows the issuer of their tokens by an
// OIDC provider in IAM only ("IAM roles for service accounts", EKS user guide). The role is not replaced by that of the node.
func (svc *Service) HasCredentials(c *Cluster, name string) bool {
	d := c.Addons[name]
	return d == nil || !d.Deleted.IsZero() || d.settings(svc.Now()).RoleARN == "" || svc.iam.KnowsIssuer(c.issuer(svc.Region))
}

// holdsVolumePolicy reports whether a role has a policy with which the driver works.
func (svc *Service) holdsVolumePolicy(arn string) bool {
	r := svc.iam.RoleOfARN(arn)
	return r != nil && slices.ContainsFunc(r.Attached, isVolumePolicy)
}

func isVolumePolicy(arn string) bool {
	name := arn[strings.LastIndex(arn, "/")+1:]
	return strings.Contains(arn, ":iam::aws:policy/") && (name == "AmazonEBSCSIDriverPolicy" || name == "AdministratorAccess")
}
