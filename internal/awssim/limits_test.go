package awssim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// Each operation has a rate limit.
func TestEveryOperationIsLimited(t *testing.T) {
	p := New(Options{}).Process()
	models, err := model.Load()
	require.NoError(t, err)
	for _, op := range p.Operations() {
		service := models[op.Package].Metadata.ID
		l, limited := p.Limits(service)
		if !assert.True(t, limited, "%s has no limits", service) {
			continue
		}
		assert.NotEmpty(t, l.Code, service)
		buckets := l.Of(op.Name, nil)
		assert.NotEmpty(t, buckets, "%s %s", service, op.Name)
		for _, b := range buckets {
			assert.Positive(t, min(b.Size, b.Refill), "%s %s", service, op.Name)
		}
	}
}

// A bucket is full at first, gains its rate, and belongs to the account: all processes share it.
func TestLimitsAreThoseOfTheAccount(t *testing.T) {
	for name, c := range map[string]struct {
		call         func(t *testing.T, cfg aws.Config) error
		code         string
		size, refill int
	}{
		"load balancers are read": {func(t *testing.T, cfg aws.Config) error {
			_, err := elb.NewFromConfig(cfg).DescribeLoadBalancers(t.Context(), &elb.DescribeLoadBalancersInput{})
			return err
		}, "ThrottlingException", 40, 10},
		"IAM": {func(t *testing.T, cfg aws.Config) error {
			_, err := iam.NewFromConfig(cfg).ListRoles(t.Context(), &iam.ListRolesInput{})
			return err
		}, "Throttling", 40, 10},
		"quotas": {func(t *testing.T, cfg aws.Config) error {
			_, err := servicequotas.NewFromConfig(cfg).
				GetServiceQuota(t.Context(), &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("vpc"), QuotaCode: aws.String("L-F678F1CE")})
			return err
		}, "TooManyRequestsException", 10, 5},
		"EC2 without filters": {func(t *testing.T, cfg aws.Config) error {
			_, err := ec2.NewFromConfig(cfg).DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
			return err
		}, "RequestLimitExceeded", 50, 10},
		"keys": {func(t *testing.T, cfg aws.Config) error {
			_, err := kms.NewFromConfig(cfg).DescribeKey(t.Context(), &kms.DescribeKeyInput{KeyId: aws.String("alias/none")})
			return err
		}, "ThrottlingException", 2000, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(Options{})
				cfgs := []aws.Config{a.Process().Config(), a.Process().Config()}
				for i := range cfgs {
					cfgs[i].RetryMaxAttempts = 1
				}
				accepted := func() (n int) {
					for i := 0; ; i++ {
						err := c.call(t, cfgs[i%2])
						if code(err) == c.code {
							return n
						}
						n++
					}
				}
				require.Equal(t, c.size, accepted())
				require.Zero(t, accepted())
				time.Sleep(time.Second)
				require.Equal(t, c.refill, accepted())
				time.Sleep(time.Hour)
				require.Equal(t, c.size, accepted(), "a bucket holds no more")
			})
		})
	}
}

// Each region has its own limits, but for IAM.
func TestLimitsOfRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		here, there := a.Process().Config(), a.Process().Config()
		here.RetryMaxAttempts, there.RetryMaxAttempts, there.Region = 1, 1, "eu-west-1"
		for range 40 {
			_, err := iam.NewFromConfig(here).ListRoles(t.Context(), &iam.ListRolesInput{})
			require.NoError(t, err)
		}
		_, err := iam.NewFromConfig(there).ListRoles(t.Context(), &iam.ListRolesInput{})
		require.Equal(t, "Throttling", code(err))
		for range 2000 {
			_, err := kms.NewFromConfig(here).DescribeKey(t.Context(), &kms.DescribeKeyInput{KeyId: aws.String("alias/none")})
			require.Equal(t, "NotFoundException", code(err))
		}
		_, err = kms.NewFromConfig(there).DescribeKey(t.Context(), &kms.DescribeKeyInput{KeyId: aws.String("alias/none")})
		require.Equal(t, "NotFoundException", code(err))
	})
}
