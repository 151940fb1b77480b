package awssim

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3State is S3.
type S3State struct {
	Buckets map[string]*Bucket // by name
}

// Bucket is a bucket without versioning.
type Bucket struct {
	Name    string
	Tags    map[string]string
	Policy  string
	Rules   []LifecycleRule
	Objects map[string]*Object // by key
	Born    time.Time
}

// LifecycleRule is a rule that lets objects expire.
type LifecycleRule struct {
	ID, Prefix string
	Enabled    bool
	Days       int32
}

// Object is an object.
type Object struct {
	Key, ETag, Encryption, ContentType string
	Body                               []byte
	Metadata                           map[string]string
	Modified                           time.Time
}

func newS3State() S3State { return S3State{Buckets: map[string]*Bucket{}} }

func (a *AWS) simulateS3() {
	on(a, a.createBucket, "Bucket", "CreateBucketConfiguration", "ObjectOwnership")
	on(a, a.headBucket, "Bucket", "ExpectedBucketOwner")
	on(a, a.getBucketLocation, "Bucket", "ExpectedBucketOwner")
	on(a, a.putBucketTagging, "Bucket", "ExpectedBucketOwner", "Tagging", "ChecksumAlgorithm")
	on(a, a.getBucketTagging, "Bucket", "ExpectedBucketOwner")
	on(a, a.putBucketPolicy, "Bucket", "ExpectedBucketOwner", "Policy", "ChecksumAlgorithm")
	on(a, a.getBucketPolicy, "Bucket", "ExpectedBucketOwner")
	on(a, a.deleteBucketPolicy, "Bucket", "ExpectedBucketOwner")
	on(a, a.putLifecycle, "Bucket", "ExpectedBucketOwner", "LifecycleConfiguration", "ChecksumAlgorithm")
	on(a, a.getLifecycle, "Bucket", "ExpectedBucketOwner")
	on(a, a.deleteBucket, "Bucket", "ExpectedBucketOwner")
	on(a, a.listBuckets, "Prefix", "MaxBuckets", "ContinuationToken", "BucketRegion")
	a.simulateObjects()
}

// taken reports whether a name belongs to another account.
func taken(name string) bool { return strings.HasPrefix(name, "taken-") }

// bucket returns the bucket that a call names. Objects that have expired are
// gone from it.
func (a *AWS) bucket(name, owner *string) (*Bucket, error) {
	b, ok := a.state.S3.Buckets[aws.ToString(name)]
	switch {
	case taken(aws.ToString(name)) || ok && owner != nil && *owner != Account:
		return nil, fail("AccessDenied", "Access Denied")
	case !ok:
		return nil, &types.NoSuchBucket{Message: aws.String("The specified bucket does not exist")}
	}
	for _, r := range b.Rules {
		for _, o := range byKey(b.Objects) {
			if r.Enabled && strings.HasPrefix(o.Key, r.Prefix) && !a.now().Before(expiry(o.Modified, r.Days)) {
				delete(b.Objects, o.Key)
			}
		}
	}
	return b, nil
}

// expiry is when S3 removes an object: at the first midnight after its days.
func expiry(modified time.Time, days int32) time.Time {
	const day = 24 * time.Hour
	return modified.Add(time.Duration(days) * day).Truncate(day).Add(day)
}

