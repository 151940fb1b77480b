package simulated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// lock is the locked file beside the file of an account. It says who has locked it.
type lock struct{ *os.File }

// served is the beginning of a lock file whose account is served. The endpoint follows.
const served = "served at "

// ServedError says that another process serves the account.
type ServedError struct{ Endpoint string }

func (e *ServedError) Error() string {
	return "another process serves it at " + e.Endpoint
}

// errBusy says that another process has locked the file.
var errBusy = errors.New("another process uses it")

// A command waits for another one that has the account, and tells so if that takes long.
const (
	between = 20 * time.Millisecond // two attempts
	silence = time.Second
)

// acquire locks a file. If another process has locked it, acquire tells which, and waits until
// it is unlocked, unless that process serves the account.
func acquire(ctx context.Context, file string, tell func(holder string)) (*lock, error) {
	before := ""
	for began := time.Now(); ; {
		f, err := tryLock(file)
		if err == nil {
			l := &lock{f}
			return l, l.write(fmt.Sprintf("process %d", os.Getpid()))
		}
		if !errors.Is(err, errBusy) {
			return nil, err
		}
		text, _ := os.ReadFile(file) //nolint:gosec // a path that the user chose; without the text, the holder is not named
		holder := string(text)
		if endpoint, is := strings.CutPrefix(holder, served); is && holder == before { // once, it may be left from a holder that was killed
			return nil, &ServedError{endpoint}
		}
		before = holder
		if tell != nil && time.Since(began) > silence {
			tell(holder)
			tell = nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(between):
		}
	}
}

// write replaces the content of the file.
func (l *lock) write(text string) error {
	if err := l.Truncate(0); err != nil {
		return err
	}
	_, err := l.WriteAt([]byte(text), 0)
	return err
}
