package stack

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// InTheWayError says that something would have been refused by AWS, or would
// have failed half way. Nothing was sent.
type InTheWayError struct {
	Problems []string // a line each
	Remedy   string
}

func (e *InTheWayError) Error() string {
	lines := append([]string{"nothing was sent to CloudFormation:"}, e.Problems...)
	if e.Remedy != "" {
		lines = append(lines, e.Remedy)
	}
	return strings.Join(lines, "\n")
}

// FailedError says that AWS did not do what was asked for, or took it back.
type FailedError struct {
	Name, Region string
	Doing        string // "create", "update", "delete"
	Status       types.StackStatus
	Reason       string   // of the stack's state
	Causes       []Event  // the resources that failed first, not those that were given up for it
	Held         []string // what keeps resources from being deleted, a line each
}

func (e *FailedError) Error() string {
	lines := []string{fmt.Sprintf("%s stack %s in %s: it ended in %s", e.Doing, e.Name, e.Region, e.Status)}
	lines = append(lines, causes(e.Causes, e.Reason)...)
	return strings.Join(append(lines, e.Held...), "\n")
}

// StuckError says that a stack is in a state in which AWS does not let it be
// changed.
type StuckError struct {
	Name, Region string
	Status       types.StackStatus
	Reason       string
	Causes       []Event // what brought it there, as far as AWS still tells
}

func (e *StuckError) Error() string {
	what := "it cannot be updated"
	if e.Status == types.StackStatusReviewInProgress {
		what = "somebody began it with a change set that was not executed; it has no resources"
	}
	lines := []string{fmt.Sprintf("stack %s in %s is in %s: %s", e.Name, e.Region, e.Status, what)}
	if e.Status != types.StackStatusReviewInProgress {
		lines = append(lines, causes(e.Causes, e.Reason)...)
	}
	return strings.Join(lines, "\n")
}

// Deletable reports whether it helps to delete the stack: it has none of its
// resources left, or is to be deleted anyway.
func (e *StuckError) Deletable() bool { return stuck(e.Status) }

// LeftAloneError says that the wait for a stack ended before AWS was done.
// AWS goes on by itself.
type LeftAloneError struct {
	Name, Region string
	Doing        string // "create", "update", "delete"
	Err          error  // why the wait ended
}

func (e *LeftAloneError) Error() string {
	return fmt.Sprintf("%s stack %s in %s: no longer waiting: %v\nAWS goes on with it all the same", e.Doing, e.Name, e.Region, e.Err)
}

// Unwrap returns why the wait ended.
func (e *LeftAloneError) Unwrap() error { return e.Err }

// causes has a line for each failure.
func causes(events []Event, reason string) (lines []string) {
	for _, e := range events {
		line := fmt.Sprintf("%s (%s", e.Logical, e.Type)
		if e.Physical != "" {
			line += " " + e.Physical
		}
		lines = append(lines, line+"): "+e.Why())
	}
	if len(lines) == 0 && reason != "" {
		lines = append(lines, "AWS says: "+reason)
	}
	return lines
}

// said takes the message of IAM out of CloudFormation's wrapping.
func said(reason string) string {
	text, wrapped := strings.CutPrefix(reason, "Resource handler returned message: \"")
	if !wrapped {
		return reason
	}
	if i := strings.LastIndex(text, "\""); i >= 0 {
		text = text[:i]
	}
	if i := strings.LastIndex(text, " (Service: "); i >= 0 {
		text = text[:i]
	}
	return text
}
