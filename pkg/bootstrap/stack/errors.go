package stack

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// ConflictError reports conflicts that would make CloudFormation fail. No request was
// sent.
type ConflictError struct {
	Problems []string // one per line
	Remedy   string
}

func (e *ConflictError) Error() string {
	lines := append([]string{"no request was sent to CloudFormation:"}, e.Problems...)
	if e.Remedy != "" {
		lines = append(lines, e.Remedy)
	}
	return strings.Join(lines, "\n")
}

// FailedError reports an operation that failed or was rolled back.
type FailedError struct {
	Name, Region string
	Doing        string // "create", "update", "delete"
	Status       types.StackStatus
	Reason       string   // of the status of the stack
	Causes       []Event  // the resources that failed first, without those cancelled because of them
	Held         []string // why resources cannot be deleted, one per line
}

func (e *FailedError) Error() string {
	lines := []string{fmt.Sprintf("%s stack %s in %s: it ended with the status %s", e.Doing, e.Name, e.Region, e.Status)}
	lines = append(lines, causes(e.Causes, e.Reason)...)
	return strings.Join(append(lines, e.Held...), "\n")
}

// StuckError reports a stack whose status does not permit updates.
type StuckError struct {
	Name, Region string
	Status       types.StackStatus
	Reason       string
	Causes       []Event // what caused the status, if AWS still has the events
}

func (e *StuckError) Error() string {
	what := "it cannot be updated"
	if e.Status == types.StackStatusReviewInProgress {
		what = "it was created with a change set that was not executed; it has no resources"
	}
	lines := []string{fmt.Sprintf("stack %s in %s has the status %s: %s", e.Name, e.Region, e.Status, what)}
	if e.Status != types.StackStatusReviewInProgress {
		lines = append(lines, causes(e.Causes, e.Reason)...)
	}
	return strings.Join(lines, "\n")
}

// Deletable reports whether deleting the stack solves the problem: it has no resources
// left, or is being deleted anyway.
func (e *StuckError) Deletable() bool { return stuck(e.Status) }

// WaitError reports that the wait ended before the operation. The operation continues in
// AWS.
type WaitError struct {
	Name, Region string
	Doing        string // "create", "update", "delete"
	Err          error  // why the wait ended
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("%s stack %s in %s: stopped waiting: %v\nThe operation continues in AWS", e.Doing, e.Name, e.Region, e.Err)
}

// Unwrap returns why the wait ended.
func (e *WaitError) Unwrap() error { return e.Err }

// causes returns a line for each failure.
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

// iamMessage extracts the message of IAM from that of CloudFormation.
func iamMessage(reason string) string {
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
