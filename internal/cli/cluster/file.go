package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
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

// write replaces a file atomically with one that only the user can read. A symbolic
// link is followed.
func write(file string, data []byte) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return os.WriteFile(file, data, 0o600) // a device or a pipe
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".clusterawsadm-*") // created with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
