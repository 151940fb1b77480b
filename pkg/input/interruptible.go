package input

import (
	"context"
	"io"
	"os"
	"path/filepath"
)

// Interruptible returns a reader of the stream whose reads end with ctx, and then fail with
// its cause. A read of a terminal or a pipe otherwise lasts until somebody writes to it.
func Interruptible(ctx context.Context, stream io.Reader) io.Reader {
	return &interruptible{ctx, stream}
}

type interruptible struct {
	ctx    context.Context //nolint:containedctx // a Read has no other way to get one
	stream io.Reader
}

// Read implements io.Reader. A read that has not ended keeps its own buffer.
func (r *interruptible) Read(p []byte) (n int, err error) {
	buffer := make([]byte, len(p))
	err = during(r.ctx, func() (err error) {
		n, err = r.stream.Read(buffer)
		return err
	})
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return copy(p, buffer[:n]), err
}

// during calls a function, and returns its error or the cause of the end of ctx, whichever
// comes first.
func during(ctx context.Context, call func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Open opens a file for reads that end with ctx. The opening does, too: that of a named pipe
// lasts until somebody opens it for writing.
func Open(ctx context.Context, name string) (io.ReadCloser, error) {
	opened := make(chan *os.File, 1)
	err := during(ctx, func() error {
		f, err := os.Open(filepath.Clean(name))
		if err == nil {
			opened <- f
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	f := <-opened
	return &file{Interruptible(ctx, f), f}, nil
}

// file is an open file.
type file struct {
	io.Reader
	io.Closer
}
