package permission

// lookAtEKS allows the questions about clusters of EKS and their roles.
func lookAtEKS() Statement {
	return allow("LookAtEKS", anywhere(),
		"eks:DescribeAccessEntry", "eks:DescribeAddon", "eks:DescribeCluster", "eks:DescribeFargateProfile", "eks:DescribeIdentityProviderConfig",
		"eks:DescribeNodegroup", "eks:ListAccessEntries", "eks:ListAddons", "eks:ListAssociatedAccessPolicies", "eks:ListClusters", "eks:ListFargateProfiles",
		"eks:ListNodegroups",
		"iam:GetOpenIDConnectProvider", "iam:GetRole", "iam:ListAttachedRolePolicies", "iam:ListOpenIDConnectProviders", "iam:ListRoles",
	)
}

// imagesOfEKS allows to be told which image AWS recommends for nodes.
func (s Scope) imagesOfEKS() Statement {
	region := "*"
	if s.Region != "" {
		region = s.Region
	}
	return allow("ImagesOfEKS", []string{"arn:" + s.Partition + ":ssm:" + region + "::parameter/aws/service/eks/optimized-ami/*"}, "ssm:GetParameter")
}

func clustersOfEKS() []string {
	return []string{
		"eks:AssociateAccessPolicy", "eks:AssociateEncryptionConfig", "eks:AssociateIdentityProviderConfig", "eks:CreateAccessEntry", "eks:CreateAddon",
		"eks:CreateCluster", "eks:CreateFargateProfile", "eks:CreateNodegroup", "eks:DeleteAccessEntry", "eks:DeleteAddon", "eks:DeleteCluster",
		"eks:DeleteFargateProfile", "eks:DeleteNodegroup", "eks:DisassociateAccessPolicy", "eks:DisassociateIdentityProviderConfig", "eks:TagResource",
		"eks:UpdateAccessEntry", "eks:UpdateAddon", "eks:UpdateClusterConfig", "eks:UpdateClusterVersion", "eks:UpdateNodegroupConfig",
		"eks:UpdateNodegroupVersion",
	}
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
	return allow("MakeRoles", s.roles(s.MadeRoles, ""),
		"iam:AttachRolePolicy", "iam:CreateRole", "iam:DeleteRole", "iam:DetachRolePolicy", "iam:TagRole")
}

// makeProvider lets IAM be told to trust the service accounts of a cluster.
func (s Scope) makeProvider() Statement {
	region := "*"
	if s.Region != "" {
		region = s.Region
	}
	return allow("TrustServiceAccounts", []string{"arn:" + s.Partition + ":iam::*:oidc-provider/oidc.eks." + region + ".*"},
		"iam:AddClientIDToOpenIDConnectProvider", "iam:CreateOpenIDConnectProvider", "iam:DeleteOpenIDConnectProvider", "iam:TagOpenIDConnectProvider")
}
