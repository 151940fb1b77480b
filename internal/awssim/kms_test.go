package awssim

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// overHTTP returns the configuration of a client in a region, which speaks with an account over HTTP.
func overHTTP(t *testing.T, a *AWS, region string) aws.Config {
	t.Helper()
	h, err := a.Process().Handler()
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg := a.Config()
	return aws.Config{Region: region, BaseEndpoint: &server.URL, Credentials: cfg.Credentials}
}

// A key decrypts what it has encrypted, in its region, by its ID, its ARN or an alias, also over HTTP.
func TestKMS(t *testing.T) {
	const arn, other = "arn:aws:kms:us-east-1:123456789012:key/one", "arn:aws:kms:us-east-1:123456789012:key/two"
	a := New(Options{})
	key := &Key{}
	a.Edit(func(s *State) {
		s.KMS.Keys[arn], s.KMS.Keys[other] = key, &Key{}
		s.KMS.Aliases["arn:aws:kms:us-east-1:123456789012:alias/mine"] = arn
	})
	for name, cfg := range map[string]aws.Config{"in the process": a.Config(), "HTTP": overHTTP(t, a, "us-east-1")} {
		c := kms.NewFromConfig(cfg)
		for _, id := range []string{"one", arn, "alias/mine", "arn:aws:kms:us-east-1:123456789012:alias/mine"} {
			out, err := c.Encrypt(t.Context(), &kms.EncryptInput{KeyId: &id, Plaintext: []byte("secret")})
			require.NoError(t, err, "%s %s", name, id)
			assert.Equal(t, arn, *out.KeyId)
			assert.NotContains(t, string(out.CiphertextBlob), "secret")
			for _, with := range []*string{nil, &id} {
				back, err := c.Decrypt(t.Context(), &kms.DecryptInput{KeyId: with, CiphertextBlob: out.CiphertextBlob})
				require.NoError(t, err, "%s %s", name, id)
				assert.Equal(t, "secret", string(back.Plaintext))
			}
			_, err = c.Decrypt(t.Context(), &kms.DecryptInput{KeyId: aws.String(other), CiphertextBlob: out.CiphertextBlob})
			hasCode(t, err, "IncorrectKeyException")
			out.CiphertextBlob[len(out.CiphertextBlob)-1] ^= 1
			_, err = c.Decrypt(t.Context(), &kms.DecryptInput{KeyId: &id, CiphertextBlob: out.CiphertextBlob})
			hasCode(t, err, "InvalidCiphertextException")
		}
		encrypt := func(c *kms.Client, id, text string) error {
			_, err := c.Encrypt(t.Context(), &kms.EncryptInput{KeyId: &id, Plaintext: []byte(text)})
			return err
		}
		hasCode(t, encrypt(c, "alias/nobody", "x"), "NotFoundException")
		hasCode(t, encrypt(c, "three", "x"), "NotFoundException")
		hasCode(t, encrypt(c, strings.Replace(arn, "us-east-1", "eu-west-1", 1), "x"), "NotFoundException")
		cfg.Region = "eu-west-1"
		hasCode(t, encrypt(kms.NewFromConfig(cfg), arn, "x"), "NotFoundException")
		hasCode(t, encrypt(c, arn, strings.Repeat("x", 4097)), "ValidationException")
		for code, state := range map[string]Key{
			"DisabledException":        {State: kmstypes.KeyStateDisabled},
			"KMSInvalidStateException": {State: kmstypes.KeyStatePendingDeletion},
			"AccessDeniedException":    {Denies: []string{"Encrypt"}},
			"InvalidKeyUsageException": {Usage: kmstypes.KeyUsageTypeGenerateVerifyMac},
		} {
			a.Edit(func(*State) { *key = state })
			hasCode(t, encrypt(c, arn, "x"), code)
		}
		a.Edit(func(*State) { *key = Key{} })
	}
}

// The endpoint of another region redirects, and names the region of the bucket.
func TestBucketInAnotherRegion(t *testing.T) {
	a := New(Options{})
	_, err := s3.NewFromConfig(a.Config()).CreateBucket(t.Context(), bucketIn("eu-west-1", "far"))
	require.NoError(t, err)
	home, far := a.Config(), a.Config()
	far.Region = "eu-west-1"
	for name, of := range map[string][2]aws.Config{"in the process": {home, far}, "HTTP": {overHTTP(t, a, "us-east-1"), overHTTP(t, a, "eu-west-1")}} {
		client := func(cfg aws.Config) *s3.Client {
			return s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
		}
		c := client(of[0])
		_, headBucket := c.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("far")})
		_, headObject := c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("far"), Key: aws.String("x")})
		_, getObject := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("far"), Key: aws.String("x")})
		_, putObject := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("far"), Key: aws.String("x"), Body: strings.NewReader("x")})
		hasCode(t, headBucket, "MovedPermanently")
		hasCode(t, headObject, "MovedPermanently")
		hasCode(t, getObject, "PermanentRedirect")
		hasCode(t, putObject, "PermanentRedirect")
		for _, err := range []error{headBucket, headObject, getObject, putObject} {
			var answer *smithyhttp.ResponseError
			require.ErrorAs(t, err, &answer, name)
			assert.Equal(t, 301, answer.HTTPStatusCode())
			assert.Equal(t, "eu-west-1", answer.Response.Header.Get("X-Amz-Bucket-Region"))
		}
		c = client(of[1])
		out, err := c.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("far")})
		require.NoError(t, err, name)
		assert.Equal(t, "eu-west-1", aws.ToString(out.BucketRegion))
		_, err = c.PutObject(
			t.Context(),
			&s3.PutObjectInput{Bucket: aws.String("far"), Key: aws.String(name), Body: strings.NewReader("x"), IfNoneMatch: aws.String("*")},
		)
		require.NoError(t, err, name)
		_, err = c.PutObject(
			t.Context(),
			&s3.PutObjectInput{Bucket: aws.String("far"), Key: aws.String(name), Body: strings.NewReader("x"), IfNoneMatch: aws.String("*")},
		)
		hasCode(t, err, "PreconditionFailed")
	}
}
