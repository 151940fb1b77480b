package wire_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
)

// chunked sends an object in chunks, and returns the answer and what is stored.
func chunked(t *testing.T, body string, length int, headers ...string) (answer *httptest.ResponseRecorder, stored *s3.Object) {
	t.Helper()
	a := awssim.New(awssim.Options{})
	a.Edit(func(s *awssim.State) {
		s.S3.Buckets["a-bucket"] = &s3.Bucket{Name: "a-bucket", Objects: map[string]*s3.Object{}}
	})
	h, err := a.Process().Handler()
	require.NoError(t, err)
	r := rest(t, "s3", http.MethodPut, "/a-bucket/a/key?x-id=PutObject", body)
	r.Header.Set("X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
	r.Header.Set("Content-Encoding", "aws-chunked")
	r.Header.Set("X-Amz-Decoded-Content-Length", strconv.Itoa(length))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer = httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	a.Edit(func(s *awssim.State) { stored = s.S3.Buckets["a-bucket"].Objects["a/key"] })
	return answer, stored
}

func TestChunks(t *testing.T) {
	// The checksums of "123456789" are those by which each algorithm is known.
	for name, sum := range map[string]string{"x-amz-checksum-crc32": "y/Q5Jg==", "x-amz-checksum-crc64nvme": "rosUhgp5mIg=", "x-amz-checksum-crc32c": "4waSgw=="} {
		body := "4;chunk-signature=abc\r\n1234\r\n5\r\n56789\r\n0\r\n" + name + ":" + sum + "\r\nx-amz-trailer-signature:abc\r\n\r\n"
		answer, stored := chunked(t, body, 9, "X-Amz-Trailer", name)
		require.Equal(t, http.StatusOK, answer.Code, answer.Body)
		assert.Equal(t, "123456789", string(stored.Body))
		answer, stored = chunked(t, strings.Replace(body, "1234", "1235", 1), 9, "X-Amz-Trailer", name)
		assert.Contains(t, answer.Body.String(), "<Code>BadDigest</Code>")
		assert.Nil(t, stored)
	}
	answer, stored := chunked(t, "3\r\nabc\r\n0\r\n\r\n", 3)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	assert.Equal(t, "abc", string(stored.Body))
}

// A body that is not what its headers say is refused, and nothing is stored.
func TestBrokenChunks(t *testing.T) {
	for body, code := range map[string]string{
		"":                           "IncompleteBody",
		"abc":                        "IncompleteBody",
		"x\r\nabc\r\n0\r\n\r\n":      "IncompleteBody",
		"-1\r\nabc\r\n0\r\n\r\n":     "IncompleteBody",
		"9\r\nabc\r\n0\r\n\r\n":      "IncompleteBody",
		"2\r\nabc\r\n0\r\n\r\n":      "IncompleteBody",
		"3\r\nabc\r\n":               "IncompleteBody",
		"4\r\nabcd\r\n0\r\n\r\n":     "IncompleteBody", // longer than it says
		"3\r\nabc\r\n0\r\n\r\n":      "MalformedTrailerError",
		"3\r\nabc\r\n0\r\nx\r\n\r\n": "IncompleteBody",
	} {
		answer, stored := chunked(t, body, 3, "X-Amz-Trailer", "x-amz-checksum-crc32")
		assert.Equal(t, http.StatusBadRequest, answer.Code, body)
		assert.Contains(t, answer.Body.String(), "<Code>"+code+"</Code>", body)
		assert.Nil(t, stored, body)
	}
}
