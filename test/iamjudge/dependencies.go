package iamjudge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// dependency is an action that AWS checks in addition to that of a call.
type dependency struct {
	action  string
	values  map[string][]string // of its resource, where the input of the call has other ones
	context map[string]string
}

// as returns the call with the values of the dependency.
func (d dependency) as(c call) call {
	c.values = maps.Clone(c.values)
	maps.Copy(c.values, d.values)
	return c
}

// documented are the dependent actions that the pages of the services name, and the
// Service Authorization Reference does not. Sources:
//
//   - "Elastic Load Balancing API permissions" in its user guide. ec2:CreateSecurityGroup
//     is for load balancers without a security group, and the actions for ClassicLink are
//     for instances outside of VPCs, which do not exist any more. For
//     ec2:GetSecurityGroupsForVpc see
//     github.com/kubernetes-sigs/aws-load-balancer-controller/issues/3917.
//   - "Control Amazon EC2 launch template usage in Auto Scaling groups" in its user guide.
//     Node groups of EKS with a launch template are Auto Scaling groups.
//   - The pages CreateSecret, PutParameter and PutLifecycleHook of the API references, and
//     "Tag IAM roles" and "Tag OpenID Connect (OIDC) identity providers" in IAM's user guide.
//   - "Using service-linked roles" in the user guides of EKS, Auto Scaling and EC2 (Spot).
//   - "Encrypt Kubernetes secrets with KMS" in EKS's user guide, and "Amazon EBS encryption"
//     in EC2's.
//
// No page says whether CreateAddon, UpdateAddon and the calls for pod identity associations check iam:PassRole;
// it is assumed here.
func documented() map[string][]string {
	network := []string{"ec2:DescribeInternetGateways", "ec2:DescribeVpcs"}
	pool := []string{"ec2:CreateTags", "ec2:RunInstances", "iam:PassRole"}
	volume := []string{"kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"}
	ofEKS := []string{"eks:TagResource", "iam:PassRole", "iam:CreateServiceLinkedRole"}
	return map[string][]string{
		"elasticloadbalancing:ApplySecurityGroupsToLoadBalancer": {"ec2:DescribeAccountAttributes", "ec2:DescribeSecurityGroups"},
		"elasticloadbalancing:AttachLoadBalancerToSubnets":       {"ec2:DescribeSubnets"},
		"elasticloadbalancing:CreateLoadBalancer": append(
			network,
			"ec2:DescribeAccountAttributes",
			"ec2:DescribeAddresses",
			"ec2:DescribeSecurityGroups",
			"ec2:DescribeSubnets",
			"ec2:GetSecurityGroupsForVpc",
			"iam:CreateServiceLinkedRole",
		),
		"elasticloadbalancing:CreateTargetGroup":                   network,
		"elasticloadbalancing:DeregisterInstancesFromLoadBalancer": {"ec2:DescribeInstances"},
		"elasticloadbalancing:RegisterInstancesWithLoadBalancer":   {"ec2:DescribeAccountAttributes", "ec2:DescribeInstances"},
		"elasticloadbalancing:RegisterTargets":                     append(network, "ec2:DescribeInstances", "ec2:DescribeSubnets"),
		"elasticloadbalancing:SetIpAddressType":                    {"ec2:DescribeSubnets"},
		"elasticloadbalancing:SetSecurityGroups":                   {"ec2:GetSecurityGroupsForVpc"},
		"elasticloadbalancing:SetSubnets":                          {"ec2:DescribeSubnets"},
		"autoscaling:CreateAutoScalingGroup":                       append(pool, "autoscaling:CreateOrUpdateTags"),
		"autoscaling:UpdateAutoScalingGroup":                       pool,
		"autoscaling:PutLifecycleHook":                             {"iam:PassRole"},
		"ec2:CreateLaunchTemplate":                                 {"iam:PassRole"}, // checked with the group that uses it, whose input does not name the role
		"ec2:CreateLaunchTemplateVersion":                          {"iam:PassRole"},
		"ec2:RunInstances":                                         append(volume, "iam:CreateServiceLinkedRole"),
		"eks:AssociateEncryptionConfig":                            {"kms:CreateGrant", "kms:DescribeKey"},
		"eks:CreateAccessEntry":                                    {"eks:TagResource"},
		"eks:CreateAddon":                                          {"eks:TagResource", "iam:PassRole"},
		"eks:CreateCluster":                                        append(ofEKS, "kms:CreateGrant", "kms:DescribeKey"),
		"eks:CreateFargateProfile":                                 ofEKS,
		"eks:CreateNodegroup":                                      append(ofEKS, "ec2:CreateTags", "ec2:RunInstances"),
		"eks:CreatePodIdentityAssociation":                         {"eks:TagResource", "iam:PassRole"},
		"eks:UpdateAddon":                                          {"iam:PassRole"},
		"eks:UpdatePodIdentityAssociation":                         {"iam:PassRole"},
		"iam:CreateOpenIDConnectProvider":                          {"iam:TagOpenIDConnectProvider"},
		"events:PutRule":                                           {"events:TagResource"},
		"iam:CreateRole":                                           {"iam:TagRole"},
		"secretsmanager:CreateSecret":                              {"secretsmanager:TagResource"},
		"sqs:CreateQueue":                                          {"sqs:TagQueue"},
		"ssm:PutParameter":                                         {"ssm:AddTagsToResource"},
	}
}

