package boot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/yaml"
)

// What a machine has booted with is read back such that it gives the same data again: for all
// that cloud-init and Ignition can do.
func TestParseBootedRoundTrip(t *testing.T) {
	for name, text := range map[string]string{
		"cloud-config": bootedCommon + bootedCloudConfig,
		"ignition":     bootedCommon + bootedIgnition,
	} {
		t.Run(name, func(t *testing.T) {
			var spec bootstrapv1.KubeadmConfigSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &spec))
			m := machine(t, JoinWorker, "v1.34.2", spec)
			first, err := Render(m)
			require.NoError(t, err)
			b, err := ParseBooted(first.Content, func(s string) bool { return strings.Contains(s, "PRIVATE") })
			require.NoError(t, err)
			require.Empty(t, b.LeftOut)
			m.Spec = b.Spec
			second, err := Render(m)
			require.NoError(t, err)
			require.Equal(t, string(first.Content), string(second.Content))
		})
	}
}

// The same for machines of EKS, with nodeadm and with the bootstrap script.
func TestParseBootedEKSRoundTrip(t *testing.T) {
	const sections = `
files: [{path: /etc/motd, owner: "root:wheel", permissions: "0640", content: "hello\n", append: true}, {path: /etc/line, content: "one line"}, {path: /etc/lines, content: "two\n\n"}]
ntp: {enabled: true, servers: [169.254.169.123]}
mounts: [[/dev/xvdb, /var/lib/data]]
users: [{name: admin, gecos: The admin, groups: wheel, homeDir: /home/a, shell: /bin/sh, lockPassword: false, sudo: "ALL=(ALL) NOPASSWD:ALL", sshAuthorizedKeys: [ssh-ed25519 AAAA admin]}]
diskSetup:
  partitions: [{device: /dev/xvdb, layout: true, overwrite: false, tableType: gpt}]
  filesystems: [{device: /dev/xvdb, filesystem: ext4, label: data, partition: auto, extraOpts: [-E, lazy]}]
`
	const nodeadm = sections + `
preNodeadmCommands: [echo one, "echo 'two words é'"]
featureGates: {FastImagePull: true, InstanceIdNodeName: false}
kubelet: {config: {maxPods: 58, evictionHard: {memory.available: 5%}, serializeImagePulls: false}, flags: ["--node-labels=a=b", "--v=3"]}
containerd: {config: "[plugins]\nx = 1\n", baseRuntimeSpec: {process: {rlimits: [{type: RLIMIT_NOFILE, soft: 1024}]}}}
`
	const script = sections + `
preBootstrapCommands: [echo before]
postBootstrapCommands: [echo after]
kubeletExtraArgs: {node-labels: "a=b,c=d", v: "3"}
containerRuntime: containerd
dnsClusterIP: 172.20.0.10
apiRetryAttempts: 5
useMaxPods: false
pauseContainer: {accountNumber: "602401143452", version: "3.5"}
dockerConfigJson: '{"log-driver": "it''s"}'
`
	node := eksNode(t)
	var want eksbootstrapv1.NodeadmConfigSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(nodeadm), &want))
	for _, config := range []string{want.Containerd.Config, "|\n" + want.Containerd.Config, "|-\n" + want.Containerd.Config} {
		want.Containerd.Config = config
		first, err := RenderNodeadm(node, want)
		require.NoError(t, err)
		b, err := ParseBootedEKS(first.Content, func(string) bool { return false })
		require.NoError(t, err)
		require.Empty(t, b.LeftOut)
		second, err := RenderNodeadm(node, *b.Nodeadm)
		require.NoError(t, err)
		require.Equal(t, string(first.Content), string(second.Content))
	}

	var config eksbootstrapv1.EKSConfigSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(script), &config))
	first, err := RenderEKSConfig(node, config)
	require.NoError(t, err)
	b, err := ParseBootedEKS(first.Content, func(string) bool { return false })
	require.NoError(t, err)
	require.Empty(t, b.LeftOut)
	second, err := RenderEKSConfig(node, *b.Config)
	require.NoError(t, err)
	require.Equal(t, string(first.Content), string(second.Content))
	b, err = ParseBootedEKS(first.Content, func(s string) bool { return strings.Contains(s, "log-driver") })
	require.NoError(t, err)
	require.Equal(t, []string{"dockerConfigJson, which may contain a secret"}, b.LeftOut)
	require.Nil(t, b.Config.DockerConfigJSON)
}

