package sts

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

func (svc *Service) simulate() {
	core.OnContext(svc.Account, svc.getCallerIdentity)
	core.OnContext(svc.Account, svc.assumeRole, "RoleArn", "RoleSessionName", "DurationSeconds", "ExternalId", "Policy", "PolicyArns")
}

// RoleOf returns the ARN of the assumed role of a call; "" for the account's user.
func (svc *Service) RoleOf(ctx context.Context) string {
	r := svc.assumed(ctx)
	if r == nil {
		return ""
	}
	return r.RoleARN
}

// assumed returns the assumed role of a call, or nil.
func (svc *Service) assumed(ctx context.Context) *iam.AssumedRole {
	return svc.iam.AssumedWith(core.AccessKey(ctx))
}

// session returns the user of an assumed role.
func session(r iam.AssumedRole) *types.AssumedRoleUser {
	head, path, _ := strings.Cut(r.RoleARN, ":role/")
	name := path[strings.LastIndex(path, "/")+1:]
	return &types.AssumedRoleUser{
		AssumedRoleId: aws.String(iam.UniqueID("AROA", name) + ":" + r.Session),
		Arn:           aws.String(strings.Replace(head, ":iam:", ":sts:", 1) + ":assumed-role/" + name + "/" + r.Session),
	}
}

func (svc *Service) getCallerIdentity(ctx context.Context, _ *sts.GetCallerIdentityInput) (*sts.GetCallerIdentityOutput, error) {
	if r := svc.assumed(ctx); r != nil {
		user := session(*r)
		return &sts.GetCallerIdentityOutput{Account: aws.String(strings.Split(*user.Arn, ":")[4]), UserId: user.AssumedRoleId, Arn: user.Arn}, nil
	}
	return &sts.GetCallerIdentityOutput{
		Account: aws.String(svc.Number()), UserId: aws.String("AIDASIMULATEDSIMULATE"), Arn: aws.String(svc.iam.ARN("user", "", iam.Caller)),
	}, nil
}

func (svc *Service) assumeRole(ctx context.Context, in *sts.AssumeRoleInput) (*sts.AssumeRoleOutput, error) {
	r := iam.AssumedRole{
		RoleARN:    aws.ToString(in.RoleArn),
		Session:    aws.ToString(in.RoleSessionName),
		ExternalID: aws.ToString(in.ExternalId),
		Duration:   3600,
		At:         svc.Now(),
	}
	core.Set(&r.Duration, in.DurationSeconds)
	parts := regexp.MustCompile(`^arn:` + svc.Partition() + `:iam::([0-9]{12}):role/([\w+=,.@/-]{1,576})$`).FindStringSubmatch(r.RoleARN)
	switch {
	case parts == nil:
		return nil, core.Fail("ValidationError", "%s is invalid", r.RoleARN)
	case !regex.Of(`^[\w+=,.@-]{2,64}$`).MatchString(r.Session):
		return nil, core.Fail("ValidationError", "the role session name '%s' is not valid", r.Session)
	case in.ExternalId != nil && (len(r.ExternalID) < 2 || len(r.ExternalID) > 1224 || !regex.Of(`^[\w+=,.@:/-]+$`).MatchString(r.ExternalID)):
		return nil, core.Fail("ValidationError", "the external ID is not valid")
	case r.Duration < 900 || r.Duration > 43200:
		return nil, core.Fail("ValidationError", "DurationSeconds must be between 900 and 43200")
	}
	// With role chaining, a session lasts at most one hour.
	if svc.assumed(ctx) != nil && r.Duration > 3600 {
		return nil, core.Fail("ValidationError", "the requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining")
	}
	// Roles of other accounts are not simulated: they can be assumed by anybody, for the
	// longest duration.
	if parts[1] == svc.Number() {
		role := svc.iam.RoleOfARN(r.RoleARN)
		if role == nil {
			return nil, core.Fail("AccessDenied", "user/simulated is not authorized to perform: sts:AssumeRole on resource: %s", r.RoleARN)
		}
		if r.Duration > role.Session() {
			return nil, core.Fail("ValidationError", "the requested DurationSeconds exceeds the MaxSessionDuration set for this role")
		}
	}
	if err := svc.checkSessionPolicies(in); err != nil {
		return nil, err
	}
	r.By = svc.RoleOf(ctx)
	r.AccessKey = "ASIA" + strings.ToUpper(svc.Hash())
	svc.iam.Assume(r)
	return &sts.AssumeRoleOutput{
		AssumedRoleUser: session(r),
		Credentials: &types.Credentials{
			AccessKeyId: aws.String(r.AccessKey), SecretAccessKey: aws.String("simulated"), SessionToken: aws.String("simulated"),
			Expiration: aws.Time(svc.Now().Add(time.Duration(r.Duration) * time.Second)),
		},
	}, nil
}

// The limits of session policies ("Policy" and "PolicyArns" of AssumeRole, STS API reference).
const (
	longestSessionPolicy = 2048
	mostSessionPolicies  = 10
)

// checkSessionPolicies checks policies that restrict a session. As those of roles, they have no effect on what the simulated account permits.
func (svc *Service) checkSessionPolicies(in *sts.AssumeRoleInput) error {
	if in.Policy != nil && len(*in.Policy) > longestSessionPolicy {
		return core.Fail("ValidationError", "Value at 'policy' failed to satisfy constraint: Member must have length less than or equal to %d", longestSessionPolicy)
	}
	if document := (struct{ Statement any }{}); in.Policy != nil && (json.Unmarshal([]byte(*in.Policy), &document) != nil || document.Statement == nil) {
		return core.Fail("MalformedPolicyDocument", "This policy contains invalid Json")
	}
	const tooLong = "Value at '%s' failed to satisfy constraint: Member must have length less than or equal to %d"
	if len(in.PolicyArns) > mostSessionPolicies {
		return core.Fail("ValidationError", tooLong, "policyArns", mostSessionPolicies)
	}
	for _, p := range in.PolicyArns {
		arn := aws.ToString(p.Arn)
		switch own := "arn:" + svc.Partition() + ":iam::" + svc.Number() + ":policy/"; {
		case !strings.HasPrefix(arn, "arn:"+svc.Partition()+":iam::"):
			return core.Fail("ValidationError", "%s is invalid", arn)
		case strings.HasPrefix(arn, own):
			if _, err := svc.iam.Policy(p.Arn); err != nil {
				return core.Fail("ValidationError", "Invalid ARN: %s", arn)
			}
		}
	}
	return nil
}
