package awshttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
)

// server answers every request in the same way.
type server struct {
	status   int
	header   http.Header
	body     func() io.Reader
	err      error
	requests int
}

func (s *server) Do(r *http.Request) (*http.Response, error) {
	s.requests++
	if s.err != nil {
		return nil, &url.Error{Op: "Post", URL: r.URL.String(), Err: s.err}
	}
	h := s.header
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{StatusCode: s.status, ProtoMajor: 1, ProtoMinor: 1, Header: h, ContentLength: -1, Body: io.NopCloser(s.body()), Request: r}, nil
}

func (s *server) config() aws.Config {
	return awshttp.Checked(awshttp.Checked(aws.Config{
		Region: "us-east-1", HTTPClient: s, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
	}))
}

func text(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }

// lists has one read of each service that the program uses.
func lists() map[string]func(context.Context, aws.Config) (any, error) {
	return map[string]func(context.Context, aws.Config) (any, error){
		"EC2": func(ctx context.Context, c aws.Config) (any, error) {
			return ec2.NewFromConfig(c).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
		},
		"ELB": func(ctx context.Context, c aws.Config) (any, error) {
			return elasticloadbalancing.NewFromConfig(c).DescribeLoadBalancers(ctx, &elasticloadbalancing.DescribeLoadBalancersInput{})
		},
		"ELBv2": func(ctx context.Context, c aws.Config) (any, error) {
			return elasticloadbalancingv2.NewFromConfig(c).DescribeLoadBalancers(ctx, &elasticloadbalancingv2.DescribeLoadBalancersInput{})
		},
		"IAM": func(ctx context.Context, c aws.Config) (any, error) {
			return iam.NewFromConfig(c).ListRoles(ctx, &iam.ListRolesInput{})
		},
		"STS": func(ctx context.Context, c aws.Config) (any, error) {
			return sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		},
		"Auto Scaling": func(ctx context.Context, c aws.Config) (any, error) {
			return autoscaling.NewFromConfig(c).DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
		},
		"CloudFormation": func(ctx context.Context, c aws.Config) (any, error) {
			return cloudformation.NewFromConfig(c).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{})
		},
		"EKS": func(ctx context.Context, c aws.Config) (any, error) {
			return eks.NewFromConfig(c).ListClusters(ctx, &eks.ListClustersInput{})
		},
		"S3": func(ctx context.Context, c aws.Config) (any, error) {
			return s3.NewFromConfig(c).ListBuckets(ctx, &s3.ListBucketsInput{})
		},
		"S3 object": func(ctx context.Context, c aws.Config) (any, error) {
			return s3.NewFromConfig(c).GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("a"), Key: aws.String("b")})
		},
		"S3 head": func(ctx context.Context, c aws.Config) (any, error) {
			return s3.NewFromConfig(c).HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String("a")})
		},
		"SSM": func(ctx context.Context, c aws.Config) (any, error) {
			return ssm.NewFromConfig(c).DescribeParameters(ctx, &ssm.DescribeParametersInput{})
		},
		"Secrets Manager": func(ctx context.Context, c aws.Config) (any, error) {
			return secretsmanager.NewFromConfig(c).ListSecrets(ctx, &secretsmanager.ListSecretsInput{})
		},
		"Service Quotas": func(ctx context.Context, c aws.Config) (any, error) {
			return servicequotas.NewFromConfig(c).ListServiceQuotas(ctx, &servicequotas.ListServiceQuotasInput{ServiceCode: aws.String("ec2")})
		},
		"Tagging": func(ctx context.Context, c aws.Config) (any, error) {
			return resourcegroupstaggingapi.NewFromConfig(c).GetResources(ctx, &resourcegroupstaggingapi.GetResourcesInput{})
		},
		"Pricing": func(ctx context.Context, c aws.Config) (any, error) {
			return pricing.NewFromConfig(c).GetProducts(ctx, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2")})
		},
	}
}

