package awssim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Quotas of IAM.
const (
	mostAttached = 10   // managed policies of a role
	mostPolicy   = 6144 // characters of a managed policy
	mostVersions = 5    // of a managed policy
)

func allow(resource string) *string {
	return aws.String(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:*", "Resource": "` + resource + `"}]}`)
}

func TestQuotasOfIAM(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		role := aws.String("r")
		b.aws.Edit(func(s *State) { s.IAM.Roles["r"] = &Role{Name: "r"} })
		for i := range mostAttached + 1 {
			p, err := b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String(fmt.Sprint("p", i)), PolicyDocument: allow("*")})
			require.NoError(t, err)
			_, err = b.iam.AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{RoleName: role, PolicyArn: p.Policy.Arn})
			if i < mostAttached {
				require.NoError(t, err)
			} else {
				hasCode(t, err, "LimitExceeded")
				require.ErrorContains(t, err, "Cannot exceed quota for PoliciesPerRole: 10")
			}
		}
		long := strings.Repeat("x", mostPolicy)
		_, err := b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("long"), PolicyDocument: allow("arn:aws:ec2:::" + long)})
		hasCode(t, err, "LimitExceeded")
		spaced := strings.Replace(*allow("*"), " ", strings.Repeat(" ", mostPolicy), 1)
		_, err = b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("spaced"), PolicyDocument: &spaced})
		require.NoError(t, err, "blanks do not count")
		for i := range mostVersions {
			_, err = b.iam.CreatePolicyVersion(
				t.Context(),
				&iam.CreatePolicyVersionInput{PolicyArn: aws.String("arn:aws:iam::123456789012:policy/p0"), PolicyDocument: allow("*")},
			)
			if i < mostVersions-1 {
				require.NoError(t, err)
			}
		}
		hasCode(t, err, "LimitExceeded")
		for i := range 3 {
			_, err = b.iam.PutRolePolicy(
				t.Context(),
				&iam.PutRolePolicyInput{RoleName: role, PolicyName: aws.String(fmt.Sprint("i", i)), PolicyDocument: allow("arn:aws:ec2:::" + long[:4000])},
			)
		}
		hasCode(t, err, "LimitExceeded")
	})
}

func TestDocumentsThatAreRefused(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		statement := func(text string) string { return `{"Version": "2012-10-17", "Statement": [` + text + `]}` }
		for document, want := range map[string]string{
			"":                    "Syntax errors in policy",
			"[]":                  "Syntax errors in policy",
			statement(""):         "Syntax errors in policy",
			`{"Version": "2020"}`: "Syntax errors in policy",
			statement(`{"Effect": "allow", "Action": "ec2:*", "Resource": "*"}`):                   "Syntax errors in policy",
			statement(`{"Effect": "Allow", "Action": null, "Resource": "*"}`):                      "Syntax errors in policy",
			statement(`{"Effect": "Allow", "Actions": "ec2:*", "Resource": "*"}`):                  "Syntax errors in policy",
			statement(`{"Effect": "Allow"}`):                                                       "must contain actions",
			statement(`{"Effect": "Allow", "Action": [], "Resource": "*"}`):                        "must contain actions",
			statement(`{"Effect": "Allow", "Action": "ec2", "Resource": "*"}`):                     "prefaced by a vendor",
			statement(`{"Effect": "Allow", "Action": "ec2:*"}`):                                    "must contain resources",
			statement(`{"Effect": "Allow", "Action": "ec2:*", "Resource": "x"}`):                   "must be in ARN format",
			statement(`{"Effect": "Allow", "Action": "ec2:*", "Resource": "*", "Principal": "*"}`): "should not specify a principal",
		} {
			_, err := b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("p"), PolicyDocument: &document})
			hasCode(t, err, "MalformedPolicyDocument")
			require.ErrorContains(t, err, want, document)
		}
		for document, want := range map[string]string{
			statement(`{"Effect": "Allow", "Action": "sts:AssumeRole"}`):                                    "must contain principals",
			statement(`{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*", "Resource": "*"}`): "prohibited field Resource",
		} {
			_, err := b.iam.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("r"), AssumeRolePolicyDocument: &document})
			require.ErrorContains(t, err, want)
		}
		_, err := b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("a b"), PolicyDocument: allow("*")})
		hasCode(t, err, "ValidationError")
		_, err = b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("a"), Path: aws.String("x"), PolicyDocument: allow("*")})
		hasCode(t, err, "ValidationError")
		assert.Empty(t, b.aws.Inventory())
	})
}

// Names in IAM are not case-sensitive, and that of a policy is unique whatever its path.
func TestNamesOfIAM(t *testing.T) {
	inStack(t, Options{}, func(t *testing.T, b *stackbed) {
		_, err := b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("One"), Path: aws.String("/deep/"), PolicyDocument: allow("*")})
		require.NoError(t, err)
		_, err = b.iam.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("one"), PolicyDocument: allow("*")})
		hasCode(t, err, "EntityAlreadyExists")
		_, err = b.iam.GetPolicy(t.Context(), &iam.GetPolicyInput{PolicyArn: aws.String("arn:aws:iam::123456789012:policy/One")})
		hasCode(t, err, "NoSuchEntity")
		p, err := b.iam.GetPolicy(t.Context(), &iam.GetPolicyInput{PolicyArn: aws.String("arn:aws:iam::123456789012:policy/deep/One")})
		require.NoError(t, err)
		v, err := b.iam.GetPolicyVersion(t.Context(), &iam.GetPolicyVersionInput{PolicyArn: p.Policy.Arn, VersionId: p.Policy.DefaultVersionId})
		require.NoError(t, err)
		assert.Contains(t, *v.PolicyVersion.Document, "%7B%22Version%22", "documents come escaped")
		assert.NotContains(t, *v.PolicyVersion.Document, "+")
	})
}
