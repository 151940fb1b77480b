package cloud

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
)

// Listing returns a context for the calls of one listing, in which a page that comes twice is an error
// (awshttp.RepeatedPageError).
func Listing(ctx context.Context) context.Context { return awshttp.Listing(ctx) }

// Paginator is a paginator of the SDK. P is the output of its operation, O are the options of
// its service.
type Paginator[P, O any] interface {
	HasMorePages() bool
	NextPage(ctx context.Context, options ...func(*O)) (*P, error)
}

// Pages collects the items of all pages of a listing, in a context from Listing.
func Pages[P, O, T any](ctx context.Context, p Paginator[P, O], items func(*P) []T) (out []T, err error) {
	ctx = Listing(ctx)
	for p.HasMorePages() {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, items(page)...)
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
