package node

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// cgroupRoot is where the hierarchies of control groups, version 1, are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// controllers are the hierarchies that containerd and the kubelet use.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"}

// confined is the variable of the environment that says that an instance is in its own control
// groups.
const confined = "LAB_CONFINED"

// CgroupOf is the control group of an instance in each hierarchy.
func CgroupOf(id string) string { return "clab-" + id }

// confine moves the instance to control groups of its own, and starts the program again in a
// namespace where these are the roots: kubelets of several instances use the same names.
func (i *Instance) confine(file string) error {
	if os.Getenv(confined) != "" {
		return os.Unsetenv(confined)
	}
	if err := mountCgroups("/"); err != nil { // ip-netns(8) has mounted another /sys
		return err
	}
	for _, controller := range controllers {
		dir := filepath.Join(cgroupRoot, controller, CgroupOf(i.ID))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if controller == "cpuset" { // a new one has no processors
			for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
				all, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(dir, name), all, 0o600); err != nil {
					return err
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o600); err != nil {
			return err
		}
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	return syscall.Exec(unshare, []string{"unshare", "--cgroup", os.Args[0], file}, append(os.Environ(), confined+"=yes"))
}

// mountsOfRuntime mounts what containers need: control groups, the log of the kernel, and a folder
// of this machine for images, because containerd cannot use an overlay on an overlay. Files replace
// the settings of the kernel that the kubelet changes: they are those of this machine.
func (i *Instance) mountsOfRuntime(root string) error {
	at := func(path string) string { return filepath.Join(root, path) }
	if err := mountCgroups(root); err != nil {
		return err
	}
	bind := map[string]string{"/dev/kmsg": "/dev/kmsg"}
	images := filepath.Join(i.Disk, "containerd")
	for _, each := range []string{images, at("/var/lib/containerd")} {
		if err := os.MkdirAll(each, 0o755); err != nil {
			return err
		}
	}
	bind[images] = "/var/lib/containerd"
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		file := at("/run/" + strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			return err
		}
		bind[file] = "/proc/sys/" + name
	}
	if err := os.WriteFile(at("/dev/kmsg"), nil, 0o600); err != nil {
		return err
	}
	for from, to := range bind {
		if err := syscall.Mount(from, at(to), "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", to, err)
		}
	}
	return nil
}

// mountCgroups mounts all hierarchies below a root.
func mountCgroups(root string) error {
	all := filepath.Join(root, cgroupRoot)
	if err := syscall.Mount("tmpfs", all, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", all, err)
	}
	for _, controller := range controllers {
		dir := filepath.Join(all, controller)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("cgroup", dir, "cgroup", 0, controller); err != nil {
			return fmt.Errorf("mount control groups of %s: %w", controller, err)
		}
	}
	return nil
}

// containerdConfig is the configuration that containerd has in images for Cluster API, with three
// differences. systemd does not create the control groups. All images come from the lab's registry.
// No process gets a lower OOM score than containerd, which would need CAP_SYS_RESOURCE.
const containerdConfig = `version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10.1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
`

// realServices starts containerd and the metadata service, and returns the service of the
// real kubelet.
func (i *Instance) realServices(ctx context.Context) (*unit, error) {
	for file, text := range map[string]string{
		"/etc/containerd/config.toml":                 containerdConfig,
		"/etc/containerd/certs.d/_default/hosts.toml": fmt.Sprintf("[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", i.Registry),
	} {
		if err := write(file, []byte(text)); err != nil {
			return nil, err
		}
	}
	// Images for Cluster API have the plugins of the CNI project.
	if err := os.MkdirAll("/opt/cni/bin", 0o755); err != nil {
		return nil, err
	}
	plugins, err := filepath.Glob("/usr/lib/cni/*")
	if err != nil {
		return nil, err
	}
	for _, plugin := range plugins {
		if err := os.Symlink(plugin, filepath.Join("/opt/cni/bin", filepath.Base(plugin))); err != nil && !os.IsExist(err) {
			return nil, err
		}
	}
	if err := i.serveMetadata(ctx); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	program("containerd", func() []string { return []string{"containerd"} }).start(ctx)
	return program("kubelet", i.kubeletCommand), nil
}

// kubeletCommand is the command of the drop-in file of kubeadm's package, with the flags that
// an instance of the lab needs: control groups without systemd, and the swap and the disk of this
// machine.
func (i *Instance) kubeletCommand() []string {
	if !exists(kubeletConfig) {
		return nil
	}
	command := []string{
		filepath.Join(programDir, "kubelet-"+i.Version), "--bootstrap-kubeconfig=" + bootstrapKubeconfig, "--kubeconfig=" + kubeletKubeconfig,
		"--config=" + kubeletConfig, "--cgroup-driver=cgroupfs", "--fail-swap-on=false",
		"--eviction-hard=nodefs.available<1%,imagefs.available<1%", "--v=1",
	}
	for name, value := range readFlags() {
		command = append(command, "--"+name+"="+value)
	}
	return command
}

// program returns the service of a program that systemd would restart. Its output is in
// /var/log/NAME.log. command returns nil while it cannot start.
func program(name string, command func() []string) *unit {
	return &unit{run: func(ctx context.Context) {
		await(ctx, func() bool {
			if args := command(); args != nil {
				runProgram(ctx, name, args)
			}
			return ctx.Err() != nil
		})
	}}
}

// runProgram runs a program once.
func runProgram(ctx context.Context, name string, args []string) {
	out, err := os.OpenFile(filepath.Join("/var/log", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		log.Printf("%s: %v", name, err)
		return
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	log.Printf("%s starts", name)
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		log.Printf("%s ended: %v", name, err)
	}
}
