package replica

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	sims3 "github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
	simsecrets "github.com/clusterawsadm/clusterawsadm/internal/awssim/secretsmanager"
	simssm "github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
)

// parameters reads the parameters below the paths, with the names and with the tags that the
// plan asks for. Of those of type SecureString, only the names are copied. Records of locks are
// not: nobody holds a lock of a copy.
func (r *reader) parameters(ctx context.Context) error {
	c, found := ssm.NewFromConfig(r.Config), map[string]*simssm.Parameter{}
	for path := range r.askedPaths() {
		p := ssm.NewGetParametersByPathPaginator(c, &ssm.GetParametersByPathInput{Path: &path, Recursive: aws.Bool(true)})
		err := pages(ctx, p, func(p *ssm.GetParametersByPathOutput) {
			for _, x := range p.Parameters {
				r.addParameter(found, x)
			}
		})
		if err != nil {
			return err
		}
	}
	for name := range r.askedParameters() {
		out, err := c.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		r.addParameter(found, *out.Parameter)
	}
	for _, in := range of[ssm.DescribeParametersInput](r.Asked) {
		in := *in
		in.NextToken = nil
		err := pages(ctx, ssm.NewDescribeParametersPaginator(c, &in), func(p *ssm.DescribeParametersOutput) {
			for _, x := range p.Parameters {
				name := aws.ToString(x.Name)
				if found[name] == nil {
					r.addParameter(found, types.Parameter{Name: x.Name, Type: x.Type, Version: x.Version, LastModifiedDate: x.LastModifiedDate})
				}
				for _, f := range in.ParameterFilters {
					if key, ok := strings.CutPrefix(aws.ToString(f.Key), "tag:"); ok && len(f.Values) == 1 && found[name] != nil {
						found[name].Tags[key] = f.Values[0]
					}
				}
			}
		})
		if err != nil {
			return err
		}
	}
	r.to.SSM.Parameters = found
	return nil
}

func (r *reader) addParameter(found map[string]*simssm.Parameter, x types.Parameter) {
	name := aws.ToString(x.Name)
	if strings.Contains(name, "/lock/") {
		return
	}
	own := &simssm.Parameter{Name: name, Type: string(x.Type), Version: x.Version, Created: r.since(x.LastModifiedDate), Modified: r.since(x.LastModifiedDate), Tags: map[string]string{}}
	if own.Withheld = x.Type != types.ParameterTypeString || x.Value == nil; !own.Withheld {
		own.Value = *x.Value
	}
	found[name] = own
}

func (r *reader) askedPaths() map[string]bool {
	paths := map[string]bool{}
	for _, in := range of[ssm.GetParametersByPathInput](r.Asked) {
		path := aws.ToString(in.Path)
		if !strings.HasSuffix(path, "/lock") {
			paths[path] = true
		}
	}
	return paths
}

func (r *reader) askedParameters() map[string]bool {
	names := map[string]bool{}
	for _, in := range of[ssm.GetParameterInput](r.Asked) {
		names[aws.ToString(in.Name)] = true
	}
	return names
}

// secrets reads the names of the secrets with the tags that the plan asks for.
func (r *reader) secrets(ctx context.Context) error {
	c, found := secretsmanager.NewFromConfig(r.Config), map[string]*simsecrets.Secret{}
	for _, in := range of[secretsmanager.ListSecretsInput](r.Asked) {
		in := *in
		in.NextToken = nil
		err := pages(ctx, secretsmanager.NewListSecretsPaginator(c, &in), func(p *secretsmanager.ListSecretsOutput) {
			for _, s := range p.SecretList {
				own := &simsecrets.Secret{
					ARN: aws.ToString(s.ARN), Name: aws.ToString(s.Name), Description: aws.ToString(s.Description), Tags: map[string]string{}, Born: r.since(s.CreatedDate), Changed: r.since(s.LastChangedDate),
					Versions: []*simsecrets.SecretVersion{{ID: "withheld", Stage: "AWSCURRENT", Born: r.since(s.LastChangedDate)}},
				}
				for _, t := range s.Tags {
					own.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
				}
				if s.DeletedDate == nil {
					found[own.Name] = own
				}
			}
		})
		if err != nil {
			return err
		}
	}
	r.to.Secrets.Secrets = found
	return nil
}

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
	tagging, err := c.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &b.Name})
	if err != nil && !missing(err) {
		return err
	}
	if err == nil {
		for _, t := range tagging.TagSet {
			b.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
		}
	}
	policy, err := c.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &b.Name})
	if err != nil && !missing(err) {
		return err
	}
	if err == nil {
		b.Policy = aws.ToString(policy.Policy)
	}
	rules, err := c.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &b.Name})
	if err != nil && !missing(err) {
		return err
	}
	if err == nil {
		for _, x := range rules.Rules {
			b.Rules = append(b.Rules, ruleOfBucket(x))
		}
	}
	return pages(ctx, s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: &b.Name}), func(p *s3.ListObjectsV2Output) {
		for _, o := range p.Contents {
			own := &sims3.Object{Key: aws.ToString(o.Key), ETag: aws.ToString(o.ETag), Encryption: "AES256", ContentType: "application/octet-stream", Body: []byte{}, Metadata: map[string]string{}, Modified: r.since(o.LastModified)}
			b.Objects[own.Key] = own
		}
	})
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
