package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// TimedOut reports whether a context has ended because of a time limit. Of a limit on another
// clock, only the cause says so.
func TimedOut(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// Code returns the error code of an AWS error, and "" for any other error.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// Is reports whether err is an AWS error with one of the codes.
func Is(err error, codes ...string) bool { return slices.Contains(codes, Code(err)) && err != nil }

// Rejected reports whether AWS or an API server answered that it did not and will not do
// what the call requested. After any other error, such as a lost connection or an
// "internal error", the outcome of the call is unknown.
func Rejected(err error) bool {
	var api smithy.APIError
	return kube.Rejected(err) || errors.As(err, new(*ProgramError)) || errors.As(err, &api) && !slices.Contains([]string{
		"InternalError", "InternalFailure", "InternalServerError", "InternalServiceError", "ServerInternal", "ServiceFailure", // each service has its own code
		"ServiceUnavailable", "Unavailable", "RequestTimeout", "RequestTimeoutException", "UnknownError",
	}, api.ErrorCode())
}

// ProgramError says that a program has ended with an error. It does nothing any more.
type ProgramError struct {
	Command string // "helm upgrade"
	Err     error
}

func (e *ProgramError) Error() string { return e.Command + ": " + e.Err.Error() }

// Unwrap returns what the program has said.
func (e *ProgramError) Unwrap() error { return e.Err }

// NotFound reports whether err says that the resource does not exist.
func NotFound(err error) bool {
	code := Code(err)
	if code == "" {
		return false
	}
	return strings.HasSuffix(code, "NotFound") || strings.HasSuffix(code, ".Malformed") || slices.Contains([]string{
		"NoSuchEntity", "NoSuchBucket", "NoSuchKey", "NatGatewayNotFound", "ResourceNotFoundException", "ParameterNotFound",
		"LoadBalancerNotFound", "TargetGroupNotFound", "ListenerNotFound", "NotFoundException", "NoSuchTagSet", "NoSuchBucketPolicy",
		"InvalidLaunchTemplateName.NotFoundException", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist",
	}, code) || code == "ValidationError" && notFoundMessage(err.Error()) ||
		code == "ClientException" && strings.Contains(err.Error(), "No cluster found") // of EKS
}

// notFoundMessage reports whether a message of Auto Scaling says that a group, launch
// template or version does not exist. Auto Scaling has no error code for that.
func notFoundMessage(message string) bool {
	return slices.ContainsFunc([]string{"AutoScalingGroup name not found", "does not exist", "Could not find the specified version"}, func(s string) bool {
		return strings.Contains(message, s)
	})
}

// IgnoreNotFound returns nil when err says that the resource does not exist.
func IgnoreNotFound(err error) error {
	if NotFound(err) {
		return nil
	}
	return err
}

// InUse reports whether err says that another resource still uses the resource.
func InUse(err error) bool {
	return Is(err, "DependencyViolation", "ResourceInUse", "ResourceInUseException", "InvalidIPAddress.InUse", "DeleteConflict",
		"InvalidGroup.InUse", "InvalidNetworkInterface.InUse", "VolumeInUse", "Gateway.NotAttached", "ResourceConflict",
		"ScalingActivityInProgress", "ResourceContention", "InstanceRefreshInProgress")
}

// Exists reports whether err says that the resource exists already.
func Exists(err error) bool {
	return Is(err, "InvalidGroup.Duplicate", "InvalidSubnet.Conflict", "DuplicateLoadBalancerName", "DuplicateTargetGroupName",
		"DuplicateListener", "ResourceExistsException", "ParameterAlreadyExists", "RouteAlreadyExists", "InvalidPermission.Duplicate",
		"Resource.AlreadyAssociated", "BucketAlreadyOwnedByYou", "EntityAlreadyExists",
		"InvalidLaunchTemplateName.AlreadyExistsException", "AlreadyExists")
}

// Denied reports whether err says that the caller lacks a permission.
func Denied(err error) bool {
	return Is(err, "UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthFailure", "UnauthorizedAccess", "Forbidden") && !InvalidCredentials(err)
}

// InvalidCredentials reports whether err says that AWS does not know the access key, or that
// the secret key does not belong to it. Each service has its own code; EC2 also uses
// AuthFailure where the caller lacks a permission.
func InvalidCredentials(err error) bool {
	return Is(
		err,
		"InvalidClientTokenId",
		"UnrecognizedClientException",
		"InvalidAccessKeyId",
		"SignatureDoesNotMatch",
		"InvalidSignatureException",
		"IncompleteSignature",
	) ||
		Is(err, "AuthFailure") && strings.Contains(err.Error(), "not able to validate the provided access credentials")
}

// Quota reports whether err says that a quota of the account is exceeded.
func Quota(err error) bool {
	code := Code(err)
	return strings.HasSuffix(code, "LimitExceeded") && code != "RequestLimitExceeded" ||
		strings.HasPrefix(code, "TooMany") && code != "TooManyRequestsException" ||
		Is(
			err, "ResourceLimitExceededException", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "LimitExceededException",
			"AddressLimitExceeded",
		)
}

// LoginError says that AWS does not accept the credentials any more, or that new ones could
// not be read.
type LoginError struct{ Err error }

func (e *LoginError) Error() string {
	return fmt.Sprintf("the AWS credentials have expired: log in again, then run the same command again; it continues from here (%v)", e.Err)
}

// Unwrap returns the answer of AWS or of the source of the credentials.
func (e *LoginError) Unwrap() error { return e.Err }

// Expired reports whether err says that the credentials are not valid any more. All other
// calls of the run fail then, too. EC2 says RequestExpired.
func Expired(err error) bool {
	return Is(err, "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired") || errors.As(err, new(*sourceError))
}

// sourceError says that the source of the credentials returns none: a session has expired.
type sourceError struct{ error }

func (e *sourceError) Unwrap() error { return e.error }

// source is a source of credentials with errors that Expired recognises.
type source struct{ aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (s source) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := s.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		return c, &sourceError{err}
	}
	return c, err
}

