package core

import (
	"context"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// endless answers a listing whose pages have no end. The paginators of the SDK expect that: "pagination
// should stop if the service returns a pagination token that matches the most recent token provided to
// the service" (StopOnDuplicateToken). A call that is no listing has no fault.
func (p *Process) endless(ctx context.Context, service, op string, in any, fault Fault) (any, error) {
	asked := reflect.New(reflect.TypeOf(in).Elem())
	asked.Elem().Set(reflect.ValueOf(in).Elem())
	token := ""
	for _, name := range []string{"NextToken", "Marker", "ContinuationToken", "KeyMarker", "VersionIdMarker"} {
		f := asked.Elem().FieldByName(name)
		if !f.IsValid() || f.Kind() != reflect.Pointer {
			continue
		}
		if s, ok := f.Interface().(*string); ok && strings.HasPrefix(aws.ToString(s), "again") {
			token = *s
			f.SetZero()
		}
	}
	out, err := p.account.call(ctx, service, op, asked.Interface(), 0)
	if err != nil {
		return out, err
	}
	next := "again"
	if fault == Circle && token == next {
		next = "again and again"
	}
	v := reflect.ValueOf(out).Elem()
	for _, name := range []string{"NextToken", "NextMarker", "NextContinuationToken", "NextKeyMarker", "NextVersionIdMarker", "Marker"} {
		f := v.FieldByName(name)
		if !f.IsValid() || name == "Marker" && v.FieldByName("NextMarker").IsValid() {
			continue
		}
		f.Set(reflect.ValueOf(&next))
		if more := v.FieldByName("IsTruncated"); more.IsValid() && more.Kind() == reflect.Bool {
			more.SetBool(true)
		} else if more.IsValid() {
			more.Set(reflect.ValueOf(aws.Bool(true)))
		}
	}
	return out, nil
}
