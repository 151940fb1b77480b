package run

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// RefuseIdentity converts an IdentityError to a RefusedError: the call that needed the role
// was not sent, so nothing was written.
func RefuseIdentity(err error) error {
	var identity *plan.IdentityError
	if errors.As(err, &identity) && cloud.Code(identity.Err) != "" {
		return &plan.RefusedError{Reasons: []error{identity}}
	}
	return err
}

// assumed are the credentials of a role.
type assumed struct {
	aws.CredentialsProvider
	failed plan.IdentityError // the error for a failure, without its cause
}

// Retrieve implements aws.CredentialsProvider.
func (a assumed) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := a.CredentialsProvider.Retrieve(ctx)
	if err != nil && !errors.As(err, new(*plan.IdentityError)) { // otherwise the error is from an earlier role of the chain
		failed := a.failed
		failed.Err = err
		err = &failed
	}
	return c, err
}

// withIdentity returns the configuration with the credentials of the identities of the manifest
// (AWSCluster.spec.identityRef): static keys, and roles that are assumed one after the
// other. Without an identity, the credentials of the caller are used.
func withIdentity(cfg aws.Config, m *manifest.Cluster) aws.Config {
	for _, id := range m.Identity {
		cfg = cfg.Copy()
		if s := id.Static; s != nil {
			cfg.Credentials = credentials.NewStaticCredentialsProvider(s.AccessKeyID, s.SecretAccessKey, s.SessionToken)
			continue
		}
		role := id.Role
		provider := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(awshttp.Checked(cfg)), role.RoleArn, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = role.SessionName
			if role.ExternalID != "" {
				o.ExternalID = &role.ExternalID
			}
			if role.InlinePolicy != "" {
				o.Policy = &role.InlinePolicy
			}
			for _, arn := range role.PolicyARNs {
				o.PolicyARNs = append(o.PolicyARNs, types.PolicyDescriptorType{Arn: aws.String(arn)})
			}
			if role.DurationSeconds > 0 {
				o.Duration = time.Duration(role.DurationSeconds) * time.Second
			}
		})
		cfg.Credentials = aws.NewCredentialsCache(assumed{provider, plan.IdentityError{Origin: m.Origin(id.Origin, "spec.roleARN"), Role: role.RoleArn}})
	}
	return cfg
}
