package bootstrap

import (
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"
)

// controlPlanePolicy is what the AWS cloud provider does on control planes.
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

// nodePolicy is what the AWS cloud provider, the kubelet and the machine itself
// do on nodes.
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

// nodeSecrets lets a machine read its boot data, and remove it then. For a
// backend that there is not, it is the empty statement that it has always been.
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

// csiPolicy is what the EBS CSI driver does.
func csiPolicy() *iamv1.PolicyDocument {
	return document(allow(actions("ec2", `AttachVolume CreateSnapshot CreateTags CreateVolume DeleteSnapshot DeleteTags DeleteVolume
		DescribeAvailabilityZones DescribeInstances DescribeSnapshots DescribeTags DescribeVolumes
		DescribeVolumesModifications DetachVolume ModifyVolume`), everything()))
}
