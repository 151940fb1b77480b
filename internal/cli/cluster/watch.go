package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// watching is the flag --watch of a command that shows a state.
type watching struct{ on bool }

// watchInterval is the time between two looks, by the clock of the wall also for a simulated account.
const watchInterval = 5 * time.Second

func (w *watching) addWatch(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&w.on, "watch", "w", false, "show the state again every 5 seconds, until Ctrl-C or --timeout; not on a terminal, only when it changes")
}

// check refuses a format that is one document.
func (w *watching) check(format string) error {
	if w.on && format != "text" && format != "wide" && format != "name" {
		return env.Usagef("--watch shows text: it cannot be used with -o %s", format)
	}
	return nil
}

// watch shows a state once, or again and again with --watch, until the context ends. A terminal shows the newest
// only.
func (w *watching) watch(ctx context.Context, f *flags, look func(ctx context.Context) error) error {
	if !w.on {
		return look(ctx)
	}
	out, last := f.Env.Out, ""
	return repeat(ctx, f, func(ctx context.Context) error {
		var shown bytes.Buffer
		f.Env.Out = &shown
		err := look(ctx)
		f.Env.Out = out
		if err != nil && !errors.Is(err, env.ErrChanges) {
			return err
		}
		text := shown.String()
		if text == last {
			return nil
		}
		first := last == ""
		last = text
		return w.show(f, text, first)
	})
}

// repeat calls look every few seconds, until it fails or the context ends.
func repeat(ctx context.Context, f *flags, look func(ctx context.Context) error) error {
	if f.timeout > 0 { // the limit of a simulated account ends with each look
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.timeout, &env.TimeoutError{After: f.timeout})
		defer cancel()
	}
	f.Env.NoPager = true
	defer f.Env.RedirectMessages(nil)
	var wall *clock.Clock
	for {
		err := look(ctx)
		f.Env.RedirectMessages(func(string) {}) // the second look has the same messages
		if err == nil && wall.Sleep(ctx, watchInterval) != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return stopped(ctx, err)
		}
	}
}

// show shows one state.
func (w *watching) show(f *flags, text string, first bool) error {
	switch {
	case f.Env.OutIsTerminal:
		text = render.ClearScreen + text
	case !first:
		text = "\n" + text
	}
	_, err := io.WriteString(f.Env.Out, text)
	return err
}

// stopped returns nil for a command that --timeout has ended, as nothing has failed. That the user has ended it, the user
// knows.
func stopped(ctx context.Context, err error) error {
	var over *env.TimeoutError
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &over):
		return nil
	case errors.Is(cause, env.ErrInterrupted):
		return &env.ToldError{Err: cause}
	}
	return err
}
