package s3

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// State is the state of S3.
type State struct {
	Buckets map[string]*Bucket // by name
}

// Bucket is a bucket without versioning.
type Bucket struct {
	Name    string
	Region  string `json:",omitempty"` // "": that of the account
	Tags    map[string]string
	Policy  string
	Rules   []LifecycleRule
	Objects map[string]*Object // by key
	Born    time.Time
}

// LifecycleRule is a rule for the expiration of objects.
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

func (svc *Service) simulate() {
	core.On(svc.Account, svc.createBucket, "Bucket", "CreateBucketConfiguration", "ObjectOwnership")
	everywhere(svc, svc.headBucket, "Bucket", "ExpectedBucketOwner")
	core.On(svc.Account, svc.getBucketLocation, "Bucket", "ExpectedBucketOwner")
	core.On(svc.Account, svc.putBucketTagging, "Bucket", "ExpectedBucketOwner", "Tagging", "ChecksumAlgorithm")
	core.On(svc.Account, svc.getBucketTagging, "Bucket", "ExpectedBucketOwner")
	core.On(svc.Account, svc.putBucketPolicy, "Bucket", "ExpectedBucketOwner", "Policy", "ChecksumAlgorithm")
	core.On(svc.Account, svc.getBucketPolicy, "Bucket", "ExpectedBucketOwner")
	core.On(svc.Account, svc.deleteBucketPolicy, "Bucket", "ExpectedBucketOwner")
	core.On(svc.Account, svc.putLifecycle, "Bucket", "ExpectedBucketOwner", "LifecycleConfiguration", "ChecksumAlgorithm")
	core.On(svc.Account, svc.getLifecycle, "Bucket", "ExpectedBucketOwner")
	core.On(svc.Account, svc.deleteBucket, "Bucket", "ExpectedBucketOwner")
	core.On(svc.Account, svc.listBuckets, "Prefix", "MaxBuckets", "ContinuationToken", "BucketRegion")
	svc.simulateObjects()
}

// taken reports whether a bucket of that name belongs to another account.
func taken(name string) bool { return strings.HasPrefix(name, "taken-") }

// bucket returns a bucket without expired objects.
func (svc *Service) bucket(name, owner *string) (*Bucket, error) {
	b, ok := svc.state.Buckets[aws.ToString(name)]
	switch {
	case taken(aws.ToString(name)) || ok && owner != nil && *owner != svc.Number():
		return nil, core.Fail("AccessDenied", "Access Denied")
	case !ok:
		return nil, &types.NoSuchBucket{Message: aws.String("The specified bucket does not exist")}
	}
	if region := cmp.Or(b.Region, svc.Region); region != svc.endpoint() {
		return nil, redirect(
			region,
			"PermanentRedirect",
			"The bucket you are attempting to access must be addressed using the specified endpoint. Please send all future requests to this endpoint.",
		)
	}
	svc.expire(b)
	return b, nil
}

// redirect is the answer of an endpoint of another region than that of the bucket
// (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList).
func redirect(region, code, message string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusMovedPermanently, Header: http.Header{"X-Amz-Bucket-Region": {region}}}},
		Err:      &smithy.GenericAPIError{Code: code, Message: message, Fault: smithy.FaultClient},
	}
}

// endpoint returns the region of the endpoint that handles the call.
func (svc *Service) endpoint() string { return cmp.Or(svc.asked, svc.Region) }

// everywhere registers an operation on buckets of every region.
func everywhere[In, Out any](svc *Service, answer func(*In) (*Out, error), fields ...string) {
	core.OnEverywhere(svc.Account, func(ctx context.Context, in *In) (*Out, error) {
		svc.asked = awsmiddleware.GetRegion(ctx) // the account is locked
		defer func() { svc.asked = "" }()
		return answer(in)
	}, fields...)
}

// expire deletes the expired objects of a bucket.
func (svc *Service) expire(b *Bucket) {
	for _, r := range b.Rules {
		for _, o := range core.ByKey(b.Objects) {
			if r.Enabled && strings.HasPrefix(o.Key, r.Prefix) && !svc.Now().Before(expiry(o.Modified, r.Days)) {
				delete(b.Objects, o.Key)
			}
		}
	}
}

// expiry returns when S3 deletes an object: at the first midnight after its days.
func expiry(modified time.Time, days int32) time.Time {
	const day = 24 * time.Hour
	return modified.Add(time.Duration(days) * day).Truncate(day).Add(day)
}

