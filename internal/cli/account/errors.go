package account

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// plainErrors gives the errors of calls another text. That of the SDK has, for example, the
// status code 0 and an empty request ID if there is no connection.
func plainErrors(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc(
		"PlainErrors",
		func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (out middleware.InitializeOutput, md middleware.Metadata, err error) {
			out, md, err = next.HandleInitialize(ctx, in)
			if text := plain(err); text != "" {
				err = &plainError{text, err}
			}
			return out, md, err
		},
	), middleware.Before)
}

// plainError is an error with another text.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

// Unwrap returns the error of the SDK.
func (e *plainError) Unwrap() error { return e.err }

// plain describes the error of a call; "" if its own text is good enough.
func plain(err error) string {
	var (
		api  smithy.APIError
		send *smithyhttp.RequestSendError
		many *retry.MaxAttemptsError
	)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	text := ""
	switch {
	case errors.As(err, &api):
		var answer *awshttp.ResponseError
		if text = api.ErrorCode() + ": " + api.ErrorMessage(); errors.As(err, &answer) && answer.RequestID != "" {
			text += " (request ID " + answer.RequestID + ")"
		}
	case errors.As(err, &send):
		text = unconnected(send.Err)
	default:
		return ""
	}
	if errors.As(err, &many) {
		text += fmt.Sprintf(", after %d attempts", many.Attempt)
	}
	return text
}

// unconnected says to which host there is no connection, and why.
func unconnected(err error) string {
	host, request := "AWS", (*url.Error)(nil)
	if errors.As(err, &request) {
		if u, failed := url.Parse(request.URL); failed == nil && u.Host != "" {
			host = u.Host
		}
		err = request.Err
	}
	var name *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return fmt.Sprintf("no connection to %s: the proxy of the environment (HTTPS_PROXY): %v", host, op.Err)
	case errors.As(err, &name):
		return fmt.Sprintf("no connection to %s: %s", host, name.Err)
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Sprintf("no connection to %s: %v", host, op.Err)
	}
	if refusal := err.Error(); slices.Contains(
		[]string{http.StatusText(http.StatusForbidden), http.StatusText(http.StatusProxyAuthRequired)},
		refusal,
	) { // to CONNECT
		return fmt.Sprintf("no connection to %s: the proxy of the environment (HTTPS_PROXY) refuses it: %s", host, refusal)
	}
	return fmt.Sprintf("no connection to %s: %v", host, err)
}

// plainConfig describes an error of the AWS configuration.
func plainConfig(err error) error {
	var profile config.SharedConfigProfileNotExistError
	if errors.As(err, &profile) {
		return fmt.Errorf(
			"there is no profile %q in the files of the AWS CLI (~/.aws/config and ~/.aws/credentials): 'aws configure list-profiles' lists them",
			profile.Profile,
		)
	}
	var file *os.PathError
	if errors.As(err, &file) {
		return fmt.Errorf("%s, which the environment (AWS_CA_BUNDLE) or the profile (ca_bundle) names: %w", file.Path, file.Err)
	}
	return err
}
