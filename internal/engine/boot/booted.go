package boot

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadm "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
)

// Booted is the bootstrap configuration of a machine, read back from what it booted with.
type Booted struct {
	Spec    bootstrapv1.KubeadmConfigSpec // without ClusterConfiguration, keys and tokens
	LeftOut []string                      // what Spec lacks, and why: "file /etc/x, which may contain a secret"
}

// bootedConfig has the sections of a cloud-config that are read back.
type bootedConfig struct {
	Files []struct {
		Path, Encoding, Owner, Permissions, Content string
		Append                                      *bool
	} `yaml:"write_files"`
	Boot  []any `yaml:"bootcmd"`
	Run   []any `yaml:"runcmd"`
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
	Disks  any `yaml:"disk_setup"`
	FS     any `yaml:"fs_setup"`
}

// ParseBooted reads the user data that cloud-init has stored on a machine, with all that it
// includes. secret reports whether a text may contain a secret: then it is left out.
func ParseBooted(userData []byte, secret func(string) bool) (*Booted, error) {
	text, err := cloudConfigIn(userData)
	if err != nil {
		return nil, err
	}
	var doc bootedConfig
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, errors.New("the user data is not a cloud-config of Cluster API") // the error of the parser may quote secrets
	}
	b := &Booted{}
	return b, b.read(&doc, secret)
}

func (b *Booted) read(doc *bootedConfig, secret func(string) bool) error {
	kubeadmText := ""
	for _, f := range doc.Files {
		switch {
		case f.Path == initConfigPath || f.Path == joinConfigPath:
			kubeadmText = f.Content
		case strings.HasPrefix(f.Path, runDir+"/"), strings.HasPrefix(f.Path, "/etc/kubernetes/pki/"): // of this program and of Cluster API
		case f.Encoding != "" || secret(f.Content):
			b.LeftOut = append(b.LeftOut, "file "+f.Path+", which may contain a secret")
		default:
			b.Spec.Files = append(b.Spec.Files, bootstrapv1.File{Path: f.Path, Owner: f.Owner, Permissions: f.Permissions, Append: f.Append, Content: f.Content})
		}
	}
	if kubeadmText == "" {
		return errors.New("the user data has nothing for kubeadm to do")
	}
	b.Spec.BootCommands = b.commands(doc.Boot, secret)
	before, after, ok := cutCommands(doc.Run)
	if !ok {
		return errors.New("the user data does not run kubeadm as Cluster API does")
	}
	b.Spec.PreKubeadmCommands, b.Spec.PostKubeadmCommands = b.commands(before, secret), b.commands(after, secret)
	b.Spec.Mounts = doc.Mounts
	if doc.NTP != nil {
		b.Spec.NTP = bootstrapv1.NTP{Enabled: doc.NTP.Enabled, Servers: doc.NTP.Servers}
	}
	if doc.Disks != nil || doc.FS != nil {
		b.LeftOut = append(b.LeftOut, "the disk setup")
	}
	b.users(doc)
	return b.kubeadm(kubeadmText)
}

// cutCommands returns the commands before and after that which runs kubeadm.
func cutCommands(all []any) (before, after []any, ok bool) {
	at := slices.IndexFunc(all, func(c any) bool { text, _ := c.(string); return strings.HasSuffix(text, "&& "+markSuccess) })
	if at < 0 {
		return nil, nil, false
	}
	return all[:at], all[at+1:], true
}

func (b *Booted) commands(all []any, secret func(string) bool) (out []string) {
	for _, c := range all {
		text, ok := c.(string)
		if !ok || secret(text) {
			b.LeftOut = append(b.LeftOut, "a command, which may contain a secret")
			continue
		}
		out = append(out, text)
	}
	return out
}

func (b *Booted) users(doc *bootedConfig) {
	for _, u := range doc.Users {
		if u.Passwd != "" {
			b.LeftOut = append(b.LeftOut, "the password of user "+u.Name)
		}
		b.Spec.Users = append(b.Spec.Users, bootstrapv1.User{
			Name: u.Name, Gecos: u.Gecos, Groups: u.Groups, HomeDir: u.Homedir, Inactive: u.Inactive, Shell: u.Shell, LockPassword: u.Lock, PrimaryGroup: u.Primary, Sudo: u.Sudo, SSHAuthorizedKeys: u.Keys,
		})
	}
}

// kubeadm reads how kubeadm registers the node. Other fields depend on the machine, or are in
// the cluster.
func (b *Booted) kubeadm(text string) error {
	for part := range strings.SplitSeq("\n"+text, "\n---\n") {
		switch {
		case strings.Contains(part, "kind: InitConfiguration"):
			c, err := kubeadm.UnmarshalInitConfiguration(part)
			if err != nil {
				return errors.New("the InitConfiguration of kubeadm cannot be read") // the error may quote the token
			}
			b.Spec.InitConfiguration = bootstrapv1.InitConfiguration{NodeRegistration: registrationOf(c.NodeRegistration), Patches: c.Patches, SkipPhases: c.SkipPhases}
		case strings.Contains(part, "kind: JoinConfiguration"):
			c, err := kubeadm.UnmarshalJoinConfiguration(part)
			if err != nil {
				return errors.New("the JoinConfiguration of kubeadm cannot be read")
			}
			b.Spec.JoinConfiguration = bootstrapv1.JoinConfiguration{NodeRegistration: registrationOf(c.NodeRegistration), Patches: c.Patches, SkipPhases: c.SkipPhases}
		}
	}
	return nil
}

// registrationOf removes what the controllers of Cluster API set.
func registrationOf(r bootstrapv1.NodeRegistrationOptions) bootstrapv1.NodeRegistrationOptions {
	if r.Taints != nil {
		own := slices.DeleteFunc(slices.Clone(*r.Taints), func(t corev1.Taint) bool { return t.Key == "node.cluster.x-k8s.io/uninitialized" })
		if r.Taints = &own; len(own) == 0 {
			r.Taints = nil
		}
	}
	omit(&r.ImagePullPolicy, "IfNotPresent")
	return r
}

// cloudConfigIn returns the cloud-config in user data: all of it, or a part of a MIME message.
func cloudConfigIn(data []byte) ([]byte, error) {
	if isCloudConfig(data) {
		return data, nil
	}
	message := textproto.NewReader(bufio.NewReader(bytes.NewReader(data)))
	header, err := message.ReadMIMEHeader()
	if err != nil {
		return nil, errors.New("the user data is not a cloud-config of Cluster API")
	}
	_, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("read the type of the user data: %w", err)
	}
	for parts := multipart.NewReader(message.R, params["boundary"]); ; {
		p, err := parts.NextRawPart()
		if err != nil {
			return nil, errors.New("the user data has no cloud-config of Cluster API")
		}
		text, err := io.ReadAll(p)
		if err != nil {
			return nil, fmt.Errorf("read the user data: %w", err)
		}
		if strings.EqualFold(p.Header.Get("Content-Transfer-Encoding"), "base64") {
			if text, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(text)), "")); err != nil {
				return nil, fmt.Errorf("decode the user data: %w", err)
			}
		}
		if isCloudConfig(text) {
			return text, nil
		}
	}
}

// isCloudConfig reports whether a text begins as a cloud-config, or as a template of one.
func isCloudConfig(text []byte) bool {
	return bytes.HasPrefix(text, []byte("#cloud-config")) || bytes.HasPrefix(text, []byte("## template: jinja\n#cloud-config"))
}
