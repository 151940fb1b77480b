package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	scalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
	elbv2types "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	secretstypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// The errors with which each service says that a resource does not exist: the SDK's
// types, and the codes of EC2, which has no types.
func TestNotFound(t *testing.T) {
	for _, err := range []error{
		refusal("InvalidVpcID.NotFound"), refusal("InvalidSubnetID.NotFound"), refusal("InvalidGroup.NotFound"), refusal("InvalidInstanceID.NotFound"),
		refusal("InvalidInternetGatewayID.NotFound"), refusal("NatGatewayNotFound"), refusal("InvalidAllocationID.NotFound"), refusal("InvalidRouteTableID.NotFound"),
		refusal("InvalidAssociationID.NotFound"), refusal("InvalidVpcEndpointId.NotFound"), refusal("InvalidNetworkInterfaceID.NotFound"), refusal("InvalidPermission.NotFound"),
		refusal("InvalidAMIID.Malformed"), refusal("InvalidEgressOnlyInternetGatewayId.NotFound"), refusal("InvalidVpcCidrBlockAssociationID.NotFound"),
		&elbtypes.AccessPointNotFoundException{}, &elbtypes.SubnetNotFoundException{},
		&elbv2types.LoadBalancerNotFoundException{}, &elbv2types.TargetGroupNotFoundException{}, &elbv2types.ListenerNotFoundException{}, &elbv2types.SubnetNotFoundException{},
		&iamtypes.NoSuchEntityException{}, &s3types.NoSuchBucket{}, &s3types.NotFound{}, &s3types.NoSuchKey{}, refusal("NoSuchTagSet"), refusal("NoSuchBucketPolicy"),
		&secretstypes.ResourceNotFoundException{}, &ssmtypes.ParameterNotFound{},
		refusal("InvalidLaunchTemplateId.NotFound"), refusal("InvalidLaunchTemplateName.NotFoundException"), refusal("InvalidLaunchTemplateId.VersionNotFound"),
		&smithy.GenericAPIError{Code: "ClientException", Message: "No cluster found for name: demo."},
		&smithy.GenericAPIError{Code: "ValidationError", Message: "AutoScalingGroup name not found - AutoScalingGroup 'a' not found"},
		&smithy.GenericAPIError{Code: "ValidationError", Message: "You must use a valid fully-formed launch template. The specified launch template, with template ID lt-1, does not exist."},
	} {
		wrapped := fmt.Errorf("read: %w", err)
		require.True(t, cloud.NotFound(wrapped), "%v", err)
		require.NoError(t, cloud.IgnoreNotFound(wrapped))
		require.True(t, cloud.Rejected(wrapped), "%v", err)
		require.False(t, cloud.NotSent(wrapped))
		require.False(t, cloud.Exists(err) || cloud.InUse(err) || cloud.Denied(err) || cloud.Quota(err) || cloud.Throttled(err), "%v", err)
	}
	for _, err := range []error{nil, errors.New("not found"), refusal("InvalidParameterValue"), refusal("ValidationError"), lost()} {
		require.False(t, cloud.NotFound(err), "%v", err)
		require.Equal(t, err, cloud.IgnoreNotFound(err))
	}
}

