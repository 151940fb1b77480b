package boot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// isIgnition reports whether user data is an Ignition configuration.
func isIgnition(userData []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(userData), []byte("{")) }

// readIgnition reads an Ignition configuration as renderIgnition and Cluster API make it. What
// no other field of the spec can say becomes a Container Linux Config: another text than that of
// the manifest, of the same meaning.
func (b *Booted) readIgnition(userData []byte) error {
	var config ignConfig
	if err := json.Unmarshal(userData, &config); err != nil {
		return errors.New("the user data is not an Ignition configuration of version 2") // the error may quote secrets
	}
	b.Spec.Format = bootstrapv1.Ignition
	var rest clcConfig
	units := config.Systemd.Units
	if len(units) > 0 && units[0].Name == "kubeadm.service" {
		units = units[1:]
	}
	if len(units) > 0 && units[0].Name == "ntpd.service" && units[0].Contents == "" && len(units[0].Dropins) == 0 {
		b.Spec.NTP.Enabled, units = new(true), units[1:]
	}
	rest.Systemd.Units, rest.Networkd, rest.Passwd.Groups = units, config.Networkd, config.Passwd.Groups
	for _, u := range config.Passwd.Users {
		b.readIgnitionUser(u)
	}
	kubeadmText, err := b.readIgnitionFiles(config.Storage.Files, &rest)
	if err != nil {
		return err
	}
	rest.Storage.RAID, rest.Storage.Filesystems = config.Storage.RAID, config.Storage.Filesystems
	rest.Storage.Directories, rest.Storage.Links = config.Storage.Directories, config.Storage.Links
	rest.Storage.Disks = translate(config.Storage.Disks, clcDiskOf)
	rest.Ignition.Timeouts = config.Ignition.Timeouts
	rest.Ignition.Config.Append = translate(config.Ignition.Config.Append, clcSourceOf)
	rest.Ignition.Security.TLS.CertificateAuthorities = translate(config.Ignition.Security.TLS.CertificateAuthorities, clcSourceOf)
	text, err := rest.text()
	switch {
	case err != nil:
		return err
	case b.secret(text):
		b.LeftOut = append(b.LeftOut, additionalConfig+", which may contain a secret")
	default:
		b.Spec.Ignition.ContainerLinuxConfig.AdditionalConfig = text
	}
	return b.kubeadm(kubeadmText)
}

func (b *Booted) readIgnitionUser(u ignUser) {
	b.addUser(value(u.PasswordHash), bootstrapv1.User{
		Name:              u.Name,
		Gecos:             u.Gecos,
		Groups:            strings.Join(u.Groups, ","),
		HomeDir:           u.HomeDir,
		Shell:             u.Shell,
		PrimaryGroup:      u.PrimaryGroup,
		SSHAuthorizedKeys: u.SSHAuthorizedKeys,
	})
	if u.UID != nil || u.NoCreateHome || u.NoUserGroup || u.System || u.NoLogInit {
		b.LeftOut = append(b.LeftOut, "the ID and other settings of user "+u.Name)
	}
}

// readIgnitionFiles reads the files, and returns the documents for kubeadm. Files after those
// of kubeadm are from a Container Linux Config.
func (b *Booted) readIgnitionFiles(files []ignFile, rest *clcConfig) (kubeadmText string, err error) {
	for _, f := range files {
		content, isData := dataIn(f.Contents.Source)
		switch {
		case f.Path == kubeadmConfigPath:
			kubeadmText = string(content)
		case f.Path == kubeadmScriptPath:
			err = b.readKubeadmScript(string(content))
		case f.Path == ignitionJoinScriptPath:
			b.readVerbosity(string(content))
		case isOwnFile(f.Path), b.readSetting(f.Path, string(content)):
		case kubeadmText != "":
			rest.Storage.Files = append(rest.Storage.Files, clcFileOf(f, content, isData))
		default:
			b.addFile(bootedIgnitionFile(f, content))
		}
	}
	if kubeadmText == "" && err == nil {
		err = errors.New("the user data has nothing for kubeadm to do")
	}
	return kubeadmText, err
}

// readSetting reads a file that renderIgnition makes of another field. It reports whether it is
// one.
func (b *Booted) readSetting(path, content string) bool {
	if name, ok := strings.CutPrefix(path, "/etc/sudoers.d/"); ok {
		for i, u := range b.Spec.Users {
			if u.Name == name && strings.HasPrefix(content, name+" ") {
				b.Spec.Users[i].Sudo = strings.TrimSuffix(strings.TrimPrefix(content, name+" "), "\n")
				return true
			}
		}
	}
	if _, match, ok := strings.Cut(content, "Match User "); ok && path == "/etc/ssh/sshd_config" {
		names, _, _ := strings.Cut(match, "\n")
		with := strings.Split(names, ",")
		if content != sshdConfig(with) {
			return false
		}
		for i, u := range b.Spec.Users {
			if slices.Contains(with, u.Name) {
				b.Spec.Users[i].LockPassword = new(false)
			}
		}
		return true
	}
	if path == "/etc/ntp.conf" && isTrue(b.Spec.NTP.Enabled) {
		var servers []string
		for line := range strings.SplitSeq(content, "\n") {
			if server, ok := strings.CutPrefix(line, "server "); ok {
				servers = append(servers, server)
			}
		}
		if content == ntpConfig(servers) {
			b.Spec.NTP.Servers = servers
			return true
		}
	}
	return false
}

