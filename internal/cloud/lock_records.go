package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// ParameterPath returns the path of the records and secrets of a cluster in SSM
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
	ctx = Listing(ctx)
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
			name := aws.ToString(p.Name)
			var h Holder
			if err := decodeRecord([]byte(aws.ToString(p.Value)), &h, name, path.Base(name)); err != nil {
				err.Remedy = fmt.Sprintf("aws ssm delete-parameter --region %s --name %s", r.c.Region, name)
				return nil, err
			}
			h.version, h.age = p.Version, now.Sub(aws.ToTime(p.LastModifiedDate))
			out = append(out, h)
		}
	}
	return out, nil
}

// DamagedLockError says that this program did not write a lock record.
type DamagedLockError struct {
	Name   string // of the parameter or file
	Err    error
	Remedy string // a command line that deletes the record
}

func (e *DamagedLockError) Error() string {
	return fmt.Sprintf("the record %s is damaged (%v). If no other run works on this cluster, delete the record:\n  %s", e.Name, e.Err, e.Remedy)
}

// Unwrap returns what is wrong.
func (e *DamagedLockError) Unwrap() error { return e.Err }

// decodeRecord decodes the record of an epoch.
func decodeRecord(data []byte, to interface{ valid(epoch string) error }, name, epoch string) *DamagedLockError {
	err := json.Unmarshal(data, to)
	if err == nil {
		err = to.valid(epoch)
	}
	if err != nil {
		return &DamagedLockError{Name: name, Err: err}
	}
	return nil
}

// valid checks that a record is that of an epoch.
func (h *Holder) valid(epoch string) error {
	switch {
	case h.Run == "":
		return errors.New("it names no run")
	case strconv.Itoa(h.Epoch) != epoch:
		return fmt.Errorf("it is that of epoch %d", h.Epoch)
	}
	return nil
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
	return r.c.retries.IsErrorRetryable(err)
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

// kept is less than the 100 versions that Parameter Store keeps ("Working with parameter versions" in the user guide):
// others may follow whose answers are lost.
func (*ssmRecords) kept() int64 { return 20 }

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
