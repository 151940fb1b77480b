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
	HTTPResponseHeaders *int `json:"httpResponseHeaders,omitempty" yaml:"http_response_headers"`
	HTTPTotal           *int `json:"httpTotal,omitempty"           yaml:"http_total"`
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
	Units []ignNetworkdUnit `json:"units,omitempty" yaml:"units"`
}

type ignNetworkdUnit struct {
	Name     string      `json:"name"               yaml:"name"`
	Contents string      `json:"contents,omitempty" yaml:"contents"`
	Dropins  []ignDropin `json:"dropins,omitempty"  yaml:"dropins"`
}

type ignSystemd struct {
	Units []ignUnit `json:"units,omitempty" yaml:"units"`
}

type ignUnit struct {
	Name     string      `json:"name"               yaml:"name"`
	Enable   bool        `json:"enable,omitempty"   yaml:"enable"`
	Enabled  *bool       `json:"enabled,omitempty"  yaml:"enabled"`
	Mask     bool        `json:"mask,omitempty"     yaml:"mask"`
	Contents string      `json:"contents,omitempty" yaml:"contents"`
	Dropins  []ignDropin `json:"dropins,omitempty"  yaml:"dropins"`
}

type ignDropin struct {
	Name     string `json:"name"               yaml:"name"`
	Contents string `json:"contents,omitempty" yaml:"contents"`
}

type ignPasswd struct {
	Users  []ignUser  `json:"users,omitempty"  yaml:"users"`
	Groups []ignGroup `json:"groups,omitempty" yaml:"groups"`
}

type ignUser struct {
	Name              string   `json:"name"                        yaml:"name"`
	PasswordHash      *string  `json:"passwordHash,omitempty"      yaml:"password_hash"`
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys,omitempty" yaml:"ssh_authorized_keys"`
	UID               *int     `json:"uid,omitempty"               yaml:"uid"`
	Gecos             string   `json:"gecos,omitempty"             yaml:"gecos"`
	HomeDir           string   `json:"homeDir,omitempty"           yaml:"home_dir"`
	NoCreateHome      bool     `json:"noCreateHome,omitempty"      yaml:"no_create_home"`
	PrimaryGroup      string   `json:"primaryGroup,omitempty"      yaml:"primary_group"`
	Groups            []string `json:"groups,omitempty"            yaml:"groups"`
	NoUserGroup       bool     `json:"noUserGroup,omitempty"       yaml:"no_user_group"`
	System            bool     `json:"system,omitempty"            yaml:"system"`
	NoLogInit         bool     `json:"noLogInit,omitempty"         yaml:"no_log_init"`
	Shell             string   `json:"shell,omitempty"             yaml:"shell"`
}

type ignGroup struct {
	Name         string `json:"name"                   yaml:"name"`
	GID          *int   `json:"gid,omitempty"          yaml:"gid"`
	PasswordHash string `json:"passwordHash,omitempty" yaml:"password_hash"`
	System       bool   `json:"system,omitempty"       yaml:"system"`
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
	Name    string   `json:"name"              yaml:"name"`
	Level   string   `json:"level"             yaml:"level"`
	Devices []string `json:"devices"           yaml:"devices"`
	Spares  int      `json:"spares,omitempty"  yaml:"spares"`
	Options []string `json:"options,omitempty" yaml:"options"`
}

type ignFilesystem struct {
	Name  string    `json:"name,omitempty"  yaml:"name"`
	Path  *string   `json:"path,omitempty"  yaml:"path"`
	Mount *ignMount `json:"mount,omitempty" yaml:"mount"`
}

type ignMount struct {
	Device         string     `json:"device"                   yaml:"device"`
	Format         string     `json:"format"                   yaml:"format"`
	Create         *ignCreate `json:"create,omitempty"         yaml:"create"`
	WipeFilesystem bool       `json:"wipeFilesystem,omitempty" yaml:"wipe_filesystem"`
	Label          *string    `json:"label,omitempty"          yaml:"label"`
	UUID           *string    `json:"uuid,omitempty"           yaml:"uuid"`
	Options        []string   `json:"options,omitempty"        yaml:"options"`
}

type ignCreate struct {
	Force   bool     `json:"force,omitempty"   yaml:"force"`
	Options []string `json:"options,omitempty" yaml:"options"`
}

// ignNode has the fields that files, directories and links share.
type ignNode struct {
	Filesystem string    `json:"filesystem"          yaml:"filesystem"`
	Path       string    `json:"path"                yaml:"path"`
	Overwrite  *bool     `json:"overwrite,omitempty" yaml:"overwrite"`
	User       *ignOwner `json:"user,omitempty"      yaml:"user"`
	Group      *ignOwner `json:"group,omitempty"     yaml:"group"`
}

type ignOwner struct {
	ID   *int   `json:"id,omitempty"   yaml:"id"`
	Name string `json:"name,omitempty" yaml:"name"`
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
	Mode    *int `json:"mode,omitempty" yaml:"mode"`
}

type ignLink struct {
	ignNode `yaml:",inline"`
	Hard    bool   `json:"hard,omitempty" yaml:"hard"`
	Target  string `json:"target"         yaml:"target"`
}
