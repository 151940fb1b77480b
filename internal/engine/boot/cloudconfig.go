package boot

import (
	"bytes"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// Paths on a machine with cloud-init.
const (
	initConfigPath = "/run/kubeadm/kubeadm.yaml"
	joinConfigPath = "/run/kubeadm/kubeadm-join-config.yaml"
	runDir         = "/run/cluster-api"

	// successMarker marks the success of kubeadm. Path and content are part of Cluster
	// API's contract for bootstrap providers.
	successMarker = runDir + "/bootstrap-success.complete"
	markSuccess   = "echo success > " + successMarker
)

// cloudConfigHeader makes cloud-init evaluate jinja expressions such as {{
// ds.meta_data.local_hostname }} before it parses the YAML.
const cloudConfigHeader = "## template: jinja\n#cloud-config\n\n"

// renderCloudConfig renders the document with the layout of Cluster API's kubeadm
// bootstrap provider.
func renderCloudConfig(in *input) ([]byte, error) {
	path := joinConfigPath
	if in.role == Init {
		path = initConfigPath
	}
	files := append([]bootstrapv1.File{}, in.pki...)
	files = append(files, in.files...)
	files = append(files,
		bootstrapv1.File{Path: path, Owner: "root:root", Permissions: "0640", Content: in.kubeadm},
		bootstrapv1.File{
			Path: runDir + "/placeholder", Owner: "root:root", Permissions: "0640",
			Content: "This file makes sure that its directory exists.",
		},
	)
	command := in.command(path)
	if in.role != Init {
		files = append(files, bootstrapv1.File{Path: joinScriptPath, Owner: "root:root", Permissions: "0700", Content: in.join(path, "")})
		command = "bash " + joinScriptPath
	}
	return cloudConfig(cloudConfigHeader, sections{
		files: files, boot: in.spec.BootCommands, before: in.spec.PreKubeadmCommands, join: command + " && " + markSuccess, after: in.spec.PostKubeadmCommands,
		ntp: in.spec.NTP, users: in.users, disks: in.spec.DiskSetup, mounts: in.spec.Mounts,
	})
}

// sections are the sections of a cloud-config. Empty ones are omitted.
type sections struct {
	files         []bootstrapv1.File
	boot          []string
	before, after []string // the command that joins
	join          string   // not quoted, as in Cluster API
	ntp           bootstrapv1.NTP
	users         []bootstrapv1.User
	disks         bootstrapv1.DiskSetup
	mounts        []bootstrapv1.MountPoints
}

// node returns the document, which may be empty.
func (s sections) node() *yaml.Node {
	doc := &mapping{}
	if len(s.files) > 0 {
		doc.add("write_files", each(s.files, writeFile))
	}
	if len(s.boot) > 0 {
		doc.add("bootcmd", each(s.boot, command))
	}
	if s.join != "" {
		run := each(s.before, command)
		run.Content = append(append(run.Content, text(s.join)), each(s.after, command).Content...)
		doc.add("runcmd", run)
	}
	if s.ntp.IsDefined() {
		doc.add("ntp", ntp(s.ntp))
	}
	if len(s.users) > 0 {
		doc.add("users", each(s.users, user))
	}
	if len(s.disks.Partitions) > 0 {
		doc.add("disk_setup", disks(s.disks.Partitions))
	}
	if len(s.disks.Filesystems) > 0 {
		doc.add("fs_setup", each(s.disks.Filesystems, filesystem))
	}
	if len(s.mounts) > 0 {
		doc.add("mounts", each(s.mounts, func(m bootstrapv1.MountPoints) *yaml.Node { return list(m) }))
	}
	return doc.node()
}

// cloudConfig returns the encoded document after a header.
func cloudConfig(header string, s sections) ([]byte, error) {
	out := bytes.NewBufferString(header)
	if err := writeYAML(out, s.node(), 0); err != nil {
		return nil, fmt.Errorf("cloud-config: %w", err)
	}
	return out.Bytes(), nil
}

// writeFile returns an entry of write_files. Without owner and permissions, cloud-init
// uses root:root and 0644.
func writeFile(f bootstrapv1.File) *yaml.Node {
	doc := &mapping{}
	doc.addText("path", f.Path)
	if f.Encoding != "" {
		doc.add("encoding", quoted(string(f.Encoding)))
	}
	doc.addText("owner", f.Owner)
	if f.Permissions != "" {
		// Always quoted: in YAML 1.1, 0640 is a number.
		doc.add("permissions", &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.SingleQuotedStyle, Value: f.Permissions})
	}
	doc.addBool("append", f.Append)
	doc.add("content", fileContent(f.Content))
	return doc.node()
}

