package kubernetes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cloud-init stops at the first file that it cannot write, and mounts hide files.
func TestFirstStage(t *testing.T) {
	for text, want := range map[string]string{
		"write_files: [{path: /a, owner: 'root:root'}, {path: /b/}, {path: c, owner: '-1'}]": "",
		"write_files: [{path: /a, owner: deploy}]\nusers: [{name: deploy}]":                  "Unknown user or group",
		"write_files: [{path: /a, owner: 'root:deploy'}]":                                    "Unknown user or group",
		"write_files: [{path: /a, owner: deploy}]\nbootcmd: [useradd deploy]":                "",
		"write_files: [{path: /a, owner: '1000'}]":                                           "Unknown user or group",
		"write_files: [{path: /a/b}, {path: /a}]":                                            "Is a directory: '/a'",
		"write_files: [{path: /a}, {path: /a/b}]":                                            "Not a directory: '/a/b'",
		"write_files: [{path: /etc/}]":                                                       "Is a directory: '/etc'",
		"runcmd: ['echo \"a', kubeadm join]":                                                 "Unterminated quoted string",
		`runcmd: ["echo \"a", "b\" 'c' \\' # don't", kubeadm join]`:                          "",
		"runcmd: [reboot, kubeadm join]":                                                     "the machine stops",
		"runcmd: [shutdown -r +1, kubeadm join]":                                             "",
		"runcmd: ['kill -9 $$', kubeadm join]":                                               "the shell has ended",
		"runcmd: ['cd /a && exit 1 || exit 1', kubeadm join]":                                "the shell has ended",
		"runcmd: [set -e, 'false', kubeadm join]":                                            "set -e has ended the shell",
		"runcmd: ['false', kubeadm join]":                                                    "",
		"runcmd: [systemctl mask kubelet, kubeadm join]":                                     "what it needs is gone",
		"runcmd: [systemctl stop containerd, systemctl start containerd, kubeadm join]":      "",
		"runcmd: [apt-get remove -y kubeadm, kubeadm join]":                                  "what it needs is gone",
		`{"storage": {}}`: "",
		`{"storage": {"files": [{"filesystem": "root", "path": "/opt/a", "contents": {"source": "data:,a"}}]}}`:                                 "",
		`{"storage": {"files": [{"filesystem": "root", "path": "opt/a"}]}}`:                                                                     "path not absolute",
		`{"storage": {"links": [{"filesystem": "root", "path": "/usr/local/bin/a"}]}}`:                                                          "read-only",
		`{"storage": {"files": [{"filesystem": "root", "path": "/opt/a", "user": {"name": "shop"}}]}}`:                                          "no such user",
		`{"passwd": {"users": [{"name": "shop"}]}, "storage": {"files": [{"filesystem": "root", "path": "/opt/a", "user": {"name": "shop"}}]}}`: "",
		`{"storage": {"files": [{"filesystem": "root", "path": "/opt/a", "contents": {"source": "ftp://example.com/a"}}]}}`:                     "invalid url scheme",
		`{"storage": {"filesystems": [{"name": "data", "mount": {"device": "/dev/xvdb", "format": "ext3"}}]}}`:                                  "invalid filesystem format",
		`{"systemd": {"units": [{"name": "kubelet"}]}}`:                                                                                         "invalid systemd unit extension",
		`{"systemd": {"units": [{"name": "kubelet.service", "dropins": [{"name": "10-a"}]}]}}`:                                                  "invalid systemd drop-in extension",
		`{"networkd": {"units": [{"name": "eth0.network"}, {"name": "eth0"}]}}`:                                                                 "invalid networkd unit extension",
	} {
		if err := firstStage([]byte(text), map[string]string{}); want == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, want, text)
		}
	}
	files := map[string]string{"/run/kubeadm/kubeadm.yaml": "", "/data/a": ""}
	require.NoError(
		t,
		firstStage([]byte("mounts: [[/dev/b, /data], [/dev/c, /run/kubeadm, ext4, noauto]]\nfs_setup: [{device: /dev/b, filesystem: ext4}]"), files),
	)
	assert.Equal(t, map[string]string{"/run/kubeadm/kubeadm.yaml": "", "/data/lost+found": ""}, files)
}

// kubeadm wants an empty folder for the data of etcd.
func TestFolderOfEtcd(t *testing.T) {
	const check = "DirAvailable--var-lib-etcd"
	lost := map[string]string{"/var/lib/etcd/lost+found": ""}
	assert.Equal(t, "/var/lib/etcd", etcdFolder("etcd: {local: {}}"))
	assert.Equal(t, "/data/etcd", etcdFolder("etcd: {local: {dataDir: /data/etcd/}}"))
	assert.Contains(t, etcdFolderRefused(lost, "/var/lib/etcd", nil), check+"]: /var/lib/etcd is not empty")
	assert.Empty(t, etcdFolderRefused(lost, "/var/lib/etcd", []string{check}))
	assert.Empty(t, etcdFolderRefused(lost, "/var/lib/etcd/data", nil))
	lost[bootText] = "runcmd:\n  - \"rmdir /var/lib/etcd/lost+found\"\n"
	assert.Empty(t, etcdFolderRefused(lost, "/var/lib/etcd", nil))
}