// Throttled reports whether err says that AWS throttled the call. The SDK counts
// LimitExceededException among these errors; the services that runs call say with it that a quota
// is exceeded.
func Throttled(err error) bool {
	_, throttle := retry.DefaultThrottleErrorCodes[Code(err)]
	return throttle && Code(err) != "LimitExceededException"
}

// NotSent reports whether err says that the request was not sent, so that it has had no
// effect.
func NotSent(err error) bool {
	var stopped *interruptedError
	return errors.As(err, &stopped) && stopped.what == notSent || Unconnected(err) || errors.Is(err, ErrLockLost) || errors.As(err, new(*RefusedError)) ||
		errors.As(
			err,
			new(*aws.MissingRegionError),
		) || errors.As(err, new(*smithy.SerializationError)) || errors.As(err, new(smithy.InvalidParamsError)) || errors.As(err, new(*smithy.InvalidParamsError))
}

// Local reports whether err is one of this program, from before any request: it is not part of a request or of its answer. A value that cannot be
// made from what the program knows is such an error.
func Local(err error) bool {
	asked := errors.As(err, new(*smithy.OperationError)) || errors.As(err, new(*smithyhttp.RequestSendError)) ||
		errors.As(err, new(*smithyhttp.ResponseError)) || errors.As(err, new(*smithy.CanceledError)) || errors.As(err, new(smithy.APIError)) ||
		errors.As(err, new(apierrors.APIStatus)) || errors.As(err, new(*url.Error)) || errors.As(err, new(net.Error)) || errors.As(err, new(*json.SyntaxError)) ||
		errors.As(err, new(*interruptedError))
	for _, end := range []error{context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, kube.ErrNotKubernetes} {
		asked = asked || errors.Is(err, end)
	}
	return !asked
}

// NoEffect reports whether the requests that ended with err have had no effect, and will have none: AWS has rejected the last one, or it was not sent.
func NoEffect(err error) bool { return Rejected(err) || NotSent(err) || Local(err) }

// Unconnected reports whether err says that there was no connection to send a request on:
// the name of the host was not found, or the host did not accept the connection.
func Unconnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Unanswered reports whether err says that there was no answer: the host was not found, the
// connection ended, or no answer came in time.
func Unanswered(err error) bool {
	return Cut(err) || errors.As(err, new(*smithyhttp.RequestSendError))
}

// Cut reports whether err says that the connection ended in the middle of an answer.
func Cut(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
