package cloud_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// wire replaces the network: it records each attempt and answers it.
type wire struct {
	mu     sync.Mutex
	began  time.Time
	at     []time.Duration // of each attempt
	ops    []string
	answer func(n int, op string) (any, error) // n counts attempts from 1
}

func newWire(answer func(n int, op string) (any, error)) *wire {
	return &wire{began: time.Now(), answer: answer}
}

// config returns a configuration for clients that use the wire.
func (w *wire) config() aws.Config {
	return aws.Config{
		Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "test"}, nil
		}),
		APIOptions: []func(*middleware.Stack) error{w.hook},
	}
}

func (w *wire) hook(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Wire",
		func(ctx context.Context, _ middleware.FinalizeInput, _ middleware.FinalizeHandler) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
			op := awsmiddleware.GetOperationName(ctx)
			w.mu.Lock()
			w.at, w.ops = append(w.at, time.Since(w.began)), append(w.ops, op)
			n := len(w.at)
			w.mu.Unlock()
			out.Result, err = w.answer(n, op)
			return out, md, err
		}), "Signing", middleware.After)
}

func (w *wire) attempts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.at)
}

// clients returns clients that use the wire.
func (w *wire) clients() *cloud.Clients { return cloud.New(w.config(), "demo", cloud.Options{}) }

func refusal(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "no", Fault: smithy.FaultClient}
}

func lost() error { return &smithyhttp.RequestSendError{Err: errors.New("connection reset by peer")} }

// in runs a test in virtual time.
func in(t *testing.T, do func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, do)
}