func checkBucketName(name string) error {
	bad := !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`).MatchString(name) || strings.Contains(name, "..") ||
		regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(name)
	for _, p := range []string{"xn--", "sthree-", "amzn-s3-demo-"} {
		bad = bad || strings.HasPrefix(name, p)
	}
	for _, s := range []string{"-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"} {
		bad = bad || strings.HasSuffix(name, s)
	}
	if bad {
		return fail("InvalidBucketName", "the specified bucket is not valid: %s", name)
	}
	return nil
}

func (a *AWS) createBucket(in *s3.CreateBucketInput) (*s3.CreateBucketOutput, error) {
	name := aws.ToString(in.Bucket)
	if err := checkBucketName(name); err != nil {
		return nil, err
	}
	if err := a.checkLocation(in.CreateBucketConfiguration); err != nil {
		return nil, err
	}
	if o := in.ObjectOwnership; o != "" && o != types.ObjectOwnershipBucketOwnerEnforced {
		return nil, notSimulated("CreateBucket: object ownership %s", o)
	}
	if taken(name) {
		return nil, &types.BucketAlreadyExists{Message: aws.String("The requested bucket name is not available.")}
	}
	out := &s3.CreateBucketOutput{Location: aws.String("/" + name)}
	if _, exists := a.state.S3.Buckets[name]; exists {
		// Only in us-east-1 making one's own bucket again succeeds.
		if a.o.Region == "us-east-1" {
			return out, nil
		}
		return nil, &types.BucketAlreadyOwnedByYou{Message: aws.String("Your previous request to create the named bucket succeeded and you already own it.")}
	}
	if len(a.state.S3.Buckets) >= 10_000 {
		return nil, fail("TooManyBuckets", "you have attempted to create more buckets than allowed")
	}
	a.state.S3.Buckets[name] = &Bucket{Name: name, Tags: map[string]string{}, Objects: map[string]*Object{}, Born: a.now()}
	return out, nil
}

// checkLocation checks that a new bucket is to be in the region that was
// called: us-east-1 must not be named, every other region must.
func (a *AWS) checkLocation(c *types.CreateBucketConfiguration) error {
	var location string
	if c != nil {
		if err := only("CreateBucketConfiguration", c, "LocationConstraint"); err != nil {
			return err
		}
		location = string(c.LocationConstraint)
	}
	switch {
	case a.o.Region == "us-east-1" && location == "", a.o.Region != "us-east-1" && location == a.o.Region:
		return nil
	case a.o.Region == "us-east-1" && location == "us-east-1":
		return fail("InvalidLocationConstraint", "the specified location-constraint is not valid")
	case a.o.Region == "us-east-1":
		return notSimulated("a bucket in another region, %s,", location)
	}
	return fail("IllegalLocationConstraintException", "the %s location constraint is incompatible for the region specific endpoint this request was sent to", first(location, "unspecified"))
}

func (a *AWS) headBucket(in *s3.HeadBucketInput) (*s3.HeadBucketOutput, error) {
	if taken(aws.ToString(in.Bucket)) {
		return nil, fail("Forbidden", "Forbidden")
	}
	if a.state.S3.Buckets[aws.ToString(in.Bucket)] == nil {
		return nil, &types.NotFound{Message: aws.String("Not Found")}
	}
	if _, err := a.bucket(in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, fail("Forbidden", "Forbidden") // the answer to HEAD has no body
	}
	return &s3.HeadBucketOutput{BucketRegion: aws.String(a.o.Region), AccessPointAlias: aws.Bool(false)}, nil
}

func (a *AWS) getBucketLocation(in *s3.GetBucketLocationInput) (*s3.GetBucketLocationOutput, error) {
	if _, err := a.bucket(in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	if a.o.Region == "us-east-1" {
		return &s3.GetBucketLocationOutput{}, nil
	}
	return &s3.GetBucketLocationOutput{LocationConstraint: types.BucketLocationConstraint(a.o.Region)}, nil
}

func (a *AWS) putBucketTagging(in *s3.PutBucketTaggingInput) (*s3.PutBucketTaggingOutput, error) {
	b, err := a.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if in.Tagging == nil {
		return nil, fail("MalformedXML", "a tag set must be given")
	}
	rules := tagRules{tooMany: "InvalidTag", duplicate: "InvalidTag", invalid: "InvalidTag"}
	tags, err := readTags(rules, nil, in.Tagging.TagSet, func(t types.Tag) (*string, *string) { return t.Key, t.Value })
	if err != nil {
		return nil, err
	}
	b.Tags = tags // all others go
	return &s3.PutBucketTaggingOutput{}, nil
}

func (a *AWS) getBucketTagging(in *s3.GetBucketTaggingInput) (*s3.GetBucketTaggingOutput, error) {
	b, err := a.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if len(b.Tags) == 0 {
		return nil, fail("NoSuchTagSet", "the TagSet does not exist")
	}
	return &s3.GetBucketTaggingOutput{TagSet: writeTags(b.Tags, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} })}, nil
}

func (a *AWS) putLifecycle(in *s3.PutBucketLifecycleConfigurationInput) (*s3.PutBucketLifecycleConfigurationOutput, error) {
	b, err := a.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if in.LifecycleConfiguration == nil || len(in.LifecycleConfiguration.Rules) == 0 || len(in.LifecycleConfiguration.Rules) > 1000 {
		return nil, fail("MalformedXML", "1 to 1000 rules must be given")
	}
	var rules []LifecycleRule
	for _, r := range in.LifecycleConfiguration.Rules {
		rule, err := readLifecycleRule(r)
		if err != nil {
			return nil, err
		}
		if rule.ID == "" {
			rule.ID = a.hash()
		}
		if slices.ContainsFunc(rules, func(o LifecycleRule) bool { return o.ID == rule.ID }) {
			return nil, fail("InvalidArgument", "rule ID must be unique: %s", rule.ID)
		}
		rules = append(rules, rule)
	}
	b.Rules = rules
	return &s3.PutBucketLifecycleConfigurationOutput{}, nil
}

func readLifecycleRule(r types.LifecycleRule) (LifecycleRule, error) {
	out := LifecycleRule{ID: aws.ToString(r.ID), Enabled: r.Status == types.ExpirationStatusEnabled}
	if err := only("lifecycle rule", &r, "ID", "Status", "Filter", "Expiration"); err != nil {
		return out, err
	}
	if r.Filter == nil || r.Expiration == nil || r.Status != types.ExpirationStatusEnabled && r.Status != types.ExpirationStatusDisabled {
		return out, fail("MalformedXML", "a rule needs a status, a filter and an expiration")
	}
	if err := only("lifecycle filter", r.Filter, "Prefix"); err != nil {
		return out, err
	}
	if err := only("lifecycle expiration", r.Expiration, "Days"); err != nil {
		return out, err
	}
	out.Prefix, out.Days = aws.ToString(r.Filter.Prefix), aws.ToInt32(r.Expiration.Days)
	if out.Days < 1 || len(out.ID) > 255 {
		return out, fail("InvalidArgument", "'Days' for the Expiration action must be a positive integer, and the ID at most 255 characters")
	}
	return out, nil
}

func (a *AWS) getLifecycle(in *s3.GetBucketLifecycleConfigurationInput) (*s3.GetBucketLifecycleConfigurationOutput, error) {
	b, err := a.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if len(b.Rules) == 0 {
		return nil, fail("NoSuchLifecycleConfiguration", "the lifecycle configuration does not exist")
	}
	out := &s3.GetBucketLifecycleConfigurationOutput{TransitionDefaultMinimumObjectSize: types.TransitionDefaultMinimumObjectSizeAllStorageClasses128k}
	for _, r := range b.Rules {
		status := types.ExpirationStatusDisabled
		if r.Enabled {
			status = types.ExpirationStatusEnabled
		}
		out.Rules = append(out.Rules, types.LifecycleRule{
			ID: aws.String(r.ID), Status: status, Filter: &types.LifecycleRuleFilter{Prefix: aws.String(r.Prefix)},
			Expiration: &types.LifecycleExpiration{Days: aws.Int32(r.Days)},
		})
	}
	return out, nil
}

func (a *AWS) deleteBucket(in *s3.DeleteBucketInput) (*s3.DeleteBucketOutput, error) {
	b, err := a.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if len(b.Objects) > 0 {
		return nil, fail("BucketNotEmpty", "the bucket you tried to delete is not empty")
	}
	delete(a.state.S3.Buckets, b.Name)
	return &s3.DeleteBucketOutput{}, nil
}

func (a *AWS) listBuckets(in *s3.ListBucketsInput) (*s3.ListBucketsOutput, error) {
	var list []types.Bucket
	for _, b := range byKey(a.state.S3.Buckets) {
		if strings.HasPrefix(b.Name, aws.ToString(in.Prefix)) && (in.BucketRegion == nil || *in.BucketRegion == a.o.Region) && a.visible(b.Born) {
			list = append(list, types.Bucket{Name: aws.String(b.Name), CreationDate: aws.Time(b.Born), BucketRegion: aws.String(a.o.Region)})
		}
	}
	part, next, err := page(a, list, in.ContinuationToken, in.MaxBuckets, 10_000)
	return &s3.ListBucketsOutput{Buckets: part, ContinuationToken: next, Prefix: in.Prefix, Owner: &types.Owner{ID: aws.String(Account)}}, err
}

// s3Tagged lists the buckets.
func (a *AWS) s3Tagged() (all []Tagged) {
	for name, b := range a.state.S3.Buckets {
		all = append(all, Tagged{ARN: "arn:" + a.partition() + ":s3:::" + name, Tags: b.Tags, Born: b.Born})
	}
	return all
}

// Bucket returns the bucket of a name, or nil.
func (a *AWS) Bucket(name string) *Bucket { return a.state.S3.Buckets[name] }
