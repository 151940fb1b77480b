package stack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap/stack"
)

func TestPreviewOfAnUpdate(t *testing.T) {
	with(t, awssim.Options{Page: 2}, func(t *testing.T, u *user) {
		before := u.aws.Detailed()
		w := stack.Wanted{Template: template(t, nil)}
		p, err := u.stack().Preview(t.Context(), w)
		require.NoError(t, err)
		require.NoError(t, p.Err)
		assert.True(t, p.Asked)
		asked := p.Steps
		var lines []string
		for _, s := range p.Steps {
			lines = append(lines, strings.TrimSpace(fmt.Sprint(s.Action, " ", s.Logical, " ", strings.Join(s.Properties, ","))))
		}
		assert.Equal(t, []string{
			"add AWSIAMManagedPolicyCloudProviderControlPlane",
			"add AWSIAMManagedPolicyCloudProviderNodes",
			"add AWSIAMManagedPolicyControllers",
			"add AWSIAMManagedPolicyControllersEKS",
			"change AWSIAMRoleControllers AssumeRolePolicyDocument",
			"add AWSIAMRoleEKSControlPlane",
			"change AWSIAMRoleNodes ManagedPolicyArns",
		}, lines)
		assert.Contains(t, p.Diff, "--- stack "+name+" in us-east-1\n+++ new template\n")
		assert.Contains(t, p.Diff, "\n+          - sts:TagSession\n")
		assert.Equal(t, before, u.aws.Detailed(), "nothing has changed")
		u.aws.Edit(func(s *awssim.State) {
			for _, x := range s.CloudFormation.Stacks {
				assert.Empty(t, x.ChangeSets, "no change set remains")
			}
		})

		u.p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "CreateChangeSet" {
				return awssim.Denied
			}
			return awssim.None
		}
		p, err = u.stack().Preview(t.Context(), w)
		require.NoError(t, err)
		assert.False(t, p.Asked)
		assert.Equal(t, asked, p.Steps, "computed locally it is the same")
		u.p.Fault = nil

		_, err = u.apply(w)
		require.NoError(t, err)
		p, err = u.stack().Preview(t.Context(), w)
		require.NoError(t, err)
		assert.Empty(t, p.Steps)
		assert.Empty(t, p.Diff)
	})
}

func TestPreviewOfACreation(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		p, err := u.stack().Preview(t.Context(), stack.Wanted{Template: template(t, nil)})
		require.NoError(t, err)
		require.NoError(t, p.Err)
		assert.Empty(t, p.Status)
		assert.Len(t, p.Steps, 11)
		assert.False(t, p.Asked)
		assert.Empty(t, u.aws.Inventory())
		assert.Zero(t, u.count("CreateChangeSet"), "it would leave a stack if killed")
		p, err = u.stack().Preview(t.Context(), stack.Wanted{Template: "Resources: {X: {}}"})
		require.NoError(t, err)
		require.ErrorContains(t, p.Err, "must contain a Type member")
	})
}

func TestTooLarge(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		body := template(t, nil)
		_, err := u.apply(stack.Wanted{Template: body + strings.Repeat("#", 51200)})
		require.ErrorContains(t, err, "the limit is 51200")
		_, err = u.apply(stack.Wanted{Template: strings.Replace(body, "- ec2:DescribeIpamPools", "- ec2:"+strings.Repeat("x", 6144), 1)})
		require.ErrorContains(t, err, "policy controllers.cluster-api-provider-aws.sigs.k8s.io has ")
		require.ErrorContains(t, err, "the limit is 6144")
		assert.Empty(t, u.aws.Calls(), "no call was sent")
		many := template(t, func(c *bootstrap.Config) {
			for i := range 9 {
				c.Spec.Nodes.ExtraPolicyAttachments = append(c.Spec.Nodes.ExtraPolicyAttachments, fmt.Sprintf("arn:aws:iam::aws:policy/%d", i))
			}
		})
		_, err = u.apply(stack.Wanted{Template: many})
		require.Error(t, err, "there are no such policies")
		assert.Contains(t, u.story[0], "12 managed policies are to be attached to role nodes.")
	})
}

// Conflicts are reported before the first request.
func TestForeignObjects(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		other := awssim.New(awssim.Options{Region: "eu-west-1"})
		u.elsewhere = []aws.Config{u.aws.Config(), other.Config()}
		other.Edit(func(there *awssim.State) {
			u.aws.Edit(func(here *awssim.State) {
				here.IAM.Roles, here.IAM.Profiles = there.IAM.Roles, there.IAM.Profiles // IAM is global
				here.IAM.Policies["csi.cluster-api-provider-aws.sigs.k8s.io"] = &awssim.Policy{Name: "csi.cluster-api-provider-aws.sigs.k8s.io", Path: "/other/"}
			})
		})
		_, err := u.apply(stack.Wanted{Template: template(t, csi)})
		var in *stack.ConflictError
		require.ErrorAs(t, err, &in)
		assert.Equal(t, []string{
			"policy csi.cluster-api-provider-aws.sigs.k8s.io exists already",
			"instance profile control-plane.cluster-api-provider-aws.sigs.k8s.io exists already, created by stack " + name + " in eu-west-1",
			"instance profile controllers.cluster-api-provider-aws.sigs.k8s.io exists already, created by stack " + name + " in eu-west-1",
			"instance profile nodes.cluster-api-provider-aws.sigs.k8s.io exists already, created by stack " + name + " in eu-west-1",
			"role control-plane.cluster-api-provider-aws.sigs.k8s.io exists already, created by stack " + name + " in eu-west-1",
			"role controllers.cluster-api-provider-aws.sigs.k8s.io exists already, created by stack " + name + " in eu-west-1",
			"role nodes.cluster-api-provider-aws.sigs.k8s.io exists already, created by stack " + name + " in eu-west-1",
		}, in.Problems)
		assert.Contains(t, in.Remedy, "IAM is global: the objects of stack "+name+" in eu-west-1 can be used in all regions")
		assert.Contains(t, in.Remedy, "namePrefix")
		assert.Zero(t, u.count("CreateStack"))

		p, err := u.stack().Preview(t.Context(), stack.Wanted{Template: template(t, nil)})
		require.NoError(t, err)
		require.ErrorAs(t, p.Err, &in, "a dry run reports it, too")
	})
}

// Bootstrapping does not need the permission to read IAM objects.
func TestPreflightMayBeDenied(t *testing.T) {
	bare(t, func(t *testing.T, u *user) {
		u.p.Fault = func(_ int, service, _ string) awssim.Fault {
			if service == "IAM" {
				return awssim.Denied
			}
			return awssim.None
		}
		outcome, err := u.apply(stack.Wanted{})
		require.NoError(t, err)
		assert.Equal(t, stack.Created, outcome)
		assert.Contains(t, u.story[0], "warning: cannot check for conflicts with existing IAM objects")
		assert.Contains(t, u.story[1], "CREATE_IN_PROGRESS", "one warning")
	})
	bare(t, func(t *testing.T, u *user) {
		u.p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "ListPolicies" {
				return awssim.Denied
			}
			return awssim.None
		}
		u.aws.Edit(func(s *awssim.State) {
			s.IAM.Roles["nodes.cluster-api-provider-aws.sigs.k8s.io"] = &awssim.Role{Name: "nodes.cluster-api-provider-aws.sigs.k8s.io"}
		})
		_, err := u.apply(stack.Wanted{})
		var in *stack.ConflictError
		require.ErrorAs(t, err, &in, "visible conflicts are reported")
	})
}