// command returns a command, which is always quoted, as in Cluster API.
func command(line string) *yaml.Node {
	if isJinja(line) {
		return block(line)
	}
	return quoted(line)
}

func ntp(n bootstrapv1.NTP) *yaml.Node {
	doc := &mapping{}
	doc.addBool("enabled", n.Enabled)
	doc.addList("servers", n.Servers)
	return doc.node()
}

func user(u bootstrapv1.User) *yaml.Node {
	doc := &mapping{}
	doc.addText("name", u.Name)
	doc.addText("passwd", u.Passwd)
	doc.addText("gecos", u.Gecos)
	doc.addText("groups", u.Groups)
	doc.addText("homedir", u.HomeDir)
	doc.addBool("inactive", u.Inactive)
	doc.addBool("lock_passwd", u.LockPassword)
	doc.addText("shell", u.Shell)
	doc.addText("primary_group", u.PrimaryGroup)
	doc.addText("sudo", u.Sudo)
	doc.addList("ssh_authorized_keys", u.SSHAuthorizedKeys)
	return doc.node()
}

func disks(partitions []bootstrapv1.Partition) *yaml.Node {
	doc := &mapping{}
	for _, p := range partitions {
		disk := &mapping{}
		disk.addText("table_type", p.TableType)
		if len(p.DiskLayout) > 0 {
			disk.add("layout", each(p.DiskLayout, partition))
		} else {
			disk.addBool("layout", p.Layout)
		}
		disk.addBool("overwrite", p.Overwrite)
		doc.add(p.Device, disk.node())
	}
	return doc.node()
}

// partition returns a percentage of the disk, and a type if it is not Linux.
func partition(p bootstrapv1.PartitionSpec) *yaml.Node {
	size := number(strconv.Itoa(int(p.Percentage)))
	if p.PartitionType == "" {
		return size
	}
	kind := partitionType(p.PartitionType)
	if _, err := strconv.Atoi(kind); err == nil && kind[0] != '0' {
		return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{size, number(kind)}}
	}
	// With letters or a leading zero it would not be read as a number.
	return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{size, text(kind)}}
}

// partitionType returns the MBR type code for a name of Cluster API; codes are returned
// unchanged.
func partitionType(name string) string {
	switch name {
	case bootstrapv1.PartitionTypeLinux:
		return "83"
	case bootstrapv1.PartitionTypeLinuxSwap:
		return "82"
	case bootstrapv1.PartitionTypeLinuxRAID:
		return "fd"
	case bootstrapv1.PartitionTypeLVM:
		return "8e"
	case bootstrapv1.PartitionTypeFat32:
		return "0c"
	case bootstrapv1.PartitionTypeNTFS:
		return "07"
	case bootstrapv1.PartitionTypeLinuxExtended:
		return "85"
	default:
		return name
	}
}

func filesystem(f bootstrapv1.Filesystem) *yaml.Node {
	doc := &mapping{}
	doc.add("label", text(f.Label))
	doc.add("filesystem", text(f.Filesystem))
	doc.add("device", text(f.Device))
	if _, err := strconv.Atoi(f.Partition); err == nil {
		doc.add("partition", number(f.Partition))
	} else {
		doc.addText("partition", f.Partition)
	}
	doc.addBool("overwrite", f.Overwrite)
	doc.addText("replace_fs", f.ReplaceFS)
	doc.addList("extra_opts", f.ExtraOpts)
	return doc.node()
}
