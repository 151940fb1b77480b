package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// writtenFile is a file that cloud-init writes.
type writtenFile struct{ path, owner string }

// checkWrites checks whether cloud-init can write the files. It writes them in order and stops at the first error, so that all later files are
// missing, including those of kubeadm (write_files in cloudinit/config/cc_write_files.py). commands are those that run before.
func (c *checks) checkWrites(o *manifest.Entry, prefix string, files []writtenFile, users, commands []string) {
	const ends = "cloud-init could not write it, and would write no file after it: "
	all := []string{"/run/kubeadm/kubeadm.yaml", "/run/cluster-api/kubeadm-join.sh", "/etc/kubernetes/pki/ca.crt"}
	for _, f := range files {
		all = append(all, path.Join("/", f.path))
	}
	for i, f := range files {
		at, file := fmt.Sprintf("%s.files[%d]", prefix, i), path.Join("/", f.path)
		in := slices.IndexFunc(all, func(other string) bool { return strings.HasPrefix(other, strings.TrimSuffix(file, "/")+"/") })
		switch {
		case slices.Contains(systemFolders(), file):
			c.fail(o.Problem(at+".path", fmt.Sprintf("%s%s is a folder", ends, file), "add the name of the file"))
		case in >= 0:
			c.fail(
				o.Problem(
					at+".path", fmt.Sprintf("cloud-init could not write both: %s is a file here, and the folder of %s", file, all[in]), "change one of them",
				),
			)
		case strings.HasSuffix(f.path, "/"):
			c.warn(o.Problem(at+".path", fmt.Sprintf("cloud-init writes a file %s, not a folder", file), "remove the / at its end, or add the name of the file"))
		}
		c.checkOwner(o, at+".owner", ends, f.owner, users, commands)
	}
}

// systemFolders are folders that every Linux has.
func systemFolders() []string {
	return strings.Fields(`/ /bin /boot /dev /etc /etc/kubernetes /etc/ssl /etc/ssl/certs /etc/systemd /etc/systemd/system /home /lib /opt /proc /root /run
		/sbin /sys /tmp /usr /usr/bin /usr/lib /usr/local /usr/local/bin /usr/sbin /usr/share /var /var/lib /var/log /var/tmp`)
}

// imageAccounts lists users and groups that an image may have before cloud-init writes files: those of Debian (base-passwd), Red Hat (setup) and
// common packages, and the user with which the image was built.
func imageAccounts() []string {
	return strings.Fields(`root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats nobody nogroup adm tty disk kmem dialout fax
		voice cdrom floppy tape sudo audio dip src shadow utmp video sasl plugdev staff users wheel operator shutdown halt ftp lock mem input render kvm crontab
		systemd-journal systemd-network systemd-resolve systemd-timesync systemd-coredump systemd-oom messagebus dbus syslog sshd ssh _ssh _apt _chrony chrony
		_rpc rpc rpcuser statd tss polkitd landscape pollinate uuidd tcpdump lxd netdev admin ubuntu ec2-user centos rocky rhel debian fedora core builder vagrant`)
}

// checkOwner checks the owner of a file. cloud-init writes files before it creates users (cloud_init_modules in config/cloud.cfg.tmpl), and looks
// up the owner by name, not by ID (chownbyname in cloudinit/util.py).
func (c *checks) checkOwner(o *manifest.Entry, at, ends, owner string, users, commands []string) {
	user, group, _ := strings.Cut(owner, ":")
	for _, x := range []struct{ kind, name string }{{"user", user}, {"group", group}} {
		kind, name := x.kind, strings.TrimSpace(x.name)
		mentioned := func(command string) bool { return strings.Contains(command, name) }
		switch {
		case name == "", name == "-1", strings.EqualFold(name, "none"), strings.Contains(name, "{"), slices.ContainsFunc(commands, mentioned):
		case slices.Contains(imageAccounts(), name), name == "docker", name == "containerd":
		case strings.Trim(name, "0123456789") == "":
			c.failFirst(o.Problem(at, fmt.Sprintf("%sit looks for a %s with the name %q, not the number", ends, kind, name), "write a name, such as root"))
		case slices.Contains(users, name):
			c.failFirst(
				o.Problem(
					at, fmt.Sprintf("%sthe %s %s does not exist yet: cloud-init makes users later", ends, kind, name),
					"write root:root, and change the owner with a command",
				),
			)
		default:
			c.failFirstWarning(o.Problem(at, fmt.Sprintf("%sthere is no %s %s, unless the image has it", ends, kind, name), "write root:root"))
		}
	}
}

