package boot

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// EKSCluster is what a machine has to know of the EKS cluster it joins, all of
// it as DescribeCluster says it.
type EKSCluster struct {
	Name     string // in EKS
	Endpoint string // URL of the API server, "https://….eks.amazonaws.com"
	CA       []byte // certificates, PEM

	// ServiceCIDR is serviceIpv4Cidr, or serviceIpv6Cidr of an IPv6 cluster. The
	// address of the cluster's DNS follows from it. CAPA goes by the manifest
	// instead, and by 172.20.0.0/16 where that says nothing, though EKS may
	// have chosen 10.100.0.0/16; for IPv6 it even takes the block of the VPC.
	ServiceCIDR string
}

// EKSNode is what the bootstrap data of machines that join an EKS cluster is
// made from, beside the spec of their EKSConfig or NodeadmConfig. It is the same
// for all machines of that spec, and holds no key and no token: who they are is
// what lets machines in.
type EKSNode struct {
	Cluster EKSCluster
	Secret  Secrets // for contentFrom and passwdFrom
}

const (
	// plainHeader is that of a cloud-config without jinja.
	plainHeader = "#cloud-config\n\n"

	// bootstrapScript is that of EKS's images of Amazon Linux 2.
	bootstrapScript = "/etc/eks/bootstrap.sh"
)

// RenderEKSConfig makes the bootstrap data of a machine with EKS's image of
// Amazon Linux 2, in the layout of CAPA: a cloud-config that runs the image's
// bootstrap script. Unlike CAPA it quotes values for the shell and for YAML,
// writes booleans that are false as such, and looks up passwdFrom. The cluster's
// name must be known, and its ServiceCIDR where it has IPv6; the script asks
// EKS for the rest. Errors name the field of the spec.
func RenderEKSConfig(n EKSNode, spec eksbootstrapv1.EKSConfigSpec) (Data, error) {
	if n.Cluster.Name == "" {
		return Data{}, errNoName
	}
	s, err := n.sections(common{spec.Files, spec.Users, spec.NTP, spec.DiskSetup, spec.Mounts})
	if err != nil {
		return Data{}, err
	}
	s.run = slices.Concat(spec.PreBootstrapCommands, []string{n.bootstrapCommand(spec)}, spec.PostBootstrapCommands)
	content, err := cloudConfig(plainHeader, s)
	return Data{Format: CloudConfig, Content: content}, err
}

var errNoName = errors.New("no name of the EKS cluster")

// bootstrapCommand is the command line of the image's bootstrap script, or of
// what the manifest has instead, which is a piece of shell and stays as it is.
func (n EKSNode) bootstrapCommand(spec eksbootstrapv1.EKSConfigSpec) string {
	line := bootstrapScript
	if o := spec.BootstrapCommandOverride; o != nil && *o != "" {
		line = *o
	}
	line += " " + shellWord(n.Cluster.Name)
	option := func(name, value string) {
		if value != "" {
			line += " --" + name + " " + shellWord(value)
		}
	}
	if len(spec.KubeletExtraArgs) > 0 {
		line += " --kubelet-extra-args " + shellQuote(kubeletArgs(spec.KubeletExtraArgs))
	}
	option("container-runtime", value(spec.ContainerRuntime))
	if cidr := n.serviceIPv6(spec.ServiceIPV6Cidr); cidr != "" {
		option("ip-family", "ipv6")
		option("service-ipv6-cidr", cidr)
	}
	if spec.UseMaxPods != nil {
		option("use-max-pods", strconv.FormatBool(*spec.UseMaxPods))
	}
	if spec.APIRetryAttempts != nil {
		option("aws-api-retry-attempts", strconv.Itoa(*spec.APIRetryAttempts))
	}
	if p := spec.PauseContainer; p != nil {
		option("pause-container-account", p.AccountNumber)
		option("pause-container-version", p.Version)
	}
	option("dns-cluster-ip", value(spec.DNSClusterIP))
	option("docker-config-json", value(spec.DockerConfigJSON))
	return line
}

// serviceIPv6 is the wanted block of the services, else the cluster's if that
// is one of IPv6. A wanted "" is none.
func (n EKSNode) serviceIPv6(wanted *string) string {
	if wanted != nil {
		return *wanted
	}
	if p, err := netip.ParsePrefix(n.Cluster.ServiceCIDR); err == nil && p.Addr().Is6() {
		return n.Cluster.ServiceCIDR
	}
	return ""
}

// kubeletArgs is the value of --kubelet-extra-args: one word, which the image
// splits at blanks.
func kubeletArgs(args map[string]string) string {
	all := make([]string, 0, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		all = append(all, "--"+name+"="+args[name])
	}
	return strings.Join(all, " ")
}

