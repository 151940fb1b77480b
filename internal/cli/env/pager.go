package env

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Paged writes an answer to stdout. On a terminal with fewer lines, the user reads it with the program of PAGER,
// or less, as with git: not with --no-pager, PAGER=cat or PAGER="".
func (e *Env) Paged(ctx context.Context, write func(w io.Writer) error) error {
	pager := e.pager()
	if pager == nil {
		return write(e.Out)
	}
	var all bytes.Buffer
	if err := write(render.NewOutput(&all)); err != nil {
		return err
	}
	if _, rows := e.Size(); rows == 0 || bytes.Count(all.Bytes(), []byte("\n")) < rows {
		return write(e.Out)
	}
	if err := e.Page(ctx, pager, all.String()); err != nil { // it is not installed
		return write(e.Out)
	}
	return nil
}

// Answer writes an answer in sentences or in lines to stdout, as Paged does. Lines that are wider than the terminal
// are broken at spaces.
func (e *Env) Answer(ctx context.Context, write func(w io.Writer) error) error {
	return e.Paged(ctx, func(w io.Writer) error {
		var b strings.Builder
		if err := write(&b); err != nil {
			return err
		}
		_, err := io.WriteString(w, text.WrapMessage(b.String(), e.OutWidth()))
		return err
	})
}

// pager returns the command of the pager; nil for none.
func (e *Env) pager() []string {
	if !e.OutIsTerminal || !e.InIsTerminal || e.NoPager || e.Page == nil || e.Size == nil || e.Getenv("TERM") == "dumb" {
		return nil
	}
	command, set := e.LookupEnv("PAGER")
	if !set {
		command = "less"
	}
	words := strings.Fields(command)
	if len(words) == 0 || words[0] == "cat" {
		return nil
	}
	return words
}
