package boot

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// Paths on a machine with Ignition. Ignition writes files before /run exists, so the
// configuration is in /etc.
const (
	kubeadmScriptPath = "/etc/kubeadm.sh"
	kubeadmConfigPath = "/etc/kubeadm.yml"
)

// kubeadmUnit runs the script once: after success, the configuration file is gone. A
// drop-in in additionalConfig can change the unit.
const kubeadmUnit = `[Unit]
Description=kubeadm
# The script moves this file away when kubeadm has succeeded.
ConditionPathExists=` + kubeadmConfigPath + `
After=network.target
[Service]
Type=oneshot
ExecStart=/bin/bash ` + kubeadmScriptPath + `
[Install]
WantedBy=multi-user.target
`

// rootFilesystem is the name of the root filesystem in Ignition 2.
const rootFilesystem = "root"

// renderIgnition renders an Ignition 2.3.0 configuration with the layout of Cluster API's
// kubeadm bootstrap provider, and merges additionalConfig into it.
func renderIgnition(in *input) ([]byte, error) {
	config := ignConfig{Ignition: ignMeta{Version: ignitionVersion}}
	if len(in.spec.BootCommands) > 0 {
		return nil, errors.New("bootCommands: not supported by Ignition: use a systemd unit in " + additionalConfig)
	}
	enabled := true
	config.Systemd.Units = []ignUnit{{Name: "kubeadm.service", Enabled: &enabled, Contents: kubeadmUnit}}
	if isTrue(in.spec.NTP.Enabled) {
		config.Systemd.Units = append(config.Systemd.Units, ignUnit{Name: "ntpd.service", Enabled: &enabled})
	}
	for _, add := range []func(*input, *ignConfig) error{addUsers, addDisks, addMounts, addFiles} {
		if err := add(in, &config); err != nil {
			return nil, err
		}
	}
	if extra := in.spec.Ignition.ContainerLinuxConfig; extra.AdditionalConfig != "" {
		if err := mergeContainerLinuxConfig(&config, extra); err != nil {
			return nil, fmt.Errorf(additionalConfig+": %w", err)
		}
	}
	out, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the Ignition configuration: %w", err)
	}
	return out, nil
}

// addUsers adds the accounts, their sudo rules, and password logins for users whose
// password is not locked.
func addUsers(in *input, config *ignConfig) error {
	var withPassword []string
	for _, u := range in.users {
		account := ignUser{
			Name:              u.Name,
			Gecos:             u.Gecos,
			HomeDir:           u.HomeDir,
			Shell:             u.Shell,
			PrimaryGroup:      u.PrimaryGroup,
			SSHAuthorizedKeys: u.SSHAuthorizedKeys,
		}
		if u.Passwd != "" {
			account.PasswordHash = &u.Passwd
		}
		for group := range strings.SplitSeq(u.Groups, ",") {
			if group = strings.TrimSpace(group); group != "" {
				account.Groups = append(account.Groups, group)
			}
		}
		config.Passwd.Users = append(config.Passwd.Users, account)
		if u.Sudo != "" {
			config.addFile("/etc/sudoers.d/"+u.Name, 0o600, u.Name+" "+u.Sudo+"\n")
		}
		if u.LockPassword != nil && !*u.LockPassword {
			withPassword = append(withPassword, u.Name)
		}
	}
	if len(withPassword) > 0 {
		config.addFile("/etc/ssh/sshd_config", 0o600, sshdConfig(withPassword))
	}
	return nil
}

// sshdConfig is Flatcar's default, with password logins for the given users.
func sshdConfig(users []string) string {
	return `Subsystem sftp internal-sftp
ClientAliveInterval 180
UseDNS no
UsePAM yes
PrintLastLog no
PrintMotd no

Match User ` + strings.Join(users, ",") + `
  PasswordAuthentication yes
`
}

