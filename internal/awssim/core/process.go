package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Fault is a failure of a call.
type Fault string

// The faults.
const (
	None       Fault = ""
	Throttled  Fault = "throttled"     // rejected because of the rate limit
	Denied     Fault = "denied"        // rejected because of a missing permission
	Broken     Fault = "server error"  // rejected with an internal error, without effect
	Unsent     Fault = "unsent"        // the name of the host is not found
	Silent     Fault = "silent"        // no answer and no error, after the call had its effect
	Stale      Fault = "stale"         // a listing shows nothing, as one before anything was created
	Old        Fault = "old"           // the call does not know what was created in the last 50 seconds
	LostBefore Fault = "lost before"   // connection error, without effect
	LostAfter  Fault = "lost after"    // connection error, after the call had its effect
	Cut        Fault = "cut"           // the connection ends within the answer, after the call had its effect
	KillBefore Fault = "killed before" // the process is killed before the call
	KillAfter  Fault = "killed after"  // the process is killed after the call had its effect
	Held       Fault = "held"          // connection error, and the request arrives after Process.Delay
	KillHeld   Fault = "killed held"   // as Held, and the process is killed
	Used       Fault = "used"          // rejected because something else uses the resource
	Endless    Fault = "endless"       // every page of a listing names itself as the next one
	Circle     Fault = "circle"        // the pages of a listing name each other as the next one
)

// validity is how long after its signature AWS accepts a request: "requests must reach AWS
// within five minutes of the time stamp" (Elements of an AWS API request signature, IAM user
// guide); 15 minutes for S3 (RequestTimeTooSkewed, S3 API reference).
func validity(service string) time.Duration {
	if service == s3.ServiceID {
		return 15 * time.Minute
	}
	return 5 * time.Minute
}

// Process is one program that calls the account. After it is killed, no call of it
// arrives.
type Process struct {
	// Fault, if set, returns the fault of the n-th call of the process, counted from 1.
	Fault func(n int, service, op string) Fault
	// Permits, if set, reports whether the process has the permission for a call.
	Permits func(service, op string, in any) bool
	// Refuse, if set, returns the error of a call that is rejected; nil for others.
	Refuse func(service, op string) error
	// Killed, if set, is called when a fault kills the process.
	Killed func()
	// Delay is how long requests with the faults Held and KillHeld are on their way.
	Delay time.Duration
	// Arrived, if set, is called with the answer to a request that was held.
	Arrived func(service, op string, err error)

	account *Account

	mu     sync.Mutex
	calls  int
	dead   bool
	asleep <-chan struct{}
}

// NewProcess returns a new program that calls an account.
func NewProcess(a *Account) *Process { return &Process{account: a} }

// Kill kills the process: no further call of it arrives.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// Sleep suspends the process, like a laptop that is closed: requests that it sends until
// the channel is closed are lost.
func (p *Process) Sleep(until <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asleep = until
}

// sleepThrough waits until the process is resumed, and reports whether it was suspended.
func (p *Process) sleepThrough() bool {
	p.mu.Lock()
	asleep := p.asleep
	p.mu.Unlock()
	if asleep == nil {
		return false
	}
	<-asleep
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asleep == asleep {
		p.asleep = nil
	}
	return true
}

// Calls returns the number of calls of the process.
func (p *Process) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// Config returns a configuration for clients of the simulation.
func (p *Process) Config() aws.Config {
	return aws.Config{
		Region: p.account.Region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIASIMULATED", SecretAccessKey: "simulated"}, nil
		}),
		APIOptions: []func(*middleware.Stack) error{p.hook},
	}
}

type (
	inputKey  struct{}
	accessKey struct{}
)

// hook adds two middlewares: one keeps the typed input at the top of the stack, the other
// handles the call below the signer, in place of sending the request. A presigned request
// is not sent, and has no retryer.
func (p *Process) hook(stack *middleware.Stack) error {
	err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("SimInput",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			return next.HandleInitialize(middleware.WithStackValue(ctx, inputKey{}, in.Parameters), in)
		}), middleware.After)
	if err != nil {
		return err
	}
	if _, sent := stack.Finalize.Get("Retry"); !sent {
		return nil
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("SimAnswer",
		func(ctx context.Context, in middleware.FinalizeInput, _ middleware.FinalizeHandler) (out middleware.FinalizeOutput, md middleware.Metadata, err error) {
			ctx = middleware.WithStackValue(ctx, accessKey{}, signer(in.Request))
			out.Result, err = p.send(ctx, awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), middleware.GetStackValue(ctx, inputKey{}))
			if o, ok := out.Result.(*s3.GetObjectOutput); ok && err == nil {
				o.Body = connected{o.Body, ctx.Err}
			}
			return out, md, err
		}), "Signing", middleware.After)
}

// connected is the content of an object. It comes after the answer, on a connection that ends with
// the context of the attempt.
type connected struct {
	io.ReadCloser
	ended func() error // nil while the attempt lasts
}

// Read implements io.Reader.
func (c connected) Read(p []byte) (int, error) {
	if err := c.ended(); err != nil {
		return 0, err
	}
	return c.ReadCloser.Read(p)
}

// Request is a call of a client in another process.
type Request struct {
	Service   string // the ID of the service in the SDK
	Operation string
	Region    string // the region of the call; "" for the account's own
	AccessKey string // that signs the call; "" if it is not signed
	Input     any    // a pointer to the SDK's struct
}

