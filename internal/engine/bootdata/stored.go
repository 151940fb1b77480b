package bootdata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

// ErrDeleted says that bootstrap data is not stored any more: machines have fetched it.
var ErrDeleted = errors.New("AWS does not store it any more")

// Stored returns the bootstrap data of a machine from its user data: what is in there, or what
// Data.Deliver or Cluster API has stored where the user data leads to. It may contain secrets.
func Stored(ctx context.Context, c *cloud.Clients, userData []byte) (data []byte, err error) {
	if data, err = boot.Decompress(userData); err != nil {
		return nil, err
	}
	if f, ok := boot.FetchOf(data); ok {
		return fetch(ctx, c, f)
	}
	if source := boot.IgnitionSource(data); source != "" {
		return load(ctx, c, source)
	}
	return data, nil
}

// fetch reads the secrets or parameters from which a machine fetches its bootstrap data.
func fetch(ctx context.Context, c *cloud.Clients, f boot.Fetch) ([]byte, error) {
	var chunks [][]byte
	for i := range f.Chunks {
		name := boot.ChunkName(f.Backend, f.Prefix, i)
		chunk, err := readChunk(ctx, c, f.Backend, name)
		switch {
		case cloud.NotFound(err) || cloud.Is(err, "InvalidRequestException"): // it is being deleted
			return nil, ErrDeleted
		case cloud.Denied(err):
			return nil, fmt.Errorf("the caller lacks %s of %s", readAction(f.Backend), name)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		chunks = append(chunks, chunk)
	}
	return boot.Join(f.Backend, chunks)
}

func readAction(b boot.Backend) string {
	if b == boot.ParameterStore {
		return "ssm:GetParameter"
	}
	return "secretsmanager:GetSecretValue"
}

func readChunk(ctx context.Context, c *cloud.Clients, b boot.Backend, name string) ([]byte, error) {
	if b == boot.ParameterStore {
		out, err := c.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &name, WithDecryption: aws.Bool(true)})
		if err != nil {
			return nil, err
		}
		return []byte(aws.ToString(out.Parameter.Value)), nil
	}
	out, err := c.Secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if err != nil {
		return nil, err
	}
	return out.SecretBinary, nil
}

// mostObject is how many bytes of an object are read.
const mostObject = 4 << 20

// load reads the object from which Ignition loads its configuration: s3://bucket/key, or a link
// to it.
func load(ctx context.Context, c *cloud.Clients, source string) ([]byte, error) {
	bucket, key, err := objectAt(source)
	if err != nil {
		return nil, err
	}
	out, err := c.S3.GetObject(ctx, &awss3.GetObjectInput{Bucket: &bucket, Key: &key})
	switch {
	case cloud.Is(err, "NoSuchKey", "NoSuchBucket"):
		return nil, ErrDeleted
	case cloud.Denied(err):
		return nil, fmt.Errorf("the caller lacks s3:GetObject of s3://%s/%s", bucket, key)
	case err != nil:
		return nil, fmt.Errorf("s3://%s/%s: %w", bucket, key, err)
	}
	defer out.Body.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(out.Body, mostObject))
}

// objectAt returns the bucket and the key of an object from its address: s3://bucket/key, or a link to it.
func objectAt(source string) (bucket, key string, err error) {
	at, err := url.Parse(source)
	if err != nil {
		return "", "", fmt.Errorf("the user data names a source that is not a URL: %w", err)
	}
	bucket, _, link := strings.Cut(at.Host, ".s3.")
	key = strings.TrimPrefix(at.Path, "/")
	if strings.HasPrefix(at.Host, "s3.") { // a bucket with dots in its name
		link = true
		bucket, key, _ = strings.Cut(key, "/")
	}
	if !link && at.Scheme != "s3" {
		return "", "", fmt.Errorf("it is not in a bucket, but at %s", at.Host)
	}
	return bucket, key, nil
}
