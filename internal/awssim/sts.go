package awssim

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go/middleware"
)

func (a *AWS) simulateSTS() {
	onContext(a, a.getCallerIdentity)
	onContext(a, a.assumeRole, "RoleArn", "RoleSessionName", "DurationSeconds", "ExternalId")
}

// roleOf returns the ARN of the role that a call is made in, and "" for the
// account's user.
func (a *AWS) roleOf(ctx context.Context) string {
	r := a.assumed(ctx)
	if r == nil {
		return ""
	}
	return r.RoleARN
}

// assumed returns the assumed role that a call is made in, or nil.
func (a *AWS) assumed(ctx context.Context) *AssumedRole {
	return a.AssumedWith(middleware.GetStackValue(ctx, accessKey{}))
}

// session returns the ARN and the ID of the user of an assumed role.
func (r AssumedRole) session() *types.AssumedRoleUser {
	head, path, _ := strings.Cut(r.RoleARN, ":role/")
	name := path[strings.LastIndex(path, "/")+1:]
	return &types.AssumedRoleUser{
		AssumedRoleId: aws.String(iamID("AROA", name) + ":" + r.Session),
		Arn:           aws.String(strings.Replace(head, ":iam:", ":sts:", 1) + ":assumed-role/" + name + "/" + r.Session),
	}
}

func (a *AWS) getCallerIdentity(ctx context.Context, _ *sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
	if r := a.assumed(ctx); r != nil {
		user := r.session()
		return &sts.GetCallerIdentityOutput{Account: aws.String(strings.Split(*user.Arn, ":")[4]), UserId: user.AssumedRoleId, Arn: user.Arn}, nil
	}
	return &sts.GetCallerIdentityOutput{
		Account: aws.String(Account), UserId: aws.String("AIDASIMULATEDSIMULATE"), Arn: aws.String("arn:" + a.partition() + ":iam::" + Account + ":user/simulated"),
	}, nil
}

func (a *AWS) assumeRole(ctx context.Context, in *sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error) {
	r := AssumedRole{RoleARN: aws.ToString(in.RoleArn), Session: aws.ToString(in.RoleSessionName), ExternalID: aws.ToString(in.ExternalId), Duration: 3600, At: a.now()}
	set(&r.Duration, in.DurationSeconds)
	parts := regexp.MustCompile(`^arn:` + a.partition() + `:iam::([0-9]{12}):role/([\w+=,.@/-]{1,576})$`).FindStringSubmatch(r.RoleARN)
	switch {
	case parts == nil:
		return nil, fail("ValidationError", "%s is invalid", r.RoleARN)
	case !regexp.MustCompile(`^[\w+=,.@-]{2,64}$`).MatchString(r.Session):
		return nil, fail("ValidationError", "the role session name '%s' is not valid", r.Session)
	case in.ExternalId != nil && (len(r.ExternalID) < 2 || len(r.ExternalID) > 1224 || !regexp.MustCompile(`^[\w+=,.@:/-]+$`).MatchString(r.ExternalID)):
		return nil, fail("ValidationError", "the external ID is not valid")
	case r.Duration < 900 || r.Duration > 43200:
		return nil, fail("ValidationError", "DurationSeconds must be between 900 and 43200")
	}
	// A role that is assumed from a role lasts an hour at most.
	if a.assumed(ctx) != nil && r.Duration > 3600 {
		return nil, fail("ValidationError", "the requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining")
	}
	// The roles of other accounts are not known here. They take anybody, for
	// as long as any role can.
	if parts[1] == Account {
		role := a.RoleOfARN(r.RoleARN)
		if role == nil {
			return nil, fail("AccessDenied", "user/simulated is not authorized to perform: sts:AssumeRole on resource: %s", r.RoleARN)
		}
		if r.Duration > role.maxSession() {
			return nil, fail("ValidationError", "the requested DurationSeconds exceeds the MaxSessionDuration set for this role")
		}
	}
	r.By = a.roleOf(ctx)
	r.AccessKey = "ASIA" + strings.ToUpper(a.hash())
	a.Assume(r)
	return &sts.AssumeRoleOutput{
		AssumedRoleUser: r.session(),
		Credentials: &types.Credentials{
			AccessKeyId: aws.String(r.AccessKey), SecretAccessKey: aws.String("simulated"), SessionToken: aws.String("simulated"),
			Expiration: aws.Time(a.now().Add(time.Duration(r.Duration) * time.Second)),
		},
	}, nil
}
