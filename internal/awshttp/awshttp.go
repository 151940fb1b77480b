// Package awshttp is between the AWS SDK and the network. It checks that an answer comes from
// AWS and has a limited size, keeps the SDK from repeating what cannot succeed, and reports
// calls that wait.
package awshttp

import (
	"context"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Checked returns a configuration whose clients accept only answers of AWS. Every client of
// the program is created with it. Adding it twice has no effect.
func Checked(cfg aws.Config) aws.Config {
	cfg = cfg.Copy()
	cfg.APIOptions = append(slices.Clip(cfg.APIOptions), Middleware)
	return cfg
}

// Middleware adds the checks to the stack of a client.
func Middleware(stack *middleware.Stack) error {
	const name = "CheckAnswer"
	_, sent := stack.Finalize.Get("Retry") // a presigned request is not sent, and has no retryer
	if _, added := stack.Deserialize.Get(name); added || !sent {
		return nil
	}
	if err := stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc(name, checkAnswer), middleware.After); err != nil {
		return err
	}
	if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("CheckPage", checkPage), middleware.After); err != nil {
		return err
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Final",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			out, md, err := next.HandleFinalize(ctx, in)
			if Final(err) {
				err = &finalError{err}
			}
			return out, md, err
		}), "Retry", middleware.After)
}

// checkAnswer checks the answer to a request, before the SDK decodes it.
func checkAnswer(
	ctx context.Context,
	in middleware.DeserializeInput,
	next middleware.DeserializeHandler,
) (out middleware.DeserializeOutput, md middleware.Metadata, err error) {
	out, md, err = next.HandleDeserialize(ctx, in)
	answer, ok := out.RawResponse.(*smithyhttp.Response)
	request, isHTTP := in.Request.(*smithyhttp.Request)
	if err != nil || !ok || !isHTTP || !isAWS(awsmiddleware.GetServiceID(ctx)) {
		return out, md, err
	}
	most, larger := ctx.Value(mostKey).(int64)
	if !larger {
		most = MaxAnswer
	}
	answer.Body = &limited{ReadCloser: answer.Body, left: most}
	return out, md, check(request, answer, awsmiddleware.GetOperationName(ctx))
}

// WithMost returns a context for calls whose answers may have so many bytes, and not only MaxAnswer.
// The caller does not keep such an answer in memory.
func WithMost(ctx context.Context, bytes int64) context.Context {
	return context.WithValue(ctx, mostKey, bytes)
}

// isAWS reports whether a service is one of AWS's. The SDK has also clients of the metadata
// service of EC2 and of the endpoint for credentials of containers, which answer without
// the ID of a request.
func isAWS(service string) bool { return service != "ec2imds" && service != "endpoint-credentials" }

// LimitBodies returns a transport whose answers are limited to MaxAnswer, for servers that are
// not AWS.
func LimitBodies(next http.RoundTripper) http.RoundTripper { return limiter{next} }

type limiter struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err == nil && answer.StatusCode != http.StatusSwitchingProtocols { // then the body is a connection
		answer.Body = &limited{ReadCloser: answer.Body, left: MaxAnswer}
	}
	return answer, err
}
