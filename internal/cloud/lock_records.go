package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
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
			name := aws.ToString(p.Name)
			var h Holder
			if err := decodeRecord([]byte(aws.ToString(p.Value)), &h, name, path.Base(name)); err != nil {
				err.Remedy = fmt.Sprintf("aws ssm delete-parameter --region %s --name %s", r.c.Region, name)
				return nil, err
			}
			h.age = now.Sub(aws.ToTime(p.LastModifiedDate))
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

func (r *ssmRecords) put(ctx context.Context, h Holder, overwrite bool) error {
	value, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = r.c.SSM.PutParameter(ctx, &ssm.PutParameterInput{
		Name: r.name(h.Epoch), Value: aws.String(string(value)), Type: types.ParameterTypeString, Overwrite: aws.Bool(overwrite),
	})
	return err
}

func (r *ssmRecords) create(ctx context.Context, h Holder) (taken bool, err error) {
	err = r.put(ctx, h, false)
	if !Is(err, "ParameterAlreadyExists") {
		return false, err
	}
	// An earlier attempt of the SDK may have created the record, with its answer lost.
	all, err := r.list(ctx)
	for _, other := range all {
		if other.Epoch == h.Epoch && other.Run == h.Run {
			return false, err
		}
	}
	return true, err
}

func (r *ssmRecords) write(ctx context.Context, h Holder) error { return r.put(ctx, h, true) }

func (r *ssmRecords) remove(ctx context.Context, epoch int) error {
	_, err := r.c.SSM.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: r.name(epoch)})
	return IgnoreNotFound(err)
}

// fileRecords stores lock records as files in a folder.
type fileRecords struct {
	folder string
	clock  *clock.Clock
}

func (r *fileRecords) name(epoch int) string {
	return filepath.Join(r.folder, fmt.Sprintf("lock-%d.json", epoch))
}

func (r *fileRecords) list(context.Context) (out []Holder, err error) {
	files, err := os.ReadDir(r.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range files {
		if is, _ := filepath.Match("lock-*.json", f.Name()); !is {
			continue
		}
		name := filepath.Join(r.folder, f.Name())
		raw, err := os.ReadFile(name) //nolint:gosec // the name comes from the folder of the records
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		var rec fileRecord
		if err := decodeRecord(raw, &rec, name, strings.TrimSuffix(strings.TrimPrefix(f.Name(), "lock-"), ".json")); err != nil {
			err.Remedy = fmt.Sprintf("rm %q", name)
			return nil, err
		}
		rec.age = r.clock.Since(rec.Seen)
		out = append(out, rec.Holder)
	}
	return out, nil
}

// fileRecord is a record with the time of its last heartbeat.
type fileRecord struct {
	Holder
	Seen time.Time `json:"seen"`
}

// put writes the record to a temporary file and then moves it into place, so that no
// reader sees a partial record.
func (r *fileRecords) put(h Holder, place func(from, to string) error) error {
	if err := os.MkdirAll(r.folder, 0o700); err != nil {
		return err
	}
	raw, err := json.Marshal(fileRecord{h, r.clock.Now()})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(r.folder, "writing-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails after a rename
	_, err = f.Write(raw)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), r.name(h.Epoch))
}

func (r *fileRecords) create(_ context.Context, h Holder) (taken bool, err error) {
	err = r.put(h, os.Link) // unlike os.Rename, os.Link fails if the target exists
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	return false, err
}

func (r *fileRecords) write(_ context.Context, h Holder) error { return r.put(h, os.Rename) }

func (r *fileRecords) remove(_ context.Context, epoch int) error {
	err := os.Remove(r.name(epoch))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
