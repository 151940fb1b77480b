package conformance

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrettypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func (s *suite) parameters() {
	put := func(name, value string, overwrite bool) (*ssm.PutParameterOutput, error) {
		return s.ssm.PutParameter(s.ctx, &ssm.PutParameterInput{Name: &name, Value: &value, Type: ssmtypes.ParameterTypeSecureString, Overwrite: &overwrite})
	}
	made, err := put("/demo/lock/1", "one", false)
	s.need(err)
	s.see("parameter: put", err, made.Version)
	_, err = put("/demo/lock/1", "two", false)
	s.see("parameter: put again", err)
	made, err = put("/demo/lock/1", "two", true)
	s.need(err)
	s.see("parameter: overwrite", err, made.Version)
	got, err := s.ssm.GetParameter(s.ctx, &ssm.GetParameterInput{Name: aws.String("/demo/lock/1"), WithDecryption: aws.Bool(true)})
	s.need(err)
	s.see("parameter: get", err, *got.Parameter.Value, got.Parameter.Type, got.Parameter.LastModifiedDate != nil)
	got, err = s.ssm.GetParameter(s.ctx, &ssm.GetParameterInput{Name: aws.String("/demo/lock/1:1"), WithDecryption: aws.Bool(true)})
	s.need(err)
	s.see("parameter: get an earlier version", err, *got.Parameter.Value, got.Parameter.Version)
	_, err = s.ssm.GetParameter(s.ctx, &ssm.GetParameterInput{Name: aws.String("/demo/lock/1:3")})
	s.see("parameter: get a version that is not there", err)
	_, err = put("/demo/deep/er/2", "three", false)
	s.need(err)
	for _, recursive := range []bool{false, true} {
		out, err := s.ssm.GetParametersByPath(
			s.ctx,
			&ssm.GetParametersByPathInput{Path: aws.String("/demo/lock"), Recursive: &recursive, WithDecryption: aws.Bool(true)},
		)
		s.need(err)
		s.see("parameter: get by path", err, len(out.Parameters))
	}
	_, err = s.ssm.GetParameter(s.ctx, &ssm.GetParameterInput{Name: aws.String("/demo/none")})
	s.see("parameter: get one that is not there", err)
	_, err = put("/demo/large", strings.Repeat("x", 4097), false)
	s.see("parameter: put more than 4 KiB", err)
	for _, name := range []string{"/demo/lock/1", "/demo/deep/er/2"} {
		_, err = s.ssm.DeleteParameter(s.ctx, &ssm.DeleteParameterInput{Name: &name})
		s.see("parameter: delete", err)
	}
	_, err = s.ssm.DeleteParameter(s.ctx, &ssm.DeleteParameterInput{Name: aws.String("/demo/lock/1")})
	s.see("parameter: delete again", err)
	made, err = put("/demo/lock/1", "four", true)
	s.need(err)
	s.see("parameter: overwrite one that was deleted", err, made.Version)
	_, err = s.ssm.DeleteParameter(s.ctx, &ssm.DeleteParameterInput{Name: aws.String("/demo/lock/1")})
	s.need(err)
}

func (s *suite) secretsOf() {
	name := aws.String("demo/one")
	create := func() error { // with a separate client token, which the SDK sets
		_, err := s.secrets.CreateSecret(s.ctx, &secretsmanager.CreateSecretInput{
			Name: name, SecretBinary: []byte("boot"), Tags: []secrettypes.Tag{{Key: aws.String("team"), Value: aws.String("red")}},
		})
		return err
	}
	err := create()
	s.see("secret: create", err)
	s.need(err)
	err = create()
	s.see("secret: create again", err)
	list, err := s.secrets.ListSecrets(
		s.ctx,
		&secretsmanager.ListSecretsInput{Filters: []secrettypes.Filter{{Key: secrettypes.FilterNameStringTypeTagKey, Values: []string{"team"}}}},
	)
	s.need(err)
	s.see("secret: list by tag", err, len(list.SecretList))
	_, err = s.secrets.DeleteSecret(s.ctx, &secretsmanager.DeleteSecretInput{SecretId: name, ForceDeleteWithoutRecovery: aws.Bool(true)})
	s.see("secret: delete", err)
	s.settle()
	err = create()
	s.need(err)
	s.see("secret: create after that", err)
	_, err = s.secrets.DeleteSecret(s.ctx, &secretsmanager.DeleteSecretInput{SecretId: name, ForceDeleteWithoutRecovery: aws.Bool(true)})
	s.need(err)
}

