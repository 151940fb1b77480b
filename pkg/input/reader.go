package input

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// MaxSize is how many bytes a Reader reads: many times what an API server accepts in one
// request, and little enough to be parsed in memory.
const MaxSize = 8 << 20

// TooLargeError says that the files of a Reader are larger than MaxSize together.
type TooLargeError struct {
	Name string // of the file that exceeds it; may be empty
}

func (e *TooLargeError) Error() string {
	text := fmt.Sprintf("the input is larger than %d MiB", MaxSize>>20)
	if e.Name == "" {
		return text
	}
	return e.Name + ": " + text
}

// Reader reads the files of one input. The zero value is ready for use.
type Reader struct{ read int64 }

// Read reads a stream to its end. The name is for errors.
func (r *Reader) Read(stream io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(stream, MaxSize-r.read+1))
	if r.read += int64(len(data)); err == nil && r.read > MaxSize {
		return nil, &TooLargeError{name}
	}
	return data, err
}

// File reads a file. It may be a device or a pipe.
func (r *Reader) File(name string) ([]byte, error) {
	return r.FileContext(context.Background(), name) //nolint:forbidigo // who has a context calls FileContext
}

// ReadContext is Read until ctx ends.
func (r *Reader) ReadContext(ctx context.Context, stream io.Reader, name string) ([]byte, error) {
	return r.Read(Interruptible(ctx, stream), name)
}

// FileContext is File until ctx ends.
func (r *Reader) FileContext(ctx context.Context, name string) ([]byte, error) {
	f, err := Open(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := r.Read(f, name)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // a close would wait for the read
	}
	return data, errors.Join(err, f.Close())
}
