package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

const (
	// stale is the age from which a lock is one of a process that was killed. kubectl holds it
	// for milliseconds, and this program, too.
	stale = 30 * time.Second
	// waiting is for how long Lock waits at most, and silent how long without a word.
	waiting = 45 * time.Second
	silent  = 2 * time.Second
	again   = 20 * time.Millisecond
)

// LockedError says that another program holds the lock of a file.
type LockedError struct{ Lock string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s exists: another program, such as kubectl, changes the file; if none is running, remove %[1]s", e.Lock)
}

// Lock keeps other programs from changing a file that is read, changed and written, until unlock
// is called. The lock is FILE.lock, which must not exist before, as in client-go, so that
// kubectl and this program exclude each other:
// https://github.com/kubernetes/client-go/blob/v0.34.0/tools/clientcmd/config.go (lockFile).
// tell is called if it waits for long. If the file is a symbolic link, its target is locked, too.
func Lock(ctx context.Context, file string, tell func(string)) (unlock func(), err error) {
	names := []string{file + ".lock"}
	if target, err := filepath.EvalSymlinks(file); err == nil && target != filepath.Clean(file) {
		names = append(names, target+".lock")
	}
	slices.Sort(names) // two programs that lock both do not wait for each other
	var held []string
	unlock = func() {
		for _, name := range held {
			_ = os.Remove(name)
		}
	}
	for _, name := range names {
		if err := lock(ctx, name, tell); err != nil {
			unlock()
			return nil, err
		}
		held = append(held, name)
	}
	return unlock, nil
}

func lock(ctx context.Context, name string, tell func(string)) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	var c *clock.Clock // the system clock: other programs use it
	for began, told := c.Now(), false; ; {
		err := exclusive(name)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := removeStale(c, name); err != nil {
			return err
		}
		switch waited := c.Since(began); {
		case waited > waiting:
			return &LockedError{name}
		case waited > silent && !told:
			told = true
			tell("waiting for another program: " + name + " exists")
		}
		if err := c.Sleep(ctx, again); err != nil {
			return err
		}
	}
}

// exclusive creates a file that must not exist.
func exclusive(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0) //nolint:gosec // beside a file that the user has named
	if err != nil {
		return err
	}
	return f.Close()
}

// removeStale removes the lock of a process that was killed. Of several processes, one does,
// because another one may have taken the lock again in the meantime.
func removeStale(c *clock.Clock, name string) error {
	old := func() bool {
		info, err := os.Lstat(name)
		return err == nil && c.Since(info.ModTime()) > stale
	}
	if !old() {
		return nil
	}
	guard := name + ".stale"
	if err := exclusive(guard); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	defer func() { _ = os.Remove(guard) }()
	if !old() {
		return nil
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
