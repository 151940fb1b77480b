package env

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// The exit codes.
const (
	OK          = 0
	Failed      = 1
	Changes     = 2   // plan --detailed-exitcode: there are changes
	Wrong       = 3   // wrong input: a flag, a file, the manifest
	Refused     = 4   // nothing was written: a conflict, a permission, a quota, "no"
	Halfway     = 5   // stopped after something was written, or a timeout; run it again
	Leftover    = 6   // delete left resources behind
	Crashed     = 70  // a bug of this program; EX_SOFTWARE in sysexits.h
	Interrupted = 130 // by the user, or by --timeout before anything was written
)

// UsageError says that the command line is wrong.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// ErrChanges says that a plan has changes. It sets the exit code, and is not
// printed.
var ErrChanges = errors.New("there are changes")

// ErrInterrupted is the cause of a context that the user has cancelled.
var ErrInterrupted = errors.New("interrupted")

// TimeoutError says that --timeout has ended a command.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("not done after %s (--timeout)", e.After) }

// Is makes it a context.DeadlineExceeded.
func (e *TimeoutError) Is(err error) bool { return err == context.DeadlineExceeded }

// ToldError is an error that the command has printed already. It sets the exit code.
type ToldError struct{ Err error }

func (e *ToldError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *ToldError) Unwrap() error { return e.Err }

// ExitError is the exit code of a program that was run for the user. It is not printed.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// Late returns the error of a command that may have been ended by --timeout: if it
// was, the error says so.
func Late(ctx context.Context, err error) error {
	var over *TimeoutError
	if !errors.As(context.Cause(ctx), &over) || !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*lateError)) {
		return err
	}
	return &lateError{over, err}
}

// lateError is an error with the text of the TimeoutError instead of that of
// context.DeadlineExceeded.
type lateError struct {
	over *TimeoutError
	err  error
}

func (e *lateError) Error() string {
	return strings.ReplaceAll(e.err.Error(), context.DeadlineExceeded.Error(), e.over.Error())
}

// Unwrap returns the error and the TimeoutError.
func (e *lateError) Unwrap() []error { return []error{e.err, e.over} }

// ExitCode returns the exit code for the error of a command. The context is that of
// the command.
func ExitCode(ctx context.Context, err error) int {
	var (
		usage    *UsageError
		invalid  *input.InvalidError
		refused  *plan.RefusedError
		halfway  *plan.HalfwayError
		leftover *plan.LeftoverError
		gaveUp   *plan.TimeoutError
		late     *TimeoutError
		bug      *crash.Error
		exit     *ExitError
	)
	switch {
	case err == nil:
		return OK
	case errors.As(err, &bug):
		return Crashed
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, ErrChanges):
		return Changes
	case errors.Is(err, ErrInterrupted), errors.Is(context.Cause(ctx), ErrInterrupted):
		return Interrupted
	case errors.As(err, &usage), errors.As(err, &invalid):
		return Wrong
	case errors.As(err, &leftover):
		return Leftover
	case errors.As(err, &halfway), errors.As(err, &gaveUp):
		return Halfway
	case errors.As(err, &late):
		return Interrupted
	case errors.As(err, &refused), errors.Is(err, plan.ErrDeclined), reconcile.CallerRefusalOf(err).Any():
		return Refused
	}
	return Failed
}

// Explain prints the error of a command: one line for each problem of a manifest, any
// other error once.
func (e *Env) Explain(err error) {
	var invalid *input.InvalidError
	switch {
	case err == nil, errors.Is(err, ErrChanges), errors.As(err, new(*ToldError)), errors.As(err, new(*ExitError)):
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			e.Story("%s", Valid(p.String()))
		}
		e.Story("%s %s", e.ErrStyle().Error("error:"), text.Count(len(invalid.Problems), "problem"))
	default:
		e.Story("%s %s", e.ErrStyle().Error("error:"), strings.ReplaceAll(Valid(strings.Join(Errors(err), "\n")), "\n", "\n       "))
	}
	var bug *crash.Error
	if errors.As(err, &bug) {
		e.Story("\n%s\nPlease report this bug with the lines above: %s", strings.TrimSpace(bug.Stack), reports)
	}
}

// reports is the page on which users report bugs.
const reports = "https://github.com/clusterawsadm/clusterawsadm/issues"

// Valid replaces bytes that are not UTF-8, such as those of a server's answer in an error:
// in UTF-8, nothing can be a control sequence of package render.
func Valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// Errors returns the texts of the errors that are joined in err; that of a timeout is
// followed by the findings of its diagnosis, on more lines.
func Errors(err error) (all []string) {
	if err == nil {
		return nil
	}
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) && errors.Join(many.Unwrap()...).Error() == err.Error() {
		for _, one := range many.Unwrap() {
			all = append(all, Errors(one)...)
		}
		return all
	}
	lines := []string{err.Error()}
	if text := lines[0]; errors.Is(err, ErrInterrupted) && strings.Contains(text, "operation error ") && strings.HasSuffix(text, ": "+ErrInterrupted.Error()) {
		lines[0] = ErrInterrupted.Error() // whatever call it was that was not sent
	}
	var end plan.Diagnosed
	if errors.As(err, &end) {
		findings, _ := end.Diagnosis()
		for i, finding := range findings {
			lines = append(lines, fmt.Sprintf("  %d. %s", i+1, strings.ReplaceAll(finding, "\n", "\n     ")))
		}
	}
	return []string{strings.Join(lines, "\n")}
}