func checkBucketName(name string) error {
	bad := !regex.Of(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`).MatchString(name) || strings.Contains(name, "..") ||
		regex.Of(`^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(name)
	for _, p := range []string{"xn--", "sthree-", "amzn-s3-demo-"} {
		bad = bad || strings.HasPrefix(name, p)
	}
	for _, s := range []string{"-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"} {
		bad = bad || strings.HasSuffix(name, s)
	}
	if bad {
		return core.Fail("InvalidBucketName", "the specified bucket is not valid: %s", name)
	}
	return nil
}

func (svc *Service) createBucket(in *s3.CreateBucketInput) (*s3.CreateBucketOutput, error) {
	name := aws.ToString(in.Bucket)
	if err := checkBucketName(name); err != nil {
		return nil, err
	}
	if err := svc.checkLocation(in.CreateBucketConfiguration); err != nil {
		return nil, err
	}
	if o := in.ObjectOwnership; o != "" && o != types.ObjectOwnershipBucketOwnerEnforced {
		return nil, core.NotSimulated("CreateBucket: object ownership %s", o)
	}
	if taken(name) {
		return nil, &types.BucketAlreadyExists{Message: aws.String("The requested bucket name is not available.")}
	}
	out := &s3.CreateBucketOutput{Location: aws.String("/" + name)}
	if _, exists := svc.state.Buckets[name]; exists {
		// Only in us-east-1, creating one's own bucket again succeeds.
		if svc.Region == "us-east-1" {
			return out, nil
		}
		return nil, &types.BucketAlreadyOwnedByYou{Message: aws.String("Your previous request to create the named bucket succeeded and you already own it.")}
	}
	if len(svc.state.Buckets) >= 10_000 {
		return nil, core.Fail("TooManyBuckets", "you have attempted to create more buckets than allowed")
	}
	region := ""
	if c := in.CreateBucketConfiguration; c != nil && string(c.LocationConstraint) != svc.Region {
		region = string(c.LocationConstraint)
	}
	svc.state.Buckets[name] = &Bucket{Name: name, Region: region, Tags: map[string]string{}, Objects: map[string]*Object{}, Born: svc.Now()}
	return out, nil
}

// checkLocation checks that a new bucket is in the region of the endpoint: us-east-1 must
// not be set, every other region must.
func (svc *Service) checkLocation(c *types.CreateBucketConfiguration) error {
	var location string
	if c != nil {
		if err := core.Only("CreateBucketConfiguration", c, "LocationConstraint"); err != nil {
			return err
		}
		location = string(c.LocationConstraint)
	}
	switch {
	case svc.Region == "us-east-1" && location == "", svc.Region != "us-east-1" && location == svc.Region:
		return nil
	case svc.Region == "us-east-1" && location == "us-east-1":
		return core.Fail("InvalidLocationConstraint", "the specified location-constraint is not valid")
	case svc.Region == "us-east-1": // its endpoint creates buckets in every region
		return nil
	}
	return core.Fail(
		"IllegalLocationConstraintException",
		"the %s location constraint is incompatible for the region specific endpoint this request was sent to",
		cmp.Or(location, "unspecified"),
	)
}

func (svc *Service) headBucket(in *s3.HeadBucketInput) (*s3.HeadBucketOutput, error) {
	if taken(aws.ToString(in.Bucket)) {
		return nil, core.Fail("Forbidden", "Forbidden")
	}
	if svc.state.Buckets[aws.ToString(in.Bucket)] == nil {
		return nil, &types.NotFound{Message: aws.String("Not Found")}
	}
	if _, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, headless(err)
	}
	return &s3.HeadBucketOutput{BucketRegion: aws.String(svc.endpoint()), AccessPointAlias: aws.Bool(false)}, nil
}

// headless is an error in the answer to a HEAD request, which has no body with a code: the SDK takes the
// text of the status.
func headless(err error) error {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		return redirect(answer.Response.Header.Get("X-Amz-Bucket-Region"), "MovedPermanently", "Moved Permanently")
	}
	return core.Fail("Forbidden", "Forbidden")
}

func (svc *Service) getBucketLocation(in *s3.GetBucketLocationInput) (*s3.GetBucketLocationOutput, error) {
	if _, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner); err != nil {
		return nil, err
	}
	if svc.Region == "us-east-1" {
		return &s3.GetBucketLocationOutput{}, nil
	}
	return &s3.GetBucketLocationOutput{LocationConstraint: types.BucketLocationConstraint(svc.Region)}, nil
}

func (svc *Service) putBucketTagging(in *s3.PutBucketTaggingInput) (*s3.PutBucketTaggingOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if in.Tagging == nil {
		return nil, core.Fail("MalformedXML", "a tag set must be given")
	}
	rules := core.TagRules{TooMany: "InvalidTag", Duplicate: "InvalidTag", Invalid: "InvalidTag"}
	tags, err := core.ReadTags(rules, nil, in.Tagging.TagSet, func(t types.Tag) (*string, *string) { return t.Key, t.Value })
	if err != nil {
		return nil, err
	}
	b.Tags = tags // replaces all tags
	return &s3.PutBucketTaggingOutput{}, nil
}

