package permission

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eventbridge"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
)

// looksAtEKS lists the actions that describe EKS clusters, their roles and OIDC providers, and the users of access entries.
func looksAtEKS() []string {
	return append(looks(kind.EKS, kind.Roles, kind.OIDCProviders), "iam:GetUser")
}

// searchesForEKS lists what a deletion by name asks before it knows that the cluster is not
// one of EKS. It would continue if these calls were denied, but denied calls raise alarms
// in accounts that are monitored.
func searchesForEKS() []string {
	return []string{"eks:ListClusters", "iam:ListOpenIDConnectProviders", "iam:ListRoles"}
}

// imagesOfEKS allows reading which image AWS recommends for nodes.
func (s Scope) imagesOfEKS() Statement {
	region := "*"
	if s.Region != "" {
		region = s.Region
	}
	return allow("EKSImages", []string{"arn:" + s.Partition + ":ssm:" + region + "::parameter/aws/service/eks/optimized-ami/*"}, "ssm:GetParameter")
}

// passRoleToEKS allows passing the roles of control planes, node groups and
// Fargate profiles to EKS, and those of add-ons: AWS does not say whether
// CreateAddon and UpdateAddon check it.
func (s Scope) passRoleToEKS() Statement {
	x := allow("EKSRoles", append(s.roles(s.EKSRoles, "eks-*"+stockRoles[1:]), s.AddonRoles...), "iam:PassRole")
	x.Condition = map[string]map[string][]string{"StringEquals": {"iam:PassedToService": {"eks.amazonaws.com"}}}
	return x
}

// passRoleToPods allows passing the roles of pod identity associations. No page of AWS's says which service gets
// them.
func (s Scope) passRoleToPods() Statement {
	x := allow("PodRoles", s.PodRoles, "iam:PassRole")
	x.Condition = map[string]map[string][]string{"StringEquals": {"iam:PassedToService": {"eks.amazonaws.com", "pods.eks.amazonaws.com"}}}
	return x
}

// manageRoles allows creating and deleting the roles of an EKS cluster. It names
// those of the manifest: whoever may create any role has every permission.
func (s Scope) manageRoles() Statement {
	changes := slices.DeleteFunc(actions(kind.Roles), func(action string) bool { return slices.Contains(profileActions(), action) })
	return allow("ManageRoles", s.roles(s.MadeRoles, ""), changes...)
}

// profileActions are the actions on the instance profiles that Karpenter makes for the role of its nodes, with which the role is deleted.
func profileActions() []string {
	return []string{"iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"}
}

// karpenter allows managing Karpenter's queue and rule, and deleting the instance profiles that it has left.
func (s Scope) karpenter() []Statement {
	resources := []string{s.arn("events", "rule/"+eventbridge.KarpenterRuleName(s.Karpenter)), s.arn("sqs", s.Karpenter)}
	profiles := allow("KarpenterProfiles", []string{"arn:" + s.Partition + ":iam::*:instance-profile/*"}, profileActions()...)
	profiles.Condition = map[string]map[string][]string{"StringEquals": {"aws:ResourceTag/" + cloud.CloudProviderTagPrefix + s.Karpenter: {cloud.Owned}}}
	all := slices.DeleteFunc(append(looks(kind.Karpenter), actions(kind.Karpenter)...), func(action string) bool { return action == countsRules })
	return []Statement{allow("Karpenter", resources, sorted(all)...), profiles}
}

// manageProviders allows creating and deleting the OIDC providers that issue the
// identities of service accounts.
func (s Scope) manageProviders() Statement {
	region := "*"
	if s.Region != "" {
		region = s.Region
	}
	return allow("OIDCProviders", []string{"arn:" + s.Partition + ":iam::*:oidc-provider/oidc.eks." + region + ".*"}, actions(kind.OIDCProviders)...)
}