// Call passes a call to the account, as the clients of Config do.
func (p *Process) Call(ctx context.Context, r Request) (output any, err error) {
	ctx = awsmiddleware.SetRegion(ctx, r.Region)
	ctx = middleware.WithStackValue(ctx, accessKey{}, r.AccessKey)
	return p.send(ctx, r.Service, r.Operation, r.Input)
}

// Operations lists the operations that the account simulates.
func (p *Process) Operations() []Operation { return p.account.operations() }

// Limits returns the rate limits of a service.
func (p *Process) Limits(service string) (l Limits, limited bool) {
	l, limited = p.account.limits[service]
	return l, limited
}

// AccessKey returns the access key that signs a call; nil if it is not signed.
func AccessKey(ctx context.Context) any { return middleware.GetStackValue(ctx, accessKey{}) }

// signer returns the access key that signs a request, and "" if it is not signed.
func signer(request any) string {
	r, ok := request.(*smithyhttp.Request)
	if !ok {
		return ""
	}
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(credential, "/")
	return key
}

// ErrLost is the error of a lost connection.
var ErrLost = errors.New("connection reset by peer")

// send passes one call to the account, unless there is a fault.
func (p *Process) send(ctx context.Context, service, op string, in any) (any, error) {
	if err := p.account.Clock.Sleep(ctx, p.account.Latency); err != nil {
		return nil, err
	}
	if slept := p.sleepThrough(); slept {
		return nil, &smithyhttp.RequestSendError{Err: ErrLost} // connections are closed during a suspension
	}
	fault, err := p.Admit(service, op)
	if err != nil {
		return nil, err
	}
	switch fault {
	case Throttled:
		return nil, Fail("RequestLimitExceeded", "request limit exceeded")
	case Denied:
		return nil, Fail("UnauthorizedOperation", "you are not authorized to perform this operation: %s", op)
	case Used:
		return nil, Fail("DependencyViolation", "the resource has a dependent object and cannot be deleted")
	case Broken:
		return nil, &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusInternalServerError}}, // by which the SDK retries
			Err:      &smithy.GenericAPIError{Code: "InternalError", Message: "an internal error has occurred", Fault: smithy.FaultServer},
		}
	case Unsent:
		return nil, &smithyhttp.RequestSendError{
			Err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: strings.ToLower(service) + ".amazonaws.com", IsNotFound: true}},
		}
	case LostBefore:
		return nil, &smithyhttp.RequestSendError{Err: ErrLost}
	case Held, KillHeld:
		go p.deliver(context.WithoutCancel(ctx), service, op, in)
		if fault == Held {
			return nil, &smithyhttp.RequestSendError{Err: ErrLost}
		}
		p.Die()
		return nil, fmt.Errorf("awssim: %s: %w", op, context.Canceled)
	case KillBefore:
		p.Die()
		return nil, fmt.Errorf("awssim: %s: %w", op, context.Canceled)
	case Endless, Circle:
		return p.endless(ctx, service, op, in, fault)
	case None, Silent, Stale, Old, LostAfter, Cut, KillAfter:
	}
	if p.Permits != nil && !p.Permits(service, op, in) {
		return nil, Fail("UnauthorizedOperation", "you are not authorized to perform this operation: %s %s", service, op)
	}
	if p.Refuse != nil {
		if err := p.Refuse(service, op); err != nil {
			return nil, err
		}
	}
	replica := time.Duration(0)
	if fault == Old {
		replica = 50 * time.Second
	}
	out, err := p.account.call(ctx, service, op, in, replica)
	switch fault {
	case LostAfter:
		return nil, &smithyhttp.RequestSendError{Err: ErrLost}
	case Cut: // the SDK's error, see TestCutAnswers in package cloud
		return nil, &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusOK}},
			Err:      &smithy.DeserializationError{Err: fmt.Errorf("failed to decode response body, %w", io.ErrUnexpectedEOF)},
		}
	case KillAfter:
		p.Die()
		return nil, fmt.Errorf("awssim: %s: %w", op, context.Canceled)
	case Silent:
		<-ctx.Done()
		return nil, &smithyhttp.RequestSendError{Err: ctx.Err()}
	case Stale:
		return reflect.New(reflect.TypeOf(out).Elem()).Interface(), err
	case None, Old, Throttled, Denied, Broken, Unsent, LostBefore, KillBefore, Held, KillHeld, Used, Endless, Circle: // handled above
	}
	return out, err
}

// deliver passes a request to the account that was on its way for a long time. Its answer
// reaches nobody.
func (p *Process) deliver(ctx context.Context, service, op string, in any) {
	if p.account.Clock.Sleep(ctx, p.Delay) != nil {
		return
	}
	err := Fail("RequestExpired", "Request has expired.")
	if p.Delay <= validity(service) {
		_, err = p.account.call(ctx, service, op, in, 0)
	}
	if p.Arrived != nil {
		p.Arrived(service, op, err)
	}
}

// Admit counts a call and returns its fault.
func (p *Process) Admit(service, op string) (Fault, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return None, fmt.Errorf("awssim: %s: the process is dead: %w", op, context.Canceled)
	}
	p.calls++
	if p.Fault == nil {
		return None, nil
	}
	return p.Fault(p.calls, service, op), nil
}

// Die kills the process, as a fault does.
func (p *Process) Die() {
	p.Kill()
	if p.Killed != nil {
		p.Killed()
	}
}