func (s *suite) buckets() {
	bucket := aws.String("demo-conformance")
	_, err := s.s3.HeadBucket(s.ctx, &s3.HeadBucketInput{Bucket: bucket})
	s.see("bucket: look for one that is not there", err)
	_, err = s.s3.CreateBucket(s.ctx, &s3.CreateBucketInput{Bucket: bucket})
	s.see("bucket: create", err)
	s.need(err)
	_, err = s.s3.GetBucketPolicy(s.ctx, &s3.GetBucketPolicyInput{Bucket: bucket})
	s.see("bucket: get a policy that is not there", err)
	_, err = s.s3.GetBucketTagging(s.ctx, &s3.GetBucketTaggingInput{Bucket: bucket})
	s.see("bucket: get tags that are not there", err)
	_, err = s.s3.PutBucketTagging(
		s.ctx,
		&s3.PutBucketTaggingInput{Bucket: bucket, Tagging: &s3types.Tagging{TagSet: []s3types.Tag{{Key: aws.String("team"), Value: aws.String("red")}}}},
	)
	s.see("bucket: put tags", err)
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::demo-conformance/*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`
	_, err = s.s3.PutBucketPolicy(s.ctx, &s3.PutBucketPolicyInput{Bucket: bucket, Policy: &policy})
	s.see("bucket: put a policy", err)
	_, err = s.s3.PutObject(s.ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String("node/one"), Body: strings.NewReader("boot")})
	s.see("object: put", err)
	_, err = s.s3.HeadObject(s.ctx, &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("node/one")})
	s.see("object: look", err)
	_, err = s.s3.HeadObject(s.ctx, &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("node/none")})
	s.see("object: look for one that is not there", err)
	list, err := s.s3.ListObjectsV2(s.ctx, &s3.ListObjectsV2Input{Bucket: bucket})
	s.need(err)
	s.see("object: list", err, len(list.Contents))
	_, err = s.s3.DeleteBucket(s.ctx, &s3.DeleteBucketInput{Bucket: bucket})
	s.see("bucket: delete with an object", err)
	_, err = s.s3.DeleteObject(s.ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("node/one")})
	s.see("object: delete", err)
	_, err = s.s3.DeleteBucket(s.ctx, &s3.DeleteBucketInput{Bucket: bucket})
	s.see("bucket: delete", err)
	_, err = s.s3.DeleteBucket(s.ctx, &s3.DeleteBucketInput{Bucket: bucket})
	s.see("bucket: delete again", err)
}

func (s *suite) account() {
	who, err := s.sts.GetCallerIdentity(s.ctx, &sts.GetCallerIdentityInput{})
	s.need(err)
	s.see("account: its number", err, *who.Account)
	profile, err := s.iam.GetInstanceProfile(s.ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")})
	s.need(err)
	s.see("instance profile: get", err, *profile.InstanceProfile.InstanceProfileName, len(profile.InstanceProfile.Roles))
	_, err = s.iam.GetInstanceProfile(s.ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("nobody")})
	s.see("instance profile: get one that is not there", err)
	_, err = s.iam.GetRole(s.ctx, &iam.GetRoleInput{RoleName: aws.String("nobody")})
	s.see("role: get one that is not there", err)
	quota, err := s.quotas.GetServiceQuota(s.ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("vpc"), QuotaCode: aws.String("L-F678F1CE")})
	if err != nil {
		s.see("quota: of VPCs", err)
		return
	}
	s.see("quota: of VPCs", err, *quota.Quota.Value)
}
