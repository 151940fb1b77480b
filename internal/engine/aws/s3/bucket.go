package s3

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Bucket contains the Ignition data that machines load (CAPA: spec.s3Bucket).
type Bucket struct {
	Name      string
	Partition string            // of ARNs: aws, aws-cn, aws-us-gov
	Account   string            // account ID, for ARNs of roles
	Readers   map[string]Reader // by the Sid of their policy statement
	Tags      cloud.Tags
	// BestEffort ignores access errors when objects are deleted
	// (spec.s3Bucket.bestEffortDeleteObjects).
	BestEffort bool
}

// Reader is a role that may read objects with some prefixes.
type Reader struct {
	Role     string
	Prefixes []string // "control-plane/*"
}

// BucketState is an S3 bucket, as AWS describes it.
type BucketState struct {
	Name   string
	Tags   cloud.Tags
	Policy string // canonical JSON
}

// CloudID implements graph.State.
func (s BucketState) CloudID() string { return s.Name }

// ResourceTags returns the tags.
func (s BucketState) ResourceTags() cloud.Tags { return s.Tags }

var _ graph.Managed[BucketState] = (*Bucket)(nil)

// Needs implements graph.Desired.
func (b *Bucket) Needs() []graph.Edge { return nil }

// Find implements graph.Desired.
func (b *Bucket) Find(ctx context.Context, c *cloud.Clients) (*BucketState, error) {
	return cloud.Remember(ctx, c, "bucket "+b.Name, func(ctx context.Context) (*BucketState, error) {
		_, err := c.S3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.Name})
		switch {
		case cloud.Is(err, "NotFound", "NoSuchBucket"):
			return nil, nil
		case cloud.Is(err, "Forbidden", "AccessDenied"):
			return nil, fmt.Errorf("bucket %s belongs to another account: set another name in spec.s3Bucket.name", b.Name)
		case err != nil:
			return nil, err
		}
		return b.describe(ctx, c)
	})
}

// describe returns the state of a bucket that exists.
func (b *Bucket) describe(ctx context.Context, c *cloud.Clients) (*BucketState, error) {
	s := &BucketState{Name: b.Name, Tags: cloud.Tags{}}
	tagging, err := c.S3.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &b.Name})
	if err != nil && !cloud.NotFound(err) {
		return nil, err
	} else if err == nil {
		s.Tags = cloud.TagsFrom(tagging.TagSet, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
	}
	if s.Tags[c.OwnerTag()] != cloud.Owned {
		stored, err := storedBucketName(ctx, c)
		if err != nil || stored != b.Name { // otherwise a run ended before it tagged the bucket
			return nil, cmp.Or(
				err,
				fmt.Errorf("bucket %s does not have the tag %s=%s: add the tag, or set another name in spec.s3Bucket.name", b.Name, c.OwnerTag(), cloud.Owned),
			)
		}
	}
	policy, err := c.S3.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &b.Name})
	if err != nil && !cloud.NotFound(err) {
		return nil, err
	} else if err == nil {
		s.Policy = text.CanonicalJSON(aws.ToString(policy.Policy))
	}
	return s, nil
}

// Check implements graph.Checked: S3 refuses a policy with a role that does not exist.
func (b *Bucket) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	for _, sid := range slices.Sorted(maps.Keys(b.Readers)) {
		if refusal, err = iam.MissingPrincipal(ctx, c, b.roleARN(b.Readers[sid])); refusal != "" || err != nil {
			return text.Prefixed("its policy lets roles read boot data: ", refusal), err
		}
	}
	return "", nil
}

// CheckCreation implements graph.CheckedCreation. S3 does not rename buckets, and Parameter Store has the name of one bucket of the cluster: a
// deletion would not find the other one.
func (b *Bucket) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	name, err := storedBucketName(ctx, c)
	if err != nil || name == "" || name == b.Name {
		return "", err
	}
	old, err := (&Bucket{Name: name}).Find(ctx, c)
	if err != nil || old == nil {
		return "", err
	}
	return fmt.Sprintf(
		"the cluster has the bucket %s, which S3 does not rename: set spec.s3Bucket.name: %[1]s, or empty and delete it first (aws s3 rb --force s3://%[1]s)",
		name,
	), nil
}

func (b *Bucket) roleARN(r Reader) string {
	return fmt.Sprintf("arn:%s:iam::%s:role/%s", b.Partition, b.Account, r.Role)
}

