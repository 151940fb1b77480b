package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// enter creates the root file system of an instance and changes to it: that of this machine,
// with an overlay on the disk of the instance. A reboot keeps the disk and loses what is
// in memory.
func (i *Instance) enter() error {
	upper, work, root := filepath.Join(i.Disk, "upper"), filepath.Join(i.Disk, "work"), filepath.Join(i.Disk, "root")
	_, err := os.Stat(upper)
	isNew := os.IsNotExist(err)
	for _, dir := range []string{upper, work, root} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := syscall.Mount("overlay", root, "overlay", 0, fmt.Sprintf("lowerdir=/,upperdir=%s,workdir=%s", upper, work)); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	if err := i.mounts(root); err != nil {
		return err
	}
	if i.Registry != "" {
		if err := i.mountsOfRuntime(root); err != nil {
			return err
		}
	}
	if err := pivot(root); err != nil {
		return fmt.Errorf("change to the new root: %w", err)
	}
	if i.Registry != "" { // pods may mount for others
		if err := syscall.Mount("", "/", "", syscall.MS_SHARED|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("share mounts: %w", err)
		}
	}
	if isNew {
		if err := i.image(); err != nil {
			return fmt.Errorf("image: %w", err)
		}
	}
	return i.settle()
}

// pivot makes a folder the root directory of the whole mount namespace. chroot(2) would change it for one
// process only. Then "kubectl exec", which enters the mount namespace of a container, would see the files
// of the machine that runs the test.
func pivot(root string) error {
	const old = labDir + "/old"
	if err := os.MkdirAll(filepath.Join(root, old), 0o755); err != nil {
		return err
	}
	if err := syscall.PivotRoot(root, filepath.Join(root, old)); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return syscall.Unmount(old, syscall.MNT_DETACH)
}

// mounts mounts the other file systems. Devices are mounted one by one, because pods have
// their termination message in /dev.
func (i *Instance) mounts(root string) error {
	at := func(path string) string { return filepath.Join(root, path) }
	for _, dir := range []string{programDir, shimDir} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"proc", "/proc", "proc", 0},
		{"sysfs", "/sys", "sysfs", 0}, // of this network namespace
		{"dev", "/dev", "tmpfs", 0},
		{"run", "/run", "tmpfs", 0},
		{"tmp", "/tmp", "tmpfs", 0},
		{i.Programs, programDir, "", syscall.MS_BIND},
	} {
		if err := syscall.Mount(m.source, at(m.target), m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := os.WriteFile(at("/dev/"+device), nil, 0o600); err != nil {
			return err
		}
		if err := syscall.Mount("/dev/"+device, at("/dev/"+device), "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind /dev/%s: %w", device, err)
		}
	}
	console := at("/dev/console")
	if err := os.WriteFile(console, nil, 0o600); err != nil {
		return err
	}
	output, err := os.Readlink("/proc/self/fd/1")
	if err != nil {
		return err
	}
	if err := syscall.Mount(output, console, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind the console %s: %w", output, err)
	}
	return os.Symlink("/proc/self/fd", at("/dev/fd"))
}

// image changes the root file system to a machine image: without Kubernetes and
// cloud-init data, and with links to labnode.
func (i *Instance) image() error {
	for _, dir := range []string{"/etc/kubernetes", "/etc/cni", "/var/lib/etcd", "/var/lib/kubelet", "/var/lib/cloud", "/etc/secret-userdata.txt"} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	links := map[string]string{"systemctl": "labnode", "kubeadm": "labnode", "kubelet": "labnode", "ctr": "labnode", cloudController: "labnode"}
	if i.Registry != "" {
		links = map[string]string{"systemctl": "labnode", "kubeadm": "labnode", "kubelet": "kubelet-" + i.Version}
	}
	for name, program := range links {
		if err := os.Symlink(filepath.Join(programDir, program), filepath.Join(shimDir, name)); err != nil {
			return err
		}
	}
	return i.cloudImage()
}

// nameserver returns the address in resolv.conf: that of moto, where no DNS server listens. With a
// loopback address, CoreDNS would ask itself, and stops when it notices that.
func (i *Instance) nameserver() string {
	u, err := url.Parse(i.Endpoint)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// settle runs the first services of every boot.
func (i *Instance) settle() error {
	if err := syscall.Sethostname([]byte(i.Name)); err != nil {
		return err
	}
	hosts := "127.0.0.1 localhost\n::1 localhost\n" + i.Address + " " + i.Name + "\n" + i.IPv6 + " " + i.Name + "\n"
	for _, name := range slices.Sorted(maps.Keys(i.Hosts)) {
		hosts += i.Hosts[name] + " " + name + "\n"
	}
	self, err := json.Marshal(i)
	if err != nil {
		return err
	}
	for file, text := range map[string]string{
		"/etc/hosts":                    hosts,
		"/etc/resolv.conf":              "nameserver " + i.nameserver() + "\n",
		"/etc/hostname":                 i.Name + "\n",
		"/proc/sys/net/ipv4/ip_forward": "1",
		selfFile:                        string(self),
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil && filepath.Dir(file)[:5] != "/proc" {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, file := range []string{"/etc/hosts", "/etc/resolv.conf"} {
		if err := os.Chmod(file, 0o644); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{
		"PATH":             shimDir + ":" + os.Getenv("PATH"),
		"HOME":             "/root",
		"AWS_ENDPOINT_URL": i.Endpoint,
		// These credentials replace the role of the instance profile.
		"AWS_ACCESS_KEY_ID": "instance", "AWS_SECRET_ACCESS_KEY": "instance", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}
