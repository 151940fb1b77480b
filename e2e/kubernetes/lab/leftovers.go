package lab

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/node"
)

// hostsFolder is where "ip netns exec" finds the /etc/hosts of a namespace.
const hostsFolder = "/etc/netns"

// lock waits until no other lab runs on this machine, because they use the same networks.
// The lock ends with the process.
func lock(ctx context.Context, patience time.Duration) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), prefix+"lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Second) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, fmt.Errorf("another lab is on this machine (%s is locked): %w", f.Name(), err)
		}
	}
}

// sweep removes the leftovers of a killed lab: namespaces with the prefix, their
// processes, and files.
func sweep(ctx context.Context) error {
	found, err := filepath.Glob("/run/netns/" + prefix + "*")
	if err != nil {
		return err
	}
	for _, file := range found {
		if err := empty(ctx, filepath.Base(file)); err != nil {
			return err
		}
	}
	for _, pattern := range []string{filepath.Join(hostsFolder, prefix+"*"), filepath.Join(os.TempDir(), prefix+"disks-*")} {
		folders, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, dir := range folders {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	if err := removeCgroups(); err != nil {
		return err
	}
	_ = os.Remove(hostsFolder) // unless somebody else has a file there
	return nil
}

// empty kills the processes in a namespace, and removes it.
func empty(ctx context.Context, name string) error {
	out, err := exec.CommandContext(ctx, "ip", "netns", "pids", name).Output()
	if err != nil {
		return fmt.Errorf("processes of %s: %w", name, err)
	}
	for _, text := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(text); err == nil && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
	return namespace(name).remove(ctx)
}

// removeCgroups removes the control groups of instances, whose processes have ended, from the
// innermost to the outermost.
func removeCgroups() error {
	found, err := filepath.Glob("/sys/fs/cgroup/*/" + node.CgroupOf("*"))
	if err != nil {
		return err
	}
	for _, group := range found {
		var dirs []string
		err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, dir := range slices.Backward(dirs) {
			if err := os.Remove(dir); err != nil {
				return err
			}
		}
	}
	return nil
}