// readKubeadmScript reads the commands before and after kubeadm.
func (b *Booted) readKubeadmScript(script string) error {
	var lines []any
	for line := range strings.SplitSeq(script, "\n") {
		if line != "" && line != "#!/bin/bash" && line != "set -e" {
			lines = append(lines, line)
		}
	}
	at := slices.IndexFunc(lines, func(line any) bool { return strings.HasSuffix(fmt.Sprint(line), "&& "+markSuccess) })
	if at < 1 {
		return errors.New("the user data does not run kubeadm as Cluster API does")
	}
	b.readVerbosity(fmt.Sprint(lines[at-1]))
	after := lines[at+1:]
	if len(after) > 0 && strings.HasPrefix(fmt.Sprint(after[0]), "mv "+kubeadmConfigPath+" ") {
		after = after[1:]
	}
	if len(after) > 0 && after[0] == keepTokenCommand {
		after = after[1:]
	}
	b.Spec.PreKubeadmCommands, b.Spec.PostKubeadmCommands = b.commands(lines[:at-1]), b.commands(after)
	return nil
}

// dataIn returns the content of a data URL; ok is false for other URLs.
func dataIn(source string) (content []byte, ok bool) {
	head, body, ok := strings.Cut(source, ",")
	if !ok || !strings.HasPrefix(head, "data:") {
		return nil, false
	}
	if !strings.HasSuffix(head, ";base64") {
		text, err := url.PathUnescape(body)
		return []byte(text), err == nil
	}
	content, err := base64.StdEncoding.DecodeString(body)
	return content, err == nil
}

// bootedIgnitionFile is the reverse of ignitionFile.
func bootedIgnitionFile(f ignFile, content []byte) bootstrapv1.File {
	out := bootstrapv1.File{Path: f.Path, Content: string(content)}
	if f.Append {
		out.Append = new(true)
	}
	if f.Contents.Compression != "" {
		out.Encoding, out.Content = bootstrapv1.GzipBase64, base64.StdEncoding.EncodeToString(content)
	} else if bytes.ContainsRune(content, 0) || oneNewline(out.Content) != out.Content {
		out.Encoding, out.Content = bootstrapv1.Base64, base64.StdEncoding.EncodeToString(content)
	}
	if f.Mode != nil && *f.Mode != 0o644 {
		out.Permissions = fmt.Sprintf("%04o", *f.Mode)
	}
	if f.User != nil {
		out.Owner = f.User.Name
	}
	if f.Group != nil {
		out.Owner += ":" + f.Group.Name
	}
	return out
}

// clcFileOf is the reverse of clcFile.ignition.
func clcFileOf(f ignFile, content []byte, isData bool) clcFile {
	out := clcFile{ignNode: f.ignNode, Mode: f.Mode, Append: f.Append}
	if isData {
		out.Contents.Inline = string(content)
		return out
	}
	out.Contents.Remote.URL, out.Contents.Remote.Compression = f.Contents.Source, f.Contents.Compression
	out.Contents.Remote.Verification = clcVerificationOf(f.Contents.Verification)
	return out
}

func clcSourceOf(s ignSource) clcSource {
	return clcSource{Source: s.Source, Verification: clcVerificationOf(s.Verification)}
}

func clcVerificationOf(v *ignVerification) (out clcVerification) {
	if v != nil {
		out.Hash.Function, out.Hash.Sum, _ = strings.Cut(v.Hash, "-")
	}
	return out
}

// clcDiskOf is the reverse of clcDisk.ignition.
func clcDiskOf(d ignDisk) clcDisk {
	size := func(n *int) string {
		if n == nil {
			return ""
		}
		return fmt.Sprintf("%dMiB", *n)
	}
	out := clcDisk{Device: d.Device, WipeTable: d.WipeTable}
	for _, p := range d.Partitions {
		out.Partitions = append(
			out.Partitions,
			clcPartition{Label: p.Label, Number: p.Number, Size: size(p.SizeMiB), Start: size(p.StartMiB), GUID: p.GUID, TypeGUID: p.TypeGUID},
		)
	}
	return out
}

// text returns the document; "" if nothing is set.
func (c clcConfig) text() (string, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(c); err != nil {
		return "", fmt.Errorf("encode the Container Linux Config: %w", err)
	}
	if text := out.String(); text != "{}\n" {
		return text, nil
	}
	return "", nil
}
