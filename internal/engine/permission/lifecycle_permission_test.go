package permission_test

import (
	"cmp"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// allowed reports whether a policy allows an action on a resource.
func allowed(d permission.Document, action, resource string) bool {
	return slices.ContainsFunc(d.Statement, func(s permission.Statement) bool {
		return slices.Contains(s.Action, action) && slices.ContainsFunc(s.Resource, func(pattern string) bool {
			// In IAM, a star matches slashes too; in path.Match it does not.
			ok, err := path.Match(strings.ReplaceAll(pattern, "/", "|"), strings.ReplaceAll(resource, "/", "|"))
			return err == nil && ok
		})
	})
}

// permits restricts a process to a policy: to the action of each call and its resource.
func permits(d permission.Document, region string) func(service, op string, in any) bool {
	account := region + ":" + awssim.Account + ":"
	return func(service, op string, in any) bool {
		field := func(name string) string {
			f := reflect.ValueOf(in).Elem().FieldByName(name)
			if !f.IsValid() {
				return ""
			}
			if p, ok := f.Interface().(*string); ok {
				return aws.ToString(p)
			}
			return ""
		}
		switch service {
		case "STS":
			return op == "GetCallerIdentity" || allowed(d, "sts:AssumeRole", field("RoleArn"))
		case "SSM":
			switch op {
			case "DescribeParameters":
				return allowed(d, "ssm:"+op, "*")
			case "GetParametersByPath":
				return allowed(d, "ssm:"+op, "arn:aws:ssm:"+account+"parameter"+field("Path"))
			case "DeleteParameters", "GetParameters":
				names, _ := reflect.ValueOf(in).Elem().FieldByName("Names").Interface().([]string)
				return !slices.ContainsFunc(names, func(n string) bool { return !allowed(d, "ssm:"+op, "arn:aws:ssm:"+account+"parameter"+n) })
			}
			if strings.HasPrefix(field("Name"), "/aws/service/") { // of no account
				return allowed(d, "ssm:"+op, "arn:aws:ssm:"+region+"::parameter"+field("Name"))
			}
			return allowed(d, "ssm:"+op, "arn:aws:ssm:"+account+"parameter"+field("Name"))
		case "Secrets Manager":
			switch op {
			case "ListSecrets":
				return allowed(d, "secretsmanager:"+op, "*")
			case "CreateSecret":
				return allowed(d, "secretsmanager:"+op, "arn:aws:secretsmanager:"+account+"secret:"+field("Name")+"-AbCdEf")
			}
			name := field("SecretId")
			if !strings.HasPrefix(name, "arn:") {
				name = "arn:aws:secretsmanager:" + account + "secret:" + name + "-AbCdEf"
			}
			return allowed(d, "secretsmanager:"+op, name)
		case "S3":
			action := map[string]string{"HeadBucket": "ListBucket", "ListObjectVersions": "ListBucketVersions", "ListObjectsV2": "ListBucket", "DeleteObjects": "DeleteObjectVersion"}[op]
			if action == "" {
				action = op
			}
			resource := "arn:aws:s3:::" + field("Bucket")
			if strings.Contains(action, "Object") {
				resource += "/key"
			}
			return allowed(d, "s3:"+action, resource)
		case "IAM":
			resource := "*"
			switch in := in.(type) {
			case *iam.CreateRoleInput:
				resource = "arn:aws:iam::" + awssim.Account + ":role/" + strings.TrimPrefix(aws.ToString(in.Path), "/") + *in.RoleName
			case *iam.CreateOpenIDConnectProviderInput:
				resource = "arn:aws:iam::" + awssim.Account + ":oidc-provider/" + strings.TrimPrefix(*in.Url, "https://")
			default:
				if role := field("RoleName"); role != "" && op != "GetRole" && op != "ListAttachedRolePolicies" {
					if cluster, _, ofPods := strings.Cut(role, "-"+region+"-"); ofPods { // the path is not in the input
						role = "clusterawsadm/" + region + "/" + cluster + "/" + role
					}
					resource = "arn:aws:iam::" + awssim.Account + ":role/" + role
				}
				if p := field("OpenIDConnectProviderArn"); p != "" && op != "GetOpenIDConnectProvider" {
					resource = p
				}
			}
			return allowed(d, "iam:"+op, resource)
		case "SQS":
			queue := field("QueueName") + field("QueueUrl")
			return allowed(d, "sqs:"+op, "arn:aws:sqs:"+account+queue[strings.LastIndex(queue, "/")+1:])
		case "EventBridge":
			rule := cmp.Or(field("ResourceARN"), "arn:aws:events:"+account+"rule/"+cmp.Or(field("Rule"), field("Name")))
			if op == "ListRules" {
				rule = "*"
			}
			return allowed(d, "events:"+op, rule)
		case "EC2":
			if run, ok := in.(*ec2.RunInstancesInput); ok && run.IamInstanceProfile != nil &&
				!allowed(d, "iam:PassRole", "arn:aws:iam::"+awssim.Account+":role/"+aws.ToString(run.IamInstanceProfile.Name)) {
				return false
			}
			// AWS checks it when the Auto Scaling group is created.
			if t, ok := in.(*ec2.CreateLaunchTemplateInput); ok && t.LaunchTemplateData.IamInstanceProfile != nil &&
				!allowed(d, "iam:PassRole", "arn:aws:iam::"+awssim.Account+":role/"+aws.ToString(t.LaunchTemplateData.IamInstanceProfile.Name)) {
				return false
			}
			return allowed(d, "ec2:"+op, "*")
		}
		for _, action := range dependent(service, op) {
			if !allowed(d, action, "*") {
				return false
			}
		}
		prefix := map[string]string{
			"Auto Scaling": "autoscaling", "EKS": "eks", "Service Quotas": "servicequotas",
			"Elastic Load Balancing": "elasticloadbalancing", "Elastic Load Balancing v2": "elasticloadbalancing",
		}[service]
		return allowed(d, prefix+":"+op, "*")
	}
}

// dependent lists the actions of other services that AWS checks when it carries out a
// call: "Dependent actions" in the Service Authorization Reference. Elastic Load
// Balancing asks for GetSecurityGroupsForVpc since 2024
// (github.com/kubernetes-sigs/aws-load-balancer-controller/issues/3917), and, for the
// first load balancer of an account, for DescribeAccountAttributes
// (github.com/kubernetes/cloud-provider-aws/issues/59).
func dependent(service, op string) []string {
	switch {
	case strings.HasPrefix(service, "Elastic Load Balancing") && op == "CreateLoadBalancer":
		return []string{
			"ec2:DescribeAccountAttributes",
			"ec2:DescribeSecurityGroups",
			"ec2:DescribeSubnets",
			"ec2:DescribeVpcs",
			"ec2:GetSecurityGroupsForVpc",
			"elasticloadbalancing:AddTags",
		}
	case service == "Elastic Load Balancing v2" && op == "SetSecurityGroups":
		return []string{"ec2:GetSecurityGroupsForVpc"}
	case service == "Auto Scaling" && op == "CreateAutoScalingGroup":
		return []string{"autoscaling:CreateOrUpdateTags", "ec2:CreateTags", "ec2:RunInstances"}
	}
	return nil
}

// TestPolicySuffices runs the lifecycle of every example with only the permissions of the
// policy for its manifest.
func TestPolicySuffices(t *testing.T) {
	for _, file := range enginetest.Examples(t) {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			t.Parallel()
			m := enginetest.Quick(enginetest.Load(t, file, nil))
			policy := permission.Of(m)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.Prepare(t, a, m)
				as := func() *awssim.Process {
					p := a.Process()
					p.Permits = permits(permission.Policy(policy), m.Region)
					return p
				}
				before := a.Inventory()
				_, err := enginetest.Open(m, as()).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				enginetest.Lives(t, a, m)
				_, err = enginetest.Open(m, as()).Plan(t.Context())
				require.NoError(t, err)
				_, err = enginetest.Open(m, as()).Delete(t.Context(), enginetest.Everything)
				require.NoError(t, err)
				require.Equal(t, before, a.Inventory())
				for _, c := range a.Calls() {
					require.NotEqual(t, "UnauthorizedOperation", c.Err, c)
				}
			})
		})
	}
}

// TestPolicyIsEnforced checks that the test above detects a missing permission.
func TestPolicyIsEnforced(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		p := a.Process()
		s := permission.Of(m)
		s.Roles = []string{"somebody-else"}
		p.Permits = permits(permission.Policy(s), m.Region)
		_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "RunInstances")
		require.ErrorContains(t, err, "not authorized")
	})
}
