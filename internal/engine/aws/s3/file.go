package s3

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// File is an object that is a file of the user's, such as a backup. Its bucket may be in another
// region than the cluster, and in another account.
type File struct{ Bucket, Key string }

const scheme = "s3://"

// IsURL reports whether a name is a URL of S3.
func IsURL(name string) bool { return strings.HasPrefix(name, scheme) }

// ParseFile reads "s3://BUCKET/KEY".
func ParseFile(url string) (f File, err error) {
	var found bool
	if f.Bucket, f.Key, found = strings.Cut(strings.TrimPrefix(url, scheme), "/"); !found || f.Bucket == "" || f.Key == "" || strings.HasSuffix(f.Key, "/") {
		return f, fmt.Errorf("%s: use %sBUCKET/KEY", url, scheme)
	}
	return f, nil
}

func (f File) String() string { return scheme + f.Bucket + "/" + f.Key }

// mostFile is the size of the largest object that one request stores
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
const mostFile = 5 << 30

// sumName is the name of the metadata with the SHA-256 of the content. It tells an object that a
// request of ours has stored, whose answer was lost, from one of somebody else's.
const sumName = "sha256"

// locate returns the clients for the region of the bucket. S3 names it in each answer about a bucket,
// also in a refusal (https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html).
func (f File) locate(ctx context.Context, c *cloud.Clients) (cloud.Elsewhere, error) {
	out, err := c.S3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &f.Bucket})
	region := c.Region
	var answer *smithyhttp.ResponseError
	switch {
	case err == nil:
		region = cmp.Or(aws.ToString(out.BucketRegion), region)
	case cloud.NotFound(err):
		return cloud.Elsewhere{}, fmt.Errorf("bucket %s does not exist", f.Bucket)
	case errors.As(err, &answer) && answer.Response != nil && answer.Response.Header.Get(regionHeader) != "":
		region = answer.Response.Header.Get(regionHeader)
	case !cloud.Denied(err): // without s3:ListBucket, the object may be permitted
		return cloud.Elsewhere{}, fmt.Errorf("bucket %s: %w", f.Bucket, err)
	}
	return c.In(region), nil
}

const regionHeader = "X-Amz-Bucket-Region"

// ExistsError says that there is an object that would be overwritten.
type ExistsError struct{ File File }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s exists: a backup is never overwritten, so name another key", e.File)
}

// CheckNew returns an error if the object exists or its bucket does not.
func (f File) CheckNew(ctx context.Context, c *cloud.Clients) error {
	in, err := f.locate(ctx, c)
	if err != nil {
		return err
	}
	_, err = in.S3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &f.Bucket, Key: &f.Key})
	switch {
	case err == nil:
		return &ExistsError{f}
	case cloud.NotFound(err), cloud.Denied(err): // who may only write finds out when the object is stored
		return nil
	}
	return fmt.Errorf("%s: %w", f, err)
}

// Create stores an object that must not exist. The bucket says how S3 encrypts it.
func (f File) Create(ctx context.Context, c *cloud.Clients, content io.ReadSeeker) error {
	in, err := f.locate(ctx, c)
	if err != nil {
		return err
	}
	hash := sha256.New()
	size, err := io.Copy(hash, content)
	if err != nil {
		return err
	}
	if size > mostFile {
		return fmt.Errorf(
			"%s: the content has %d bytes, and one request stores %d at most: write it to a file, and copy that with 'aws s3 cp'",
			f,
			size,
			int64(mostFile),
		)
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	_, err = in.S3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &f.Bucket, Key: &f.Key, Body: content, ContentLength: &size, IfNoneMatch: aws.String("*"), Metadata: map[string]string{sumName: sum},
	})
	switch {
	case cloud.Is(err, "PreconditionFailed", "ConditionalRequestConflict"):
		have, looked := in.S3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &f.Bucket, Key: &f.Key})
		if looked == nil && have.Metadata[sumName] == sum {
			return nil // an attempt of this call whose answer was lost has stored it
		}
		return &ExistsError{f}
	case err != nil:
		return fmt.Errorf("%s: %w", f, err)
	}
	return nil
}

// downloads is how often an object is loaded whose content does not arrive as a whole.
const downloads = 3

// Load copies an object with at most so many bytes to a file.
func (f File) Load(ctx context.Context, c *cloud.Clients, to *files.Temporary, most int64) error {
	in, err := f.locate(ctx, c)
	if err != nil {
		return err
	}
	for range downloads {
		if err = f.load(awshttp.WithMost(ctx, most), in.S3, to); err == nil || ctx.Err() != nil || cloud.Rejected(err) {
			break
		}
	}
	switch {
	case cloud.NotFound(err):
		return fmt.Errorf("%s does not exist", f)
	case err != nil:
		return fmt.Errorf("%s: %w", f, err)
	}
	_, err = to.Seek(0, io.SeekStart)
	return err
}

func (f File) load(ctx context.Context, client *s3.Client, to *files.Temporary) error {
	if err := to.Truncate(0); err != nil {
		return err
	}
	if _, err := to.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: &f.Bucket, Key: &f.Key}) // the SDK compares the checksum at the end
	if err != nil {
		return err
	}
	defer out.Body.Close() //nolint:errcheck // it is only read
	n, err := io.Copy(to, out.Body)
	if err == nil && out.ContentLength != nil && n != *out.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	return err
}
