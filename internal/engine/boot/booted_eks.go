package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// BootedEKS is the bootstrap configuration of a machine of an EKS cluster, read back from what
// it booted with: one of two.
type BootedEKS struct {
	Config  *eksbootstrapv1.EKSConfigSpec
	Nodeadm *eksbootstrapv1.NodeadmConfigSpec
	LeftOut []string // as in Booted
}

// ParseBootedEKS reads user data as RenderNodeadm, RenderEKSConfig and Cluster API make it.
// secret reports whether a text may contain a secret: then it is left out.
func ParseBootedEKS(userData []byte, secret func(string) bool) (*BootedEKS, error) {
	b := &Booted{secret: secret}
	if isCloudConfig(userData) {
		return b.eksConfig(userData)
	}
	parts, err := partsOf(userData)
	if err != nil {
		return nil, err
	}
	return b.nodeadm(parts)
}

// eksConfig reads a cloud-config that runs the bootstrap script of the AMI.
func (b *Booted) eksConfig(text []byte) (*BootedEKS, error) {
	doc, err := readConfig(text)
	if err != nil {
		return nil, err
	}
	b.readSections(doc)
	at := slices.IndexFunc(doc.Run, func(c any) bool { line, _ := c.(string); return strings.HasPrefix(line, bootstrapScript+" ") })
	if at < 0 {
		return nil, errors.New("the user data does not run " + bootstrapScript)
	}
	spec := &eksbootstrapv1.EKSConfigSpec{PreBootstrapCommands: b.commands(doc.Run[:at]), PostBootstrapCommands: b.commands(doc.Run[at+1:])}
	b.bootstrapOptions(fmt.Sprint(doc.Run[at]), spec)
	c := b.eksSections()
	spec.Files, spec.Users, spec.NTP, spec.DiskSetup, spec.Mounts = c.files, c.users, c.ntp, c.disks, c.mounts
	return &BootedEKS{Config: spec, LeftOut: b.LeftOut}, nil
}

// bootstrapOptions reads the command line of the bootstrap script. The IPv6 block of Services
// is that of the cluster.
func (b *Booted) bootstrapOptions(line string, spec *eksbootstrapv1.EKSConfigSpec) {
	words := unquote(line)
	for i := 2; i+1 < len(words); i += 2 {
		option, value := words[i], words[i+1]
		switch option {
		case "--kubelet-extra-args":
			spec.KubeletExtraArgs = map[string]string{}
			for _, arg := range strings.Fields(value) {
				name, text, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
				spec.KubeletExtraArgs[name] = text
			}
		case "--container-runtime":
			spec.ContainerRuntime = &value
		case "--use-max-pods":
			spec.UseMaxPods = new(value == "true")
		case "--aws-api-retry-attempts":
			if n, err := strconv.Atoi(value); err == nil {
				spec.APIRetryAttempts = &n
			}
		case "--pause-container-account", "--pause-container-version":
			if spec.PauseContainer == nil {
				spec.PauseContainer = &eksbootstrapv1.PauseContainer{}
			}
			if option == "--pause-container-account" {
				spec.PauseContainer.AccountNumber = value
			} else {
				spec.PauseContainer.Version = value
			}
		case "--dns-cluster-ip":
			spec.DNSClusterIP = &value
		case "--docker-config-json":
			if b.secret(value) {
				b.LeftOut = append(b.LeftOut, "dockerConfigJson, which may contain a secret")
			} else {
				spec.DockerConfigJSON = &value
			}
		}
	}
}

