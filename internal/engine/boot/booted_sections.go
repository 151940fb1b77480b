package boot

import (
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// bootedConfig has the sections of a cloud-config that are read back.
type bootedConfig struct {
	Files []bootedFile `yaml:"write_files"`
	Boot  []any        `yaml:"bootcmd"`
	Run   []any        `yaml:"runcmd"`
	Users []struct {
		Name, Passwd, Gecos, Groups, Homedir, Shell, Sudo string
		Inactive                                          *bool
		Lock                                              *bool    `yaml:"lock_passwd"`
		Primary                                           string   `yaml:"primary_group"`
		Keys                                              []string `yaml:"ssh_authorized_keys"`
	}
	NTP *struct {
		Enabled *bool
		Servers []string
	}
	Mounts []bootstrapv1.MountPoints
	Disks  yaml.Node `yaml:"disk_setup"` // in the order of the file
	FS     []struct {
		Label, Filesystem, Device, Partition string
		Overwrite                            *bool
		Replace                              string   `yaml:"replace_fs"`
		Options                              []string `yaml:"extra_opts"`
	} `yaml:"fs_setup"`
}

// bootedFile is a file of a cloud-config.
type bootedFile struct {
	Path, Encoding, Owner, Permissions string
	Content                            yaml.Node
	Append                             *bool
}

// readConfig decodes a cloud-config. The content of its files has as many newlines at the end as
// in the manifest (see writeContent). A YAML parser always reads one.
func readConfig(text []byte) (*bootedConfig, error) {
	var doc bootedConfig
	if yaml.Unmarshal(text, &doc) != nil {
		return nil, errors.New("the user data is not a cloud-config of Cluster API") // the error of the parser may quote secrets
	}
	lines := strings.Split(string(text), "\n")
	for i := range doc.Files {
		c := &doc.Files[i].Content
		c.Value = blockText(c, lines)
	}
	return &doc, nil
}

// blockText returns the text of a value of writeContent, which is a block in the lines of a
// document; another value is returned unchanged.
func blockText(c *yaml.Node, lines []string) string {
	if c.Style != yaml.LiteralStyle {
		return c.Value
	}
	text := strings.TrimRight(c.Value, "\n")
	for _, line := range lines[min(c.Line+strings.Count(text, "\n")+1, len(lines)):] {
		if line == "" || strings.Trim(line, " ") != "" {
			break
		}
		text += "\n"
	}
	return text
}

// readSections reads files, users, times, disks and mounts.
func (b *Booted) readSections(doc *bootedConfig) {
	for _, f := range doc.Files {
		b.addFile(
			bootstrapv1.File{
				Path:        f.Path,
				Encoding:    bootstrapv1.Encoding(f.Encoding),
				Owner:       f.Owner,
				Permissions: f.Permissions,
				Append:      f.Append,
				Content:     f.Content.Value,
			},
		)
	}
	for _, u := range doc.Users {
		b.addUser(u.Passwd, bootstrapv1.User{
			Name:              u.Name,
			Gecos:             u.Gecos,
			Groups:            u.Groups,
			HomeDir:           u.Homedir,
			Inactive:          u.Inactive,
			Shell:             u.Shell,
			LockPassword:      u.Lock,
			PrimaryGroup:      u.Primary,
			Sudo:              u.Sudo,
			SSHAuthorizedKeys: u.Keys,
		})
	}
	if doc.NTP != nil {
		b.Spec.NTP = bootstrapv1.NTP{Enabled: doc.NTP.Enabled, Servers: doc.NTP.Servers}
	}
	b.Spec.Mounts = doc.Mounts
	for _, f := range doc.FS {
		b.Spec.DiskSetup.Filesystems = append(b.Spec.DiskSetup.Filesystems, bootstrapv1.Filesystem{
			Label: f.Label, Filesystem: f.Filesystem, Device: f.Device, Partition: f.Partition, Overwrite: f.Overwrite, ReplaceFS: f.Replace, ExtraOpts: f.Options,
		})
	}
	b.readPartitions(&doc.Disks)
}

// addFile adds a file, unless it may contain a secret.
func (b *Booted) addFile(f bootstrapv1.File) {
	content, err := plainContent(f)
	if err != nil || b.secret(content) {
		b.LeftOut = append(b.LeftOut, "file "+f.Path+", which may contain a secret")
		return
	}
	b.Spec.Files = append(b.Spec.Files, f)
}

// plainContent returns the content of a file as text.
func plainContent(f bootstrapv1.File) (string, error) {
	content := []byte(f.Content)
	if f.Encoding == bootstrapv1.Base64 || f.Encoding == bootstrapv1.GzipBase64 {
		var err error
		if content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(f.Content), "")); err != nil {
			return "", err
		}
	}
	content, err := Decompress(content)
	return string(content), err
}

// addUser adds a user without its password.
func (b *Booted) addUser(password string, u bootstrapv1.User) {
	if password != "" {
		b.LeftOut = append(b.LeftOut, "the password of user "+u.Name)
	}
	b.Spec.Users = append(b.Spec.Users, u)
}

// readPartitions reads the section disk_setup.
func (b *Booted) readPartitions(section *yaml.Node) {
	for pair := range slices.Chunk(section.Content, 2) {
		var disk struct {
			Type      string `yaml:"table_type"`
			Layout    yaml.Node
			Overwrite *bool
		}
		if len(pair) < 2 || pair[1].Decode(&disk) != nil {
			b.LeftOut = append(b.LeftOut, "the disk setup")
			return
		}
		p := bootstrapv1.Partition{Device: pair[0].Value, TableType: disk.Type, Overwrite: disk.Overwrite}
		switch disk.Layout.Kind { //nolint:exhaustive // there is nothing else
		case yaml.SequenceNode:
			for _, x := range disk.Layout.Content {
				p.DiskLayout = append(p.DiskLayout, partitionSpec(x))
			}
		case yaml.ScalarNode:
			p.Layout = new(disk.Layout.Value == "true")
		}
		b.Spec.DiskSetup.Partitions = append(b.Spec.DiskSetup.Partitions, p)
	}
}

// partitionSpec reads one partition: 33, or [33, 82].
func partitionSpec(x *yaml.Node) (p bootstrapv1.PartitionSpec) {
	size := x.Value
	if x.Kind == yaml.SequenceNode && len(x.Content) == 2 {
		size = x.Content[0].Value
		p.PartitionType = x.Content[1].Value
		for _, name := range []string{
			bootstrapv1.PartitionTypeLinuxSwap, bootstrapv1.PartitionTypeLinuxRAID, bootstrapv1.PartitionTypeLVM,
			bootstrapv1.PartitionTypeFat32, bootstrapv1.PartitionTypeNTFS,
			bootstrapv1.PartitionTypeLinuxExtended,
		} {
			if partitionType(name) == p.PartitionType {
				p.PartitionType = name
			}
		}
	}
	n, _ := strconv.ParseInt(size, 10, 32) // a machine has booted with it
	p.Percentage = int32(n)
	return p
}
