package files

import (
	"fmt"
	"os"
)

// Temporary is a temporary file that only the user can read. It has no name while it is open, so
// that nothing is left of it if the process is killed, except on Windows.
type Temporary struct {
	*os.File
	path  string
	named bool
}

// NewTemporary returns an empty file.
func NewTemporary() (*Temporary, error) {
	f, err := os.CreateTemp("", "clusterawsadm-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	if os.Remove(f.Name()) == nil {
		return &Temporary{File: f, path: fmt.Sprintf("/dev/fd/%d", f.Fd())}, nil
	}
	return &Temporary{File: f, path: f.Name(), named: true}, nil
}

// Path returns a path by which this process can open the file.
func (t *Temporary) Path() string { return t.path }

// Close closes the file, and deletes it.
func (t *Temporary) Close() error {
	err := t.File.Close()
	if t.named {
		_ = os.Remove(t.path) // the folder of temporary files is cleaned by the system
	}
	return err
}
