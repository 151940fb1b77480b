package boot

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// clcConfig is a Container Linux Config, which Flatcar's transpiler converts to Ignition
// 2.3. Sections that are missing here (etcd, flannel, passwd.users[].create, local files)
// are rejected by name: Flatcar has removed them, or they need options of the
// transpiler's command line.
type clcConfig struct {
	Version   int              `yaml:"version,omitempty"`
	Ignition  clcIgnition      `yaml:"ignition,omitempty"`
	Storage   clcStorage       `yaml:"storage,omitempty"`
	Systemd   ignSystemd       `yaml:"systemd,omitempty"`
	Networkd  ignNetworkd      `yaml:"networkd,omitempty"`
	Passwd    ignPasswd        `yaml:"passwd,omitempty"`
	Docker    *clcDocker       `yaml:"docker,omitempty"`
	Update    *clcUpdate       `yaml:"update,omitempty"`
	Locksmith *clcUpdateWindow `yaml:"locksmith,omitempty"`
}

type clcIgnition struct {
	Config struct {
		Append []clcSource `yaml:"append,omitempty"`
	} `yaml:"config,omitempty"`
	Timeouts ignTimeouts `yaml:"timeouts,omitempty"`
	Security struct {
		TLS struct {
			CertificateAuthorities []clcSource `yaml:"certificate_authorities,omitempty"`
		} `yaml:"tls,omitempty"`
	} `yaml:"security,omitempty"`
}

type clcSource struct {
	Source       string          `yaml:"source,omitempty"`
	Verification clcVerification `yaml:"verification,omitempty"`
}

type clcVerification struct {
	Hash struct {
		Function string `yaml:"function,omitempty"`
		Sum      string `yaml:"sum,omitempty"`
	} `yaml:"hash,omitempty"`
}

type clcStorage struct {
	Disks       []clcDisk       `yaml:"disks,omitempty"`
	RAID        []ignRAID       `yaml:"raid,omitempty"`
	Filesystems []ignFilesystem `yaml:"filesystems,omitempty"`
	Files       []clcFile       `yaml:"files,omitempty"`
	Directories []ignDirectory  `yaml:"directories,omitempty"`
	Links       []ignLink       `yaml:"links,omitempty"`
}

type clcDisk struct {
	Device     string         `yaml:"device,omitempty"`
	WipeTable  bool           `yaml:"wipe_table,omitempty"`
	Partitions []clcPartition `yaml:"partitions,omitempty"`
}

type clcPartition struct {
	Label    *string `yaml:"label,omitempty"`
	Number   int     `yaml:"number,omitempty"`
	Size     string  `yaml:"size,omitempty"`  // "10GiB"; empty for the remaining space
	Start    string  `yaml:"start,omitempty"` // "1MiB"; empty for the next free position
	GUID     string  `yaml:"guid,omitempty"`
	TypeGUID string  `yaml:"type_guid,omitempty"`
}

type clcFile struct {
	ignNode  `yaml:",inline"`
	Mode     *int `yaml:"mode,omitempty"`
	Append   bool `yaml:"append,omitempty"`
	Contents struct {
		Inline string `yaml:"inline,omitempty"`
		Remote struct {
			URL          string          `yaml:"url,omitempty"`
			Compression  string          `yaml:"compression,omitempty"`
			Verification clcVerification `yaml:"verification,omitempty"`
		} `yaml:"remote,omitempty"`
	} `yaml:"contents,omitempty"`
}

type clcDocker struct {
	Flags []string `yaml:"flags,omitempty"`
}

type clcUpdate struct {
	Group            string `yaml:"group,omitempty"`
	Server           string `yaml:"server,omitempty"`
	PCRPolicyServer  string `yaml:"pcr_policy_server,omitempty"`
	DownloadUser     string `yaml:"download_user,omitempty"`
	DownloadPassword string `yaml:"download_password,omitempty"`
	MachineAlias     string `yaml:"machine_alias,omitempty"`
}

// clcUpdateWindow is the section "locksmith": when a machine may reboot for an update.
type clcUpdateWindow struct {
	RebootStrategy string `yaml:"reboot_strategy,omitempty"`
	WindowStart    string `yaml:"window_start,omitempty"`
	WindowLength   string `yaml:"window_length,omitempty"`
	Group          string `yaml:"group,omitempty"`
	EtcdEndpoints  string `yaml:"etcd_endpoints,omitempty"`
	EtcdCAFile     string `yaml:"etcd_cafile,omitempty"`
	EtcdCertFile   string `yaml:"etcd_certfile,omitempty"`
	EtcdKeyFile    string `yaml:"etcd_keyfile,omitempty"`
}

