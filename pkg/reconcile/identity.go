package reconcile

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"clusterawsadm/pkg/reconcile/manifest"
)

// as returns the configuration with the credentials of the manifest's chain of
// identities (AWSCluster.spec.identityRef): static keys, and roles that are
// assumed one from the other. An empty chain leaves the caller's own.
func as(cfg aws.Config, chain []manifest.Identity) aws.Config {
	for _, id := range chain {
		cfg = cfg.Copy()
		if s := id.Static; s != nil {
			cfg.Credentials = credentials.NewStaticCredentialsProvider(s.AccessKeyID, s.SecretAccessKey, s.SessionToken)
			continue
		}
		role := id.Role
		provider := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role.RoleArn, func(o *stscreds.AssumeRoleOptions) {
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
		cfg.Credentials = aws.NewCredentialsCache(provider)
	}
	return cfg
}
