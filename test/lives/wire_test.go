package lives_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// TestWire runs the lives of the examples on an account that is served over HTTP. The
// account receives each input as the program has sent it, and the program each output and
// error as the account has returned it.
func TestWire(t *testing.T) {
	var mu sync.Mutex
	operations := map[string]bool{}
	t.Run("lives", func(t *testing.T) {
		for _, file := range enginetest.Examples(t) {
			t.Run(enginetest.Name(file), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m := enginetest.Load(t, file, nil)
					a := enginetest.Account(m, enginetest.Lag)
					enginetest.Prepare(t, a, m)
					w := serve(t, a)
					overTheWire(t, m, a, w)
					mu.Lock()
					defer mu.Unlock()
					for op := range w.operations {
						operations[op] = true
					}
				})
			})
		}
	})
	assert.Greater(t, len(operations), 130)
	t.Logf("%d operations", len(operations))
}

// overTheWire creates, looks at and deletes a cluster.
func overTheWire(t *testing.T, m *manifest.Cluster, a *awssim.AWS, w *wired) {
	t.Helper()
	before := a.Inventory()
	open := func() *run.Cluster {
		return run.Open(m, cluster.Target{Config: w.config(m.Region), Owner: "test"})
	}
	_, err := open().Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	require.NoError(t, err)
	time.Sleep(enginetest.Booting)
	_, err = look.Status(t.Context(), open())
	require.NoError(t, err)
	_, err = run.OpenByName(m.Name, cluster.Target{Config: w.config(m.Region), Owner: "test"}).Delete(t.Context(), enginetest.Everything)
	require.NoError(t, err)
	require.Equal(t, before, a.Inventory())
}

// wired is an account that is served without a network.
type wired struct {
	t       *testing.T
	handler http.Handler

	mu         sync.Mutex
	calls      map[string]wire.Call // by request ID
	operations map[string]bool
}

// serve serves an account.
func serve(t *testing.T, a *awssim.AWS) *wired {
	t.Helper()
	h, err := a.Process().Handler()
	require.NoError(t, err)
	w := &wired{t: t, handler: h, calls: map[string]wire.Call{}, operations: map[string]bool{}}
	h.Observe = func(c wire.Call) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls[c.RequestID] = c
		w.operations[c.Service+" "+c.Operation] = true
	}
	return w
}

// Do answers a request that has been written as bytes, and read again. A connection in
// memory would be too fast: the SDK closes the body of a request when the answer arrives,
// which the HTTP client takes for an error if it has not yet seen the end of the body.
func (w *wired) Do(r *http.Request) (*http.Response, error) {
	var written bytes.Buffer
	if err := r.Write(&written); err != nil {
		return nil, err
	}
	read, err := http.ReadRequest(bufio.NewReader(&written))
	if err != nil {
		return nil, err
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, read.WithContext(r.Context()))
	if r.Method == http.MethodHead {
		answer.Body.Reset()
	}
	return answer.Result(), nil
}

// config is for clients that compare their calls with those that the account has received.
func (w *wired) config(region string) aws.Config {
	return aws.Config{
		Region: region, BaseEndpoint: aws.String("http://127.0.0.1"), HTTPClient: w,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
		APIOptions: []func(*middleware.Stack) error{w.compare},
	}
}

type sentInput struct{}

// compare adds middlewares that compare the input, and the output or the error.
func (w *wired) compare(stack *middleware.Stack) error {
	err := stack.Serialize.Add(middleware.SerializeMiddlewareFunc("Sent",
		func(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (middleware.SerializeOutput, middleware.Metadata, error) {
			return next.HandleSerialize(middleware.WithStackValue(ctx, sentInput{}, in.Parameters), in)
		}), middleware.Before)
	if err != nil {
		return err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("Received",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, md, err := next.HandleDeserialize(ctx, in)
			id, _ := awsmiddleware.GetRequestIDMetadata(md)
			var response *awshttp.ResponseError
			if errors.As(err, &response) {
				id = response.ServiceRequestID()
			}
			w.check(id, middleware.GetStackValue(ctx, sentInput{}), out.Result, err)
			return out, md, err
		}), middleware.Before)
}

// check compares one call.
func (w *wired) check(id string, sent, received any, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	w.mu.Lock()
	c, ok := w.calls[id]
	w.mu.Unlock()
	if !assert.True(w.t, ok, "request %q is not known: %T %v", id, sent, err) {
		return
	}
	assert.Empty(w.t, cmp.Diff(sent, c.Input, same(), notSent(c.Service)), "input of %s %s", c.Service, c.Operation)
	if c.Err != nil || err != nil {
		want := problem(c.Err)
		if strings.HasPrefix(c.Operation, "Head") { // the answer has no body, and the status is the code
			want, _, _ = strings.Cut(want, " ")
			want += " "
		}
		assert.Equal(w.t, want, problem(err), "%s %s", c.Service, c.Operation)
		return
	}
	assert.Empty(w.t, cmp.Diff(c.Output, received, same()), "output of %s %s", c.Service, c.Operation)
}

// same compares structs of the SDK. AWS's formats of times have milliseconds or seconds.
func same() cmp.Option {
	return cmp.Options{
		cmpopts.EquateEmpty(),
		cmpopts.EquateApproxTime(time.Second),
		cmp.FilterPath(func(p cmp.Path) bool {
			f, ok := p.Last().(cmp.StructField)
			return ok &&
				(!token.IsExported(f.Name()) || f.Name() == "ResultMetadata" || f.Type() == reflect.TypeFor[io.Reader]() || f.Type() == reflect.TypeFor[io.ReadCloser]())
		}, cmp.Ignore()),
	}
}

// notSent are members that the SDK sends to S3 even if the program has not set them.
func notSent(service string) cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && service == "S3" && strings.Contains(" ContentLength ContentType ChecksumAlgorithm ", " "+f.Name()+" ")
	}, cmp.Ignore())
}

// problem is the code and the message of an error.
func problem(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode() + ": " + api.ErrorMessage()
	}
	if err == nil {
		return "none"
	}
	return err.Error()
}