// mergeContainerLinuxConfig converts a Container Linux Config and merges it into config
// by the rules of Ignition: lists are appended. If a systemd unit appears twice, its
// drop-ins are joined and the later contents apply.
func mergeContainerLinuxConfig(config *ignConfig, c bootstrapv1.ContainerLinuxConfig) error {
	clc, _, err := parseContainerLinuxConfig(c)
	if err != nil {
		return err
	}
	mergeMeta(&config.Ignition, clc.Ignition)
	if err := mergeStorage(&config.Storage, clc.Storage); err != nil {
		return err
	}
	if clc.Docker != nil {
		config.Systemd.Units = append(config.Systemd.Units, ignUnit{
			Name:   "docker.service",
			Enable: true,
			Dropins: []ignDropin{{
				Name:     "20-clct-docker.conf",
				Contents: "[Service]\nEnvironment=\"DOCKER_OPTS=" + strings.Join(clc.Docker.Flags, " ") + `"`,
			}},
		})
	}
	config.Systemd.Units = append(config.Systemd.Units, clc.Systemd.Units...)
	config.Networkd.Units = append(config.Networkd.Units, clc.Networkd.Units...)
	config.Passwd.Users = append(config.Passwd.Users, clc.Passwd.Users...)
	config.Passwd.Groups = append(config.Passwd.Groups, clc.Passwd.Groups...)
	if settings := updateConfig(clc.Update, clc.Locksmith); settings != "" {
		config.addFile("/etc/coreos/update.conf", 0o644, settings)
	}
	return nil
}

// CheckContainerLinuxConfig converts a Container Linux Config, and returns the fields in it that do not
// exist: "line 4: field wipeFilesystem". Machines ignore them, unless the configuration is strict, as
// in Cluster API (bootstrap/kubeadm/pkg/ignition/clc).
func CheckContainerLinuxConfig(c bootstrapv1.ContainerLinuxConfig) (ignored []string, err error) {
	clc, ignored, err := parseContainerLinuxConfig(c)
	if err != nil {
		return nil, err
	}
	return ignored, mergeStorage(new(ignStorage), clc.Storage)
}

// parseContainerLinuxConfig decodes a configuration. It refuses sections that Flatcar's transpiler
// knows and this package does not.
func parseContainerLinuxConfig(c bootstrapv1.ContainerLinuxConfig) (clc clcConfig, unknown []string, err error) {
	var butane struct {
		Variant string `yaml:"variant"`
	}
	if yaml.Unmarshal([]byte(c.AdditionalConfig), &butane) == nil && butane.Variant != "" {
		return clc, nil, errors.New("this is a Butane configuration, and Cluster API takes a Container Linux Config: convert it")
	}
	if err := yaml.Unmarshal([]byte(c.AdditionalConfig), &clc); err != nil {
		return clc, nil, fmt.Errorf("not a Container Linux Config: %w", err)
	}
	if clc.Version != 0 {
		return clc, nil, fmt.Errorf("version %d is not supported", clc.Version)
	}
	strict := yaml.NewDecoder(strings.NewReader(c.AdditionalConfig))
	strict.KnownFields(true)
	var fields *yaml.TypeError
	if !errors.As(strict.Decode(new(clcConfig)), &fields) {
		return clc, nil, nil
	}
	goTypes := regex.Of(` not found in type \S+`)
	known := regex.Of(`field (etcd|flannel|create|local) not found`) // to Flatcar's transpiler: see clcConfig
	var refused []string
	for _, text := range fields.Errors {
		field := goTypes.ReplaceAllString(text, "")
		unknown = append(unknown, field)
		if isTrue(c.Strict) || known.MatchString(text) {
			refused = append(refused, field+" is not supported")
		}
	}
	if len(refused) > 0 {
		return clc, nil, errors.New(strings.Join(refused, "; "))
	}
	return clc, unknown, nil
}

func mergeMeta(meta *ignMeta, clc clcIgnition) {
	for _, s := range clc.Config.Append {
		meta.Config.Append = append(meta.Config.Append, s.ignition())
	}
	for _, s := range clc.Security.TLS.CertificateAuthorities {
		meta.Security.TLS.CertificateAuthorities = append(meta.Security.TLS.CertificateAuthorities, s.ignition())
	}
	meta.Timeouts = clc.Timeouts
}

func (s clcSource) ignition() ignSource {
	return ignSource{Source: s.Source, Verification: s.Verification.ignition()}
}

// ignition returns nil if one of the fields is empty, as Flatcar's transpiler does.
func (v clcVerification) ignition() *ignVerification {
	if v.Hash.Function == "" || v.Hash.Sum == "" {
		return nil
	}
	return &ignVerification{Hash: v.Hash.Function + "-" + v.Hash.Sum}
}

func mergeStorage(storage *ignStorage, clc clcStorage) error {
	for i, d := range clc.Disks {
		disk, err := d.ignition()
		if err != nil {
			return fmt.Errorf("storage.disks[%d]: %w", i, err)
		}
		storage.Disks = append(storage.Disks, disk)
	}
	storage.RAID = append(storage.RAID, clc.RAID...)
	storage.Filesystems = append(storage.Filesystems, clc.Filesystems...)
	for i, f := range clc.Files {
		file, err := f.ignition()
		if err != nil {
			return fmt.Errorf("storage.files[%d]: %w", i, err)
		}
		storage.Files = append(storage.Files, file)
	}
	for _, d := range clc.Directories {
		d.ignNode = d.onRoot()
		if d.Mode == nil {
			mode := 0o755
			d.Mode = &mode
		}
		storage.Directories = append(storage.Directories, d)
	}
	for _, l := range clc.Links {
		l.ignNode = l.onRoot()
		storage.Links = append(storage.Links, l)
	}
	return nil
}

