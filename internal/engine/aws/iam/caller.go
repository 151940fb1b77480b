package iam

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Caller returns the account and the principal whose credentials a run uses.
func Caller(ctx context.Context, c *cloud.Clients) (cluster.Caller, error) {
	return cloud.Remember(ctx, c, "caller", func(ctx context.Context) (cluster.Caller, error) {
		out, err := c.STS.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return cluster.Caller{}, err
		}
		return cluster.Caller{Account: aws.ToString(out.Account), ARN: aws.ToString(out.Arn)}, nil
	})
}
