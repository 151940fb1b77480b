package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// cloudConfig has the sections of a cloud-config that are simulated.
type cloudConfig struct {
	Files       []struct{ Path, Owner string }               `json:"write_files"`
	Boot        []any                                        `json:"bootcmd"`
	Run         []any                                        `json:"runcmd"`
	Filesystems []struct{ Label, Filesystem, Device string } `json:"fs_setup"`
	Mounts      [][]string
}

// firstStage simulates the modules of cloud-init before runcmd: bootcmd, write_files, disk_setup and mounts, in this order, and before
// users_groups (config/cloud.cfg.tmpl), or Ignition. It removes files that a filesystem hides, and adds those of a new filesystem.
func firstStage(data []byte, files map[string]string) error {
	var c cloudConfig
	if isIgnition(data) {
		if why := ignitionRefused(data); why != "" {
			return fmt.Errorf("ignition: %s", why)
		}
		return nil
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("cloud-init: %w", err)
	}
	if why := c.writesRefused(); why != "" {
		return fmt.Errorf("cloud-init: Running module write_files failed: %s", why)
	}
	c.mount(files)
	if why := cmp.Or(c.runRefused(), c.runEnds()); why != "" {
		return fmt.Errorf("cloud-init: /var/lib/cloud/instance/scripts/runcmd: %s", why)
	}
	return nil
}

// writesRefused returns the error with which the module write_files stops before it has written all files, or "" if it writes all of them. kubeadm
// then has no configuration. The errors are those of write_file and chownbyname in cloudinit/util.py.
func (c *cloudConfig) writesRefused() string {
	folders := strings.Fields("/ /etc /usr /usr/bin /usr/local /usr/local/bin /var /var/lib /var/log /run /opt /root /home /tmp /etc/systemd /etc/systemd/system")
	written := map[string]bool{}
	for _, f := range c.Files {
		file := path.Join("/", f.Path)
		if slices.Contains(folders, file) {
			return fmt.Sprintf("[Errno 21] Is a directory: '%s'", file)
		}
		for in := path.Dir(file); in != "/"; in = path.Dir(in) {
			if written[in] {
				return fmt.Sprintf("[Errno 20] Not a directory: '%s'", file)
			}
			folders = append(folders, in)
		}
		written[file] = true
		user, group, _ := strings.Cut(f.Owner, ":")
		for _, name := range []string{strings.TrimSpace(user), strings.TrimSpace(group)} {
			if name != "" && name != "-1" && !strings.EqualFold(name, "none") && !c.knows(name) {
				return fmt.Sprintf("Unknown user or group: 'getpwnam(): name not found: '%s''", name)
			}
		}
	}
	return ""
}

// runRefused returns the shell's error for an unterminated quote in the commands, or "" if there is none. All commands are in one script (shellify
// in cloudinit/util.py). Scripts with here-documents or backquotes are not checked, because quotes have another meaning there.
func (c *cloudConfig) runRefused() string {
	script := ""
	for _, x := range c.Run {
		if line, is := x.(string); is {
			script += line + "\n"
		}
	}
	if strings.Contains(script, "<<") || strings.Contains(script, "`") {
		return ""
	}
	for at := 0; at < len(script); at++ {
		rest := script[at:]
		found := regex.Of(`^(?s:\\.|'[^']*'|"(?:[^"\\]|\\.)*"|\s#[^\n]*)`).FindString(rest)
		switch {
		case found != "":
			at += len(found) - 1
		case rest[0] == '\'' || rest[0] == '"':
			return "Syntax error: Unterminated quoted string"
		}
	}
	return ""
}

