package plan

import (
	"errors"
	"fmt"
)

// IdentityError says that a role of the manifest's chain of identities cannot
// be assumed.
type IdentityError struct {
	Origin string // "mt.yaml:31 AWSClusterRoleIdentity/prod spec.roleARN"
	Role   string // its ARN
	Err    error
}

func (e *IdentityError) Error() string {
	why := e.Err.Error()
	var answer interface {
		error
		ErrorCode() string
		ErrorMessage() string
	}
	if errors.As(e.Err, &answer) {
		why = answer.ErrorCode() + ": " + answer.ErrorMessage()
	}
	return fmt.Sprintf("%s: the role %s cannot be assumed: %s", e.Origin, e.Role, why)
}

// Unwrap returns the error of AWS.
func (e *IdentityError) Unwrap() error { return e.Err }
