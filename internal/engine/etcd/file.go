package etcd

import (
	"fmt"
	"os"
)

// File is a temporary file that only the user can read. It has no name while it is open, so that
// nothing is left of it if the process is killed, except on Windows.
type File struct {
	*os.File
	path  string
	named bool
}

// NewFile returns an empty file.
func NewFile() (*File, error) {
	f, err := os.CreateTemp("", "clusterawsadm-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	if os.Remove(f.Name()) == nil {
		return &File{File: f, path: fmt.Sprintf("/dev/fd/%d", f.Fd())}, nil
	}
	return &File{File: f, path: f.Name(), named: true}, nil
}

// Close closes the file, and deletes it.
func (f *File) Close() error {
	err := f.File.Close()
	if f.named {
		_ = os.Remove(f.path) // the folder of temporary files is cleaned by the system
	}
	return err
}
