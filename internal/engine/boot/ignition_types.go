package boot

// The parts of an Ignition 2.3.0 configuration that this package writes. Where a
// Container Linux Config has the same structure, the yaml tags are its field names, so
// that additionalConfig is decoded into these types.

// ignitionVersion is the version that Cluster API renders.
const ignitionVersion = "2.3.0"

type ignConfig struct {
	Ignition ignMeta     `json:"ignition"`
	Networkd ignNetworkd `json:"networkd,omitzero"`
	Passwd   ignPasswd   `json:"passwd,omitzero"`
	Storage  ignStorage  `json:"storage,omitzero"`
	Systemd  ignSystemd  `json:"systemd,omitzero"`
}

type ignMeta struct {
	Version  string        `json:"version"`
	Config   ignReferences `json:"config,omitzero"`
	Timeouts ignTimeouts   `json:"timeouts,omitzero"`
	Security ignSecurity   `json:"security,omitzero"`
	Proxy    *ignProxy     `json:"proxy,omitempty"`
}

// ignReferences names further configurations: Append in specification 2, Merge in
// specification 3.
type ignReferences struct {
	Append []ignSource `json:"append,omitempty"`
	Merge  []ignSource `json:"merge,omitempty"`
}

type ignSource struct {
	Source       string           `json:"source"`
	Verification *ignVerification `json:"verification,omitempty"`
}

type ignVerification struct {
	Hash string `json:"hash"` // "sha512-…"
}

type ignTimeouts struct {
	HTTPResponseHeaders *int `json:"httpResponseHeaders,omitempty" yaml:"http_response_headers,omitempty"`
	HTTPTotal           *int `json:"httpTotal,omitempty"           yaml:"http_total,omitempty"`
}

type ignSecurity struct {
	TLS ignTLS `json:"tls,omitzero"`
}

type ignTLS struct {
	CertificateAuthorities []ignSource `json:"certificateAuthorities,omitempty"`
}

type ignProxy struct {
	HTTPProxy  string   `json:"httpProxy,omitempty"`
	HTTPSProxy string   `json:"httpsProxy,omitempty"`
	NoProxy    []string `json:"noProxy,omitempty"`
}

type ignNetworkd struct {
	Units []ignNetworkdUnit `json:"units,omitempty" yaml:"units,omitempty"`
}

type ignNetworkdUnit struct {
	Name     string      `json:"name"               yaml:"name,omitempty"`
	Contents string      `json:"contents,omitempty" yaml:"contents,omitempty"`
	Dropins  []ignDropin `json:"dropins,omitempty"  yaml:"dropins,omitempty"`
}

type ignSystemd struct {
	Units []ignUnit `json:"units,omitempty" yaml:"units,omitempty"`
}

type ignUnit struct {
	Name     string      `json:"name"               yaml:"name,omitempty"`
	Enable   bool        `json:"enable,omitempty"   yaml:"enable,omitempty"`
	Enabled  *bool       `json:"enabled,omitempty"  yaml:"enabled,omitempty"`
	Mask     bool        `json:"mask,omitempty"     yaml:"mask,omitempty"`
	Contents string      `json:"contents,omitempty" yaml:"contents,omitempty"`
	Dropins  []ignDropin `json:"dropins,omitempty"  yaml:"dropins,omitempty"`
}

type ignDropin struct {
	Name     string `json:"name"               yaml:"name,omitempty"`
	Contents string `json:"contents,omitempty" yaml:"contents,omitempty"`
}

type ignPasswd struct {
	Users  []ignUser  `json:"users,omitempty"  yaml:"users,omitempty"`
	Groups []ignGroup `json:"groups,omitempty" yaml:"groups,omitempty"`
}

type ignUser struct {
	Name              string   `json:"name"                        yaml:"name,omitempty"`
	PasswordHash      *string  `json:"passwordHash,omitempty"      yaml:"password_hash,omitempty"`
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty" yaml:"ssh_authorized_keys,omitempty"`
	UID               *int     `json:"uid,omitempty"               yaml:"uid,omitempty"`
	Gecos             string   `json:"gecos,omitempty"             yaml:"gecos,omitempty"`
	HomeDir           string   `json:"homeDir,omitempty"           yaml:"home_dir,omitempty"`
	NoCreateHome      bool     `json:"noCreateHome,omitempty"      yaml:"no_create_home,omitempty"`
	PrimaryGroup      string   `json:"primaryGroup,omitempty"      yaml:"primary_group,omitempty"`
	Groups            []string `json:"groups,omitempty"            yaml:"groups,omitempty"`
	NoUserGroup       bool     `json:"noUserGroup,omitempty"       yaml:"no_user_group,omitempty"`
	System            bool     `json:"system,omitempty"            yaml:"system,omitempty"`
	NoLogInit         bool     `json:"noLogInit,omitempty"         yaml:"no_log_init,omitempty"`
	Shell             string   `json:"shell,omitempty"             yaml:"shell,omitempty"`
}

