package account

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPlainErrors makes calls that fail in different ways with the client of the SDK.
func TestPlainErrors(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(
			w,
			`<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized.</Message></Error></Errors><RequestID>r-1</RequestID></Response>`,
		)
	}))
	t.Cleanup(refusing.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	host := closed.Listener.Addr().String()
	proxy, err := url.Parse(closed.URL)
	require.NoError(t, err)
	refusingProxy, err := url.Parse(refusing.URL)
	require.NoError(t, err)
	for _, c := range []struct {
		name, endpoint, want string
		proxy                *url.URL
	}{
		{name: "refused", endpoint: refusing.URL, want: "operation error EC2: DescribeVpcs, UnauthorizedOperation: You are not authorized. (request ID r-1)"},
		{name: "nobody listens", endpoint: closed.URL, want: "operation error EC2: DescribeVpcs, no connection to " + host + ": connect: connection refused, after 2 attempts"},
		{name: "proxy", endpoint: "https://ec2.us-east-1.amazonaws.com", proxy: proxy, want: "operation error EC2: DescribeVpcs, no connection to ec2.us-east-1.amazonaws.com: the proxy of the environment (HTTPS_PROXY): dial tcp " + host + ": connect: connection refused, after 2 attempts"},
		{name: "proxy refuses", endpoint: "https://ec2.us-east-1.amazonaws.com", proxy: refusingProxy, want: "operation error EC2: DescribeVpcs, no connection to ec2.us-east-1.amazonaws.com: the proxy of the environment (HTTPS_PROXY) refuses it: Forbidden, after 2 attempts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := ec2.NewFromConfig(aws.Config{
				Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), BaseEndpoint: &c.endpoint,
				HTTPClient: &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(c.proxy)}},
				Retryer: func() aws.Retryer {
					return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.Backoff = 2, retry.NewExponentialJitterBackoff(1) })
				},
				APIOptions: []func(*middleware.Stack) error{plainErrors},
			})
			_, err := client.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
			require.EqualError(t, err, c.want)
			var api smithy.APIError
			assert.Equal(t, c.name == "refused", errors.As(err, &api), "the error of the SDK is still in it")
		})
	}
}

func TestPlainConfiguration(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/credentials")
	_, err := config.LoadDefaultConfig(t.Context(), config.WithSharedConfigProfile("nope"))
	require.Error(t, err)
	require.EqualError(
		t,
		plainConfig(err),
		`there is no profile "nope" in the files of the AWS CLI (~/.aws/config and ~/.aws/credentials): 'aws configure list-profiles' lists them`,
	)
	t.Setenv("AWS_CA_BUNDLE", "/nope.pem")
	_, err = config.LoadDefaultConfig(t.Context())
	require.Error(t, err)
	require.EqualError(t, plainConfig(err), `/nope.pem, which the environment (AWS_CA_BUNDLE) or the profile (ca_bundle) names: no such file or directory`)
	assert.EqualError(t, plainConfig(errors.New("other")), "other")
}
