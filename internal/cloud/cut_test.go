package cloud_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// cut answers requests as a connection does that ends in the body of an answer.
type cut struct {
	status   int
	body     string
	requests int
}

func (c *cut) Do(r *http.Request) (*http.Response, error) {
	c.requests++
	body := io.MultiReader(strings.NewReader(c.body), failing{})
	return &http.Response{
		StatusCode:    c.status,
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{},
		ContentLength: 10_000,
		Body:          io.NopCloser(body),
		Request:       r,
	}, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// An answer whose connection ends before its end is no answer, in every protocol of AWS.
func TestCutAnswers(t *testing.T) {
	reads := map[string]func(context.Context, *cloud.Clients) error{
		"EC2": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.EC2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
			return err
		},
		"ELB": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.ELB.DescribeLoadBalancers(ctx, &elasticloadbalancing.DescribeLoadBalancersInput{})
			return err
		},
		"ELBv2": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.ELBV2.DescribeLoadBalancers(ctx, &elasticloadbalancingv2.DescribeLoadBalancersInput{})
			return err
		},
		"EKS": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.EKS.ListClusters(ctx, &eks.ListClustersInput{})
			return err
		},
		"IAM": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("a")})
			return err
		},
		"S3": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.S3.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: aws.String("a")})
			return err
		},
		"Secrets Manager": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.Secrets.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: aws.String("a")})
			return err
		},
		"SSM": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("a")})
			return err
		},
		"STS": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.STS.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
			return err
		},
		"Auto Scaling": func(ctx context.Context, c *cloud.Clients) error {
			_, err := c.AutoScaling.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
			return err
		},
	}
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		for name, read := range reads {
			for _, body := range []string{"", "<DescribeVpcsResponse><vpcSet>", `{"Parameter": {"Name": `} {
				synctest.Test(t, func(t *testing.T) {
					server := &cut{status: status, body: body}
					c := cloud.New(aws.Config{
						Region: "us-east-1", HTTPClient: server, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
					}, "demo", cloud.Options{})
					err := read(t.Context(), c)
					require.Error(t, err)
					require.Equal(t, 8, server.requests, "%s %d %q: %v", name, status, body, err)
					require.True(t, cloud.Unanswered(err), "%s %d %q: %v", name, status, body, err)
					require.False(t, cloud.Rejected(err))
					require.NotErrorIs(t, err, context.Canceled)
				})
			}
		}
	}
}
