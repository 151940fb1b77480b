package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// checkWritable returns an error if the file of a flag cannot be written: before a command does its
// work, and not after it. The file is not changed.
func checkWritable(flag, file string) error {
	if file == "" {
		return nil
	}
	switch info, err := os.Stat(file); {
	case err == nil && info.IsDir():
		return env.Usagef("--%s: %s is a directory", flag, file)
	case err == nil && !info.Mode().IsRegular():
		return nil // a device or a pipe
	}
	folder := filepath.Dir(file)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return env.Usagef("--%s %s: there is no folder %s", flag, file, folder)
	}
	f, err := os.CreateTemp(folder, ".clusterawsadm-*")
	var failed *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT): // not the fault of the command line
		return fmt.Errorf("--%s: %w", flag, err)
	case errors.As(err, &failed):
		return env.Usagef("--%s: cannot write a file in %s: %w", flag, folder, failed.Err)
	case err != nil:
		return env.Usagef("--%s: %w", flag, err)
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	return nil
}

// noSuchFile returns a shorter error for a file that does not exist, and any other error as it is.
func noSuchFile(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such file", file)
	}
	return err
}

// checkNew returns an error if the file of a flag exists, or cannot be written.
func checkNew(flag, file string) error {
	if _, err := os.Lstat(file); err == nil {
		return env.Usagef("%s exists: name another file with --%s FILE", file, flag)
	}
	return checkWritable(flag, file)
}

// isWritten reports whether a file has this content already, and refuses a file with another one.
// A device or a pipe is not read: it may have no end.
func isWritten(ctx context.Context, file string, content []byte) (bool, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.IsDir() && !info.Mode().IsRegular():
		return false, nil
	case err != nil:
		return false, &env.UsageError{Err: err}
	}
	old, err := new(input.Reader).FileContext(ctx, file)
	switch {
	case errors.As(err, new(*input.TooLargeError)), err == nil && !bytes.Equal(old, content):
		return false, env.Usagef("%s exists and has another content: choose another file with --to", file)
	case err != nil:
		return false, &env.UsageError{Err: err}
	}
	return true, nil
}
