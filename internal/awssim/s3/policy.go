package s3

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// bucketPolicy has the fields of a bucket policy that S3 validates.
type bucketPolicy struct {
	Version   string
	ID        string `json:"Id"`
	Statement core.OneOrMore[policyStatement]
}

type policyStatement struct {
	Sid, Effect             string
	Principal, NotPrincipal json.RawMessage
	Action, NotAction       core.OneOrMore[string]
	Resource, NotResource   core.OneOrMore[string]
	Condition               map[string]map[string]core.OneOrMore[any]
}

func malformed(why string, args ...any) error { return core.Fail("MalformedPolicy", why, args...) }

func (svc *Service) putBucketPolicy(in *s3.PutBucketPolicyInput) (*s3.PutBucketPolicyOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if err := svc.checkPolicy(b, aws.ToString(in.Policy)); err != nil {
		return nil, err
	}
	b.Policy = aws.ToString(in.Policy)
	return &s3.PutBucketPolicyOutput{}, nil
}

// denied returns an error if a statement without a condition denies the action to everybody
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/security_iam_service-with-iam.html).
func (b *Bucket) denied(action string) error {
	var p bucketPolicy
	_ = json.Unmarshal([]byte(b.Policy), &p) // it was checked when it was set
	for _, s := range p.Statement {
		everybody := string(s.Principal) == `"*"` || strings.ReplaceAll(string(s.Principal), " ", "") == `{"AWS":"*"}`
		if s.Effect != "Deny" || len(s.Condition) > 0 || !everybody {
			continue
		}
		for _, a := range s.Action {
			pattern := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(a))
			if regexp.MustCompile("(?i)^" + pattern + "$").MatchString(action) {
				return core.Fail("AccessDenied", "User is not authorized to perform: %s on resource: %s with an explicit deny in a resource-based policy", action, b.Name)
			}
		}
	}
	return nil
}

// MayRead reports whether a role reads an object: a policy of the bucket or of the role allows it ("How Amazon S3 authorizes a request for an
// object operation", S3 user guide). Conditions are ignored.
func (svc *Service) MayRead(b *Bucket, key, role string) bool {
	var p bucketPolicy
	_ = json.Unmarshal([]byte(b.Policy), &p) // it was checked when it was set
	resource := "arn:" + svc.Partition() + ":s3:::" + b.Name + "/" + key
	for _, s := range p.Statement {
		var who struct{ AWS core.OneOrMore[string] }
		_ = json.Unmarshal(s.Principal, &who) // "*" is no object
		named := string(s.Principal) == `"*"` || slices.ContainsFunc(who.AWS, func(arn string) bool { return arn == "*" || strings.HasSuffix(arn, "/"+role) })
		reads := slices.ContainsFunc(s.Action, func(a string) bool { return core.Wild(a, "s3:GetObject") })
		if s.Effect == "Allow" && named && reads && slices.ContainsFunc(s.Resource, func(r string) bool { return core.Wild(r, resource) }) {
			return true
		}
	}
	r, err := svc.iam.Role(&role)
	return err == nil && svc.iam.Grants(r, "s3:GetObject", resource)
}

// checkPolicy validates a policy as PutBucketPolicy does. It accepts duplicate statement
// IDs, because CAPA writes them.
func (svc *Service) checkPolicy(b *Bucket, text string) error {
	var p bucketPolicy
	if len(text) > 20*1024 {
		return malformed("policies must be at most 20 KB")
	}
	if !json.Valid([]byte(text)) {
		return malformed("Policies must be valid JSON and the first byte must be '{'")
	}
	if err := core.Strictly([]byte(text), &p); err != nil {
		return malformed("Unknown field or wrong type: %v", err)
	}
	if p.Version != "2012-10-17" && p.Version != "2008-10-17" {
		return malformed("The policy must contain a valid version string")
	}
	if len(p.Statement) == 0 {
		return malformed("Could not parse the policy: Statement is empty!")
	}
	for _, s := range p.Statement {
		if err := svc.checkStatement(b, s); err != nil {
			return err
		}
	}
	return nil
}

func (svc *Service) checkStatement(b *Bucket, s policyStatement) error {
	if s.Effect != "Allow" && s.Effect != "Deny" {
		return malformed("Invalid effect: %s", s.Effect)
	}
	if (len(s.Action) == 0) == (len(s.NotAction) == 0) || (len(s.Resource) == 0) == (len(s.NotResource) == 0) || (s.Principal == nil) == (s.NotPrincipal == nil) {
		return malformed("Missing required field: a statement has one of Action and NotAction, of Resource and NotResource, of Principal and NotPrincipal")
	}
	for _, action := range slices.Concat(s.Action, s.NotAction) {
		if !regex.Of(`^(\*|s3:[A-Za-z*?]+)$`).MatchString(action) {
			return malformed("Policy has invalid action")
		}
	}
	arn := "arn:" + svc.Partition() + ":s3:::" + b.Name
	for _, r := range slices.Concat(s.Resource, s.NotResource) {
		if r != arn && !strings.HasPrefix(r, arn+"/") {
			return malformed("Policy has invalid resource")
		}
	}
	everybody, err := svc.checkPrincipal(slices.Concat(s.Principal, s.NotPrincipal))
	if err != nil {
		return err
	}
	// New buckets block public policies. A condition may make a policy non-public; here
	// it does not.
	if everybody && s.Effect == "Allow" && s.Principal != nil {
		return core.Fail("AccessDenied", "public policies are blocked by the BlockPublicPolicy setting in S3 Block Public Access")
	}
	return nil
}

// checkPrincipal validates the principal of a statement, and reports whether it is
// everybody.
func (svc *Service) checkPrincipal(text json.RawMessage) (everybody bool, err error) {
	if string(text) == `"*"` {
		return true, nil
	}
	var kinds map[string]core.OneOrMore[string]
	if err := json.Unmarshal(text, &kinds); err != nil || len(kinds) == 0 {
		return false, malformed("Invalid policy syntax: Principal")
	}
	for kind, list := range kinds {
		for _, who := range list {
			switch {
			case kind == "AWS" && who == "*":
				everybody = true
			case kind == "AWS" && svc.principalExists(who):
			case kind == "Service" && strings.HasSuffix(who, ".amazonaws.com"):
			default:
				return false, malformed("Invalid principal in policy: %s", who)
			}
		}
	}
	return everybody, nil
}

// principalExists reports whether an account or role exists. Roles of other accounts are
// not simulated, and do not exist.
func (svc *Service) principalExists(who string) bool {
	account := regexp.MustCompile(`^([0-9]{12}|arn:` + svc.Partition() + `:iam::[0-9]{12}:root)$`)
	return account.MatchString(who) || svc.iam.RoleOfARN(who) != nil
}

func (svc *Service) getBucketPolicy(in *s3.GetBucketPolicyInput) (*s3.GetBucketPolicyOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	if b.Policy == "" {
		return nil, core.Fail("NoSuchBucketPolicy", "the bucket policy does not exist")
	}
	return &s3.GetBucketPolicyOutput{Policy: aws.String(b.Policy)}, nil
}

func (svc *Service) deleteBucketPolicy(in *s3.DeleteBucketPolicyInput) (*s3.DeleteBucketPolicyOutput, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	b.Policy = "" // not an error if there is none
	return &s3.DeleteBucketPolicyOutput{}, nil
}