// Diff implements graph.Desired.
func (b *Bucket) Diff(have *BucketState) (d plan.Diff) {
	d.Fixed("name", have.Name, b.Name)
	d.Set("policy", have.Policy, text.CanonicalJSON(b.policy()))
	d.Tags(have.Tags, b.Tags)
	return d
}

// policy returns the bucket policy. It is the same as CAPA's
// (pkg/cloud/services/s3/s3.go): it denies requests without TLS, and each role may read
// its own prefixes.
func (b *Bucket) policy() string {
	arn := fmt.Sprintf("arn:%s:s3:::%s", b.Partition, b.Name)
	statements := []map[string]any{{
		"Sid": "ForceSSLOnlyAccess", "Effect": "Deny", "Principal": map[string]any{"AWS": "*"}, "Action": "s3:*", "Resource": arn + "/*",
		"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
	}}
	for _, sid := range slices.Sorted(maps.Keys(b.Readers)) {
		r := b.Readers[sid]
		var objects []string
		for _, prefix := range r.Prefixes {
			objects = append(objects, arn+"/"+prefix)
		}
		statements = append(statements, map[string]any{
			"Sid": sid, "Effect": "Allow", "Action": "s3:GetObject", "Resource": objects,
			"Principal": map[string]any{"AWS": b.roleARN(r)},
		})
	}
	out, _ := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements}) //nolint:errchkjson // plain maps and strings
	return string(out)
}

// Create implements graph.Creator. It first stores the name in an SSM parameter, which
// identifies the bucket before it is tagged, and for a deletion without the manifest.
func (b *Bucket) Create(ctx context.Context, c *cloud.Clients) (*BucketState, error) {
	_, err := c.SSM.PutParameter(ctx, &ssm.PutParameterInput{
		Name: aws.String(c.ParameterPath(secrets.BucketRecord)), Value: &b.Name, Type: ssmtypes.ParameterTypeString, Overwrite: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	in := &s3.CreateBucketInput{Bucket: &b.Name}
	if c.Region != "us-east-1" { // CreateBucket does not accept it as a LocationConstraint
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(c.Region)}
	}
	_, err = c.S3.CreateBucket(ctx, in)
	if cloud.Is(err, "BucketAlreadyExists") {
		return nil, fmt.Errorf("bucket %s belongs to another account: set another name in spec.s3Bucket.name: %w", b.Name, err)
	}
	if cloud.Is(err, "OperationAborted") {
		return nil, graph.NotYet(err) // a bucket of the same name is being deleted
	}
	if err != nil && !cloud.Is(err, "BucketAlreadyOwnedByYou") {
		return nil, err
	}
	return &BucketState{Name: b.Name}, nil
}

// Update implements graph.Updater.
func (b *Bucket) Update(ctx context.Context, c *cloud.Clients, have *BucketState, d plan.Diff) (*BucketState, error) {
	after := *have
	if d.HasTags() {
		after.Tags = have.Tags.With(b.Tags).Without(d.Untagged()) // PutBucketTagging replaces all tags
		var set []types.Tag
		for _, k := range slices.Sorted(maps.Keys(after.Tags)) {
			set = append(set, types.Tag{Key: aws.String(k), Value: aws.String(after.Tags[k])})
		}
		if _, err := c.S3.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: &b.Name, Tagging: &types.Tagging{TagSet: set}}); err != nil {
			return nil, err
		}
	}
	if d.Has("policy") {
		policy := b.policy()
		if _, err := c.S3.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &b.Name, Policy: &policy}); err != nil {
			return nil, err
		}
		after.Policy = text.CanonicalJSON(policy)
	}
	return &after, nil
}

// Delete implements graph.Deleter. It deletes all versions of boot data first, and the
// parameter with the name last. S3 refuses the deletion of a bucket with other objects.
func (b *Bucket) Delete(ctx context.Context, c *cloud.Clients, have *BucketState) error {
	err := cloud.IgnoreNotFound(deleteBootData(ctx, c, have.Name))
	if err != nil && (!b.BestEffort || !cloud.Denied(err)) {
		return err
	}
	_, err = c.S3.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &have.Name})
	if cloud.Is(err, "BucketNotEmpty") {
		if refusal, looked := othersObjects(ctx, c, *have); refusal != "" && looked == nil {
			return errors.New(refusal)
		}
	}
	if cloud.IgnoreNotFound(err) != nil {
		return err
	}
	_, err = c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(c.ParameterPath(secrets.BucketRecord))})
	return cloud.IgnoreNotFound(err)
}

