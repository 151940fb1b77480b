package s3

import (
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// entry is what a listing shows: an object, or the prefix that several keys have in common.
type entry struct {
	object *Object // nil: a common prefix
	prefix string
}

// grouped groups objects by the part of their keys up to a delimiter after the prefix.
func grouped(list []*Object, prefix, delimiter string) (entries []entry) {
	for _, o := range list {
		at := -1
		if delimiter != "" {
			at = strings.Index(o.Key[len(prefix):], delimiter)
		}
		if at < 0 {
			entries = append(entries, entry{object: o})
			continue
		}
		common := o.Key[:len(prefix)+at+len(delimiter)]
		if n := len(entries); n == 0 || entries[n-1].object != nil || entries[n-1].prefix != common {
			entries = append(entries, entry{prefix: common})
		}
	}
	return entries
}

// encoding returns how the names in an answer are encoded: as in a URL, where XML cannot have
// every character.
func encoding(kind types.EncodingType) (encode func(string) string, err error) {
	switch kind {
	case "":
		return func(s string) string { return s }, nil
	case types.EncodingTypeUrl:
		return func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") }, nil
	}
	return nil, core.Fail("InvalidArgument", "Invalid Encoding Method specified in Request")
}

func (svc *Service) listObjects(in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	b, err := svc.bucket(in.Bucket, in.ExpectedBucketOwner)
	if err != nil {
		return nil, err
	}
	encode, err := encoding(in.EncodingType)
	if err != nil {
		return nil, err
	}
	encoded := func(s *string) *string {
		if s == nil {
			return nil
		}
		return aws.String(encode(*s))
	}
	most := int32(1000)
	if asked := aws.ToInt32(in.MaxKeys); asked > 0 {
		most = min(most, asked)
	}
	all := grouped(b.objectsAfter(in.Prefix, in.StartAfter), aws.ToString(in.Prefix), aws.ToString(in.Delimiter))
	part, next, err := core.Page(svc.Account, all, in.ContinuationToken, &most, 1000)
	if err != nil {
		return nil, err
	}
	out := &s3.ListObjectsV2Output{
		Name:                  in.Bucket,
		Prefix:                encoded(in.Prefix),
		Delimiter:             encoded(in.Delimiter),
		StartAfter:            encoded(in.StartAfter),
		EncodingType:          in.EncodingType,
		MaxKeys:               &most,
		ContinuationToken:     in.ContinuationToken,
		NextContinuationToken: next,
		IsTruncated:           aws.Bool(next != nil),
		KeyCount:              aws.Int32(int32(len(part))), //nolint:gosec // at most 1000
	}
	for _, e := range part {
		if e.object == nil {
			out.CommonPrefixes = append(out.CommonPrefixes, types.CommonPrefix{Prefix: aws.String(encode(e.prefix))})
			continue
		}
		o := e.object
		out.Contents = append(out.Contents, types.Object{
			Key: aws.String(
				encode(o.Key),
			),
			ETag:         aws.String(o.ETag),
			Size:         aws.Int64(int64(len(o.Body))),
			LastModified: aws.Time(o.Modified),
			StorageClass: types.ObjectStorageClassStandard,
		})
	}
	return out, nil
}