// onRoot sets the root filesystem unless another is set.
func (n ignNode) onRoot() ignNode {
	if n.Filesystem == "" {
		n.Filesystem = rootFilesystem
	}
	return n
}

func (f clcFile) ignition() (ignFile, error) {
	remote := f.Contents.Remote
	if f.Contents.Inline != "" && remote.URL != "" {
		return ignFile{}, errors.New("contents has both inline and remote")
	}
	mode := 0o644
	if f.Mode == nil {
		f.Mode = &mode
	}
	source := remote.URL
	switch {
	case f.Contents.Inline != "":
		source = dataURL([]byte(f.Contents.Inline))
	case source == "":
		source = "data:,"
	}
	return ignFile{
		ignNode: f.onRoot(),
		Mode:    f.Mode,
		Append:  f.Append,
		Contents: ignContents{
			Source:       source,
			Compression:  remote.Compression,
			Verification: remote.Verification.ignition(),
		},
	}, nil
}

func (d clcDisk) ignition() (ignDisk, error) {
	disk := ignDisk{Device: d.Device, WipeTable: d.WipeTable}
	for i, p := range d.Partitions {
		size, err := mebibytes(p.Size)
		if err != nil {
			return ignDisk{}, fmt.Errorf("partitions[%d].size: %w", i, err)
		}
		start, err := mebibytes(p.Start)
		if err != nil {
			return ignDisk{}, fmt.Errorf("partitions[%d].start: %w", i, err)
		}
		disk.Partitions = append(disk.Partitions, ignPartition{
			Label: p.Label, Number: p.Number, SizeMiB: size, StartMiB: start,
			GUID: p.GUID, TypeGUID: partitionGUID(p.TypeGUID),
		})
	}
	return disk, nil
}

// mebibytes parses a size such as "512MiB" or "2GB". As in Flatcar's transpiler, all
// units are powers of 1,024. The result for "" is nil.
func mebibytes(size string) (*int, error) {
	if size == "" {
		return nil, nil // an absent size is not an error.
	}
	parts := regex.Of(`^(\d+)([KMGT])i?B$`).FindStringSubmatch(size)
	if parts == nil {
		return nil, fmt.Errorf("%q is not a size such as 10GiB", size)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return nil, fmt.Errorf("%q is not a size: %w", size, err)
	}
	switch parts[2] {
	case "K":
		if n%1024 != 0 {
			return nil, fmt.Errorf("%q is not a whole number of MiB", size)
		}
		n /= 1024
	case "G":
		n *= 1024
	case "T":
		n *= 1024 * 1024
	}
	return &n, nil
}

// partitionGUID returns the GPT type for a name in a Container Linux Config; GUIDs are
// returned unchanged.
func partitionGUID(name string) string {
	switch name {
	case "raid_containing_root":
		return "be9067b9-ea49-4f15-b4f6-f36f8c9e1818"
	case "linux_filesystem_data":
		return "0fc63daf-8483-4772-8e79-3d69d8477de4"
	case "swap_partition":
		return "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"
	case "raid_partition":
		return "a19d880f-05fc-4d3b-a006-743f0f84911e"
	default:
		return name
	}
}

// updateConfig returns the content of update.conf, which update_engine and locksmithd
// read.
func updateConfig(update *clcUpdate, window *clcUpdateWindow) string {
	var lines []string
	add := func(key, value string) {
		if value != "" {
			lines = append(lines, key+"="+value)
		}
	}
	if u := update; u != nil {
		add("GROUP", strings.ToLower(u.Group))
		add("SERVER", u.Server)
		add("PCR_POLICY_SERVER", u.PCRPolicyServer)
		add("DOWNLOAD_USER", u.DownloadUser)
		add("DOWNLOAD_PASSWORD", u.DownloadPassword)
		add("MACHINE_ALIAS", u.MachineAlias)
	}
	quoted := func(key, value string) {
		if value != "" {
			add(key, strconv.Quote(value))
		}
	}
	if w := window; w != nil {
		quoted("REBOOT_STRATEGY", w.RebootStrategy)
		quoted("LOCKSMITHD_REBOOT_WINDOW_START", w.WindowStart)
		quoted("LOCKSMITHD_REBOOT_WINDOW_LENGTH", w.WindowLength)
		quoted("LOCKSMITHD_GROUP", w.Group)
		quoted("LOCKSMITHD_ENDPOINT", w.EtcdEndpoints)
		quoted("LOCKSMITHD_ETCD_CAFILE", w.EtcdCAFile)
		quoted("LOCKSMITHD_ETCD_CERTFILE", w.EtcdCertFile)
		quoted("LOCKSMITHD_ETCD_KEYFILE", w.EtcdKeyFile)
	}
	return strings.Join(lines, "\n")
}