// protection says why S3 would refuse the deletion of a bucket.
func protection(ctx context.Context, c *cloud.Clients, s BucketState) (string, error) {
	refusal, err := deletionDenied(ctx, c, s)
	if refusal != "" || err != nil {
		return refusal, err
	}
	return othersObjects(ctx, c, s)
}

// deletionDenied says which statement of the bucket's policy denies its deletion. Statements with a condition
// or for some principals may not apply, and are left to S3.
func deletionDenied(ctx context.Context, c *cloud.Clients, s BucketState) (string, error) {
	out, err := c.S3.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &s.Name})
	if err != nil {
		return "", cloud.IgnoreNotFound(err)
	}
	var policy struct {
		Statement []struct {
			Sid, Effect string
			Principal   any
			Action      any
			Condition   any
		}
	}
	if err := json.Unmarshal([]byte(aws.ToString(out.Policy)), &policy); err != nil {
		return "", nil //nolint:nilerr // one statement without brackets: S3 decides
	}
	for _, st := range policy.Statement {
		if st.Effect != "Deny" || st.Condition != nil || fmt.Sprint(st.Principal) != "*" && fmt.Sprint(st.Principal) != "map[AWS:*]" {
			continue
		}
		for _, action := range []string{"s3:DeleteBucket", "s3:DeleteObject", "s3:DeleteObjectVersion"} {
			if slices.ContainsFunc(texts(st.Action), func(pattern string) bool { return matches(pattern, action) }) {
				return fmt.Sprintf(
					"the policy of bucket %s denies %s (statement %q): remove that statement, or all with aws s3api delete-bucket-policy --region %s --bucket %s",
					s.Name,
					action,
					st.Sid,
					c.Region,
					s.Name,
				), nil
			}
		}
	}
	return "", nil
}

// texts returns the texts of a list, or of a single value.
func texts(v any) (list []string) {
	many, ok := v.([]any)
	if !ok {
		many = []any{v}
	}
	for _, x := range many {
		list = append(list, fmt.Sprint(x))
	}
	return list
}

// matches reports whether a pattern of a policy with * and ? matches an action. Case does not matter.
func matches(pattern, action string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(action))
	return ok && err == nil
}

// storedBucketName returns the name of the bucket of the cluster; "" if none was created.
func storedBucketName(ctx context.Context, c *cloud.Clients) (string, error) {
	return secrets.Record(ctx, c, secrets.BucketRecord)
}

// BucketKind is the name of the kind of buckets.
const BucketKind = "bucket"

// ReadBucket returns the bucket of the cluster, by the name that a run has stored in Parameter
// Store. It is nil if no name is stored, or the bucket does not exist.
func ReadBucket(ctx context.Context, c *cloud.Clients) (*BucketState, error) {
	name, err := storedBucketName(ctx, c)
	if err != nil || name == "" {
		return nil, err
	}
	return (&Bucket{Name: name}).Find(ctx, c)
}

// BucketNameIfAllowed returns the name of the bucket that a run has created for the cluster. It returns "" if no run has created one, or if the
// caller has no permission to read the name.
func BucketNameIfAllowed(ctx context.Context, c *cloud.Clients) (string, error) {
	name, err := storedBucketName(ctx, c)
	if cloud.Denied(err) {
		return "", nil
	}
	return name, err
}

// RetireBucket adds the deletion of a bucket that is not desired any more, with its boot data, after what has used it.
func RetireBucket(g *graph.Graph, id plan.ID, name string, after []graph.Edge) {
	kind.Retire(g, id, (&Bucket{Name: name}).Find, &Bucket{}, after)
}

// bucketKind declares S3 buckets.
func bucketKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: BucketKind, Area: plan.AreaSecurity, Secret: true, Statement: kind.Buckets,
		Actions: []string{
			"s3:CreateBucket", "s3:DeleteBucket", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:GetBucketPolicy", "s3:GetBucketTagging", "s3:GetObject",
			"s3:ListBucket", "s3:ListBucketVersions", "s3:PutBucketPolicy", "s3:PutBucketTagging", "s3:PutObject",
		},
	}, kind.Functions[BucketState]{
		List: listBucket, Delete: &Bucket{}, Protection: protection,
		ID: func(BucketState) plan.ID { return BucketKind },
	})
}

// listBucket returns the bucket whose name is stored. The bucket itself may not exist if
// a run ended before it created it.
func listBucket(ctx context.Context, c *cloud.Clients, _ kind.Owner) ([]BucketState, error) {
	name, err := storedBucketName(ctx, c)
	if err != nil || name == "" {
		return nil, err
	}
	return []BucketState{{Name: name}}, nil
}