// An answer that does not come from AWS is an error in every protocol, also if its status says
// that all is well.
func TestForeignAnswers(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusFound, http.StatusForbidden, http.StatusNotFound} {
		for _, body := range []string{
			"", " ", "ok", "{}", "[]", "null", `{"clusters":[],"SecretList":[],"Parameters":[]}`, "\xbf\xff", "<html><body>Log in</body></html>",
			"<!DOCTYPE html>\n<p>hello", "<a/>", "<DescribeVpcsResponse/>", "<DescribeVpcsResponse><vpcSet/></DescribeVpcsResponse>",
			"<DescribeVpcsResponse><requestId></requestId></DescribeVpcsResponse>",
			"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>", "<?xml version='1.0'?><!-- --><Wrong><requestId>1</requestId></Wrong>"[:40],
		} {
			for name, list := range lists() {
				s := &server{status: status, body: text(body), header: http.Header{"Content-Type": {"text/html"}}}
				_, err := list(t.Context(), s.config())
				var foreign *awshttp.AnswerError
				require.ErrorAs(t, err, &foreign, "%s %d %q", name, status, body)
				require.Contains(t, err.Error(), "text/html")
				require.Equal(t, 1, s.requests, "%s %d %q is repeated", name, status, body)
			}
		}
	}
}

// A web page is not an answer either if a proxy passes on the headers of AWS.
func TestPagesWithAnID(t *testing.T) {
	for name, list := range lists() {
		if strings.HasPrefix(name, "S3 ") { // an object may be a web page; HEAD has no body
			continue
		}
		s := &server{status: http.StatusOK, body: text("<html>x</html>"), header: http.Header{"X-Amzn-Requestid": {"1"}}}
		_, err := list(t.Context(), s.config())
		require.ErrorAs(t, err, new(*awshttp.AnswerError), name)
	}
}

// The answers of AWS and of emulators are accepted: with the ID in a header or in the document.
func TestAnswersOfAWS(t *testing.T) {
	in := func(root string) string {
		return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<" + root + `Response xmlns="x"><requestId>1-2</requestId></` + root + "Response>"
	}
	query := func(root string) string {
		return "<" + root + "Response><" + root + "Result/><ResponseMetadata><RequestId>1-2</RequestId></ResponseMetadata></" + root + "Response>"
	}
	bodies := map[string]string{
		"EC2": in("DescribeVpcs"), "ELB": query("DescribeLoadBalancers"), "ELBv2": query("DescribeLoadBalancers"), "IAM": query("ListRoles"),
		"STS": query("GetCallerIdentity"), "Auto Scaling": query("DescribeAutoScalingGroups"), "CloudFormation": query("DescribeStacks"),
		"S3": "<ListAllMyBucketsResult/>", "S3 object": "<html>", "S3 head": "",
	}
	for name, list := range lists() {
		body, xml := bodies[name]
		s := &server{status: http.StatusOK, body: text(body), header: http.Header{}}
		switch {
		case strings.HasPrefix(name, "S3"):
			s.header.Set("X-Amz-Request-Id", "1")
		case !xml:
			s.body = text("{}")
			s.header.Set("X-Amzn-Requestid", "1")
		}
		_, err := list(t.Context(), s.config())
		require.NoError(t, err, name)
	}
}

// endless is a body without an end.
type endless struct{ part string }

func (e endless) Read(p []byte) (int, error) {
	return copy(p, strings.Repeat(e.part, 1+len(p)/len(e.part))), nil
}

// An answer has a limit, also after it was decompressed, and in its depth.
func TestLargeAnswers(t *testing.T) {
	for name, start := range map[string]string{"EC2": "<DescribeVpcsResponse>", "EKS": "{", "SSM": "", "S3 object": "content"} {
		s := &server{
			status: http.StatusOK,
			body:   func() io.Reader { return io.MultiReader(strings.NewReader(start), endless{`"a" <a>b</a>`}) },
			header: http.Header{},
		}
		if start != "" {
			s.header.Set("X-Amzn-Requestid", "1")
		}
		out, err := lists()[name](t.Context(), s.config())
		if o, ok := out.(*s3.GetObjectOutput); ok && err == nil {
			_, err = io.Copy(io.Discard, o.Body)
		}
		require.Error(t, err, name)
		require.Equal(t, 1, s.requests, "%s: %v", name, err)
	}
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	_, err := io.CopyN(w, endless{"<a>"}, 2*awshttp.MaxAnswer)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	gzipped := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	}))
	defer gzipped.Close()
	client := http.Client{Transport: awshttp.LimitBodies(gzipped.Client().Transport)}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gzipped.URL, http.NoBody)
	require.NoError(t, err)
	answer, err := client.Do(r)
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, answer.Body)
	require.NoError(t, answer.Body.Close())
	require.ErrorAs(t, err, new(*awshttp.TooLargeError))
	require.EqualValues(t, awshttp.MaxAnswer, n)

	deep := &server{
		status: http.StatusOK,
		body:   text("<DescribeVpcsResponse><requestId>1</requestId>" + strings.Repeat("<a>", 1000) + strings.Repeat("</a>", 1000) + "</DescribeVpcsResponse>"),
	}
	_, err = lists()["EC2"](t.Context(), deep.config())
	require.ErrorAs(t, err, new(*awshttp.AnswerError))
	require.ErrorContains(t, err, "levels")
}

