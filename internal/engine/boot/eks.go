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

// EKSCluster has the properties of the EKS cluster that a machine joins, from
// DescribeCluster.
type EKSCluster struct {
	Name     string // name of the EKS cluster
	Endpoint string // URL of the API server, "https://….eks.amazonaws.com"
	CA       []byte // PEM certificates

	// ServiceCIDR is serviceIpv4Cidr, or serviceIpv6Cidr of an IPv6 cluster; the address
	// of the cluster DNS depends on it. CAPA uses the manifest instead, and the default
	// 172.20.0.0/16 although EKS may have chosen 10.100.0.0/16; for IPv6 it uses the
	// block of the VPC.
	ServiceCIDR string
}

// EKSNode is the input for the bootstrap data of machines that join an EKS cluster, in
// addition to the spec of their EKSConfig or NodeadmConfig. It is the same for all
// machines with that spec, and contains no key or token: machines join with their IAM
// role.
type EKSNode struct {
	Cluster EKSCluster
	Secret  Secrets // for contentFrom and passwdFrom
}

const (
	// plainHeader is the header of a cloud-config without jinja.
	plainHeader = "#cloud-config\n"

	// bootstrapScript is part of EKS's Amazon Linux 2 AMIs.
	bootstrapScript = "/etc/eks/bootstrap.sh"
)

// RenderEKSConfig renders the bootstrap data for EKS's Amazon Linux 2 AMIs byte for byte as
// CAPA does: a cloud-config that runs the bootstrap script of the AMI. Unlike CAPA, it
// quotes values for the shell and for YAML where they would mean something else, writes
// ntp.enabled if it is false, and resolves passwdFrom. The name of the cluster is required, and for IPv6 its ServiceCIDR;
// the script gets the rest from EKS. Errors name the field of the spec.
func RenderEKSConfig(n EKSNode, spec eksbootstrapv1.EKSConfigSpec) (Data, error) {
	if n.Cluster.Name == "" {
		return Data{}, errNoName
	}
	s, err := n.sections(common{spec.Files, spec.Users, spec.NTP, spec.DiskSetup, spec.Mounts})
	if err != nil {
		return Data{}, err
	}
	s.before, s.join, s.after = spec.PreBootstrapCommands, n.bootstrapCommand(spec), spec.PostBootstrapCommands
	content, err := cloudConfig(plainHeader, s)
	return Data{Format: CloudConfig, Content: content}, err
}

var errNoName = errors.New("no name of the EKS cluster")

// bootstrapCommand returns the command line of the AMI's bootstrap script, or the command
// from the manifest, which is shell code and not changed.
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

// serviceIPv6 is the wanted IPv6 block of Services, or that of the cluster. A wanted ""
// means none.
func (n EKSNode) serviceIPv6(wanted *string) string {
	if wanted != nil {
		return *wanted
	}
	if p, err := netip.ParsePrefix(n.Cluster.ServiceCIDR); err == nil && p.Addr().Is6() {
		return n.Cluster.ServiceCIDR
	}
	return ""
}

// kubeletArgs is the value of --kubelet-extra-args: one word, which the script splits at
// spaces.
func kubeletArgs(args map[string]string) string {
	all := make([]string, 0, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		all = append(all, "--"+name+"="+args[name])
	}
	return strings.Join(all, " ")
}

// shellWord returns a word for the shell, quoted if necessary.
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

// common has the cloud-init fields that EKSConfig and NodeadmConfig share.
type common struct {
	files  []eksbootstrapv1.File
	users  []eksbootstrapv1.User
	ntp    *eksbootstrapv1.NTP
	disks  *eksbootstrapv1.DiskSetup
	mounts []eksbootstrapv1.MountPoints
}

// sections converts the fields to the types of kubeadm's bootstrap provider, and resolves
// references.
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

// value returns an optional string, or "".
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

// check returns an error for missing or invalid properties.
func (c EKSCluster) check() error {
	var missing []error
	if c.Name == "" {
		missing = append(missing, errNoName)
	}
	if !strings.HasPrefix(c.Endpoint, "https://") {
		missing = append(missing, fmt.Errorf("the endpoint %q of the EKS cluster is not an https URL", c.Endpoint))
	}
	if len(c.CA) == 0 {
		missing = append(missing, errors.New("no certificate of the EKS cluster's CA"))
	}
	if _, err := netip.ParsePrefix(c.ServiceCIDR); err != nil {
		missing = append(missing, fmt.Errorf("service CIDR of the EKS cluster: %w", err))
	}
	return errors.Join(missing...)
}

// authority returns the CA as in configuration files.
func (c EKSCluster) authority() string { return base64.StdEncoding.EncodeToString(c.CA) }