// shellWord makes a word that the shell takes as it is, quoted where it has to
// be.
func shellWord(s string) string {
	special := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("@%+=:,./_-", r)
	}
	if s == "" || strings.ContainsFunc(s, special) {
		return shellQuote(s)
	}
	return s
}

// common is what both kinds have of cloud-init.
type common struct {
	files  []eksbootstrapv1.File
	users  []eksbootstrapv1.User
	ntp    *eksbootstrapv1.NTP
	disks  *eksbootstrapv1.DiskSetup
	mounts []eksbootstrapv1.MountPoints
}

// sections translates them to kubeadm's types, which are the same in other
// words, and looks up what they point to.
func (n EKSNode) sections(c common) (s sections, err error) {
	if s.files, err = n.Secret.files(translate(c.files, eksFile)); err != nil {
		return s, err
	}
	if s.users, err = n.Secret.users(translate(c.users, eksUser)); err != nil {
		return s, err
	}
	if c.ntp != nil {
		s.ntp = bootstrapv1.NTP{Servers: c.ntp.Servers, Enabled: c.ntp.Enabled}
	}
	if c.disks != nil {
		s.disks.Partitions = translate(c.disks.Partitions, eksPartition)
		s.disks.Filesystems = translate(c.disks.Filesystems, eksFilesystem)
	}
	s.mounts = translate(c.mounts, func(m eksbootstrapv1.MountPoints) bootstrapv1.MountPoints { return bootstrapv1.MountPoints(m) })
	return s, nil
}

func translate[From, To any](from []From, f func(From) To) []To {
	to := make([]To, 0, len(from))
	for _, item := range from {
		to = append(to, f(item))
	}
	return to
}

// value reads an optional string.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func eksFile(f eksbootstrapv1.File) bootstrapv1.File {
	out := bootstrapv1.File{Path: f.Path, Owner: f.Owner, Permissions: f.Permissions, Encoding: bootstrapv1.Encoding(f.Encoding), Content: f.Content}
	if f.Append {
		out.Append = &f.Append
	}
	if f.ContentFrom != nil {
		out.ContentFrom.Secret = bootstrapv1.SecretFileSource{Name: f.ContentFrom.Secret.Name, Key: f.ContentFrom.Secret.Key}
	}
	return out
}

func eksUser(u eksbootstrapv1.User) bootstrapv1.User {
	out := bootstrapv1.User{
		Name: u.Name, Gecos: value(u.Gecos), Groups: value(u.Groups), HomeDir: value(u.HomeDir), Inactive: u.Inactive,
		Shell: value(u.Shell), Passwd: value(u.Passwd), PrimaryGroup: value(u.PrimaryGroup), LockPassword: u.LockPassword,
		Sudo: value(u.Sudo), SSHAuthorizedKeys: u.SSHAuthorizedKeys,
	}
	if u.PasswdFrom != nil {
		out.PasswdFrom.Secret = bootstrapv1.SecretPasswdSource{Name: u.PasswdFrom.Secret.Name, Key: u.PasswdFrom.Secret.Key}
	}
	return out
}

func eksPartition(p eksbootstrapv1.Partition) bootstrapv1.Partition {
	return bootstrapv1.Partition{Device: p.Device, Layout: &p.Layout, Overwrite: p.Overwrite, TableType: value(p.TableType)}
}

func eksFilesystem(f eksbootstrapv1.Filesystem) bootstrapv1.Filesystem {
	return bootstrapv1.Filesystem{
		Device: f.Device, Filesystem: f.Filesystem, Label: f.Label, Partition: value(f.Partition), Overwrite: f.Overwrite, ExtraOpts: f.ExtraOpts,
	}
}

// check finds what a caller forgot to say of the cluster.
func (c EKSCluster) check() error {
	var missing []error
	if c.Name == "" {
		missing = append(missing, errNoName)
	}
	if !strings.HasPrefix(c.Endpoint, "https://") {
		missing = append(missing, fmt.Errorf("the endpoint %q of the EKS cluster is no https URL", c.Endpoint))
	}
	if len(c.CA) == 0 {
		missing = append(missing, errors.New("no certificate of the EKS cluster's CA"))
	}
	if _, err := netip.ParsePrefix(c.ServiceCIDR); err != nil {
		missing = append(missing, fmt.Errorf("service CIDR of the EKS cluster: %w", err))
	}
	return errors.Join(missing...)
}

// authority is the CA as it is in configuration files.
func (c EKSCluster) authority() string { return base64.StdEncoding.EncodeToString(c.CA) }