// What cannot succeed is sent once; what may pass is repeated.
func TestFinal(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	defer secure.Close()
	refused, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it only reserves a port
	require.NoError(t, err)
	require.NoError(t, refused.Close())
	for name, at := range map[string]string{
		"unknown CA": secure.URL, "no TLS": strings.Replace(plain.URL, "http:", "https:", 1), "unknown scheme": "ftp://127.0.0.1",
	} {
		requests := 0
		cfg := awshttp.Checked(aws.Config{
			Region: "us-east-1", BaseEndpoint: &at, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
			HTTPClient: counting(func(r *http.Request) (*http.Response, error) {
				requests++
				return (&http.Client{}).Do(r)
			}),
		})
		_, err := lists()["EC2"](t.Context(), cfg)
		require.Error(t, err)
		assert.Equal(t, 1, requests, "%s: %v", name, err)
		assert.True(t, awshttp.Final(err), "%s: %v", name, err)
	}
	for _, err := range []error{errors.New("Forbidden"), errors.New("Proxy Authentication Required"), errors.New("net/http: server response headers exceeded 10485760 bytes; aborted")} {
		s := &server{err: err}
		_, err := lists()["EKS"](t.Context(), s.config())
		require.Error(t, err)
		assert.Equal(t, 1, s.requests, err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &server{err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
		_, err := lists()["EKS"](t.Context(), s.config())
		require.Error(t, err)
		assert.Equal(t, 3, s.requests)
		assert.False(t, awshttp.Final(err))
	})
}

type counting func(*http.Request) (*http.Response, error)

func (c counting) Do(r *http.Request) (*http.Response, error) { return c(r) }

// A call that waits is reported after a few seconds, and not more often than every ten.
func TestReporting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
		var said []string
		cfg := awshttp.Reporting(s.config(), func(text string) { said = append(said, text) })
		cfg.RetryMaxAttempts = 12
		_, err := lists()["EC2"](t.Context(), cfg)
		require.Error(t, err)
		require.NotEmpty(t, said)
		assert.Contains(t, said[0], "waiting for ec2.us-east-1.amazonaws.com: dial: connection refused, attempt ")
		said = nil
		_, err = lists()["EC2"](awshttp.Quiet(t.Context()), cfg)
		require.Error(t, err)
		assert.Empty(t, said)
	})
	synctest.Test(t, func(t *testing.T) {
		var said []string
		s := &server{status: http.StatusOK, header: http.Header{"X-Amzn-Requestid": {"1"}}, body: func() io.Reader {
			return io.MultiReader(strings.NewReader("<DescribeVpcsResponse>"), iotest.ErrReader(io.ErrUnexpectedEOF))
		}}
		cfg := awshttp.Reporting(s.config(), func(text string) { said = append(said, text) })
		cfg.Retryer = func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = 12
				o.Retryables = []retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(error) aws.Ternary { return aws.TrueTernary })}
			})
		}
		_, err := lists()["EC2"](t.Context(), cfg)
		require.Error(t, err)
		require.NotEmpty(t, said)
		assert.Contains(t, said[0], "the answer is not complete: unexpected EOF, attempt ")
	})
	synctest.Test(t, func(t *testing.T) {
		var said []string
		cfg := (&server{}).config()
		cfg.RetryMaxAttempts = 1
		cfg.HTTPClient = counting(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := lists()["EC2"](ctx, awshttp.Reporting(cfg, func(text string) { said = append(said, text); cancel() }))
		require.Error(t, err)
		assert.Equal(t, []string{"waiting for ec2.us-east-1.amazonaws.com: no answer yet"}, said)
	})
}