// failFirstWarning reports a warning, unless the field has a problem or a warning.
func (c *checks) failFirstWarning(p manifest.Problem) {
	same := func(q manifest.Problem) bool { return q.Object == p.Object && q.Path == p.Path }
	if !slices.ContainsFunc(c.problems, same) && !slices.ContainsFunc(c.warnings, same) {
		c.warn(p)
	}
}

// checkKubeadmWrites checks the files in a KubeadmConfig that cloud-init writes.
func (c *checks) checkKubeadmWrites(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	if spec.Format == bootstrapv1.Ignition {
		return
	}
	var files []writtenFile
	for _, f := range spec.Files {
		files = append(files, writtenFile{f.Path, f.Owner})
	}
	var users []string
	for _, u := range spec.Users {
		users = append(users, u.Name)
	}
	c.checkWrites(o, prefix, files, users, spec.BootCommands)
}

// checkEKSWrites checks the files in an EKSConfig or NodeadmConfig.
func (c *checks) checkEKSWrites(o *manifest.Entry, prefix string, given []eksbootstrapv1.File, users []eksbootstrapv1.User) {
	var files []writtenFile
	for _, f := range given {
		files = append(files, writtenFile{f.Path, f.Owner})
	}
	var names []string
	for _, u := range users {
		names = append(names, u.Name)
	}
	c.checkWrites(o, prefix, files, names, nil)
}

// neededFiles lists files that cloud-init writes and kubeadm needs.
func neededFiles(spec *bootstrapv1.KubeadmConfigSpec, plane bool) []string {
	if plane {
		return []string{path.Join(boot.CertificatesDir(&spec.ClusterConfiguration), "ca.crt"), "/run/kubeadm/kubeadm.yaml"}
	}
	return []string{"/run/kubeadm/kubeadm-join-config.yaml"}
}

// mountPoint is a folder at which cloud-init mounts a filesystem.
type mountPoint struct{ field, device, folder string }

// mountPoints returns what cloud-init mounts (cloudinit/config/cc_mounts.py).
func mountPoints(prefix string, spec *bootstrapv1.KubeadmConfigSpec) (all []mountPoint) {
	for i, m := range spec.Mounts {
		if len(m) > 1 && path.IsAbs(m[1]) && (len(m) < 4 || !strings.Contains(m[3], "noauto")) {
			all = append(all, mountPoint{fmt.Sprintf("%s.mounts[%d][1]", prefix, i), m[0], path.Clean(m[1])})
		}
	}
	return all
}