// unquote returns the words of a command line of shellWord.
func unquote(line string) (words []string) {
	var word strings.Builder
	quoted, begun := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			quoted, begun = !quoted, true
		case c == '\\' && !quoted && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case c == ' ' && !quoted:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// nodeadm reads the parts of a message for nodeadm.
func (b *Booted) nodeadm(parts []part) (*BootedEKS, error) {
	spec, found := &eksbootstrapv1.NodeadmConfigSpec{}, false
	for _, p := range parts {
		kind, _, _ := strings.Cut(p.header.Get("Content-Type"), ";")
		switch {
		case kind == "application/node.eks.aws":
			found = true
			if err := addNodeConfig(p.content, spec); err != nil {
				return nil, err
			}
		case kind == "text/x-shellscript":
			script, ok := strings.CutPrefix(string(p.content), strict)
			var lines []any
			for line := range strings.SplitSeq(strings.TrimRight(script, "\n"), "\n") {
				lines = append(lines, line)
			}
			if !ok {
				return nil, errors.New("the user data has a script that is not one of Cluster API")
			}
			spec.PreNodeadmCommands = b.commands(lines)
		case isCloudConfig(p.content):
			doc, err := readConfig(p.content)
			if err != nil {
				return nil, err
			}
			b.readSections(doc)
		}
	}
	if !found {
		return nil, errors.New("the user data has no NodeConfig")
	}
	c := b.eksSections()
	spec.Files, spec.Users, spec.NTP, spec.DiskSetup, spec.Mounts = c.files, c.users, c.ntp, c.disks, c.mounts
	return &BootedEKS{Nodeadm: spec, LeftOut: b.LeftOut}, nil
}

// addNodeConfig adds what a NodeConfig says beside the cluster.
func addNodeConfig(text []byte, spec *eksbootstrapv1.NodeadmConfigSpec) error {
	var doc struct {
		Spec struct {
			FeatureGates map[eksbootstrapv1.Feature]bool `yaml:"featureGates"`
			Kubelet      struct {
				Config map[string]any
				Flags  []string
			}
			Containerd struct {
				Config          yaml.Node
				BaseRuntimeSpec map[string]any `yaml:"baseRuntimeSpec"`
			}
		}
	}
	if yaml.Unmarshal(text, &doc) != nil {
		return errors.New("the NodeConfig in the user data cannot be read")
	}
	spec.FeatureGates = doc.Spec.FeatureGates
	if k := doc.Spec.Kubelet; len(k.Config)+len(k.Flags) > 0 {
		spec.Kubelet = &eksbootstrapv1.KubeletOptions{Config: rawObject(k.Config), Flags: k.Flags}
	}
	if c := doc.Spec.Containerd; c.Config.Value != "" || len(c.BaseRuntimeSpec) > 0 {
		config, lines := c.Config.Value, strings.Split(string(text), "\n")
		if header := strings.TrimSpace(lines[max(c.Config.Line-1, 0)]); strings.HasPrefix(header, "|") {
			config = header + "\n" + blockText(&c.Config, lines) // on a line of its own, as CAPA writes it
		}
		spec.Containerd = &eksbootstrapv1.ContainerdOptions{Config: config, BaseRuntimeSpec: rawObject(c.BaseRuntimeSpec)}
	}
	return nil
}

// rawObject returns an object without schema; nil if it is empty.
func rawObject(object map[string]any) *runtime.RawExtension {
	text, err := json.Marshal(object)
	if len(object) == 0 || err != nil { // it was decoded from YAML
		return nil
	}
	return &runtime.RawExtension{Raw: text}
}

// eksSections translates files, users, times, disks and mounts to the types of EKS.
func (b *Booted) eksSections() (c common) {
	s := b.Spec
	c.files = translate(s.Files, func(f bootstrapv1.File) eksbootstrapv1.File {
		return eksbootstrapv1.File{
			Path:        f.Path,
			Owner:       f.Owner,
			Permissions: f.Permissions,
			Encoding:    eksbootstrapv1.Encoding(f.Encoding),
			Append:      isTrue(f.Append),
			Content:     f.Content,
		}
	})
	c.users = translate(s.Users, func(u bootstrapv1.User) eksbootstrapv1.User {
		return eksbootstrapv1.User{
			Name: u.Name, Gecos: optional(u.Gecos), Groups: optional(u.Groups), HomeDir: optional(u.HomeDir), Inactive: u.Inactive, Shell: optional(u.Shell),
			PrimaryGroup: optional(u.PrimaryGroup), LockPassword: u.LockPassword, Sudo: optional(u.Sudo), SSHAuthorizedKeys: u.SSHAuthorizedKeys,
		}
	})
	if s.NTP.IsDefined() {
		c.ntp = &eksbootstrapv1.NTP{Servers: s.NTP.Servers, Enabled: s.NTP.Enabled}
	}
	if s.DiskSetup.IsDefined() {
		c.disks = &eksbootstrapv1.DiskSetup{}
		c.disks.Partitions = translate(s.DiskSetup.Partitions, func(p bootstrapv1.Partition) eksbootstrapv1.Partition {
			return eksbootstrapv1.Partition{Device: p.Device, Layout: isTrue(p.Layout), Overwrite: p.Overwrite, TableType: optional(p.TableType)}
		})
		c.disks.Filesystems = translate(s.DiskSetup.Filesystems, func(f bootstrapv1.Filesystem) eksbootstrapv1.Filesystem {
			return eksbootstrapv1.Filesystem{
				Device:     f.Device,
				Filesystem: f.Filesystem,
				Label:      f.Label,
				Partition:  optional(f.Partition),
				Overwrite:  f.Overwrite,
				ExtraOpts:  f.ExtraOpts,
			}
		})
	}
	c.mounts = translate(s.Mounts, func(m bootstrapv1.MountPoints) eksbootstrapv1.MountPoints { return eksbootstrapv1.MountPoints(m) })
	return c
}

// optional returns a string, or nil if it is empty.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
