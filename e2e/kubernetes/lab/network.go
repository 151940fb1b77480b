package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// prefix is the prefix of the names of namespaces.
const prefix = "clab-"

// Addresses other than those of instances. The network is 10.0.0.0/8 without subnets, and
// not reachable from the namespace of the machine.
const (
	gateway         = "10.255.255.254" // not used: programs need a default route, and no packet leaves
	awsAddress      = "10.255.0.3"
	laptopAddress   = "10.255.0.4"
	balancerAddress = "10.255.0.5"  // source of connections from load balancers
	balancerFormat  = "10.255.1.%d" // listen addresses of load balancers
)

// switchboard is the namespace with the bridge that connects the others.
const switchboard = prefix + "vpc"

// namespace is the network namespace of a host, by name.
type namespace string

// ip runs ip(8).
func ip(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// all runs ip(8) for each line.
func all(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		if err := ip(ctx, strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

// newSwitchboard creates the network.
func newSwitchboard(ctx context.Context) error {
	return all(ctx, "netns add "+switchboard, "-n "+switchboard+" link add br0 type bridge", "-n "+switchboard+" link set br0 up")
}

// newHost creates a namespace that is connected to the network.
func newHost(ctx context.Context, name, address string) (namespace, error) {
	ns := prefix + name
	port := "v" + name[max(0, len(name)-12):] // names of links have at most 15 characters
	return namespace(ns), all(
		ctx, "netns add "+ns, "-n "+ns+" link set lo up",
		"-n "+switchboard+" link add "+port+" type veth peer name eth0 netns "+ns,
		"-n "+switchboard+" link set "+port+" master br0 up",
		"-n "+ns+" addr add "+address+"/8 dev eth0", "-n "+ns+" addr add "+ipv6(address)+"/64 dev eth0 nodad", "-n "+ns+" link set eth0 up",
		"-n "+ns+" route add default via "+gateway, "-n "+ns+" -6 route add default via "+ipv6(gateway),
	)
}

// ipv6 returns the IPv6 address of a host, which has its IPv4 address as the last bytes.
func ipv6(address string) string {
	return netip.AddrFrom16([16]byte(append([]byte{0xfd, 11: 0}, netip.MustParseAddr(address).AsSlice()...))).String()
}

// remove removes a namespace after its processes have ended.
func (n namespace) remove(ctx context.Context) error { return ip(ctx, "netns", "del", string(n)) }

// command returns a command that runs in the namespace, with exactly that environment. It
// is killed with all its child processes.
func (n namespace) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", string(n)}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Command implements controlplane.Host.
func (n namespace) Command(ctx context.Context, args ...string) *exec.Cmd {
	return n.command(ctx, nil, args...)
}

// Dial implements controlplane.Host.
func (n namespace) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.dial(ctx, network, address)
}

// within calls a function that opens sockets in the namespace. They stay there.
func (n namespace) within(do func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = home.Close() }()
	there, err := os.Open(filepath.Join("/run/netns", string(n)))
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = there.Close() }()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter %s: %w", n, err)
	}
	err = do()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back) // the thread stays locked, and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// dial connects from the namespace to an IP address and port. Names would be resolved in
// other threads.
func (n namespace) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = n.within(func() error {
		c, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

func (n namespace) listen(ctx context.Context, address string) (l net.Listener, err error) {
	err = n.within(func() error {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		return err
	})
	return l, err
}
