package permission

import "slices"

// look allows the questions that AWS cannot have limited to a resource.
func look() Statement {
	return allow("Look", anywhere(),
		"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeInstanceRefreshes", "autoscaling:DescribeLifecycleHooks",
		"autoscaling:DescribeScalingActivities",
		"ec2:DescribeAddresses", "ec2:DescribeAvailabilityZones", "ec2:DescribeEgressOnlyInternetGateways", "ec2:DescribeImages",
		"ec2:DescribeInstanceAttribute", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeInternetGateways",
		"ec2:DescribeKeyPairs", "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeLaunchTemplates", "ec2:DescribeNatGateways", "ec2:DescribeNetworkInterfaces",
		"ec2:DescribePlacementGroups", "ec2:DescribeRegions", "ec2:DescribeRouteTables",
		"ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeTags", "ec2:DescribeVolumes", "ec2:DescribeVpcAttribute", "ec2:DescribeVpcEndpoints",
		"ec2:DescribeVpcs", "ec2:GetConsoleOutput",
		"elasticloadbalancing:DescribeListeners", "elasticloadbalancing:DescribeLoadBalancerAttributes", "elasticloadbalancing:DescribeLoadBalancers", // what is left of any is looked for in every deletion
		"elasticloadbalancing:DescribeTags", "elasticloadbalancing:DescribeTargetGroupAttributes", "elasticloadbalancing:DescribeTargetGroups",
		"elasticloadbalancing:DescribeTargetHealth",
		"iam:GetInstanceProfile",
		"secretsmanager:ListSecrets",
		"servicequotas:GetServiceQuota",
		"ssm:DescribeParameters",
	)
}

func network() []string {
	return []string{
		"ec2:AllocateAddress", "ec2:AssociateRouteTable", "ec2:AssociateVpcCidrBlock", "ec2:AttachInternetGateway", "ec2:AuthorizeSecurityGroupIngress",
		"ec2:CreateEgressOnlyInternetGateway", "ec2:CreateInternetGateway", "ec2:CreateNatGateway", "ec2:CreateRoute", "ec2:CreateRouteTable",
		"ec2:CreateSecurityGroup", "ec2:CreateSubnet", "ec2:CreateTags", "ec2:CreateVpc", "ec2:CreateVpcEndpoint",
		"ec2:DeleteEgressOnlyInternetGateway", "ec2:DeleteInternetGateway", "ec2:DeleteNatGateway", "ec2:DeleteNetworkInterface", "ec2:DeleteRouteTable",
		"ec2:DeleteSecurityGroup", "ec2:DeleteSubnet", "ec2:DeleteTags", "ec2:DeleteVpc", "ec2:DeleteVpcEndpoints",
		"ec2:DetachInternetGateway", "ec2:DisassociateRouteTable", "ec2:DisassociateVpcCidrBlock", "ec2:ModifyNetworkInterfaceAttribute",
		"ec2:ModifySubnetAttribute", "ec2:ModifyVpcAttribute", "ec2:ModifyVpcEndpoint", "ec2:ReleaseAddress", "ec2:ReplaceRoute",
		"ec2:ReplaceRouteTableAssociation", "ec2:RevokeSecurityGroupEgress", "ec2:RevokeSecurityGroupIngress",
	}
}

// machines are what is launched, and what goes with it when a cluster is
// deleted: volumes of claims, and the load balancers of Services, which for
// others than EKS are among the cluster's own.
func machines(k Kind) []string {
	actions := []string{"ec2:DeleteVolume", "ec2:ModifyInstanceMetadataOptions", "ec2:RunInstances", "ec2:TerminateInstances"}
	if k == EKS {
		actions = append(actions, "elasticloadbalancing:DeleteLoadBalancer", "elasticloadbalancing:DeleteTargetGroup")
	}
	return actions
}

// pools are Auto Scaling groups and what they launch.
func pools() []string {
	return slices.Sorted(slices.Values(append([]string{
		"autoscaling:CreateAutoScalingGroup", "autoscaling:CreateOrUpdateTags", "autoscaling:DeleteAutoScalingGroup", "autoscaling:ResumeProcesses",
		"autoscaling:StartInstanceRefresh", "autoscaling:SuspendProcesses", "autoscaling:UpdateAutoScalingGroup",
	}, templates()...)))
}

// templates are launch templates, and hooks of groups, whoever's groups these
// are.
func templates() []string {
	return []string{
		"autoscaling:DeleteLifecycleHook", "autoscaling:PutLifecycleHook",
		"ec2:CreateLaunchTemplate", "ec2:CreateLaunchTemplateVersion", "ec2:DeleteLaunchTemplate", "ec2:DeleteLaunchTemplateVersions",
	}
}

// loadBalancers are of both generations: IAM has one set of names for them.
func loadBalancers() []string {
	return []string{
		"elasticloadbalancing:AddTags", "elasticloadbalancing:ApplySecurityGroupsToLoadBalancer", "elasticloadbalancing:AttachLoadBalancerToSubnets",
		"elasticloadbalancing:ConfigureHealthCheck", "elasticloadbalancing:CreateListener", "elasticloadbalancing:CreateLoadBalancer",
		"elasticloadbalancing:CreateTargetGroup", "elasticloadbalancing:DeleteLoadBalancer", "elasticloadbalancing:DeleteTargetGroup",
		"elasticloadbalancing:DeregisterInstancesFromLoadBalancer", "elasticloadbalancing:DeregisterTargets",
		"elasticloadbalancing:DetachLoadBalancerFromSubnets", "elasticloadbalancing:ModifyListener", "elasticloadbalancing:ModifyLoadBalancerAttributes",
		"elasticloadbalancing:ModifyTargetGroup", "elasticloadbalancing:ModifyTargetGroupAttributes",
		"elasticloadbalancing:RegisterInstancesWithLoadBalancer", "elasticloadbalancing:RegisterTargets", "elasticloadbalancing:SetSecurityGroups",
		"elasticloadbalancing:SetSubnets",
	}
}

func parameters() []string {
	return []string{
		"ssm:AddTagsToResource", "ssm:DeleteParameter", "ssm:DeleteParameters", "ssm:GetParameter", "ssm:GetParametersByPath", "ssm:PutParameter",
	}
}

func secrets() []string {
	return []string{"secretsmanager:CreateSecret", "secretsmanager:DeleteSecret", "secretsmanager:PutSecretValue", "secretsmanager:TagResource"}
}

func buckets() []string {
	return []string{
		"s3:CreateBucket", "s3:DeleteBucket", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:GetBucketPolicy", "s3:GetBucketTagging", "s3:GetObject",
		"s3:ListBucket", "s3:ListBucketVersions", "s3:PutBucketPolicy", "s3:PutBucketTagging", "s3:PutObject",
	}
}

// keys are what EC2 does with a customer's key on behalf of who launches a
// machine with an encrypted volume ("Amazon EBS encryption", EC2 user guide).
func keys() []string {
	return []string{
		"kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo",
	}
}