func TestErrorClasses(t *testing.T) {
	for _, c := range []struct {
		name string
		is   func(error) bool
		errs []error
	}{
		{"exists", cloud.Exists, []error{
			refusal("InvalidGroup.Duplicate"), refusal("InvalidPermission.Duplicate"), refusal("RouteAlreadyExists"), refusal("InvalidSubnet.Conflict"),
			refusal("Resource.AlreadyAssociated"), &elbtypes.DuplicateAccessPointNameException{}, &elbv2types.DuplicateLoadBalancerNameException{},
			&elbv2types.DuplicateTargetGroupNameException{}, &elbv2types.DuplicateListenerException{}, &iamtypes.EntityAlreadyExistsException{},
			&secretstypes.ResourceExistsException{}, &ssmtypes.ParameterAlreadyExists{}, &s3types.BucketAlreadyOwnedByYou{},
			refusal("InvalidLaunchTemplateName.AlreadyExistsException"), &scalingtypes.AlreadyExistsFault{},
		}},
		{"in use", cloud.InUse, []error{
			refusal("DependencyViolation"), refusal("InvalidGroup.InUse"), refusal("InvalidIPAddress.InUse"), refusal("InvalidNetworkInterface.InUse"), refusal("VolumeInUse"),
			&elbv2types.ResourceInUseException{}, &iamtypes.DeleteConflictException{}, &scalingtypes.ResourceInUseFault{},
			&scalingtypes.ScalingActivityInProgressFault{}, &scalingtypes.ResourceContentionFault{}, &scalingtypes.InstanceRefreshInProgressFault{},
		}},
		{"denied", cloud.Denied, []error{refusal("UnauthorizedOperation"), refusal("AccessDenied"), refusal("AccessDeniedException"), refusal("AuthFailure"), refusal("Forbidden")}},
		{"invalid credentials", cloud.InvalidCredentials, []error{
			refusal("InvalidClientTokenId"), refusal("UnrecognizedClientException"), refusal("InvalidAccessKeyId"), refusal("SignatureDoesNotMatch"),
			&smithy.GenericAPIError{Code: "AuthFailure", Message: "AWS was not able to validate the provided access credentials"},
		}},
		{"expired", cloud.Expired, []error{refusal("ExpiredToken"), refusal("ExpiredTokenException"), refusal("RequestExpired")}},
		{"quota", cloud.Quota, []error{
			refusal("VpcLimitExceeded"), refusal("AddressLimitExceeded"), refusal("NatGatewayLimitExceeded"), refusal("InternetGatewayLimitExceeded"), refusal("InstanceLimitExceeded"),
			refusal("VcpuLimitExceeded"), refusal("SecurityGroupLimitExceeded"), refusal("RulesPerSecurityGroupLimitExceeded"), &ssmtypes.ParameterLimitExceeded{},
			&elbtypes.TooManyAccessPointsException{}, &elbv2types.TooManyLoadBalancersException{}, &elbv2types.TooManyTargetGroupsException{}, refusal("TooManyBuckets"),
			&secretstypes.LimitExceededException{}, refusal("ResourceLimitExceededException"),
		}},
		{"throttled", cloud.Throttled, []error{
			refusal("RequestLimitExceeded"), refusal("Throttling"), refusal("ThrottlingException"), refusal("SlowDown"), refusal("TooManyRequestsException"), refusal("RequestThrottled"),
		}},
	} {
		for _, err := range c.errs {
			require.True(t, c.is(fmt.Errorf("call: %w", err)), "%s: %v", c.name, err)
			require.True(t, cloud.Rejected(err), "%s: %v", c.name, err)
		}
		for _, err := range []error{nil, errors.New("text"), refusal("InvalidParameterValue"), lost()} {
			require.False(t, c.is(err), "%s: %v", c.name, err)
		}
	}
	require.False(t, cloud.Quota(refusal("RequestLimitExceeded")))
	require.False(t, cloud.Quota(refusal("TooManyRequestsException")))
}

// After an internal error of AWS or a lost connection, the call may have had an effect.
func TestRejectedOrUnknown(t *testing.T) {
	for _, err := range []error{
		refusal("InternalError"), refusal("InternalFailure"), refusal("ServiceUnavailable"), refusal("Unavailable"), refusal("UnknownError"), refusal("RequestTimeout"),
		&ssmtypes.InternalServerError{}, &secretstypes.InternalServiceError{}, &iamtypes.ServiceFailureException{}, &smithy.DeserializationError{}, lost(), context.DeadlineExceeded,
	} {
		require.False(t, cloud.Rejected(err), "%v", err)
		require.False(t, cloud.NotSent(err), "%v", err)
	}
	for _, err := range []error{refusal("InsufficientInstanceCapacity"), refusal("InvalidParameterValue"), refusal("UnsupportedOperation")} {
		require.True(t, cloud.Rejected(err), "%v", err)
	}
}

// A request that was not sent has had no effect.
func TestNotSent(t *testing.T) {
	for _, err := range []error{
		&net.OpError{Op: "dial", Err: errors.New("refused")}, cloud.ErrLockLost, &cloud.RefusedError{Operation: "CreateVpc"},
		&smithy.SerializationError{},
		smithy.InvalidParamsError{},
		&smithy.InvalidParamsError{},
	} {
		require.True(t, cloud.NotSent(fmt.Errorf("call: %w", err)), "%T", err)
	}
	require.False(t, cloud.NotSent(&net.OpError{Op: "read", Err: errors.New("reset")}))
	require.False(t, cloud.NotSent(nil))
}

func TestCode(t *testing.T) {
	require.Equal(t, "DependencyViolation", cloud.Code(fmt.Errorf("x: %w", refusal("DependencyViolation"))))
	require.Empty(t, cloud.Code(errors.New("text")))
	require.Empty(t, cloud.Code(nil))
	require.False(t, cloud.Is(nil, ""))
	require.False(t, cloud.Is(errors.New("text"), "text"))
}
