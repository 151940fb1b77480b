package cloud

import (
	"slices"
	"strings"
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

// RefusesInput reports whether AWS answers with an error code to the same request always: a value that it
// does not take, or a quota ("Error codes", Amazon EC2 API reference; "Common Errors" of the other APIs).
// What does not exist may only not be visible yet, except for images and key pairs, which a run does not make.
func RefusesInput(code string) bool {
	switch {
	case code == "InvalidAMIID.NotFound", code == "InvalidKeyPair.NotFound":
		return true
	case strings.HasSuffix(code, "NotFound"), strings.HasSuffix(code, "InvalidState"), strings.HasPrefix(code, "IncorrectState"):
		return false
	}
	return slices.ContainsFunc([]string{
		"InvalidAMIID",
		"InvalidParameter",
		"InvalidBlockDeviceMapping",
		"InvalidInput",
		"InvalidUserData",
		"InvalidSubnet.Conflict",
		"InvalidSubnet.Range",
		"InvalidVpcRange",
		"Unsupported",
		"MissingParameter",
		"OptInRequired",
		"MalformedPolicyDocument",
		"ValidationE",
		"VcpuLimitExceeded",
	}, func(prefix string) bool { return strings.HasPrefix(code, prefix) }) || strings.HasSuffix(code, "LimitExceeded") && code != "RequestLimitExceeded"
}