const bootedCommon = `
joinConfiguration:
  nodeRegistration:
    name: node
    kubeletExtraArgs: [{name: cloud-provider, value: external}, {name: v, value: "3"}]
    taints: [{key: dedicated, value: gpu, effect: NoSchedule}]
  timeouts: {discoverySeconds: 700, kubeletHealthCheckSeconds: 99}
  patches: {directory: /etc/kubernetes/patches}
verbosity: 5
preKubeadmCommands: [echo before, "echo 'two words'"]
postKubeadmCommands: [echo after]
ntp: {enabled: true, servers: [169.254.169.123, time.example.com]}
files:
- {path: /etc/motd, owner: "root:wheel", permissions: "0640", content: "hello\nworld\n"}
- {path: /etc/append, content: "more\n", append: true}
- {path: /etc/base64, encoding: base64, content: AAECAw==}
- {path: /etc/empty}
- {path: /etc/lines, content: " first\n\n  second\n\n"}
`

const bootedCloudConfig = `
bootCommands: [echo boot]
mounts: [[LABEL=data, /var/lib/data, ext4, defaults], [/dev/xvdc, /mnt]]
users: [{name: admin, gecos: The admin, groups: "wheel, docker", homeDir: /home/a, inactive: false, shell: /bin/sh, lockPassword: false, primaryGroup: users, sudo: "ALL=(ALL) NOPASSWD:ALL", sshAuthorizedKeys: [ssh-ed25519 AAAA admin]}]
diskSetup:
  partitions:
  - {device: /dev/xvdc, layout: true, overwrite: false, tableType: gpt}
  - {device: /dev/xvdb, tableType: mbr, diskLayout: [{percentage: 33}, {percentage: 33, partitionType: LinuxSwap}, {percentage: 34, partitionType: Fat32}]}
  filesystems:
  - {device: /dev/xvdc, filesystem: ext4, label: data, partition: auto, overwrite: true, extraOpts: [-E, lazy_itable_init=1]}
  - {device: /dev/xvdb, filesystem: xfs, label: other, partition: "1", replaceFS: ntfs}
`

const bootedIgnition = `
format: ignition
mounts: [[data, /var/lib/my-data], [/dev/xvdc, /mnt]]
users: [{name: admin, gecos: The admin, groups: "wheel, docker", homeDir: /home/a, shell: /bin/sh, lockPassword: false, primaryGroup: users, sudo: "ALL=(ALL) NOPASSWD:ALL", sshAuthorizedKeys: [ssh-ed25519 AAAA admin]}]
diskSetup:
  partitions: [{device: /dev/xvdc, layout: true, overwrite: true}]
  filesystems: [{device: /dev/xvdc, filesystem: ext4, label: data, overwrite: true, extraOpts: [-E, lazy_itable_init=1]}]
ignition:
  containerLinuxConfig:
    additionalConfig: |
      # a comment
      ignition: {timeouts: {http_total: 30}, security: {tls: {certificate_authorities: [{source: "https://example.com/ca"}]}}}
      systemd:
        units:
        - name: kubeadm.service
          enabled: true
          dropins:
          - {name: 10-flatcar.conf, contents: "[Unit]\nRequires=coreos-metadata.service\n"}
        - {name: locksmithd.service, mask: true, enabled: false}
      networkd: {units: [{name: 10-eth.network, contents: "[Match]\nName=eth0\n"}]}
      passwd: {groups: [{name: ops, gid: 1100}]}
      storage:
        disks: [{device: /dev/xvdd, wipe_table: true, partitions: [{label: raid, number: 1, size: 10GiB, type_guid: raid_partition}]}]
        raid: [{name: md0, level: raid1, devices: [/dev/a, /dev/b]}]
        filesystems: [{name: data2, mount: {device: /dev/md0, format: ext4, create: {force: true, options: [-L, DATA]}}}]
        files:
        - {filesystem: root, path: /etc/inline, mode: 0600, contents: {inline: "two\nlines\n"}, user: {id: 500}, group: {name: ops}}
        - {filesystem: root, path: /opt/tool, mode: 0755, contents: {remote: {url: "https://example.com/tool", verification: {hash: {function: sha512, sum: abc}}}}}
        directories: [{filesystem: root, path: /opt/dir, mode: 0711}]
        links: [{filesystem: root, path: /opt/link, target: /opt/dir}]
      docker: {flags: ["--insecure-registry=a"]}
      locksmith: {reboot_strategy: "off"}
`