type ignGroup struct {
	Name         string `json:"name"                   yaml:"name,omitempty"`
	GID          *int   `json:"gid,omitempty"          yaml:"gid,omitempty"`
	PasswordHash string `json:"passwordHash,omitempty" yaml:"password_hash,omitempty"`
	System       bool   `json:"system,omitempty"       yaml:"system,omitempty"`
}

type ignStorage struct {
	Disks       []ignDisk       `json:"disks,omitempty"`
	RAID        []ignRAID       `json:"raid,omitempty"`
	Filesystems []ignFilesystem `json:"filesystems,omitempty"`
	Files       []ignFile       `json:"files,omitempty"`
	Directories []ignDirectory  `json:"directories,omitempty"`
	Links       []ignLink       `json:"links,omitempty"`
}

type ignDisk struct {
	Device     string         `json:"device"`
	WipeTable  bool           `json:"wipeTable,omitempty"`
	Partitions []ignPartition `json:"partitions,omitempty"`
}

type ignPartition struct {
	Label    *string `json:"label,omitempty"`
	Number   int     `json:"number,omitempty"`
	SizeMiB  *int    `json:"sizeMiB,omitempty"`
	StartMiB *int    `json:"startMiB,omitempty"`
	GUID     string  `json:"guid,omitempty"`
	TypeGUID string  `json:"typeGuid,omitempty"`
}

type ignRAID struct {
	Name    string   `json:"name"              yaml:"name,omitempty"`
	Level   string   `json:"level"             yaml:"level,omitempty"`
	Devices []string `json:"devices"           yaml:"devices,omitempty"`
	Spares  int      `json:"spares,omitempty"  yaml:"spares,omitempty"`
	Options []string `json:"options,omitempty" yaml:"options,omitempty"`
}

type ignFilesystem struct {
	Name  string    `json:"name,omitempty"  yaml:"name,omitempty"`
	Path  *string   `json:"path,omitempty"  yaml:"path,omitempty"`
	Mount *ignMount `json:"mount,omitempty" yaml:"mount,omitempty"`
}

type ignMount struct {
	Device         string     `json:"device"                   yaml:"device,omitempty"`
	Format         string     `json:"format"                   yaml:"format,omitempty"`
	Create         *ignCreate `json:"create,omitempty"         yaml:"create,omitempty"`
	WipeFilesystem bool       `json:"wipeFilesystem,omitempty" yaml:"wipe_filesystem,omitempty"`
	Label          *string    `json:"label,omitempty"          yaml:"label,omitempty"`
	UUID           *string    `json:"uuid,omitempty"           yaml:"uuid,omitempty"`
	Options        []string   `json:"options,omitempty"        yaml:"options,omitempty"`
}

type ignCreate struct {
	Force   bool     `json:"force,omitempty"   yaml:"force,omitempty"`
	Options []string `json:"options,omitempty" yaml:"options,omitempty"`
}

// ignNode has the fields that files, directories and links share.
type ignNode struct {
	Filesystem string    `json:"filesystem"          yaml:"filesystem,omitempty"`
	Path       string    `json:"path"                yaml:"path,omitempty"`
	Overwrite  *bool     `json:"overwrite,omitempty" yaml:"overwrite,omitempty"`
	User       *ignOwner `json:"user,omitempty"      yaml:"user,omitempty"`
	Group      *ignOwner `json:"group,omitempty"     yaml:"group,omitempty"`
}

type ignOwner struct {
	ID   *int   `json:"id,omitempty"   yaml:"id,omitempty"`
	Name string `json:"name,omitempty" yaml:"name,omitempty"`
}

type ignFile struct {
	ignNode  `yaml:",inline"`
	Append   bool        `json:"append,omitempty"`
	Mode     *int        `json:"mode,omitempty"`
	Contents ignContents `json:"contents"`
}

type ignContents struct {
	Source       string           `json:"source"`
	Compression  string           `json:"compression,omitempty"` // "gzip"
	Verification *ignVerification `json:"verification,omitempty"`
}

type ignDirectory struct {
	ignNode `yaml:",inline"`
	Mode    *int `json:"mode,omitempty" yaml:"mode,omitempty"`
}

type ignLink struct {
	ignNode `yaml:",inline"`
	Hard    bool   `json:"hard,omitempty" yaml:"hard,omitempty"`
	Target  string `json:"target"         yaml:"target,omitempty"`
}
