package cloud

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// LacksCapacity reports whether the code or the text of an error says that AWS has no capacity for a type
// of machine in a zone ("Troubleshoot instance launch issues", Amazon EC2 user guide; "Troubleshoot EC2
// instance launch failures", Amazon EC2 Auto Scaling user guide).
func LacksCapacity(failure string) bool {
	return slices.ContainsFunc([]string{
		"InsufficientInstanceCapacity",
		"InsufficientHostCapacity",
		"InsufficientReservedInstanceCapacity",
		"do not have sufficient",
		"no Spot capacity",
		"UnfulfillableCapacity",
	}, func(part string) bool { return strings.Contains(failure, part) })
}

// RefusesInput reports whether AWS answers with an error code to the same request always: to a value that it does not
// take, or for a quota ("Error codes", Amazon EC2 API reference; "Common Errors" of the other APIs). That is so for all
// errors of the caller, but for those about a state that passes. What does not exist may only not be visible yet, except
// for what a run does not make.
func RefusesInput(code string) bool {
	switch {
	case code == "", isTransient(code):
		return false
	case strings.HasSuffix(code, "NotFound"), strings.HasSuffix(code, "NotFoundException"), code == "NoSuchEntity":
		return slices.Contains(namedByManifest(), code)
	}
	return true
}

// namedByManifest are the error codes for resources that the manifest names, and no run makes.
func namedByManifest() []string {
	return []string{
		"InvalidAMIID.NotFound", "InvalidKeyPair.NotFound", "InvalidCapacityReservationId.NotFound", "InvalidHostID.NotFound", "InvalidPlacementGroup.Unknown",
		"InvalidNetworkInterfaceID.NotFound", "NoSuchEntity",
	}
}

// isTransient reports whether an error code is about a state that passes, or about AWS itself.
func isTransient(code string) bool {
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	return throttled || code == "InvalidInstance" || slices.ContainsFunc([]string{
		"Internal",
		"ServerInternal",
		"Service",
		"Unavailable",
		"RequestTimeout",
		"RequestExpired",
		"RequestLimitExceeded",
		"ExpiredToken",
		"TokenRefresh",
		"IncorrectState",
		"IncorrectInstanceState",
		"InvalidState",
		"InvalidInstanceState",
		"DependencyViolation",
		"DependencyThrottle",
		"PendingVerification",
		"OperationInProgress",
		"OperationAborted",
		"Concurrent",
		"ConditionalRequestConflict",
		"PriorRequest",
		"ScalingActivityInProgress",
		"Resource.AlreadyAssociated",
		"ResourceInUse",
		"ResourceContention",
		"ResourceConflict",
		"DeleteConflict",
		"InstanceRefreshInProgress",
		"InvalidIPAddress.InUse",
		"IdempotentInstance",
		"VolumeInUse",
		"InvalidTarget",
		"InvalidRequest",
		"Insufficient",
		"UnfulfillableCapacity",
		"Unknown",
		"Client.",
		"Server.",
	}, func(prefix string) bool {
		return strings.HasPrefix(code, prefix) && code != "InsufficientFreeAddressesInSubnet"
	}) ||
		strings.HasSuffix(code, "InvalidState") || strings.HasSuffix(code, "InUse") || strings.HasSuffix(code, ".Duplicate") ||
		strings.HasSuffix(code, "AlreadyExists") || strings.HasSuffix(code, "AlreadyExistsException")
}
