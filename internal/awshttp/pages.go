package awshttp

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// RepeatedPageError says that a listing has no end: the answer to a request for a page names a page
// that was read before as the next one.
type RepeatedPageError struct{ Operation string }

func (e *RepeatedPageError) Error() string {
	return fmt.Sprintf("the listing of %s has no end: an answer names a page as the next one that was read before. Run the command again; "+
		"if that does not help, the answers may not come from AWS: check AWS_ENDPOINT_URL and HTTPS_PROXY", e.Operation)
}

type listingKey struct{}

// listing remembers the pages that were read.
type listing struct {
	mu   sync.Mutex
	read map[string]bool
}

// Listing returns a context for the calls of one listing: a page that any earlier answer has named
// is an error. Without it, only the page of the request itself is.
func Listing(ctx context.Context) context.Context {
	return context.WithValue(ctx, listingKey{}, &listing{read: map[string]bool{}})
}

// checkPage returns an error if the next page of a listing was read before. A paginator of the SDK
// would read it again, or with StopOnDuplicateToken end without the rest.
func checkPage(
	ctx context.Context,
	in middleware.InitializeInput,
	next middleware.InitializeHandler,
) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
	out, md, err = next.HandleInitialize(ctx, in)
	if err != nil {
		return out, md, err
	}
	asked, named, op := requested(in.Parameters), nextPage(out.Result), awsmiddleware.GetOperationName(ctx)
	if named == "" {
		return out, md, nil
	}
	if named == asked || seen(ctx, op+"\n"+named) {
		return out, md, &RepeatedPageError{op}
	}
	return out, md, nil
}

// seen reports whether an answer of the listing has named the page before.
func seen(ctx context.Context, page string) bool {
	l, ok := ctx.Value(listingKey{}).(*listing)
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.read[page]
	l.read[page] = true
	return before
}

// requested returns the token of the page that a call asks for; "" for the first page.
func requested(input any) string {
	return texts(input, []string{"NextToken"}, []string{"Marker"}, []string{"ContinuationToken"}, []string{"KeyMarker", "VersionIdMarker"})
}

// nextPage returns the token of the page that follows an answer; "" after the last one. The answer
// of IAM has the next page where that of S3 has the page itself.
func nextPage(output any) string {
	if more, is := field(output, "IsTruncated"); is && (more == "" || more == "false") {
		return ""
	}
	next := texts(output, []string{"NextToken"}, []string{"NextMarker"}, []string{"NextContinuationToken"}, []string{"NextKeyMarker", "NextVersionIdMarker"})
	if next == "" && !has(output, "NextMarker") {
		next, _ = field(output, "Marker")
	}
	return next
}

// texts returns the values of the first group of fields that has one.
func texts(of any, groups ...[]string) string {
	for _, names := range groups {
		var values []string
		for _, name := range names {
			value, _ := field(of, name)
			values = append(values, value)
		}
		if slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
			return strings.Join(values, "\n")
		}
	}
	return ""
}

func has(of any, name string) bool {
	_, is := field(of, name)
	return is
}

// field returns a field of a struct as text: one of type string or bool, or a pointer to one.
func field(of any, name string) (value string, is bool) {
	v := reflect.Indirect(reflect.ValueOf(of))
	if v.Kind() != reflect.Struct {
		return "", false
	}
	f := v.FieldByName(name)
	if !f.IsValid() {
		return "", false
	}
	if f = reflect.Indirect(f); !f.IsValid() {
		return "", true // a nil pointer
	}
	switch f.Kind() { //nolint:exhaustive // of the tokens of pages
	case reflect.String:
		return f.String(), true
	case reflect.Bool:
		return fmt.Sprint(f.Bool()), true
	default:
		return "", false
	}
}
