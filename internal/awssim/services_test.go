package awssim

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	classic "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	secrets "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	elbsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	iamsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	s3sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
	secretsmanagersim "github.com/clusterawsadm/clusterawsadm/internal/awssim/secretsmanager"
)

func TestServicesSurviveAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		cfg := a.Config()
		_, group, _ := served(t, elb.NewFromConfig(cfg))
		_, err := elb.NewFromConfig(cfg).
			RegisterTargets(t.Context(), &elb.RegisterTargetsInput{TargetGroupArn: group, Targets: []types.TargetDescription{{Id: aws.String(testInstance)}}})
		require.NoError(t, err)
		_, err = classic.NewFromConfig(cfg).CreateLoadBalancer(t.Context(), classicInput("old", testSubnetA))
		require.NoError(t, err)
		_, err = s3.NewFromConfig(cfg).CreateBucket(t.Context(), bucketIn("us-east-1", "demo"))
		require.NoError(t, err)
		put(t, s3.NewFromConfig(cfg), "demo", "node/a", "body")
		_, err = secrets.NewFromConfig(cfg).CreateSecret(t.Context(), &secrets.CreateSecretInput{Name: aws.String("x"), SecretBinary: []byte{0, 255}})
		require.NoError(t, err)
		_, err = sts.NewFromConfig(cfg).
			AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::123456789012:role/" + stockNodes), RoleSessionName: aws.String("me")})
		require.NoError(t, err)

		var file bytes.Buffer
		require.NoError(t, a.Save(&file))
		b, err := Load(&file, Options{})
		require.NoError(t, err)
		all := func(x *AWS) [][]string {
			return [][]string{
				of[*elbsim.Service](x).Detailed(),
				of[*s3sim.Service](x).Detailed(),
				of[*secretsmanagersim.Service](x).Detailed(),
				of[*iamsim.Service](x).Detailed(),
				of[*elbsim.Service](x).Inventory(),
				of[*s3sim.Service](x).Inventory(),
				of[*secretsmanagersim.Service](x).Inventory(),
				of[*iamsim.Service](x).Inventory(),
			}
		}
		assert.Equal(t, all(a), all(b))
		assert.Equal(t, []string{"Bucket demo", "Object demo/node/a"}, of[*s3sim.Service](b).Inventory())
		b.Edit(func(s *State) { assert.Len(t, s.IAM.Assumed, 1) })

		// After some time, everything still works.
		time.Sleep(elbsim.NLBTakes)
		c := elb.NewFromConfig(b.Config())
		health, err := c.DescribeTargetHealth(t.Context(), &elb.DescribeTargetHealthInput{TargetGroupArn: group})
		require.NoError(t, err)
		assert.Equal(t, types.TargetHealthStateEnumHealthy, health.TargetHealthDescriptions[0].TargetHealth.State)
		_, err = c.AddTags(t.Context(), &elb.AddTagsInput{ResourceArns: []string{*group}, Tags: []types.Tag{{Key: aws.String("k")}}})
		require.NoError(t, err)
		got, err := secrets.NewFromConfig(b.Config()).GetSecretValue(t.Context(), &secrets.GetSecretValueInput{SecretId: aws.String("x")})
		require.NoError(t, err)
		assert.Equal(t, []byte{0, 255}, got.SecretBinary)
		put(t, s3.NewFromConfig(b.Config()), "demo", "node/b", "body")
	})
}
