package bootstrap

import (
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"
)

// controlPlanePolicy has the permissions of the AWS cloud provider on control planes.
func controlPlanePolicy() *iamv1.PolicyDocument {
	return document(allow(slices.Concat(
		actions("autoscaling", `DescribeAutoScalingGroups DescribeLaunchConfigurations DescribeTags`),
		actions("ec2", `AssignIpv6Addresses DescribeInstances DescribeImages DescribeRegions DescribeRouteTables
			DescribeSecurityGroups DescribeSubnets DescribeVolumes CreateSecurityGroup CreateTags
			CreateVolume ModifyInstanceAttribute ModifyVolume AttachVolume AuthorizeSecurityGroupIngress
			CreateRoute DeleteRoute DeleteSecurityGroup DeleteVolume DetachVolume RevokeSecurityGroupIngress
			DescribeVpcs`),
		actions("elasticloadbalancing", `AddTags AttachLoadBalancerToSubnets ApplySecurityGroupsToLoadBalancer SetSecurityGroups
			CreateLoadBalancer CreateLoadBalancerPolicy CreateLoadBalancerListeners ConfigureHealthCheck
			DeleteLoadBalancer DeleteLoadBalancerListeners DescribeLoadBalancers
			DescribeLoadBalancerAttributes DetachLoadBalancerFromSubnets DeregisterInstancesFromLoadBalancer
			ModifyLoadBalancerAttributes RegisterInstancesWithLoadBalancer
			SetLoadBalancerPoliciesForBackendServer CreateListener CreateTargetGroup DeleteListener
			DeleteTargetGroup DeregisterTargets DescribeListeners DescribeLoadBalancerPolicies
			DescribeTargetGroups DescribeTargetHealth ModifyListener ModifyTargetGroup RegisterTargets
			SetLoadBalancerPoliciesOfListener`),
		actions("iam", `CreateServiceLinkedRole`),
		actions("kms", `DescribeKey`),
	), everything()))
}

// nodePolicy has the permissions of the AWS cloud provider, the kubelet and the machine
// itself on nodes.
func (c *Config) nodePolicy() *iamv1.PolicyDocument {
	statements := []iamv1.StatementEntry{allow(slices.Concat(
		actions("ec2", `AssignIpv6Addresses DescribeInstances DescribeRegions CreateTags DescribeTags
			DescribeNetworkInterfaces DescribeInstanceTypes`),
		actions("ecr", `GetAuthorizationToken BatchCheckLayerAvailability GetDownloadUrlForLayer GetRepositoryPolicy
			DescribeRepositories ListImages BatchGetImage`),
	), everything())}
	statements = append(statements, c.secrets(nodeSecrets)...)
	return document(append(statements, allow(slices.Concat(
		actions("ssm", `UpdateInstanceInformation`),
		actions("ssmmessages", `CreateControlChannel CreateDataChannel OpenControlChannel OpenDataChannel`),
		actions("s3", `GetEncryptionConfiguration`),
	), everything()))...)
}

// nodeSecrets permits a machine to read and then delete its boot data. For an unknown
// backend it returns an empty statement, as upstream does.
func nodeSecrets(backend infrav1.SecretBackend) (iamv1.StatementEntry, bool) {
	switch backend {
	case infrav1.SecretBackendSecretsManager:
		return allow(actions("secretsmanager", `DeleteSecret GetSecretValue`), secretsIn(backend)), true
	case infrav1.SecretBackendSSMParameterStore:
		return allow(actions("ssm", `DeleteParameter GetParameter`), secretsIn(backend)), true
	default:
		return iamv1.StatementEntry{}, true
	}
}

// csiPolicy has the permissions of the EBS CSI driver.
func csiPolicy() *iamv1.PolicyDocument {
	return document(allow(actions("ec2", `AttachVolume CreateSnapshot CreateTags CreateVolume DeleteSnapshot DeleteTags DeleteVolume
		DescribeAvailabilityZones DescribeInstances DescribeSnapshots DescribeTags DescribeVolumes
		DescribeVolumesModifications DetachVolume ModifyVolume`), everything()))
}
