package ami

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// server replaces the release server.
type server struct {
	files map[string]string
	slow  time.Duration

	mu    sync.Mutex
	asked []string
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.String())
	s.mu.Unlock()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(s.slow):
	}
	text, ok := s.files[strings.TrimPrefix(r.URL.Path, "/release/")]
	if !ok {
		return &http.Response{Status: "404 Not Found", StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader("v6.6.6"))}, nil
	}
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
}

func TestSupported(t *testing.T) {
	s := &server{files: map[string]string{
		"stable.txt": "v1.34.2", "stable-1.34.txt": "v1.34.9", "stable-1.33.txt": "v1.33.1\n", "stable-1.32.txt": "v1.32.0", "stable-1.31.txt": "v1.31.2",
		"stable-1.30.txt": "v1.30.1",
	}}
	got, err := Supported(t.Context(), &http.Client{Transport: s})
	require.NoError(t, err)
	assert.Equal(t, []string{"v1.34.1", "v1.34.0", "v1.34.2", "v1.33.1", "v1.33.0", "v1.32.0", "v1.31.2", "v1.31.1", "v1.31.0"}, got)
	assert.Len(t, s.asked, 4)

	// A minor counts from its second release.
	s.files["stable.txt"] = "v1.34.0"
	got, err = Supported(t.Context(), &http.Client{Transport: s})
	require.NoError(t, err)
	assert.Equal(t, "v1.33.0", got[0])
	assert.Equal(t, "v1.30.0", got[len(got)-1])
}

func TestReleaseServerOutOfReach(t *testing.T) {
	_, err := Supported(t.Context(), &http.Client{Transport: &server{}})
	require.EqualError(t, err, "https://dl.k8s.io/release/stable.txt: 404 Not Found")
	_, err = Supported(t.Context(), &http.Client{Transport: &server{files: map[string]string{"stable.txt": "<html>log in</html>"}}})
	require.EqualError(t, err, `https://dl.k8s.io/release/stable.txt: "<html>log in</html>" is not a version`)
	_, err = Supported(t.Context(), &http.Client{Transport: failing{}})
	require.ErrorContains(t, err, "no such host")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := Supported(t.Context(), &http.Client{Transport: &server{slow: time.Hour}})
		require.Error(t, err)
		assert.Equal(t, releasesTimeout, time.Since(began))
	})
}

type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no such host")
}
