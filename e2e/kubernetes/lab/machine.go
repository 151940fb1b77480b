package lab

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/node"
)

// Machine is an instance.
type Machine struct {
	node.Instance
	Tag string // resource ID in the engine, "machine/control-plane-0"

	namespace
	folder string
	began  time.Time

	mu    sync.Mutex
	cmd   *exec.Cmd // nil while it does not run
	power io.Closer // its standard input: the instance ends when it is closed
}

// newMachine connects an instance to the network. It does not run yet.
func newMachine(ctx context.Context, folder string, i node.Instance) (*Machine, error) {
	m := &Machine{Instance: i, folder: filepath.Join(folder, i.ID)}
	m.Disk = filepath.Join(m.folder, "disk")
	if err := os.MkdirAll(m.Disk, 0o755); err != nil {
		return nil, err
	}
	var err error
	m.namespace, err = newHost(ctx, i.ID, i.Address)
	return m, err
}

// boot boots it from its disk.
func (m *Machine) boot(ctx context.Context) error {
	text, err := json.Marshal(m.Instance)
	if err != nil {
		return err
	}
	file := filepath.Join(m.folder, "instance.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	console, err := os.OpenFile(m.Console(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = console.Close() }()
	m.mu.Lock()
	defer m.mu.Unlock()
	cmd := m.command(context.WithoutCancel(ctx), nil, "unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--propagation", "private",
		filepath.Join(m.Programs, "labnode"), file)
	cmd.Stdout, cmd.Stderr = console, console
	if m.power, err = cmd.StdinPipe(); err != nil {
		return err
	}
	m.cmd, m.began = cmd, time.Now()
	return cmd.Start()
}

// Console is the file with the console output.
func (m *Machine) Console() string { return filepath.Join(m.folder, "console.log") }

// Path returns the path of a file of the instance on this machine.
func (m *Machine) Path(file string) string { return filepath.Join(m.Disk, "upper", file) }

// Kill kills all processes of the instance at once, like a failing host.
func (m *Machine) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return
	}
	_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	_ = m.cmd.Wait()                                      // it was killed
	_ = m.power.Close()
	m.cmd = nil
}

// Reboot kills it, and boots it with the same disk.
func (m *Machine) Reboot(ctx context.Context) error {
	m.Kill()
	return m.boot(ctx)
}