// addFiles adds keys, the files of the manifest, the kubeadm script and its
// configuration, and the NTP configuration.
func addFiles(in *input, config *ignConfig) error {
	for _, f := range append(append([]bootstrapv1.File{}, in.pki...), in.files...) {
		file, err := ignitionFile(f)
		if err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
		config.Storage.Files = append(config.Storage.Files, file)
	}
	config.addFile(kubeadmScriptPath, 0o700, kubeadmScript(in))
	if in.role != Init {
		config.addFile(ignitionJoinScriptPath, 0o700, in.join(kubeadmConfigPath, "/dev/console"))
	}
	config.addFile(kubeadmConfigPath, 0o600, in.kubeadm)
	if isTrue(in.spec.NTP.Enabled) && len(in.spec.NTP.Servers) > 0 {
		config.addFile("/etc/ntp.conf", 0o644, ntpConfig(in.spec.NTP.Servers))
	}
	return nil
}

// addFile adds a text file that root owns.
func (c *ignConfig) addFile(path string, mode int, content string) {
	c.Storage.Files = append(c.Storage.Files, ignFile{
		ignNode:  ignNode{Filesystem: rootFilesystem, Path: path},
		Mode:     &mode,
		Contents: ignContents{Source: dataURL([]byte(content))},
	})
}

// dataURL encodes content as a data URL (RFC 2397).
func dataURL(content []byte) string {
	return "data:;base64," + base64.StdEncoding.EncodeToString(content)
}

// ignitionFile converts one file. Its permissions are octal, with or without a leading
// zero; the default is 0644.
func ignitionFile(f bootstrapv1.File) (ignFile, error) {
	content, compression, err := decodeContent(f)
	if err != nil {
		return ignFile{}, err
	}
	mode := int64(0o644)
	if f.Permissions != "" {
		if mode, err = strconv.ParseInt(f.Permissions, 8, 32); err != nil {
			return ignFile{}, fmt.Errorf("permissions %q are not octal", f.Permissions)
		}
	}
	octal := int(mode)
	out := ignFile{
		ignNode:  ignNode{Filesystem: rootFilesystem, Path: f.Path},
		Append:   isTrue(f.Append),
		Mode:     &octal,
		Contents: ignContents{Source: dataURL(content), Compression: compression},
	}
	if out.Append && compression != "" {
		return ignFile{}, errors.New("append cannot be combined with a gzip encoding")
	}
	user, group, _ := strings.Cut(f.Owner, ":")
	out.User, out.Group = owner(user), owner(group)
	return out, nil
}

func owner(name string) *ignOwner {
	if name = strings.TrimSpace(name); name == "" {
		return nil
	}
	return &ignOwner{Name: name}
}

// decodeContent returns the bytes for Ignition and their compression, which Ignition
// removes itself.
func decodeContent(f bootstrapv1.File) (content []byte, compression string, err error) {
	switch f.Encoding {
	case "":
		return []byte(oneNewline(f.Content)), "", nil
	case bootstrapv1.Gzip:
		return []byte(f.Content), "gzip", nil
	case bootstrapv1.GzipBase64:
		compression = "gzip"
	case bootstrapv1.Base64:
	default:
		return nil, "", fmt.Errorf("encoding %q is not supported", f.Encoding)
	}
	// base64 may contain line breaks, but no other white space.
	content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(f.Content), ""))
	if err != nil {
		return nil, "", fmt.Errorf("the content is not base64: %w", err)
	}
	return content, compression, nil
}

// kubeadmScript runs all commands in order. Unlike with cloud-init, it ends at the first
// command that fails.
func kubeadmScript(in *input) string {
	command := in.command(kubeadmConfigPath)
	if in.role != Init {
		command = "/bin/bash " + ignitionJoinScriptPath
	}
	lines := []string{"#!/bin/bash", "set -e", ""}
	lines = append(lines, in.spec.PreKubeadmCommands...)
	lines = append(lines, "",
		command,
		"mkdir -p "+runDir+" && "+markSuccess,
		"mv "+kubeadmConfigPath+" /tmp/",
		"")
	lines = append(lines, in.spec.PostKubeadmCommands...)
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// ntpConfig makes the machine use these servers, and restricts other machines to time
// queries.
func ntpConfig(servers []string) string {
	out := "# Servers of the cluster's manifest.\n"
	for _, server := range servers {
		out += "server " + server + "\n"
	}
	return out + `
# Others may ask for the time, seldom, and nothing else.
restrict default nomodify nopeer noquery notrap limited kod
restrict 127.0.0.1
restrict [::1]
`
}

// oneNewline makes a text end with exactly one newline, like a block of a cloud-config. An
// empty text stays empty.
func oneNewline(text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	return text + "\n"
}
