//go:build windows

package simulated

import (
	"errors"
	"os"
	"syscall"
)

// sharing is the error for a file that another process has opened exclusively.
const sharing syscall.Errno = 32

// tryLock opens a file until it is closed, so that others can only read it.
func tryLock(file string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(file)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(
		name,
		syscall.GENERIC_READ|syscall.GENERIC_WRITE,
		syscall.FILE_SHARE_READ,
		nil,
		syscall.OPEN_ALWAYS,
		syscall.FILE_ATTRIBUTE_NORMAL,
		0,
	)
	if errors.Is(err, sharing) {
		err = errBusy
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), file), nil
}
