package simulated

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two processes use an account that one of them serves.
func TestServedAccount(t *testing.T) {
	o := Options{File: filepath.Join(t.TempDir(), "account.json"), Region: "eu-west-1", Speed: 60}
	a, err := Open(t.Context(), o)
	require.NoError(t, err)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l.Addr().String(), l) }()
	require.Eventually(t, func() bool { // until then the process is waited for
		_, err := askClock(t.Context(), "http://"+l.Addr().String())
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)

	b, err := Open(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, "http://"+l.Addr().String(), b.Endpoint)
	assert.WithinDuration(t, a.Clock.Now(), b.Clock.Now(), time.Minute)
	_, err = ssm.NewFromConfig(b.Config).
		PutParameter(t.Context(), &ssm.PutParameterInput{Name: aws.String("/a"), Value: aws.String("b"), Type: types.ParameterTypeString})
	require.NoError(t, err)
	out, err := ssm.NewFromConfig(a.Config).GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/a")})
	require.NoError(t, err)
	assert.Equal(t, "b", aws.ToString(out.Parameter.Value))

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://nowhere:6443/readyz", nil)
	require.NoError(t, err)
	answer, err := b.Kubernetes(cluster.Access{Server: "https://nowhere:6443"}).RoundTrip(r)
	if err == nil {
		require.NoError(t, answer.Body.Close())
	}
	var dns *net.DNSError
	require.ErrorAs(t, err, &dns)
	assert.Equal(t, "nowhere", dns.Name)
	require.NoError(t, b.Close())

	o.Alone = true
	_, err = Open(t.Context(), o)
	require.ErrorContains(t, err, "another process serves it at http://127.0.0.1:")
	o.Alone, o.Faults = false, &Faults{1, "mixed"}
	_, err = Open(t.Context(), o)
	require.ErrorContains(t, err, "only that one can have --faults")

	stop()
	require.NoError(t, <-ended)
	require.NoError(t, a.Close())
	c, err := Open(t.Context(), o)
	require.NoError(t, err)
	assert.Empty(t, c.Endpoint, "it is not served any more")
	require.NoError(t, c.Close())
}

// What prevents a connection to an API server has the same type in the other process.
func TestFailuresOfConnections(t *testing.T) {
	for _, err := range []error{
		&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "a", IsNotFound: true}},
		&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connect: connection refused")},
		x509.UnknownAuthorityError{},
		errors.New("something else"),
	} {
		text, failed := json.Marshal(failureOf(err))
		require.NoError(t, failed)
		var f failure
		require.NoError(t, json.Unmarshal(text, &f))
		assert.Equal(t, err, f.err())
	}
}
