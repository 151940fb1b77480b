// Package files writes files whole or not at all, and locks files that several programs change.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Private is the mode of files that only the user may read.
const Private fs.FileMode = 0o600

// Replace writes a file, whether it exists or not. Others see the old content or the new one, and
// a failure, such as a full disk, leaves the old one. A symbolic link is followed. A device or a
// pipe is written directly.
func Replace(file string, data []byte, mode fs.FileMode) error {
	return ReplaceWith(file, mode, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
}

// ReplaceWith is Replace with a function that writes the content.
func ReplaceWith(file string, mode fs.FileMode, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return into(file, write)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return place(file, mode, write, os.Rename)
}

// Create writes a file that must not exist; if it does, the error is fs.ErrExist. A failure
// leaves no file.
func Create(file string, data []byte, mode fs.FileMode) error {
	return CreateWith(file, mode, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	})
}

// CreateWith is Create with a function that writes the content.
func CreateWith(file string, mode fs.FileMode, write func(io.Writer) error) error {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return ReplaceWith(file, mode, write)
	}
	if _, err := os.Lstat(file); err == nil {
		return &fs.PathError{Op: "create", Path: file, Err: fs.ErrExist}
	}
	return place(file, mode, write, link)
}

// link gives a file its name. Unlike os.Rename, os.Link fails if the name exists; some file
// systems have no links.
func link(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}

// into writes to a device or a pipe.
func into(file string, write func(io.Writer) error) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0) //nolint:gosec // the user has named it
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// place writes a temporary file beside a file, and moves it there. Errors name the file.
func place(file string, mode fs.FileMode, write func(io.Writer) error, move func(from, to string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".clusterawsadm-*") // created with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		_ = os.Remove(f.Name()) // not there after a rename
		if failed := new(fs.PathError); errors.As(err, &failed) && failed.Path == f.Name() {
			failed.Path = file
		}
	}()
	err = write(f)
	if err == nil && mode != Private {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync() // some file systems report only then that the disk is full
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return move(f.Name(), file)
}

// File is a file of a folder.
type File struct {
	Name string
	Data []byte
}

// CreateFolder writes a folder with files, which must not exist or be empty. A failure leaves
// what was there before.
func CreateFolder(folder string, all []File) (err error) {
	folder = filepath.Clean(folder)
	if target, err := filepath.EvalSymlinks(folder); err == nil {
		folder = target
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	whole, err := os.MkdirTemp(filepath.Dir(folder), ".clusterawsadm-*") // created with mode 0700
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(whole)) }() // not there after a rename
	for _, f := range all {
		if err := Create(filepath.Join(whole, f.Name), f.Data, Private); err != nil {
			return err
		}
	}
	if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) { // fails if it is not empty
		return fmt.Errorf("the folder is not empty, or in use: %w", err)
	}
	return os.Rename(whole, folder)
}
