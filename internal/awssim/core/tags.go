package core

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// TagRules are the error codes of a service for invalid tags.
type TagRules struct {
	TooMany, Duplicate, Invalid string // error codes
}

// ReadTags validates the tags of a call and adds them to those of a resource. The limit
// is 50.
func ReadTags[T any](r TagRules, old map[string]string, tags []T, read func(T) (key, value *string)) (map[string]string, error) {
	all, seen := map[string]string{}, map[string]bool{}
	maps.Copy(all, old)
	for _, t := range tags {
		k, v := read(t)
		key, value := aws.ToString(k), aws.ToString(v)
		switch {
		case key == "" || len(key) > 128 || len(value) > 256:
			return nil, Fail(r.Invalid, "the tag '%s' is not valid", key)
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return nil, Fail(r.Invalid, "tag keys may not begin with 'aws:': '%s'", key)
		case seen[key]:
			return nil, Fail(r.Duplicate, "the tag key '%s' was specified more than once", key)
		}
		all[key], seen[key] = value, true
	}
	if len(all) > 50 {
		return nil, Fail(r.TooMany, "there may be at most 50 tags")
	}
	return all, nil
}

// WriteTags converts tags to the type of a service, sorted by key.
func WriteTags[T any](tags map[string]string, write func(key, value *string) T) []T {
	out := make([]T, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, write(aws.String(k), aws.String(tags[k])))
	}
	return out
}

// Tagged is one resource with its tags.
type Tagged struct {
	ARN  string
	Tags map[string]string
	Born time.Time
}
