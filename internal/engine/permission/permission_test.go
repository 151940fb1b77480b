package permission_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// needs lists the actions that IAM wants allowed for a call, where they are
// not just the operation's name. Sources: the pages "Actions, resources, and
// condition keys" of the Service Authorization Reference.
func needs(c call) []string {
	special := map[call][]string{
		{"s3", "HeadBucket"}:                   {"s3:ListBucket"},
		{"s3", "HeadObject"}:                   {"s3:GetObject", "s3:ListBucket"}, // without s3:ListBucket, a missing object is a refusal
		{"s3", "ListObjectVersions"}:           {"s3:ListBucketVersions"},
		{"s3", "ListObjectsV2"}:                {"s3:ListBucket"},
		{"s3", "DeleteObjects"}:                {"s3:DeleteObject", "s3:DeleteObjectVersion"},
		{"sts", "GetCallerIdentity"}:           {}, // always allowed
		{"iam", "SimulatePrincipalPolicy"}:     {}, // a run goes on without it
		{"pricing", "GetProducts"}:             {}, // these two only for the cost in a plan, which says so if they are denied; spot prices also for a warning
		{"ec2", "DescribeSpotPriceHistory"}:    {},
		{"sts", "DecodeAuthorizationMessage"}:  {}, // as above
		{"ssm", "DescribeInstanceInformation"}: {}, // these four only for what is done on machines: logs, an import, exec, ssh, which say so if they are denied
		{"ssm", "SendCommand"}:                 {},
		{"ssm", "StartSession"}:                {},
		{"ssm", "GetCommandInvocation"}:        {},
		{"secretsmanager", "GetSecretValue"}:   {}, // only for an import, which says so if it is denied
		// with what they do on the way
		{"autoscaling", "CreateAutoScalingGroup"}: {
			"autoscaling:CreateAutoScalingGroup",
			"autoscaling:CreateOrUpdateTags",
			"ec2:RunInstances",
			"ec2:CreateTags",
			"iam:PassRole",
			"iam:CreateServiceLinkedRole",
		},
		{"autoscaling", "PutLifecycleHook"}: {"autoscaling:PutLifecycleHook", "iam:PassRole"},
		{"ec2", "RunInstances"}: {
			"ec2:RunInstances",
			"ec2:CreateTags",
			"iam:PassRole",
			"iam:CreateServiceLinkedRole",
			"kms:CreateGrant",
			"kms:Decrypt",
			"kms:DescribeKey",
			"kms:GenerateDataKeyWithoutPlaintext",
			"kms:ReEncryptFrom",
			"kms:ReEncryptTo",
		},
		{"ec2", "CreateFlowLogs"}: {"ec2:CreateFlowLogs", "iam:PassRole", "logs:CreateLogDelivery"},
		{"ec2", "DeleteFlowLogs"}: {"ec2:DeleteFlowLogs", "logs:DeleteLogDelivery"},
		{"elasticloadbalancing", "CreateLoadBalancer"}: {
			"elasticloadbalancing:CreateLoadBalancer",
			"ec2:DescribeAccountAttributes",
			"ec2:GetSecurityGroupsForVpc",
			"elasticloadbalancing:AddTags",
			"iam:CreateServiceLinkedRole",
		},
		{"elasticloadbalancingv2", "CreateLoadBalancer"}: {
			"elasticloadbalancing:CreateLoadBalancer",
			"ec2:DescribeAccountAttributes",
			"ec2:GetSecurityGroupsForVpc",
			"elasticloadbalancing:AddTags",
			"iam:CreateServiceLinkedRole",
		},
		{"elasticloadbalancingv2", "SetSecurityGroups"}: {"elasticloadbalancing:SetSecurityGroups", "ec2:GetSecurityGroupsForVpc"},
		{"servicequotas", "GetServiceQuota"}:            {"servicequotas:GetServiceQuota", "elasticloadbalancing:DescribeAccountLimits"},
		{"secretsmanager", "CreateSecret"}:              {"secretsmanager:CreateSecret", "secretsmanager:TagResource"},
		{"sqs", "CreateQueue"}:                          {"sqs:CreateQueue", "sqs:TagQueue"},
		{"eventbridge", "PutRule"}:                      {"events:PutRule", "events:TagResource"},
		{"ssm", "PutParameter"}:                         {"ssm:PutParameter", "ssm:AddTagsToResource"},
	}
	if actions, ok := special[c]; ok {
		return actions
	}
	return []string{services()[c.service].prefix + ":" + c.operation}
}

// all is a scope in which everything is needed.
func all() permission.Scope {
	return permission.Scope{
		Backups:    []string{"backups"},
		BackupKeys: []string{"arn:aws:kms:*:*:key/*"},
		Assume:     []string{"arn:aws:iam::123456789012:role/prod"},
		Keys:       []string{"arn:aws:kms:*:*:key/*"},
		MadeRoles:  []string{"mine"},
		FlowLogs:   []string{"arn:aws:iam::123456789012:role/flow-logs"},
		LogBuckets: true,
		Karpenter:  "mine",
	}
}

// TestExactlyWhatTheEngineCalls holds the policy against the code: every call
// is allowed, and nothing is that is not called.
func TestExactlyWhatTheEngineCalls(t *testing.T) {
	allowed := map[string]bool{}
	for _, s := range permission.Policy(all()).Statement {
		for _, action := range s.Action {
			allowed[action] = true
		}
		assert.True(t, slices.IsSorted(s.Action), "%s: sorted", s.Sid)
	}
	found := calls(t, "..", "../../cloud", "../../cli/cluster")
	require.Greater(t, len(found), 100, "the calls are not found any more")
	needed := map[string]bool{}
	for c, at := range found {
		for _, action := range needs(c) {
			needed[action] = true
			assert.True(t, allowed[action], "%s: calls %s %s, and the policy does not allow %s", at, c.service, c.operation, action)
		}
	}
	for action := range allowed {
		assert.True(t, needed[action], "nothing calls what needs %s", action)
	}
}

// TestPolicy shows the document to a reader.
func TestPolicy(t *testing.T) {
	show := func(s permission.Scope) string {
		out, err := json.MarshalIndent(permission.Policy(s), "", "  ")
		require.NoError(t, err)
		return string(out) + "\n"
	}
	golden.Assert(t, "policy.json", show(permission.Scope{}))
	golden.Assert(t, "policy-self-managed.json", show(permission.Scope{Kind: permission.SelfManaged}))
	golden.Assert(t, "policy-eks.json", show(permission.Scope{Kind: permission.EKS}))
	s := all()
	s.Kind, s.NoPools = permission.SelfManaged, true
	s.Partition, s.Region, s.Buckets, s.Roles = "aws-cn", "cn-north-1", []string{"boot"}, []string{"mine"}
	golden.Assert(t, "policy-scoped.json", show(s))
}
