package bootstrap

import (
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"
)

// controllersPolicy has the permissions of the controllers of Cluster API Provider AWS.
// It lacks ec2:DeleteNetworkInterface, which the controllers of v2.13.0 call when they
// delete a VPC; they continue if it is denied.
func (c *Config) controllersPolicy() *iamv1.PolicyDocument {
	statements := []iamv1.StatementEntry{
		allow(controllersActions(), everything()),
		allow(actions("autoscaling", `CancelInstanceRefresh CreateAutoScalingGroup UpdateAutoScalingGroup CreateOrUpdateTags
			StartInstanceRefresh DeleteAutoScalingGroup DeleteTags`),
			iamv1.Resources{"arn:*:autoscaling:*:*:autoScalingGroup:*:autoScalingGroupName/*"}),
		allowServiceLinkedRole("autoscaling.amazonaws.com",
			"arn:*:iam::*:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"),
		allowServiceLinkedRole("elasticloadbalancing.amazonaws.com",
			"arn:*:iam::*:role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing"),
		allowServiceLinkedRole("spot.amazonaws.com",
			"arn:*:iam::*:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"),
		allow(actions("iam", "PassRole"), c.allowedRoles()),
	}
	statements = append(statements, c.secrets(controllersSecrets)...)
	if c.Spec.AllowAssumeRole {
		statements = append(statements, allow(actions("sts", "AssumeRole"), c.allowedRoles()))
	}
	if c.Spec.S3Buckets.Enable {
		statements = append(statements, allow(actions("s3", `CreateBucket DeleteBucket DeleteObject GetObject ListBucket PutBucketPolicy PutBucketTagging
				PutLifecycleConfiguration PutObject`),
			iamv1.Resources{"arn:*:s3:::" + c.Spec.S3Buckets.NamePrefix + "*"}))
	}
	if c.Spec.EventBridge.Enable {
		statements = append(statements, allow(slices.Concat(
			actions("events", `DeleteRule DescribeRule ListTargetsByRule PutRule PutTargets RemoveTargets`),
			actions("sqs", `CreateQueue DeleteMessage DeleteQueue GetQueueAttributes GetQueueUrl ReceiveMessage
				SetQueueAttributes`),
		), everything()))
	}
	return document(statements...)
}

// allowedRoles returns the roles that the controllers may pass to machines. An empty list
// means none; no list means the roles of this template.
func (c *Config) allowedRoles() (out iamv1.Resources) {
	names := c.Spec.ClusterAPIControllers.AllowedEC2InstanceProfiles
	if names == nil {
		names = []string{c.name("*")}
	}
	for _, name := range names {
		out = append(out, "arn:*:iam::*:role/"+name)
	}
	return out
}

func controllersSecrets(backend infrav1.SecretBackend) (iamv1.StatementEntry, bool) {
	switch backend {
	case infrav1.SecretBackendSecretsManager:
		return allow(actions("secretsmanager", `CreateSecret DeleteSecret TagResource`), secretsIn(backend)), true
	case infrav1.SecretBackendSSMParameterStore:
		return allow(actions("ssm", `PutParameter DeleteParameter AddTagsToResource`), secretsIn(backend)), true
	default:
		return iamv1.StatementEntry{}, false
	}
}

// controllersActions returns the actions that are permitted on all resources.
func controllersActions() iamv1.Actions {
	return slices.Concat(
		actions("ec2", `DescribeIpamPools AllocateIpamPoolCidr AttachNetworkInterface DetachNetworkInterface
			AllocateAddress AssignIpv6Addresses AssignPrivateIpAddresses UnassignPrivateIpAddresses
			AssociateRouteTable AssociateVpcCidrBlock AttachInternetGateway AuthorizeSecurityGroupIngress
			CreateCarrierGateway CreateInternetGateway CreateEgressOnlyInternetGateway CreateNatGateway
			CreateNetworkInterface CreateRoute CreateRouteTable CreateSecurityGroup CreateSubnet CreateTags
			CreateVpc CreateVpcEndpoint DisassociateVpcCidrBlock ModifyVpcAttribute ModifyVpcEndpoint
			DeleteCarrierGateway DeleteInternetGateway DeleteEgressOnlyInternetGateway DeleteNatGateway
			DeleteRouteTable ReplaceRoute DeleteSecurityGroup DeleteSubnet DeleteTags DeleteVpc
			DeleteVpcEndpoints DescribeAccountAttributes DescribeAddresses DescribeAvailabilityZones
			DescribeCarrierGateways DescribeInstances DescribeInstanceTypes DescribeInternetGateways
			DescribeEgressOnlyInternetGateways DescribeInstanceTypes DescribeImages DescribeNatGateways
			DescribeNetworkInterfaces DescribeNetworkInterfaceAttribute DescribeRouteTables
			DescribeSecurityGroups DescribeSubnets DescribeVpcs DescribeDhcpOptions DescribeVpcAttribute
			DescribeVpcEndpoints DescribeVolumes DescribeTags DetachInternetGateway DisassociateRouteTable
			DisassociateAddress ModifyInstanceAttribute ModifyNetworkInterfaceAttribute
			ModifySubnetAttribute ReleaseAddress RevokeSecurityGroupEgress RevokeSecurityGroupIngress
			RunInstances TerminateInstances GetSecurityGroupsForVpc`),
		actions("tag", `GetResources`),
		actions("elasticloadbalancing", `AddTags CreateLoadBalancer ConfigureHealthCheck DeleteLoadBalancer DeleteTargetGroup
			DescribeLoadBalancers DescribeLoadBalancerAttributes DescribeTargetGroups
			ApplySecurityGroupsToLoadBalancer SetSecurityGroups DescribeTags ModifyLoadBalancerAttributes
			RegisterInstancesWithLoadBalancer DeregisterInstancesFromLoadBalancer RemoveTags SetSubnets
			ModifyTargetGroupAttributes CreateTargetGroup DescribeListeners CreateListener
			DescribeTargetHealth RegisterTargets DeregisterTargets DeleteListener`),
		actions("autoscaling", `DescribeAutoScalingGroups DescribeInstanceRefreshes DeleteLifecycleHook DescribeLifecycleHooks
			PutLifecycleHook`),
		actions("ec2", `CreateLaunchTemplate CreateLaunchTemplateVersion DescribeLaunchTemplates
			DescribeLaunchTemplateVersions DeleteLaunchTemplate DeleteLaunchTemplateVersions
			DescribeKeyPairs ModifyInstanceMetadataOptions`),
		actions("eks", `CreateAccessEntry DeleteAccessEntry DescribeAccessEntry UpdateAccessEntry ListAccessEntries
			AssociateAccessPolicy DisassociateAccessPolicy ListAssociatedAccessPolicies`),
	)
}
