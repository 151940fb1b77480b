package permission

import "github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"

// lookAtEKS allows the questions about clusters of EKS and their roles.
func lookAtEKS() Statement {
	return allow("LookAtEKS", anywhere(), looks(kind.EKS, kind.Roles, kind.OIDCProviders)...)
}

// imagesOfEKS allows to be told which image AWS recommends for nodes.
func (s Scope) imagesOfEKS() Statement {
	region := "*"
	if s.Region != "" {
		region = s.Region
	}
	return allow("ImagesOfEKS", []string{"arn:" + s.Partition + ":ssm:" + region + "::parameter/aws/service/eks/optimized-ami/*"}, "ssm:GetParameter")
}

// passRoleToEKS lets EKS be given the roles of control planes, node groups and
// Fargate profiles.
func (s Scope) passRoleToEKS() Statement {
	x := allow("GiveEKSItsRoles", s.roles(s.EKSRoles, "eks-*"+stockRoles[1:]), "iam:PassRole")
	x.Condition = map[string]map[string][]string{"StringEquals": {"iam:PassedToService": {"eks.amazonaws.com"}}}
	return x
}

// makeRoles lets the roles of a cluster of EKS be made and removed, which is
// only allowed for those of a manifest: who may make any role may do anything.
func (s Scope) makeRoles() Statement {
	return allow("MakeRoles", s.roles(s.MadeRoles, ""), actions(kind.Roles)...)
}

// makeProvider lets IAM be told to trust the service accounts of a cluster.
func (s Scope) makeProvider() Statement {
	region := "*"
	if s.Region != "" {
		region = s.Region
	}
	return allow("TrustServiceAccounts", []string{"arn:" + s.Partition + ":iam::*:oidc-provider/oidc.eks." + region + ".*"}, actions(kind.OIDCProviders)...)
}
