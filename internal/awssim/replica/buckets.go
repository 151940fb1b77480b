package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	sims3 "github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
)

// buckets reads the buckets that the plan asks for. Of their objects, only the names are
// copied.
func (r *reader) buckets(ctx context.Context) error {
	c, found := s3.NewFromConfig(r.Config, func(o *s3.Options) { o.UsePathStyle = r.Config.BaseEndpoint != nil }), map[string]*sims3.Bucket{}
	for _, in := range of[s3.HeadBucketInput](r.Asked) {
		name := aws.ToString(in.Bucket)
		_, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
		switch code, refused := refusal(err); {
		case missing(err) || found[name] != nil:
			continue
		case refused:
			r.remark("the bucket %s cannot be read (%s): in the copy, its name is free", name, code)
			continue
		case err != nil:
			return err
		}
		own := &sims3.Bucket{Name: name, Tags: map[string]string{}, Objects: map[string]*sims3.Object{}, Born: r.old()}
		if err := r.part(ctx, "the bucket "+name, func(ctx context.Context) error { return r.bucket(ctx, c, own) }); err != nil {
			return err
		}
		found[name] = own
	}
	r.to.S3.Buckets = found
	return nil
}

func (r *reader) bucket(ctx context.Context, c *s3.Client, b *sims3.Bucket) error {
	for _, read := range []func(context.Context, *s3.Client, *sims3.Bucket) error{bucketTags, bucketPolicy, bucketRules} {
		if err := read(ctx, c, b); err != nil && !missing(err) {
			return err
		}
	}
	return pages(ctx, s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: &b.Name}), func(p *s3.ListObjectsV2Output) {
		for _, o := range p.Contents {
			own := &sims3.Object{
				Key:         aws.ToString(o.Key),
				ETag:        aws.ToString(o.ETag),
				Encryption:  "AES256",
				ContentType: "application/octet-stream",
				Body:        []byte{},
				Metadata:    map[string]string{},
				Modified:    r.since(o.LastModified),
			}
			b.Objects[own.Key] = own
		}
	})
}

func bucketTags(ctx context.Context, c *s3.Client, b *sims3.Bucket) error {
	out, err := c.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &b.Name})
	if err != nil {
		return err
	}
	for _, t := range out.TagSet {
		b.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return nil
}

func bucketPolicy(ctx context.Context, c *s3.Client, b *sims3.Bucket) error {
	out, err := c.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &b.Name})
	if err == nil {
		b.Policy = aws.ToString(out.Policy)
	}
	return err
}

func bucketRules(ctx context.Context, c *s3.Client, b *sims3.Bucket) error {
	out, err := c.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &b.Name})
	if err != nil {
		return err
	}
	for _, x := range out.Rules {
		b.Rules = append(b.Rules, ruleOfBucket(x))
	}
	return nil
}

func ruleOfBucket(x s3types.LifecycleRule) sims3.LifecycleRule {
	own := sims3.LifecycleRule{ID: aws.ToString(x.ID), Enabled: x.Status == s3types.ExpirationStatusEnabled}
	if x.Filter != nil {
		own.Prefix = aws.ToString(x.Filter.Prefix)
	}
	if x.Expiration != nil {
		own.Days = aws.ToInt32(x.Expiration.Days)
	}
	return own
}
