package cloud_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// slow is a connection on which each part of a body takes half a minute. It fails as a real one does when
// the request is cancelled.
type slow struct {
	parts    int // of the content of an answer
	stops    int // after so many parts of a request, nothing moves any more; 0: never
	received int
}

func (s *slow) Do(r *http.Request) (*http.Response, error) {
	part := make([]byte, 1024)
	for n := 1; r.Body != nil; n++ {
		if n == s.stops {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		time.Sleep(30 * time.Second)
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		got, ended := r.Body.Read(part)
		s.received += got
		if errors.Is(ended, io.EOF) {
			break
		}
	}
	header := http.Header{"X-Amz-Request-Id": {"1"}, "Etag": {`"1"`}}
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: &slowBody{r, s.parts}, Request: r}, nil
}

type slowBody struct {
	request *http.Request
	left    int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(30 * time.Second)
	if err := b.request.Context().Err(); err != nil {
		return 0, err
	}
	b.left--
	return copy(p, "part "), nil
}

func (*slowBody) Close() error { return nil }

// The content of an object may take as long as it moves. An upload that stands still is repeated.
func TestSlowTransfers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := func(s *slow) *cloud.Clients {
			return cloud.New(
				aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: s},
				"demo",
				cloud.Options{},
			)
		}
		s := &slow{}
		began := time.Now()
		body := bytes.Repeat([]byte("0123456789abcdef"), 1024)
		put := func(c *cloud.Clients) error {
			_, err := c.S3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("a"), Key: aws.String("b"), Body: bytes.NewReader(body)})
			return err
		}
		require.NoError(t, put(clients(s)))
		require.GreaterOrEqual(t, s.received, len(body))
		require.Greater(t, time.Since(began), 5*time.Minute)

		s = &slow{parts: 10}
		began = time.Now()
		out, err := clients(s).S3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("a"), Key: aws.String("b")})
		require.NoError(t, err)
		text, err := io.ReadAll(out.Body)
		require.NoError(t, err)
		require.NoError(t, out.Body.Close())
		require.Equal(t, strings.Repeat("part ", 10), string(text))
		require.Equal(t, 5*time.Minute, time.Since(began))

		require.ErrorContains(t, put(clients(&slow{stops: 3})), "no answer within a minute")
	})
}
