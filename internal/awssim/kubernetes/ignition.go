package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ignitionConfig has the fields of an Ignition 2.3 configuration that can be wrong (doc/configuration-v2_3.md of https://github.com/flatcar/ignition).
type ignitionConfig struct {
	Ignition struct {
		Config struct{ Append, Merge []ignitionSource }
	}
	Networkd struct{ Units []ignitionUnit }
	Passwd   struct {
		Users, Groups []struct{ Name string }
	}
	Storage struct {
		Disks       []struct{ Device string }
		Filesystems []struct {
			Name  string
			Path  *string
			Mount *struct{ Device, Format string }
		}
		Files       []ignitionNode
		Directories []ignitionNode
		Links       []ignitionNode
	}
	Systemd struct{ Units []ignitionUnit }
}

type ignitionUnit struct {
	Name    string
	Dropins []struct{ Name string }
}

type ignitionSource struct{ Source string }

type ignitionNode struct {
	Filesystem, Path string
	User, Group      struct{ Name string }
	Append           bool
	Overwrite        bool
	Contents         ignitionSource
}

// ignitionRefused returns the error with which Ignition ends before it has applied a configuration, or "" if it applies it. The machine then
// stays in emergency mode: nothing runs kubeadm. The errors are those of config/shared/errors and internal/exec of Ignition 0.36.
func ignitionRefused(data []byte) string {
	var c ignitionConfig
	if err := json.Unmarshal(data, &c); err != nil {
		return "not a config: " + err.Error()
	}
	return cmp.Or(c.sourcesRefused(), c.unitsRefused(), c.filesystemsRefused(), c.nodesRefused())
}

func (c *ignitionConfig) sourcesRefused() string {
	for _, s := range append(c.Ignition.Config.Append, c.Ignition.Config.Merge...) {
		if !isSource(s.Source) {
			return fmt.Sprintf("invalid url scheme: %q", s.Source)
		}
	}
	for _, f := range c.Storage.Files {
		switch {
		case !isSource(f.Contents.Source):
			return fmt.Sprintf("invalid url scheme: %q", f.Contents.Source)
		case f.Append && f.Overwrite:
			return "cannot set both append and overwrite to true: " + f.Path
		}
	}
	return ""
}

// isSource reports whether Ignition fetches a URL.
func isSource(source string) bool {
	scheme, _, _ := strings.Cut(source, ":")
	return source == "" || slices.Contains(strings.Fields("http https s3 tftp oem data"), strings.ToLower(scheme))
}

func (c *ignitionConfig) unitsRefused() string {
	const ofSystemd = ".service .socket .device .mount .automount .swap .target .path .timer .snapshot .slice .scope"
	return cmp.Or(extensionsRefused("systemd", ofSystemd, c.Systemd.Units), extensionsRefused("networkd", ".link .netdev .network", c.Networkd.Units))
}

func extensionsRefused(kind, extensions string, units []ignitionUnit) string {
	for _, u := range units {
		if !slices.Contains(strings.Fields(extensions), path.Ext(u.Name)) {
			return fmt.Sprintf("invalid %s unit extension: %q", kind, u.Name)
		}
		for _, d := range u.Dropins {
			if path.Ext(d.Name) != ".conf" {
				return fmt.Sprintf("invalid %s drop-in extension: %q", kind, d.Name)
			}
		}
	}
	return ""
}

func (c *ignitionConfig) filesystemsRefused() string {
	for _, d := range c.Storage.Disks {
		if !path.IsAbs(d.Device) {
			return fmt.Sprintf("path not absolute: disk %q", d.Device)
		}
	}
	for _, f := range c.Storage.Filesystems {
		switch {
		case f.Mount == nil && f.Path == nil:
			return "filesystem is missing mount or path: " + f.Name
		case f.Mount != nil && f.Path != nil:
			return "filesystem has both mount and path defined: " + f.Name
		case f.Mount != nil && !slices.Contains(strings.Fields("ext4 btrfs xfs swap vfat"), f.Mount.Format):
			return fmt.Sprintf("invalid filesystem format %q", f.Mount.Format)
		case f.Mount != nil && !path.IsAbs(f.Mount.Device):
			return fmt.Sprintf("path not absolute: device %q", f.Mount.Device)
		}
	}
	return ""
}

// nodesRefused judges files, directories and links. Flatcar mounts /usr read-only ("Flatcar disk partitions" in its documentation).
func (c *ignitionConfig) nodesRefused() string {
	accounts := strings.Fields(`root bin daemon adm lp sync news uucp operator nobody core sys disk mem kmem wheel floppy dialout tty utmp audio cdrom
		tape video cdrw usb users render kvm input sgx sudo docker etcd ntp sshd polkitd messagebus systemd-journal systemd-network systemd-resolve
		systemd-timesync systemd-bus-proxy systemd-coredump systemd-oom tss dhcp rpc rpcuser tcpdump portage`)
	for _, x := range append(c.Passwd.Users, c.Passwd.Groups...) {
		accounts = append(accounts, x.Name)
	}
	for _, n := range slices.Concat(c.Storage.Files, c.Storage.Directories, c.Storage.Links) {
		switch {
		case !path.IsAbs(n.Path):
			return fmt.Sprintf("path not absolute: %q", n.Path)
		case n.Filesystem == "":
			return "no filesystem specified: " + n.Path
		case n.Filesystem == "root" && strings.HasPrefix(path.Clean(n.Path)+"/", "/usr/"):
			return "open /sysroot" + n.Path + ": read-only file system"
		}
		for _, name := range []string{n.User.Name, n.Group.Name} {
			if name != "" && !slices.Contains(accounts, name) {
				return fmt.Sprintf("failed to create file %q: no such user or group %q", n.Path, name)
			}
		}
	}
	return ""
}
