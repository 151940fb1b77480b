//go:build windows

package simulated

import (
	"errors"
	"os"
	"syscall"
)

// sharing is the error for a file that another process has opened exclusively.
const sharing syscall.Errno = 32

// acquire opens a file exclusively until it is closed.
func acquire(file string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(file)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharing) {
		err = errBusy
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), file), nil
}
