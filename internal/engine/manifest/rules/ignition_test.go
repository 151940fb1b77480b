package rules_test

import (
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One error in its configuration, and Ignition does not start a machine.
func TestIgnitionConfig(t *testing.T) {
	const plane = "    preKubeadmCommands: # sets"
	const unit = "          systemd:\n            units:\n"
	file := func(fields string) []string { return []string{plane, "    files: [{" + fields + "}]\n" + plane} }
	text := func(yaml string) []string { return []string{unit, yaml + unit} }
	for _, tt := range []struct {
		name         string
		edit         []string
		fails, warns string
	}{
		{"file", file("path: /opt/a, content: a, owner: 'core:core'"), "", ""},
		{"relative path", file("path: opt/a, content: a"), "files[0]: Ignition refuses it: path not absolute", ""},
		{"mode", file("path: /opt/a, content: a, permissions: '17777'"), "files[0]", ""},
		{"read-only", file("path: /usr/local/bin/a, content: a"), "files[0].path: Ignition could not write /usr/local/bin/a", ""},
		{"owner", file("path: /opt/a, content: a, owner: 'shop'"), "", "there is no user shop"},
		{"owner that is made", append(file("path: /opt/a, content: a, owner: 'shop'"), "    files:", "    users: [{name: shop}]\n    files:"), "", ""},
		{"filesystem", []string{plane, "    diskSetup: {filesystems: [{device: /dev/xvdb, filesystem: ext3, label: data}]}\n" + plane}, "filesystem format", ""},
		{"device", []string{plane, "    diskSetup: {filesystems: [{device: xvdb, filesystem: ext4, label: data}]}\n" + plane}, "path not absolute", ""},
		{"unit", []string{unit, unit + "            - {name: shop, contents: '[Unit]'}\n"}, "systemd.units[0]: invalid systemd unit extension", ""},
		{"contents", []string{unit, unit + "            - {name: shop.service, contents: '[Unit'}\n"}, "systemd.units[0]: invalid unit content", ""},
		{"drop-in", []string{"name: 10-flatcar.conf", "name: 10-flatcar"}, "systemd.units[0]: invalid systemd drop-in extension", ""},
		{"networkd", text("          networkd: {units: [{name: eth0}]}\n"), "networkd.units[0]: invalid networkd unit extension", ""},
		{
			"source", text("          storage: {files: [{path: /opt/a, contents: {remote: {url: 'ftp://example.com/a'}}}]}\n"),
			"storage.files[0]: invalid url", "",
		},
		{"append", text("          ignition: {config: {append: [{source: 'example.com/a'}]}}\n"), "ignition.config.append[0]: invalid url scheme", ""},
		{"link", text("          storage: {links: [{path: /usr/bin/a, target: /opt/a}]}\n"), "storage.links[0]: Ignition could not write /usr/bin/a", ""},
		{"raid", text("          storage: {raid: [{name: data, level: 7, devices: [/dev/xvdb]}]}\n"), "unrecognized raid level", ""},
		{"directory", text("          storage: {directories: [{path: /opt/a, user: {name: shop}}]}\n"), "", "storage.directories[0]: Ignition could not write /opt/a"},
		{
			"partitions", text("          storage: {disks: [{device: /dev/xvdb, partitions: [{number: 1, size: 1GiB}, {number: 1, size: 1GiB}]}]}\n"),
			"storage.disks[0]: ", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			yaml := manifests.Read(t, "../../../../configs/flatcar.yaml")
			for i := 0; i < len(tt.edit); i += 2 {
				require.Contains(t, yaml, tt.edit[i])
				yaml = strings.Replace(yaml, tt.edit[i], tt.edit[i+1], 1)
			}
			c, err := manifests.Load(t, yaml, input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment())})
			if tt.fails != "" {
				require.ErrorContains(t, err, tt.fails)
				return
			}
			require.NoError(t, err)
			if tt.warns == "" {
				assert.Empty(t, c.Warnings)
				return
			}
			require.Len(t, c.Warnings, 1)
			assert.Contains(t, c.Warnings[0].What, tt.warns)
		})
	}
}

// kubeadm reads its configuration without a shell.
func TestShellVariables(t *testing.T) {
	const commands = `    preKubeadmCommands: # sets the host name for kubeadm, which only the machine knows
    - envsubst < /etc/kubeadm.yml > /etc/kubeadm.yml.tmp
    - mv /etc/kubeadm.yml.tmp /etc/kubeadm.yml
`
	load := func(edit ...string) ([]string, error) {
		yaml := manifests.Read(t, "../../../../configs/flatcar.yaml")
		for i := 0; i < len(edit); i += 2 {
			require.Contains(t, yaml, edit[i])
			yaml = strings.Replace(yaml, edit[i], edit[i+1], 1)
		}
		c, err := manifests.Load(t, yaml, input.LoadOptions{Lookup: manifests.Lookup(manifests.Environment())})
		if err != nil {
			return nil, err
		}
		return manifests.Warnings(c), nil
	}
	const refused = "nothing replaces ${COREOS_EC2_HOSTNAME}: no shell reads the configuration of kubeadm"
	_, err := load(commands, "")
	require.ErrorContains(t, err, refused+", and kubeadm refuses it as the name of a Node")
	warnings, err := load(commands, "    preKubeadmCommands: [/opt/bin/prepare]\n")
	require.NoError(t, err)
	assert.Contains(t, strings.Join(warnings, "\n"), refused)
	for _, by := range []string{"sed -i s/A/B/ /etc/kubeadm.*", "python3 -c x /etc/kubeadm.yml"} {
		warnings, err = load(commands, "    preKubeadmCommands: ['"+by+"']\n")
		require.NoError(t, err)
		assert.Empty(t, warnings, by)
	}
	warnings, err = load(
		"          value: external\n    joinConfiguration",
		"          value: external\n        - name: node-ip\n          value: $${OWN_IP}\n    joinConfiguration",
		commands,
		"    preKubeadmCommands: [/opt/bin/prepare]\n",
	)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(warnings, "\n"), "nothing replaces ${OWN_IP}")
}