// dependencies returns the dependent actions of one action that apply to a call.
func (a *authorization) dependencies(c call, action string) (out []dependency, err error) {
	names := slices.Concat(a.dependent[strings.ToLower(action)], documented()[action])
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		found, known := c.depends(name)
		if !known {
			return nil, fmt.Errorf("it is not known when %s needs %s", action, name)
		}
		out = append(out, found...)
	}
	return out, nil
}

// depends returns the dependencies on an action, which may not apply to the call, and
// whether it is known when they do.
func (c call) depends(action string) (out []dependency, known bool) {
	switch action {
	case "iam:PassRole":
		return c.passed(), true
	case "iam:CreateServiceLinkedRole":
		return c.linked(), true
	}
	applies, known := c.applies(action)
	if applies {
		out = []dependency{{action: action}}
	}
	return out, known
}

// applies reports whether a dependent action is checked in the call, and whether that is
// known.
func (c call) applies(action string) (applies, known bool) {
	if slices.Contains(always(), action) {
		return true, true
	}
	if slices.Contains(forTags(), action) {
		return c.has("Key"), true
	}
	service, _, _ := strings.Cut(action, ":")
	switch {
	case action == "ec2:CreateTags":
		return c.has("ResourceType") || c.service != "ec2", true // of a tag specification
	case c.operation == "CreateFlowLogs": // "Publish flow logs to Amazon S3", Amazon VPC User Guide; the others are for ECS and log groups that it makes
		return action == "logs:CreateLogDelivery" && slices.Contains(c.values["LogDestinationType"], "s3"), true
	case action == "ec2:RunInstances":
		return c.has("LaunchTemplateId") || c.service == "eks" && c.has("Id"), true
	case action == "ssm:GetParameters": // for an image that is the name of a parameter
		return slices.ContainsFunc(c.values["ImageId"], func(id string) bool { return strings.HasPrefix(id, "resolve:ssm:") }), true
	case action == "route53:AssociateVPCWithHostedZone": // for the DNS name of an interface endpoint
		return slices.Contains(c.values["VpcEndpointType"], "Interface"), true
	case c.operation == "GetServiceQuota": // Service Quotas asks the service that the quota belongs to
		return slices.Contains(c.values["ServiceCode"], service), true
	case service == "kms":
		return c.key() != "", true
	}
	return false, false
}

// always are the dependent actions that every call checks that depends on them.
func always() []string {
	return []string{
		"ec2:DescribeAccountAttributes", "ec2:DescribeAddresses", "ec2:DescribeInstances", "ec2:DescribeInternetGateways", "ec2:DescribeSecurityGroups",
		"ec2:DescribeSubnets", "ec2:DescribeVpcs", "ec2:GetSecurityGroupsForVpc", "eks:TagResource",
	}
}

// forTags are the dependent actions of a call that sets tags.
func forTags() []string {
	return []string{
		"autoscaling:CreateOrUpdateTags",
		"elasticloadbalancing:AddTags",
		"events:TagResource",
		"iam:TagOpenIDConnectProvider",
		"iam:TagRole",
		"secretsmanager:TagResource",
		"sqs:TagQueue",
		"ssm:AddTagsToResource",
	}
}

func (c call) has(field string) bool { return len(c.values[field]) > 0 }

// passed returns the roles that the call passes to a service. The role of an instance
// profile has the name of the profile, as those of Cluster API Provider AWS.
func (c call) passed() (out []dependency) {
	fields := map[string][]string{ // by the service that gets them
		"ec2.amazonaws.com":           {"Name"},
		"eks.amazonaws.com":           {"RoleArn", "NodeRole", "PodExecutionRoleArn", "ServiceAccountRoleArn"},
		"autoscaling.amazonaws.com":   {"RoleARN"},
		"vpc-flow-logs.amazonaws.com": {"DeliverLogsPermissionArn"},
	}
	to := c.service + ".amazonaws.com"
	if c.operation == "CreateFlowLogs" {
		to = "vpc-flow-logs.amazonaws.com"
	}
	for _, field := range fields[to] {
		for _, role := range c.values[field] {
			out = append(out, dependency{"iam:PassRole", map[string][]string{"RoleName": nil, "RoleArn": {role}}, map[string]string{"iam:PassedToService": to}})
		}
	}
	return out
}

// linked returns the service-linked role that the first such call in an account creates.
func (c call) linked() []dependency {
	service := map[string]string{
		"CreateLoadBalancer": "elasticloadbalancing", "CreateAutoScalingGroup": "autoscaling",
		"CreateCluster": "eks", "CreateNodegroup": "eks-nodegroup", "CreateFargateProfile": "eks-fargate",
	}[c.operation]
	if c.operation == "RunInstances" && slices.Contains(c.values["MarketType"], "spot") {
		service = "spot"
	}
	if service == "" {
		return nil
	}
	service += ".amazonaws.com"
	return []dependency{{
		"iam:CreateServiceLinkedRole",
		map[string][]string{"RoleName": nil, "RoleArn": {"aws-service-role/" + service + "/AWSServiceRole"}},
		map[string]string{"iam:AWSServiceName": service},
	}}
}
