package env

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"clusterawsadm/pkg/reconcile"
	"clusterawsadm/pkg/reconcile/graph"
	"clusterawsadm/pkg/reconcile/manifest"
)

// The exit codes.
const (
	OK          = 0
	Failed      = 1
	Changes     = 2   // plan --detailed-exitcode: there is something to do
	Wrong       = 3   // the input is: a flag, a file, the manifest
	Refused     = 4   // nothing was written: a conflict, a permission, a quota, "no"
	Halfway     = 5   // stopped after something was written; run it again
	Leftover    = 6   // delete left something behind
	Interrupted = 130 // by the user
)

// UsageError says that a command was not called as it wants to be.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// ErrChanges says that a plan has something to do. It is no failure, and
// nothing is printed for it.
var ErrChanges = errors.New("there are changes")

// ErrInterrupted is the cause of the end of a context that the user ended.
var ErrInterrupted = errors.New("interrupted")

// ExitCode tells the exit code for the outcome of a command. The context is
// that of the command.
func ExitCode(ctx context.Context, err error) int {
	var (
		usage    *UsageError
		invalid  *manifest.InvalidError
		refused  *reconcile.RefusedError
		halfway  *reconcile.HalfwayError
		leftover *reconcile.LeftoverError
	)
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrChanges):
		return Changes
	case errors.Is(err, ErrInterrupted), errors.Is(context.Cause(ctx), ErrInterrupted):
		return Interrupted
	case errors.As(err, &usage), errors.As(err, &invalid):
		return Wrong
	case errors.As(err, &leftover):
		return Leftover
	case errors.As(err, &halfway):
		return Halfway
	case errors.As(err, &refused), errors.Is(err, reconcile.ErrDeclined):
		return Refused
	}
	return Failed
}

// Explain prints an error as the last word of a command: every problem of a
// manifest on a line of its own, anything else once.
func (e *Env) Explain(err error) {
	var invalid *manifest.InvalidError
	switch {
	case err == nil, errors.Is(err, ErrChanges):
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			e.Story("%s", p)
		}
		e.Story("%s %s", e.word("error:"), counted(len(invalid.Problems), "problem"))
	default:
		e.Story("%s %s", e.word("error:"), strings.ReplaceAll(strings.Join(told(err), "\n"), "\n", "\n       "))
	}
}

// told is what an error says, with the possible causes of a wait that failed
// below it.
func told(err error) (lines []string) {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) && errors.Join(many.Unwrap()...).Error() == err.Error() {
		for _, one := range many.Unwrap() {
			lines = append(lines, told(one)...)
		}
		return lines
	}
	lines = []string{err.Error()}
	var end *graph.GaveUpError
	if errors.As(err, &end) {
		for i, finding := range end.Findings {
			lines = append(lines, fmt.Sprintf("  %d. %s", i+1, strings.ReplaceAll(finding, "\n", "\n     ")))
		}
	}
	return lines
}

func (e *Env) word(text string) string {
	if e.ErrStyle().Colour {
		return "\x1b[31m" + text + "\x1b[0m"
	}
	return text
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
