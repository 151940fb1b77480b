package iam

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsarn "github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// UnpassableRole says that a role cannot be passed to an AWS service: it does not exist, or is in another account; "" if it
// can. A role of another account cannot be passed ("Grant a user permissions to pass a role to an AWS service", IAM user
// guide).
func UnpassableRole(ctx context.Context, c *cloud.Clients, arn string) (string, error) {
	caller, err := Caller(ctx, c)
	if err != nil {
		return "", err
	}
	if role, err := awsarn.Parse(arn); err == nil && role.AccountID != caller.Account {
		return foreignRole(arn, caller.Account), nil
	}
	return MissingPrincipal(ctx, c, arn)
}

func foreignRole(arn, account string) string {
	return fmt.Sprintf("the role %s is not in this account (%s): a role of another account cannot be passed to a service", arn, account)
}

// MissingPrincipal says that a role or a user does not exist, by its ARN; "" if it does, or is in another
// account.
func MissingPrincipal(ctx context.Context, c *cloud.Clients, arn string) (string, error) {
	parsed, err := awsarn.Parse(arn)
	if err != nil {
		return "", nil //nolint:nilerr // the manifest is checked for that
	}
	caller, err := Caller(ctx, c)
	if err != nil || parsed.AccountID != caller.Account {
		return "", err
	}
	kind, name, _ := strings.Cut(parsed.Resource, "/")
	have, name := "", name[strings.LastIndex(name, "/")+1:]
	switch kind {
	case "role":
		role, err := GetRole(ctx, c, name)
		if err != nil {
			return "", err
		}
		if role != nil {
			have = role.ID
		}
	case "user":
		if have, err = userARN(ctx, c, name); err != nil {
			return "", err
		}
	default:
		return "", nil
	}
	switch have {
	case arn:
		return "", nil
	case "":
		return fmt.Sprintf("there is no %s %s in this account: create it, or correct the ARN %s", kind, name, arn), nil
	}
	return fmt.Sprintf("the ARN of the %s %s is %s, not %s: correct it", kind, name, have, arn), nil
}

// userARN returns the ARN of a user; "" if there is none.
func userARN(ctx context.Context, c *cloud.Clients, name string) (string, error) {
	return cloud.Remember(ctx, c, "user "+name, func(ctx context.Context) (string, error) {
		out, err := c.IAM.GetUser(ctx, &iam.GetUserInput{UserName: &name})
		if err != nil {
			return "", cloud.IgnoreNotFound(err)
		}
		return aws.ToString(out.User.Arn), nil
	})
}

// missingPolicy says that a managed policy does not exist, by its ARN; "" if it does.
func missingPolicy(ctx context.Context, c *cloud.Clients, arn string) (string, error) {
	return cloud.Remember(ctx, c, "policy "+arn, func(ctx context.Context) (string, error) {
		_, err := c.IAM.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &arn})
		if cloud.NotFound(err) {
			return fmt.Sprintf("the policy %s does not exist: create it, or correct the ARN", arn), nil
		}
		return "", err
	})
}

// Check implements graph.Checked: IAM attaches only policies that exist.
func (r *Role) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	for _, arn := range append([]string{r.Boundary}, r.Given...) {
		if arn == "" {
			continue
		}
		if refusal, err = missingPolicy(ctx, c, arn); refusal != "" || err != nil {
			return refusal, err
		}
	}
	return "", nil
}

// LacksForNodes says what a role lacks for nodes of EKS: any policy, or AWS's for nodes ("Amazon EKS node IAM role", EKS user guide). none says
// that it may do nothing at all. A role with a policy that is not AWS's may have the permissions by it, and so may one that cannot be read.
func LacksForNodes(ctx context.Context, c *cloud.Clients, name string) (lacks string, none bool, err error) {
	attached, err := AttachedPolicies(ctx, c, name)
	if err != nil || slices.ContainsFunc(attached, func(arn string) bool {
		return !strings.Contains(arn, ":iam::aws:policy/") || regex.Of(`/(AmazonEKSWorkerNode(Minimal)?Policy|AdministratorAccess|PowerUserAccess)$`).MatchString(arn)
	}) {
		return "", false, unlessDenied(err)
	}
	inline, err := cloud.Remember(ctx, c, "inline policies of role "+name, func(ctx context.Context) ([]string, error) { return inlineNames(ctx, c, name) })
	if err != nil || len(inline) > 0 {
		return "", false, unlessDenied(err)
	}
	return "AmazonEKSWorkerNodePolicy", len(attached) == 0, nil
}

// unlessDenied drops the error of a read without permission: then something is not known.
func unlessDenied(err error) error {
	if cloud.Denied(err) {
		return nil
	}
	return err
}

// Lacks lists what a role lacks to be assumed with session tags, and of AWS managed policies, by their names. A role that has a
// policy that is not AWS's may have the permissions by it.
func Lacks(ctx context.Context, c *cloud.Clients, name string, policies []string) (lacks []string, err error) {
	role, err := GetRole(ctx, c, name)
	if role == nil || err != nil {
		return nil, err
	}
	if !strings.Contains(role.Trust, "sts:TagSession") && !strings.Contains(role.Trust, `"sts:*"`) {
		lacks = append(lacks, "sts:TagSession in its trust policy")
	}
	attached, err := AttachedPolicies(ctx, c, name)
	if err != nil || slices.ContainsFunc(attached, func(arn string) bool {
		return !strings.Contains(arn, ":iam::aws:policy/") || strings.HasSuffix(arn, "/AdministratorAccess")
	}) {
		return lacks, err
	}
	for _, policy := range policies {
		if !slices.ContainsFunc(attached, func(arn string) bool { return strings.HasSuffix(arn, "/"+policy) }) {
			lacks = append(lacks, policy)
		}
	}
	return lacks, nil
}
