package awssim

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func bucketIn(region, name string) *s3.CreateBucketInput {
	in := &s3.CreateBucketInput{Bucket: aws.String(name)}
	if region != "us-east-1" {
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
	}
	return in
}

func put(t *testing.T, c *s3.Client, bucket, key, body string) {
	t.Helper()
	_, err := c.PutObject(
		t.Context(),
		&s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body), ServerSideEncryption: types.ServerSideEncryptionAwsKms},
	)
	require.NoError(t, err)
}

func TestBuckets(t *testing.T) {
	for _, region := range []string{"us-east-1", "eu-west-1"} {
		t.Run(region, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := New(Options{Region: region})
				c := s3.NewFromConfig(a.Config())
				_, err := c.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("demo")})
				hasCode(t, err, "NotFound")
				_, err = c.CreateBucket(t.Context(), bucketIn(region, "demo"))
				require.NoError(t, err)
				_, err = c.CreateBucket(t.Context(), bucketIn(region, "demo"))
				if region == "us-east-1" {
					require.NoError(t, err, "there AWS lets it pass")
				} else {
					hasCode(t, err, "BucketAlreadyOwnedByYou")
				}
				_, err = c.CreateBucket(t.Context(), bucketIn(region, "taken-demo"))
				hasCode(t, err, "BucketAlreadyExists")
				_, err = c.CreateBucket(t.Context(), bucketIn(region, "Demo"))
				hasCode(t, err, "InvalidBucketName")
				head, err := c.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("demo")})
				require.NoError(t, err)
				assert.Equal(t, region, *head.BucketRegion)
				_, err = c.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("taken-demo")})
				hasCode(t, err, "Forbidden")
				where, err := c.GetBucketLocation(t.Context(), &s3.GetBucketLocationInput{Bucket: aws.String("demo")})
				require.NoError(t, err)
				assert.Equal(t, map[string]string{"us-east-1": "", "eu-west-1": "eu-west-1"}[region], string(where.LocationConstraint))
				list, err := c.ListBuckets(t.Context(), &s3.ListBucketsInput{Prefix: aws.String("de")})
				require.NoError(t, err)
				assert.Len(t, list.Buckets, 1)
			})
		})
	}
}

func TestBucketLocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for region, code := range map[string]string{"us-east-1": "InvalidLocationConstraint", "eu-west-1": "IllegalLocationConstraintException"} {
			c := s3.NewFromConfig(New(Options{Region: region}).Config())
			_, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{
				Bucket: aws.String("demo"), CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: "us-east-1"},
			})
			hasCode(t, err, code)
		}
		c := s3.NewFromConfig(New(Options{Region: "eu-west-1"}).Config())
		_, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("demo")})
		hasCode(t, err, "IllegalLocationConstraintException")
	})
}

func TestObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Page: 2})
		c := s3.NewFromConfig(a.Config())
		bucket := aws.String("demo")
		_, err := c.CreateBucket(t.Context(), bucketIn("us-east-1", "demo"))
		require.NoError(t, err)
		for _, key := range []string{"node/a", "node/b", "node/c", "control-plane/a"} {
			put(t, c, "demo", key, "body of "+key)
		}
		got, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: aws.String("node/b")})
		require.NoError(t, err)
		body, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		assert.Equal(t, "body of node/b", string(body))
		assert.Equal(t, types.ServerSideEncryptionAwsKms, got.ServerSideEncryption)
		head, err := c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("node/b")})
		require.NoError(t, err)
		assert.EqualValues(t, 14, *head.ContentLength)
		_, err = c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("none")})
		hasCode(t, err, "NotFound")
		_, err = c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: aws.String("none")})
		hasCode(t, err, "NoSuchKey")

		var keys []string
		for pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: bucket, Prefix: aws.String("node/")}); pages.HasMorePages(); {
			out, err := pages.NextPage(t.Context())
			require.NoError(t, err)
			for _, o := range out.Contents {
				keys = append(keys, *o.Key)
			}
		}
		assert.Equal(t, []string{"node/a", "node/b", "node/c"}, keys)
		_, err = c.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: bucket})
		hasCode(t, err, "BucketNotEmpty")

		for pages := s3.NewListObjectVersionsPaginator(c, &s3.ListObjectVersionsInput{Bucket: bucket}); pages.HasMorePages(); {
			out, err := pages.NextPage(t.Context())
			require.NoError(t, err)
			in := &s3.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Quiet: aws.Bool(true)}}
			for _, v := range out.Versions {
				in.Delete.Objects = append(in.Delete.Objects, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
			}
			_, err = c.DeleteObjects(t.Context(), in)
			require.NoError(t, err)
		}
		_, err = c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("none")})
		require.NoError(t, err)
		_, err = c.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: bucket})
		require.NoError(t, err)
		_, err = c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: bucket})
		hasCode(t, err, "NoSuchBucket")
	})
}

func TestObjectsArePutAgainAfterAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		p := a.Process()
		p.Fault = func(n int, _, _ string) Fault {
			if n == 2 {
				return LostAfter
			}
			return None
		}
		c := s3.NewFromConfig(p.Config())
		_, err := c.CreateBucket(t.Context(), bucketIn("us-east-1", "demo"))
		require.NoError(t, err)
		put(t, c, "demo", "k", "the whole body")
		got, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("demo"), Key: aws.String("k")})
		require.NoError(t, err)
		body, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		assert.Equal(t, "the whole body", string(body))
		assert.Equal(t, 4, p.Calls())
	})
}

func TestBucketTagsAndLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		c := s3.NewFromConfig(a.Config())
		bucket := aws.String("demo")
		_, err := c.CreateBucket(t.Context(), bucketIn("us-east-1", "demo"))
		require.NoError(t, err)
		_, err = c.GetBucketTagging(t.Context(), &s3.GetBucketTaggingInput{Bucket: bucket})
		hasCode(t, err, "NoSuchTagSet")
		_, err = c.PutBucketTagging(
			t.Context(),
			&s3.PutBucketTaggingInput{Bucket: bucket, Tagging: &types.Tagging{TagSet: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}}},
		)
		require.NoError(t, err)
		tags, err := c.GetBucketTagging(t.Context(), &s3.GetBucketTaggingInput{Bucket: bucket})
		require.NoError(t, err)
		assert.Len(t, tags.TagSet, 1)

		_, err = c.GetBucketLifecycleConfiguration(t.Context(), &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
		hasCode(t, err, "NoSuchLifecycleConfiguration")
		rule := types.LifecycleRule{
			ID: aws.String("machine-pool"), Status: types.ExpirationStatusEnabled, Filter: &types.LifecycleRuleFilter{Prefix: aws.String("machine-pool/")},
			Expiration: &types.LifecycleExpiration{Days: aws.Int32(1)},
		}
		_, err = c.PutBucketLifecycleConfiguration(
			t.Context(),
			&s3.PutBucketLifecycleConfigurationInput{Bucket: bucket, LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: []types.LifecycleRule{rule}}},
		)
		require.NoError(t, err)
		got, err := c.GetBucketLifecycleConfiguration(t.Context(), &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
		require.NoError(t, err)
		assert.Equal(t, []types.LifecycleRule{rule}, got.Rules)
		put(t, c, "demo", "machine-pool/x", "x")
		put(t, c, "demo", "node/x", "x")
		time.Sleep(48 * time.Hour)
		list, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: bucket})
		require.NoError(t, err)
		require.Len(t, list.Contents, 1)
		assert.Equal(t, "node/x", *list.Contents[0].Key)
		rule.Expiration.Days = nil
		_, err = c.PutBucketLifecycleConfiguration(
			t.Context(),
			&s3.PutBucketLifecycleConfigurationInput{Bucket: bucket, LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: []types.LifecycleRule{rule}}},
		)
		hasCode(t, err, "InvalidArgument")
	})
}

func TestBucketPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		c := s3.NewFromConfig(a.Config())
		bucket := aws.String("demo")
		_, err := c.CreateBucket(t.Context(), bucketIn("us-east-1", "demo"))
		require.NoError(t, err)
		_, err = c.GetBucketPolicy(t.Context(), &s3.GetBucketPolicyInput{Bucket: bucket})
		hasCode(t, err, "NoSuchBucketPolicy")
		good := `{"Version":"2012-10-17","Statement":[
			{"Sid":"ForceSSLOnlyAccess","Effect":"Deny","Principal":{"AWS":["*"]},"Action":["s3:*"],"Resource":["arn:aws:s3:::demo/*"],"Condition":{"Bool":{"aws:SecureTransport":false}}},
			{"Sid":"nodes","Effect":"Allow","Principal":{"AWS":["arn:aws:iam::123456789012:role/` + stockNodes + `"]},"Action":["s3:GetObject"],"Resource":["arn:aws:s3:::demo/node/*"]}]}`
		try := func(policy string) error {
			_, err := c.PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: bucket, Policy: &policy})
			return err
		}
		require.NoError(t, try(good))
		for what, bad := range map[string]string{
			"no JSON":          good[1:],
			"no such role":     strings.Replace(good, "role/nodes", "role/none", 1),
			"another bucket":   strings.Replace(good, ":::demo/node", ":::other/node", 1),
			"unknown field":    strings.Replace(good, `"Sid":"nodes"`, `"Id":"nodes"`, 1),
			"lower case":       strings.Replace(good, `"Effect":"Allow"`, `"effect":"Allow"`, 1),
			"no version":       strings.Replace(good, "2012-10-17", "2012-10-18", 1),
			"not an S3 action": strings.Replace(good, "s3:GetObject", "ec2:RunInstances", 1),
		} {
			t.Log(what)
			hasCode(t, try(bad), "MalformedPolicy")
		}
		hasCode(t, try(strings.Replace(good, `"Effect":"Deny"`, `"Effect":"Allow"`, 1)), "AccessDenied")
		got, err := c.GetBucketPolicy(t.Context(), &s3.GetBucketPolicyInput{Bucket: bucket})
		require.NoError(t, err)
		assert.JSONEq(t, good, *got.Policy)
		_, err = c.DeleteBucketPolicy(t.Context(), &s3.DeleteBucketPolicyInput{Bucket: bucket})
		require.NoError(t, err)
	})
}

func TestPresignedURL(t *testing.T) {
	c := s3.NewFromConfig(New(Options{}).Config())
	out, err := s3.NewPresignClient(c).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("demo"), Key: aws.String("node/a")})
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(out.URL, "https://demo.s3.us-east-1.amazonaws.com/node/a?"), out.URL)
}

// A listing with a delimiter shows what keys have in common, page by page.
func TestListingOfFolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := s3.NewFromConfig(New(Options{}).Config())
		_, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("a-bucket")})
		require.NoError(t, err)
		for _, key := range []string{"a/1", "a/2", "a/b/3", "a b/é+&.txt", "c", "d/", "d/4", "e//5"} {
			_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("a-bucket"), Key: aws.String(key), Body: strings.NewReader(key)})
			require.NoError(t, err)
		}
		list := func(prefix, delimiter, after string, size int32, kind types.EncodingType) (shown []string) {
			p := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{
				Bucket: aws.String(
					"a-bucket",
				),
				Prefix:       aws.String(prefix),
				Delimiter:    aws.String(delimiter),
				StartAfter:   aws.String(after),
				MaxKeys:      aws.Int32(size),
				EncodingType: kind,
			})
			for p.HasMorePages() {
				page, err := p.NextPage(t.Context())
				require.NoError(t, err)
				assert.LessOrEqual(t, len(page.Contents)+len(page.CommonPrefixes), int(size))
				assert.Len(t, append(make([]struct{}, len(page.Contents)), make([]struct{}, len(page.CommonPrefixes))...), int(*page.KeyCount))
				for _, x := range page.CommonPrefixes {
					shown = append(shown, "PRE "+*x.Prefix)
				}
				for _, o := range page.Contents {
					shown = append(shown, *o.Key)
				}
			}
			return shown
		}
		assert.Equal(t, []string{"PRE a b/", "PRE a/", "c", "PRE d/", "PRE e/"}, list("", "/", "", 1, ""))
		assert.Equal(t, []string{"PRE a b/", "PRE a/", "PRE d/", "PRE e/", "c"}, list("", "/", "", 1000, ""))
		assert.Equal(t, []string{"PRE a/b/", "a/1", "a/2"}, list("a/", "/", "", 1000, ""))
		assert.Equal(t, []string{"d/", "d/4"}, list("d/", "/", "", 1000, ""))
		assert.Equal(t, []string{"PRE e//"}, list("e/", "/", "", 1000, ""))
		assert.Equal(t, []string{"PRE a/", "PRE d/", "PRE e/", "c"}, list("", "/", "a/1", 1000, ""), "some of its keys are after it")
		assert.Equal(t, []string{"a+b/%C3%A9%2B%26.txt"}, list("a b", "", "", 1000, types.EncodingTypeUrl))
		_, err = c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("a-bucket"), EncodingType: "rot13"})
		assert.ErrorContains(t, err, "InvalidArgument")
	})
}
