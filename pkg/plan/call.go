package plan

import (
	"errors"
	"time"
)

// Call is one call to AWS, or one request to the API server of a cluster, that
// has ended.
type Call struct {
	Service, Operation string // "EC2", "CreateVpc"
	Took               time.Duration
	Err                error
	Attempts           int  // how often it was sent; 0: never
	Writes             bool // it may change something
}

// Code is the error code of AWS's answer; "" without an error, or if there was no answer.
func (c Call) Code() string {
	var answer interface {
		error
		ErrorCode() string
	}
	if errors.As(c.Err, &answer) {
		return answer.ErrorCode()
	}
	return ""
}