func (svc *Service) getBucketTagging(in *s3.GetBucketTaggingInput) (*s3.GetBucketTaggingOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if len(b.Tags) == 0 {
		return nil, core.Fail("NoSuchTagSet", "the TagSet does not exist")
	}
	return &s3.GetBucketTaggingOutput{TagSet: core.WriteTags(b.Tags, func(k, v *string) types.Tag { return types.Tag{Key: k, Value: v} })}, nil
}

func (svc *Service) putLifecycle(in *s3.PutBucketLifecycleConfigurationInput) (*s3.PutBucketLifecycleConfigurationOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if in.LifecycleConfiguration == nil || len(in.LifecycleConfiguration.Rules) == 0 || len(in.LifecycleConfiguration.Rules) > 1000 {
		return nil, core.Fail("MalformedXML", "1 to 1000 rules must be given")
	}
	var rules []LifecycleRule
	for _, r := range in.LifecycleConfiguration.Rules {
		rule, err := readLifecycleRule(r)
		if err != nil {
			return nil, err
		}
		if rule.ID == "" {
			rule.ID = svc.Hash()
		}
		if slices.ContainsFunc(rules, func(o LifecycleRule) bool { return o.ID == rule.ID }) {
			return nil, core.Fail("InvalidArgument", "rule ID must be unique: %s", rule.ID)
		}
		rules = append(rules, rule)
	}
	b.Rules = rules
	return &s3.PutBucketLifecycleConfigurationOutput{}, nil
}

func readLifecycleRule(r types.LifecycleRule) (LifecycleRule, error) {
	out := LifecycleRule{ID: aws.ToString(r.ID), Enabled: r.Status == types.ExpirationStatusEnabled}
	if err := core.Only("lifecycle rule", &r, "ID", "Status", "Filter", "Expiration"); err != nil {
		return out, err
	}
	if r.Filter == nil || r.Expiration == nil || r.Status != types.ExpirationStatusEnabled && r.Status != types.ExpirationStatusDisabled {
		return out, core.Fail("MalformedXML", "a rule needs a status, a filter and an expiration")
	}
	if err := core.Only("lifecycle filter", r.Filter, "Prefix"); err != nil {
		return out, err
	}
	if err := core.Only("lifecycle expiration", r.Expiration, "Days"); err != nil {
		return out, err
	}
	out.Prefix, out.Days = aws.ToString(r.Filter.Prefix), aws.ToInt32(r.Expiration.Days)
	if out.Days < 1 || len(out.ID) > 255 {
		return out, core.Fail("InvalidArgument", "'Days' for the Expiration action must be a positive integer, and the ID at most 255 characters")
	}
	return out, nil
}

func (svc *Service) getLifecycle(in *s3.GetBucketLifecycleConfigurationInput) (*s3.GetBucketLifecycleConfigurationOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if len(b.Rules) == 0 {
		return nil, core.Fail("NoSuchLifecycleConfiguration", "the lifecycle configuration does not exist")
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

func (svc *Service) deleteBucket(in *s3.DeleteBucketInput) (*s3.DeleteBucketOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if err := b.denied("s3:DeleteBucket"); err != nil {
		return nil, err
	}
	if len(b.Objects) > 0 {
		return nil, core.Fail("BucketNotEmpty", "the bucket you tried to delete is not empty")
	}
	delete(svc.state.Buckets, b.Name)
	return &s3.DeleteBucketOutput{}, nil
}

func (svc *Service) listBuckets(in *s3.ListBucketsInput) (*s3.ListBucketsOutput, error) {
	var list []types.Bucket
	for _, b := range core.ByKey(svc.state.Buckets) {
		if strings.HasPrefix(b.Name, aws.ToString(in.Prefix)) && (in.BucketRegion == nil || *in.BucketRegion == svc.Region) && svc.Visible(b.Born) {
			list = append(list, types.Bucket{Name: aws.String(b.Name), CreationDate: aws.Time(b.Born), BucketRegion: aws.String(svc.Region)})
		}
	}
	part, next, err := core.Page(svc.Account, list, in.ContinuationToken, in.MaxBuckets, 10_000)
	return &s3.ListBucketsOutput{Buckets: part, ContinuationToken: next, Prefix: in.Prefix, Owner: &types.Owner{ID: aws.String(svc.Number())}}, err
}

// Tagged lists the buckets.
func (svc *Service) Tagged() (all []core.Tagged) {
	for name, b := range svc.state.Buckets {
		all = append(all, core.Tagged{ARN: "arn:" + svc.Partition() + ":s3:::" + name, Tags: b.Tags, Born: b.Born})
	}
	return all
}

// Bucket returns the bucket with that name without expired objects, or nil.
func (svc *Service) Bucket(name string) *Bucket {
	b := svc.state.Buckets[name]
	if b != nil {
		svc.expire(b)
	}
	return b
}
