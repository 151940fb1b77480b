package cloud_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// services has one read call for each service.
func services() map[string]struct {
	call   func(context.Context, *cloud.Clients) error
	answer any
} {
	type service = struct {
		call   func(context.Context, *cloud.Clients) error
		answer any
	}
	bucket := "demo"
	return map[string]service{
		"EC2": {func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.EC2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
			return err
		}, &ec2.DescribeVpcsOutput{}},
		"ELB": {func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.ELB.DescribeLoadBalancers(ctx, &elasticloadbalancing.DescribeLoadBalancersInput{})
			return err
		}, &elasticloadbalancing.DescribeLoadBalancersOutput{}},
		"ELBV2": {func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.ELBV2.DescribeLoadBalancers(ctx, &elasticloadbalancingv2.DescribeLoadBalancersInput{})
			return err
		}, &elasticloadbalancingv2.DescribeLoadBalancersOutput{}},
		"IAM": {func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &bucket})
			return err
		}, &iam.GetInstanceProfileOutput{}},
		"S3": {func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.S3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket})
			return err
		}, &s3.HeadBucketOutput{}},
		"Secrets": {func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.Secrets.ListSecrets(ctx, &secretsmanager.ListSecretsInput{})
			return err
		}, &secretsmanager.ListSecretsOutput{}},
		"SSM": {func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &bucket})
			return err
		}, &ssm.GetParameterOutput{}},
		"STS": {func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.STS.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
			return err
		}, &sts.GetCallerIdentityOutput{}},
		"Quotas": {func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: &bucket, QuotaCode: &bucket})
			return err
		}, &servicequotas.GetServiceQuotaOutput{}},
	}
}

// In every client, the rate limit comes after the SDK's retry middleware, so that it sees
// every attempt.
func TestPaceSeesEveryAttempt(t *testing.T) {
	for name, s := range services() {
		in(t, func(t *testing.T) {
			w := newWire(func(n int, _ string) (any, error) {
				if n < 4 {
					return nil, refusal("ThrottlingException")
				}
				return s.answer, nil
			})
			c := w.clients()
			require.NoError(t, s.call(t.Context(), c), name)
			require.Equal(t, 4, w.attempts(), name)
			require.Equal(t, int64(4), c.Stats().Reads.Load(), name)
			require.Equal(t, int64(3), c.Stats().Throttled.Load(), name)
		})
	}
}

// A read-only run sends no calls that could change something; its reads work.
func TestReadOnly(t *testing.T) {
	in(t, func(t *testing.T) {
		w := newWire(func(int, string) (any, error) { return &ec2.DescribeVpcsOutput{}, nil })
		c := w.clients()
		ctx := cloud.ReadOnly(t.Context())
		_, err := c.EC2.CreateVpc(ctx, &ec2.CreateVpcInput{})
		var refused *cloud.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "CreateVpc not sent: this run is read-only", refused.Error())
		require.True(t, cloud.NotSent(err))
		_, err = c.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: new("b"), Key: new("k")})
		require.ErrorAs(t, err, &refused)
		require.Zero(t, w.attempts())
		_, err = c.EC2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
		require.NoError(t, err)
	})
}

// Only operations that read count as reads.
func TestReads(t *testing.T) {
	for _, op := range []string{"DescribeInstances", "GetParametersByPath", "ListSecrets", "HeadBucket", "GetCallerIdentity", "SimulatePrincipalPolicy"} {
		require.True(t, cloud.Reads(op), op)
	}
	for _, op := range []string{"RunInstances", "CreateTags", "PutParameter", "DeleteVpc", "AssumeRole", "ModifyVpcAttribute", "RegisterTargets", "SetSubnets", "AddTags"} {
		require.False(t, cloud.Reads(op), op)
	}
}

// The number of calls at the same time does not exceed the limit in the options.
func TestParallel(t *testing.T) {
	in(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, most := 0, 0
		w := newWire(func(int, string) (any, error) {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy--
			mu.Unlock()
			return &ec2.DescribeVpcsOutput{}, nil
		})
		c := cloud.New(w.config(), "demo", cloud.Options{Parallel: 3})
		together(20, func() { _, _ = c.EC2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}) })
		require.Equal(t, 3, most)
		require.Equal(t, 20, w.attempts())
	})
}

// together calls a function n times concurrently.
func together(n int, do func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(do)
	}
	all.Wait()
}

// Writes that occupy all slots do not block the check of the lock that each of them waits
// for.
func TestLockCheckNeedsNoSlot(t *testing.T) {
	in(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Latency: 100 * time.Millisecond})
		c := cloud.New(a.Config(), "demo", cloud.Options{Parallel: 2})
		require.NoError(t, c.AcquireLock(t.Context(), cloud.LockOptions{Who: "test"}))
		time.Sleep(10 * time.Second) // the last check of the lock has expired
		block := "10.0.0.0/16"
		together(4, func() {
			_, err := c.EC2.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: &block})
			require.NoError(t, err)
		})
		require.NoError(t, c.Lock.Release(t.Context(), cloud.Ending{}))
	})
}

// Every call is logged once, however many attempts it took.
func TestLog(t *testing.T) {
	in(t, func(t *testing.T) {
		var logged []plan.Call
		w := newWire(func(n int, _ string) (any, error) {
			if n == 1 {
				return nil, refusal("RequestLimitExceeded")
			}
			return &ec2.DescribeVpcsOutput{}, nil
		})
		c := cloud.New(w.config(), "demo", cloud.Options{Log: func(call plan.Call) { logged = append(logged, call) }})
		_, err := c.EC2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
		require.NoError(t, err)
		require.Len(t, logged, 1)
		require.Equal(t, "EC2 DescribeVpcs", logged[0].Service+" "+logged[0].Operation)
		require.NoError(t, logged[0].Err)
		require.Positive(t, logged[0].Took)
	})
}
