package bootstrap

import (
	"slices"

	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"
)

// controllersPolicyEKS has the permissions of the controllers for EKS clusters. The
// statement about Fargate contains two names of the service, as in upstream.
func (c *Config) controllersPolicyEKS() *iamv1.PolicyDocument {
	partition := c.Spec.Partition
	roles := actions("iam", `GetRole ListAttachedRolePolicies`)
	statements := []iamv1.StatementEntry{
		allow(actions("ssm", "GetParameter"), iamv1.Resources{"arn:*:ssm:*:*:parameter/aws/service/eks/optimized-ami/*"}),
		allowServiceLinkedRole("eks.amazonaws.com",
			"arn:*:iam::*:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS"),
		allowServiceLinkedRole("eks-nodegroup.amazonaws.com",
			"arn:*:iam::*:role/aws-service-role/eks-nodegroup.amazonaws.com/AWSServiceRoleForAmazonEKSNodegroup"),
		allowServiceLinkedRole("eks-fargate.amazonaws.com",
			"arn:"+partition+":iam::*:role/aws-service-role/eks-fargate-pods.amazonaws.com/AWSServiceRoleForAmazonEKSForFargate"),
	}
	if c.Spec.EKS.AllowIAMRoleCreation {
		roles = append(roles, actions("iam", `DetachRolePolicy DeleteRole CreateRole TagRole AttachRolePolicy`)...)
		statements = append(statements, allow(actions("iam", `ListOpenIDConnectProviders GetOpenIDConnectProvider CreateOpenIDConnectProvider
				AddClientIDToOpenIDConnectProvider UpdateOpenIDConnectProviderThumbprint
				DeleteOpenIDConnectProvider TagOpenIDConnectProvider`), everything()))
	}
	return document(append(statements,
		allow(roles, iamv1.Resources{"arn:*:iam::*:role/*"}),
		allow(actions("iam", "GetPolicy"), iamv1.Resources{"arn:" + partition + ":iam::aws:policy/AmazonEKSClusterPolicy"}),
		allow(actions("eks", `DescribeCluster ListClusters CreateCluster TagResource UpdateClusterVersion DeleteCluster
			UpdateClusterConfig UntagResource UpdateNodegroupVersion DescribeNodegroup DeleteNodegroup
			UpdateNodegroupConfig CreateNodegroup AssociateEncryptionConfig ListIdentityProviderConfigs
			AssociateIdentityProviderConfig DescribeIdentityProviderConfig
			DisassociateIdentityProviderConfig`),
			iamv1.Resources{"arn:*:eks:*:*:cluster/*", "arn:*:eks:*:*:nodegroup/*/*/*"}),
		allow(slices.Concat(
			actions("ec2", `AssociateVpcCidrBlock DisassociateVpcCidrBlock`),
			actions("eks", `ListAddons CreateAddon DescribeAddonVersions DescribeAddon DeleteAddon UpdateAddon TagResource
				DescribeFargateProfile CreateFargateProfile DeleteFargateProfile`),
		), everything()),
		allowIf(iamv1.StringEquals, "iam:PassedToService", "eks.amazonaws.com", actions("iam", "PassRole"), everything()),
		allowIf("ForAnyValue:StringLike", "kms:ResourceAliases", "alias/"+c.Spec.EKS.KMSAliasPrefix,
			actions("kms", "CreateGrant DescribeKey"), everything()),
	)...)
}

// eksConsolePolicy permits viewing clusters in the AWS console.
func eksConsolePolicy() *iamv1.PolicyDocument {
	return document(allow(slices.Concat(
		actions("eks", `DescribeNodegroup ListNodegroups DescribeCluster ListClusters AccessKubernetesApi`),
		actions("ssm", `GetParameter`),
		actions("eks", `ListUpdates ListFargateProfiles`),
	), everything()))
}