// checkMounts checks the mount points of filesystems. cloud-init writes files before it mounts filesystems, so a filesystem hides the files that
// were written to its mount point (cloud_init_modules in config/cloud.cfg.tmpl).
func (c *checks) checkMounts(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, plane bool) {
	if spec.Format == bootstrapv1.Ignition {
		return
	}
	for _, m := range mountPoints(prefix, spec) {
		fails := false
		for _, file := range neededFiles(spec, plane) {
			if isInside(file, m.folder) && !fails {
				c.failFirst(
					o.Problem(m.field, fmt.Sprintf("the filesystem would hide %s, which cloud-init writes before it mounts", file), "mount it at another folder"),
				)
				fails = true
			}
		}
		if slices.Contains(strings.Fields("/usr /etc /bin /lib /sbin /dev /proc /sys"), m.folder) && !fails {
			c.fail(o.Problem(m.field, fmt.Sprintf("the filesystem would hide the files of the system in %s", m.folder), "mount it at another folder"))
			fails = true
		}
		for i, f := range spec.Files {
			if isInside(path.Join("/", f.Path), m.folder) && !fails {
				c.warn(
					o.Problem(
						fmt.Sprintf("%s.files[%d].path", prefix, i),
						fmt.Sprintf("the filesystem that is mounted at %s hides it: cloud-init mounts after it has written files", m.folder),
						"write it with a command, or mount the filesystem at another folder",
					),
				)
			}
		}
	}
	if plane && !spec.ClusterConfiguration.Etcd.External.IsDefined() {
		c.checkEtcdFolder(o, prefix, spec)
	}
}

// checkEtcdFolder checks that the folder for the data of etcd is empty, as kubeadm requires (DirAvailableCheck in
// cmd/kubeadm/app/preflight/checks.go of Kubernetes). Commands that mention the folder may have emptied it.
func (c *checks) checkEtcdFolder(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	const field = ".clusterConfiguration.etcd.local.dataDir"
	folder := path.Clean(boot.EtcdDataDir(&spec.ClusterConfiguration))
	check := "DirAvailable-" + strings.ReplaceAll(folder, "/", "-")
	if mayHaveFiles(spec, folder, check) {
		return
	}
	const what = "kubeadm refuses a machine on which the folder for the data of etcd is not empty: "
	fix := "write another folder, or add " + check + " to ignorePreflightErrors"
	if slices.Contains(systemFolders(), folder) || isInside(boot.CertificatesDir(&spec.ClusterConfiguration), folder) {
		c.failFirst(o.Problem(prefix+field, what+folder+" has other files", "write a folder of its own, such as /var/lib/etcd"))
		return
	}
	mounted := false
	for _, m := range mountPoints(prefix, spec) {
		mounted = mounted || isInside(folder, m.folder)
		if m.folder != folder {
			continue
		}
		fix := fmt.Sprintf("set %s to a folder below it, such as %s/data, or add %s to ignorePreflightErrors", strings.TrimPrefix(field, "."), folder, check)
		switch kind := filesystemOf(spec, m.device); {
		case strings.HasPrefix(kind, "ext"):
			c.failFirst(o.Problem(m.field, fmt.Sprintf("%smkfs.%s makes lost+found in %s", what, kind, folder), fix))
		case kind == "":
			c.failFirstWarning(o.Problem(m.field, fmt.Sprintf("%s%s may have lost+found", what, folder), fix))
		}
	}
	for i, f := range spec.Files {
		if file := path.Join("/", f.Path); isInside(file, folder) && file != folder && !mounted {
			c.failFirst(o.Problem(fmt.Sprintf("%s.files[%d].path", prefix, i), what+file+" is in it", fix))
		}
	}
}

// mayHaveFiles reports whether kubeadm skips the check of a folder, or earlier commands may empty the folder.
func mayHaveFiles(spec *bootstrapv1.KubeadmConfigSpec, folder, check string) bool {
	ignored := spec.InitConfiguration.NodeRegistration.IgnorePreflightErrors
	return slices.Contains(ignored, check) || slices.Contains(ignored, "all") ||
		slices.ContainsFunc(slices.Concat(spec.BootCommands, spec.PreKubeadmCommands), func(command string) bool {
			return strings.Contains(command, "lost+found") || strings.Contains(command, folder)
		})
}

// filesystemOf returns the type of the filesystem that diskSetup creates on a device, or "" if it creates none.
func filesystemOf(spec *bootstrapv1.KubeadmConfigSpec, device string) string {
	for _, f := range spec.DiskSetup.Filesystems {
		if device == "LABEL="+f.Label || device == f.Device {
			return f.Filesystem
		}
	}
	return ""
}
