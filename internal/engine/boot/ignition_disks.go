package boot

import (
	"errors"
	"fmt"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// addDisks converts diskSetup. Settings that Ignition 2.3 does not support are errors.
func addDisks(in *input, config *ignConfig) error {
	for i, p := range in.spec.DiskSetup.Partitions {
		disk, err := ignitionDisk(p)
		if err != nil {
			return fmt.Errorf("diskSetup.partitions[%d]: %w", i, err)
		}
		config.Storage.Disks = append(config.Storage.Disks, disk)
	}
	for i, f := range in.spec.DiskSetup.Filesystems {
		if err := filesystemFitsIgnition(f); err != nil {
			return fmt.Errorf("diskSetup.filesystems[%d]: %w", i, err)
		}
		config.Storage.Filesystems = append(config.Storage.Filesystems, ignitionFilesystem(f))
	}
	return nil
}

func ignitionFilesystem(f bootstrapv1.Filesystem) ignFilesystem {
	return ignFilesystem{
		Name: f.Label,
		Mount: &ignMount{
			Device:         f.Device,
			Format:         f.Filesystem,
			WipeFilesystem: isTrue(f.Overwrite),
			Label:          &f.Label,
			Options:        f.ExtraOpts,
		},
	}
}

// ignitionDisk converts a partition table: no partition, or one on the whole disk.
func ignitionDisk(p bootstrapv1.Partition) (ignDisk, error) {
	if p.TableType != "" && p.TableType != "gpt" {
		return ignDisk{}, fmt.Errorf("tableType: Ignition writes gpt only, not %s", p.TableType)
	}
	if len(p.DiskLayout) > 0 {
		return ignDisk{}, errors.New("diskLayout: Ignition does not support sizes in percent: use storage.disks in " + additionalConfig)
	}
	disk := ignDisk{Device: p.Device, WipeTable: isTrue(p.Overwrite)}
	if isTrue(p.Layout) {
		disk.Partitions = []ignPartition{{}}
	}
	return disk, nil
}

// filesystemFitsIgnition rejects fields of cloud-init that Ignition does not support.
func filesystemFitsIgnition(f bootstrapv1.Filesystem) error {
	if f.ReplaceFS != "" {
		return errors.New("replaceFS: not supported by Ignition")
	}
	switch f.Partition {
	case "", "auto", "any", "none":
		return nil
	default:
		return fmt.Errorf("partition: not supported by Ignition: name the partition as the device, for example %s%s", f.Device, f.Partition)
	}
}

// addMounts adds a systemd mount unit for each mount.
func addMounts(in *input, config *ignConfig) error {
	devices := map[string]string{}
	for _, f := range in.spec.DiskSetup.Filesystems {
		devices[f.Label] = f.Device
	}
	for i, mount := range in.spec.Mounts {
		if len(mount) < 2 {
			return fmt.Errorf("mounts[%d]: needs a file system and a mount point", i)
		}
		device, err := mountDevice(mount[0], devices)
		if err != nil {
			return fmt.Errorf("mounts[%d]: %w", i, err)
		}
		enabled := true
		config.Systemd.Units = append(config.Systemd.Units, ignUnit{
			Name:    escapePath(mount[1]) + ".mount",
			Enabled: &enabled,
			Contents: "[Unit]\nDescription=Mount " + mount[0] + "\n\n" +
				"[Mount]\nWhat=" + device + "\nWhere=" + mount[1] + "\nOptions=" + strings.Join(mount[2:], ",") + "\n\n" +
				"[Install]\nWantedBy=multi-user.target\n",
		})
	}
	return nil
}

// mountDevice returns the device of a mount: by the label of a file system in diskSetup,
// by LABEL=, or a path.
func mountDevice(what string, devices map[string]string) (string, error) {
	label, labelled := strings.CutPrefix(what, "LABEL=")
	if device, ok := devices[label]; ok {
		return device, nil
	}
	if labelled {
		return "/dev/disk/by-label/" + label, nil
	}
	if strings.HasPrefix(what, "/") {
		return what, nil
	}
	return "", fmt.Errorf("no file system in diskSetup has the label %q", what)
}

// escapePath escapes a path for a unit name as systemd-escape --path does:
// "/var/lib/my-data" becomes "var-lib-my\x2ddata". systemd rejects a mount unit whose
// name does not match its mount point.
func escapePath(path string) string {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	var out strings.Builder
	for i, c := range []byte(strings.Join(parts, "/")) {
		switch {
		case c == '/':
			out.WriteByte('-')
		case isUnitNameByte(c) && (c != '.' || i > 0):
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, `\x%02x`, c)
		}
	}
	return out.String()
}

// isUnitNameByte reports whether systemd leaves a byte of a path unescaped.
func isUnitNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == ':' || c == '_' || c == '.'
}
