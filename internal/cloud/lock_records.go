package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// ParameterPath is where a cluster keeps its records and secrets in SSM
// Parameter Store. Node roles cannot read it.
func (c *Clients) ParameterPath(parts ...string) string {
	return "/clusterawsadm/" + strings.Join(append([]string{c.Cluster}, parts...), "/")
}

// ssmRecords stores lock records as SSM parameters, one for each epoch.
type ssmRecords struct{ c *Clients }

func (r *ssmRecords) name(epoch int) *string {
	return aws.String(r.c.ParameterPath("lock", strconv.Itoa(epoch)))
}

func (r *ssmRecords) list(ctx context.Context) (out []Holder, err error) {
	pages := ssm.NewGetParametersByPathPaginator(r.c.SSM, &ssm.GetParametersByPathInput{Path: aws.String(r.c.ParameterPath("lock"))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		now := r.c.Clock.Now()
		if t, ok := awsmiddleware.GetServerTime(page.ResultMetadata); ok && r.c.Clock == nil {
			now = t // compute the age with AWS's clock only
		}
		for _, p := range page.Parameters {
			var h Holder
			if err := json.Unmarshal([]byte(aws.ToString(p.Value)), &h); err != nil {
				return nil, fmt.Errorf("%s: %w", aws.ToString(p.Name), err)
			}
			h.version, h.age = p.Version, now.Sub(aws.ToTime(p.LastModifiedDate))
			out = append(out, h)
		}
	}
	return out, nil
}

// put sends one request: the SDK would repeat it with the same value.
func (r *ssmRecords) put(ctx context.Context, h Holder, overwrite bool) (version int64, err error) {
	value, err := json.Marshal(h)
	if err != nil {
		return 0, err
	}
	out, err := r.c.SSM.PutParameter(ctx, &ssm.PutParameterInput{
		Name: r.name(h.Epoch), Value: aws.String(string(value)), Type: types.ParameterTypeString, Overwrite: aws.Bool(overwrite),
	}, func(o *ssm.Options) { o.RetryMaxAttempts = 1 })
	if err != nil {
		return 0, err
	}
	return out.Version, nil
}

func (r *ssmRecords) transient(err error) bool {
	return r.c.retryer().IsErrorRetryable(err)
}

func (r *ssmRecords) create(ctx context.Context, h Holder) (taken bool, err error) {
	_, err = r.put(ctx, h, false)
	if Is(err, "ParameterAlreadyExists") {
		return true, nil
	}
	return false, err
}

func (r *ssmRecords) write(ctx context.Context, h Holder) (version int64, err error) {
	return r.put(ctx, h, true)
}

// read reads a version of a parameter. Parameter Store keeps the last 100 ("Working with
// parameter versions" in the user guide).
func (r *ssmRecords) read(ctx context.Context, epoch int, version int64) (h Holder, err error) {
	out, err := r.c.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(fmt.Sprintf("%s:%d", *r.name(epoch), version))})
	if err != nil {
		return h, IgnoreNotFound(err)
	}
	err = json.Unmarshal([]byte(aws.ToString(out.Parameter.Value)), &h)
	return h, err
}

func (r *ssmRecords) remove(ctx context.Context, epoch int) error {
	_, err := r.c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: r.name(epoch)})
	return IgnoreNotFound(err)
}
