package cloud

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
)

// Listing returns a context for the calls of one listing, in which a page that comes twice is an error
// (awshttp.RepeatedPageError).
func Listing(ctx context.Context) context.Context { return awshttp.Listing(ctx) }

// Pages collects the items of all pages of a listing, in a context from Listing.
func Pages[P, T any](ctx context.Context, more func() bool, next func(context.Context) (P, error), items func(P) []T) (out []T, err error) {
	ctx = Listing(ctx)
	for more() {
		p, err := next(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, items(p)...)
	}
	return out, nil
}

// LastPart returns the part of an ARN after its last slash, or all of it.
func LastPart(arn string) string {
	for i := len(arn) - 1; i >= 0; i-- {
		if arn[i] == '/' {
			return arn[i+1:]
		}
	}
	return arn
}