// runEnds returns why the script of the commands does not reach the command with which the machine joins: another command ends the script, or never
// ends. Only commands of one line are checked.
func (c *cloudConfig) runEnds() string {
	strict, gone := false, ""
	for _, x := range c.Run {
		line, is := x.(string)
		if regex.Of(`\b(start|restart|unmask|install)\b`).MatchString(line) {
			gone = ""
		}
		switch {
		case !is:
			continue
		case regex.Of(`kubeadm (init|join)|bootstrap\.sh|nodeadm`).MatchString(line):
			if gone != "" {
				return line + ": what it needs is gone since " + gone
			}
			return ""
		case regex.Of(`^\s*(exit|return)(\s+[0-9]+)?\s*$`).MatchString(line), regex.Of(`^\s*exec\s+[^<>&\d]`).MatchString(line),
			regex.Of(`^\s*kill\b.*\s\$\$\s*$`).MatchString(line), regex.Of(`^.* && exit( \d+)? \|\| exit( \d+)?\s*$`).MatchString(line):
			return line + ": the shell has ended: nothing runs kubeadm"
		case regex.Of(`^\s*((systemctl\s+)?(reboot|poweroff|halt)|shutdown\s+(-\w+\s+)*(now|\+0)|init\s+[06])\s*$`).MatchString(line):
			return line + ": the machine stops, and cloud-init runs its commands once per instance: nothing runs kubeadm"
		case regex.Of(`^\s*set -e\s*$`).MatchString(line):
			strict = true
		case strict && regex.Of(`^\s*false\s*$`).MatchString(line):
			return line + ": set -e has ended the shell: nothing runs kubeadm"
		case regex.Of(`^\s*(systemctl\s+(stop|disable --now|mask --now)\s+containerd|systemctl\s+mask\s+kubelet)(\.service)?\s*$`).MatchString(line),
			regex.Of(`^\s*(apt-get|apt|yum|dnf)\s.*\b(remove|purge|erase)\b.*\b(kubelet|kubeadm|containerd)\b`).MatchString(line):
			gone = line
		case regex.Of(`^\s*(sleep\s+inf(inity)?|tail\s+-[fF]\b.*|journalctl\b.*\s(-f|--follow)\b.*|while (true|:)\s*;\s*do sleep \S+\s*;\s*done)\s*$`).MatchString(line) &&
			!strings.HasSuffix(strings.TrimSpace(line), "&"):
			return line + ": it does not end: nothing runs kubeadm"
		}
	}
	return ""
}

// knows reports whether a user or group exists when files are written: the image has it, or bootcmd mentions it. cloud-init creates the users of
// its configuration later.
func (c *cloudConfig) knows(name string) bool {
	system := strings.Fields(`root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc nobody nogroup adm tty disk kmem dialout
		fax voice cdrom floppy tape sudo audio dip src shadow utmp video sasl plugdev staff users wheel systemd-journal systemd-network systemd-resolve
		systemd-timesync messagebus syslog sshd _apt _chrony chrony tss polkitd landscape pollinate ubuntu ec2-user admin rocky centos core docker`)
	return slices.Contains(system, name) || slices.ContainsFunc(c.Boot, func(x any) bool { return strings.Contains(fmt.Sprint(x), name) })
}

// mount mounts filesystems: each hides what its folder had. mkfs of ext2, ext3 and ext4 makes a folder lost+found.
func (c *cloudConfig) mount(files map[string]string) {
	for _, m := range c.Mounts {
		if len(m) < 2 || !path.IsAbs(m[1]) || len(m) > 3 && strings.Contains(m[3], "noauto") {
			continue
		}
		at := path.Clean(m[1])
		maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, strings.TrimSuffix(at, "/")+"/") })
		for _, f := range c.Filesystems {
			if strings.HasPrefix(f.Filesystem, "ext") && (m[0] == "LABEL="+f.Label || m[0] == f.Device) {
				files[path.Join(at, "lost+found")] = ""
			}
		}
	}
}

// etcdFolderRefused returns the error of kubeadm's preflight checks if the folder for the data of etcd is not empty (DirAvailableCheck in
// cmd/kubeadm/app/preflight/checks.go). A command that mentions the folder may have emptied it.
func etcdFolderRefused(files map[string]string, folder string, ignored []string) string {
	check := "DirAvailable-" + strings.ReplaceAll(folder, "/", "-")
	if slices.Contains(ignored, check) || slices.Contains(ignored, "all") {
		return ""
	}
	commands := regex.Of(`(?ms)^(bootcmd|runcmd):\n.*?^[^ -]`).FindAllString(files[bootText]+"\nend:", -1)
	for _, text := range commands {
		if strings.Contains(text, "lost+found") || strings.Contains(text, folder) {
			return ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, strings.TrimSuffix(folder, "/")+"/") {
			return fmt.Sprintf("[ERROR %s]: %s is not empty", check, folder)
		}
	}
	return ""
}

// etcdFolder returns the folder of the data of etcd in a ClusterConfiguration; one that nothing is in if etcd runs elsewhere.
func etcdFolder(config string) string {
	var doc struct {
		Etcd struct {
			External *struct{}
			Local    struct{ DataDir string }
		}
	}
	if yaml.Unmarshal([]byte(config), &doc) != nil || doc.Etcd.External != nil {
		return "/nowhere"
	}
	return path.Clean(cmp.Or(doc.Etcd.Local.DataDir, "/var/lib/etcd"))
}
