package awssim

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	secrets "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	secretsmanagersim "github.com/clusterawsadm/clusterawsadm/internal/awssim/secretsmanager"
)

func TestSecretValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		c := secrets.NewFromConfig(a.Config())
		name, token := aws.String("aws.cluster.x-k8s.io/x-0"), aws.String(strings.Repeat("t", 32))
		in := &secrets.CreateSecretInput{
			Name:               name,
			ClientRequestToken: token,
			SecretBinary:       []byte("one"),
			Tags:               []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
		}
		out, err := c.CreateSecret(t.Context(), in)
		require.NoError(t, err)
		assert.Regexp(t, `^arn:aws:secretsmanager:us-east-1:123456789012:secret:aws\.cluster\.x-k8s\.io/x-0-[0-9a-f]{6}$`, *out.ARN)
		again, err := c.CreateSecret(t.Context(), in)
		require.NoError(t, err)
		assert.Equal(t, out.ARN, again.ARN)
		_, err = c.CreateSecret(t.Context(), &secrets.CreateSecretInput{Name: name, SecretBinary: []byte("one")})
		hasCode(t, err, "ResourceExistsException")
		_, err = c.CreateSecret(t.Context(), &secrets.CreateSecretInput{Name: aws.String("big"), SecretBinary: bytes.Repeat([]byte("x"), 65537)})
		hasCode(t, err, "InvalidParameterException")

		got, err := c.GetSecretValue(t.Context(), &secrets.GetSecretValueInput{SecretId: out.ARN})
		require.NoError(t, err)
		assert.Equal(t, "one", string(got.SecretBinary))
		_, err = c.PutSecretValue(t.Context(), &secrets.PutSecretValueInput{SecretId: name, SecretBinary: []byte("two")})
		require.NoError(t, err)
		_, err = c.UpdateSecret(t.Context(), &secrets.UpdateSecretInput{SecretId: name, SecretBinary: []byte("three"), Description: aws.String("d")})
		require.NoError(t, err)
		_, err = c.PutSecretValue(t.Context(), &secrets.PutSecretValueInput{SecretId: name})
		hasCode(t, err, "InvalidParameterException")
		got, err = c.GetSecretValue(t.Context(), &secrets.GetSecretValueInput{SecretId: name})
		require.NoError(t, err)
		assert.Equal(t, "three", string(got.SecretBinary))
		got, err = c.GetSecretValue(t.Context(), &secrets.GetSecretValueInput{SecretId: name, VersionStage: aws.String("AWSPREVIOUS")})
		require.NoError(t, err)
		assert.Equal(t, "two", string(got.SecretBinary))
		_, err = c.GetSecretValue(t.Context(), &secrets.GetSecretValueInput{SecretId: aws.String("none")})
		hasCode(t, err, "ResourceNotFoundException")
	})
}

func TestSecretDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		c := secrets.NewFromConfig(a.Config())
		name := aws.String("x")
		create := func() error {
			_, err := c.CreateSecret(t.Context(), &secrets.CreateSecretInput{Name: name, SecretString: aws.String("v")})
			return err
		}
		require.NoError(t, create())
		_, err := c.DeleteSecret(t.Context(), &secrets.DeleteSecretInput{SecretId: name})
		require.NoError(t, err)
		hasCode(t, create(), "InvalidRequestException")
		_, err = c.GetSecretValue(t.Context(), &secrets.GetSecretValueInput{SecretId: name})
		hasCode(t, err, "InvalidRequestException")
		assert.Empty(t, of[*secretsmanagersim.Service](a).Inventory())
		_, err = c.DeleteSecret(t.Context(), &secrets.DeleteSecretInput{SecretId: name, ForceDeleteWithoutRecovery: aws.Bool(true)})
		require.NoError(t, err)
		require.NoError(t, create())
		_, err = c.DeleteSecret(t.Context(), &secrets.DeleteSecretInput{SecretId: aws.String("none")})
		hasCode(t, err, "ResourceNotFoundException")
		_, err = c.DeleteSecret(t.Context(), &secrets.DeleteSecretInput{SecretId: aws.String("none"), ForceDeleteWithoutRecovery: aws.Bool(true)})
		require.NoError(t, err)
		_, err = c.DeleteSecret(t.Context(), &secrets.DeleteSecretInput{SecretId: name, RecoveryWindowInDays: aws.Int64(7)})
		require.NoError(t, err)
		time.Sleep(7 * 24 * time.Hour)
		require.NoError(t, create())
	})
}

func TestSecretsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Lag: time.Second, Page: 1})
		c := secrets.NewFromConfig(a.Config())
		for _, name := range []string{"a/0", "a/1", "b/0"} {
			_, err := c.CreateSecret(
				t.Context(),
				&secrets.CreateSecretInput{Name: &name, SecretString: aws.String("v"), Tags: []types.Tag{{Key: aws.String("of"), Value: aws.String(name[:1])}}},
			)
			require.NoError(t, err)
		}
		list := func(filters ...types.Filter) (names []string) {
			pages := secrets.NewListSecretsPaginator(c, &secrets.ListSecretsInput{Filters: filters})
			for pages.HasMorePages() {
				out, err := pages.NextPage(t.Context())
				require.NoError(t, err)
				for _, s := range out.SecretList {
					names = append(names, *s.Name)
				}
			}
			return names
		}
		time.Sleep(4 * time.Minute)
		assert.Empty(t, list(), "new secrets are not listed for five minutes")
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a/0", "a/1", "b/0"}, list())
		assert.Equal(t, []string{"a/0", "a/1"}, list(types.Filter{Key: types.FilterNameStringTypeName, Values: []string{"a/"}}))
		assert.Equal(
			t,
			[]string{"b/0"},
			list(
				types.Filter{Key: types.FilterNameStringTypeTagKey, Values: []string{"of"}},
				types.Filter{Key: types.FilterNameStringTypeTagValue, Values: []string{"b"}},
			),
		)
		_, err := c.UntagResource(t.Context(), &secrets.UntagResourceInput{SecretId: aws.String("b/0"), TagKeys: []string{"of"}})
		require.NoError(t, err)
		_, err = c.TagResource(
			t.Context(),
			&secrets.TagResourceInput{SecretId: aws.String("b/0"), Tags: []types.Tag{{Key: aws.String("to"), Value: aws.String("c")}}},
		)
		require.NoError(t, err)
		got, err := c.DescribeSecret(t.Context(), &secrets.DescribeSecretInput{SecretId: aws.String("b/0")})
		require.NoError(t, err)
		assert.Equal(t, []types.Tag{{Key: aws.String("to"), Value: aws.String("c")}}, got.Tags)
		_, err = c.DeleteSecret(t.Context(), &secrets.DeleteSecretInput{SecretId: aws.String("a/0"), ForceDeleteWithoutRecovery: aws.Bool(true)})
		require.NoError(t, err)
		_, err = c.CreateSecret(t.Context(), &secrets.CreateSecretInput{Name: aws.String("a/0"), SecretString: aws.String("v")})
		hasCode(t, err, "InvalidRequestException")
		assert.Equal(t, []string{"Secret a/1", "Secret b/0"}, of[*secretsmanagersim.Service](a).Inventory())
		assert.Equal(t, []string{"a/0", "a/1", "b/0"}, list(), "deleted secrets are listed for five minutes")
		time.Sleep(5 * time.Minute)
		assert.Equal(t, []string{"a/1", "b/0"}, list())
	})
}
