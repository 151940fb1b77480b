package oracle

import (
	"fmt"
	"testing"

	ignition23 "github.com/coreos/ignition/config/v2_3"
	ignition34 "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

// ptr is a pointer to a value.
func ptr[T any](v T) *T { return &v }

// plain is the configuration of the quick start.
func plain() bootstrapv1.KubeadmConfigSpec {
	node := bootstrapv1.NodeRegistrationOptions{
		Name:             "{{ ds.meta_data.local_hostname }}",
		KubeletExtraArgs: []bootstrapv1.Arg{{Name: "cloud-provider", Value: ptr("external")}},
	}
	return bootstrapv1.KubeadmConfigSpec{
		ClusterConfiguration: bootstrapv1.ClusterConfiguration{ControllerManager: bootstrapv1.ControllerManager{ExtraArgs: node.KubeletExtraArgs}},
		InitConfiguration:    bootstrapv1.InitConfiguration{NodeRegistration: node},
		JoinConfiguration:    bootstrapv1.JoinConfiguration{NodeRegistration: node},
	}
}

// kubeadmFields uses all fields of kubeadm.
func kubeadmFields() bootstrapv1.KubeadmConfigSpec {
	spec := plain()
	spec.ClusterConfiguration = bootstrapv1.ClusterConfiguration{
		Etcd: bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{
			DataDir:        "/data/etcd",
			ImageTag:       "3.6.5-0",
			ExtraArgs:      []bootstrapv1.Arg{{Name: "quota-backend-bytes", Value: ptr("8589934592")}},
			ServerCertSANs: []string{"etcd"},
		}},
		APIServer: bootstrapv1.APIServer{
			ExtraArgs:    []bootstrapv1.Arg{{Name: "audit-log-path", Value: ptr("-")}},
			ExtraVolumes: []bootstrapv1.HostPathMount{{Name: "audit", HostPath: "/etc/audit", MountPath: "/etc/audit", ReadOnly: ptr(true), PathType: "File"}},
			CertSANs:     []string{"api.example.com"},
		},
		Scheduler:       bootstrapv1.Scheduler{ExtraArgs: []bootstrapv1.Arg{{Name: "v", Value: ptr("2")}}},
		DNS:             bootstrapv1.DNS{ImageRepository: "example.com/dns", ImageTag: "v1.12.0"},
		CertificatesDir: "/srv/pki", ImageRepository: "example.com/k8s",
		FeatureGates:                  map[string]bool{"NodeLocalCRISocket": true},
		CertificateValidityPeriodDays: 30, EncryptionAlgorithm: bootstrapv1.EncryptionAlgorithmECDSAP256,
	}
	for _, node := range []*bootstrapv1.NodeRegistrationOptions{&spec.InitConfiguration.NodeRegistration, &spec.JoinConfiguration.NodeRegistration} {
		node.Taints = &[]corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		node.IgnorePreflightErrors = []string{"Swap"}
		node.CRISocket = "unix:///run/containerd/containerd.sock"
	}
	spec.InitConfiguration.LocalAPIEndpoint.BindPort = 6443
	spec.InitConfiguration.SkipPhases = []string{"addon/kube-proxy"}
	spec.InitConfiguration.Patches.Directory = "/etc/patches"
	spec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = ptr(int32(300))
	spec.Verbosity = ptr(int32(5))
	return spec
}

// sections uses every section of cloud-init in the API.
func sections() bootstrapv1.KubeadmConfigSpec {
	spec := plain()
	spec.Verbosity = ptr(int32(7))
	spec.Files = []bootstrapv1.File{
		{
			Path:        "/etc/motd",
			Owner:       "root:root",
			Permissions: "0644",
			ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "extra", Key: "motd"}},
		},
		{Path: "/etc/blob", Encoding: bootstrapv1.Base64, Content: "aGVsbG8=", Append: ptr(true)},
		{Path: "/etc/gz", Encoding: bootstrapv1.GzipBase64, Content: "H4sIAAAAAAAA/8pIzcnJBwQAAP//hqYQNgUAAAA="},
		{Path: "/etc/yaml", Content: "a: b\nc:\n  - \"d\"\n# e\n\nf: 'g'\n\n"},
	}
	spec.BootCommands = []string{"echo boot: 1"}
	spec.PreKubeadmCommands = []string{`echo "a: b" # c \t`, "first\nsecond"}
	spec.PostKubeadmCommands = []string{"echo done"}
	spec.NTP = bootstrapv1.NTP{Enabled: ptr(true), Servers: []string{"0.pool.ntp.org", "169.254.169.123"}}
	spec.Users = []bootstrapv1.User{{
		Name: "ada", Gecos: "Ada L.", Groups: "docker, users", HomeDir: "/srv/ada", Shell: "/bin/bash", PrimaryGroup: "ada", Inactive: ptr(false),
		PasswdFrom:   bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: "extra", Key: "password"}},
		LockPassword: ptr(false), Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA ada@example.com"},
	}, {Name: "bob"}}
	spec.DiskSetup = bootstrapv1.DiskSetup{
		Partitions: []bootstrapv1.Partition{
			{Device: "/dev/nvme1n1", Layout: ptr(true), Overwrite: ptr(false), TableType: "gpt"},
			{Device: "/dev/nvme2n1", TableType: "mbr", DiskLayout: []bootstrapv1.PartitionSpec{
				{Percentage: 20, PartitionType: bootstrapv1.PartitionTypeLinuxSwap}, {Percentage: 30}, {Percentage: 50, PartitionType: bootstrapv1.PartitionTypeLVM},
			}},
		},
		Filesystems: []bootstrapv1.Filesystem{
			{Device: "/dev/nvme1n1", Filesystem: "ext4", Label: "data", Partition: "1", Overwrite: ptr(true), ExtraOpts: []string{"-F", "-E"}},
			{Device: "ephemeral0.1", Filesystem: "xfs", Label: "scratch", Partition: "auto", ReplaceFS: "ntfs"},
		},
	}
	spec.Mounts = []bootstrapv1.MountPoints{{"LABEL=data", "/var/lib/data"}, {"LABEL=scratch", "/scratch", "xfs", "noatime", "0", "2"}}
	return spec
}

// flatcar uses every section of Ignition that Cluster API renders correctly.
func flatcar() bootstrapv1.KubeadmConfigSpec {
	spec := sections()
	spec.Format = bootstrapv1.Ignition
	spec.BootCommands = nil
	spec.Files = []bootstrapv1.File{spec.Files[0], spec.Files[1], spec.Files[3]}
	spec.Files[1].Append, spec.Files[1].Permissions = nil, "0600"
	spec.Files[2].Owner, spec.Files[2].Permissions = "core", "0755"
	spec.DiskSetup.Partitions = spec.DiskSetup.Partitions[:1]
	spec.DiskSetup.Filesystems = []bootstrapv1.Filesystem{
		{Device: "/dev/nvme1n1p1", Filesystem: "ext4", Label: "data", Overwrite: ptr(true), ExtraOpts: []string{"-F", "-E"}},
		{Device: "/dev/nvme2n1", Filesystem: "xfs", Label: "scratch", Overwrite: ptr(false)},
	}
	spec.Mounts = []bootstrapv1.MountPoints{{"data", "/var/lib/data"}, {"scratch", "/scratch", "noatime", "nodev"}}
	spec.Ignition.ContainerLinuxConfig.AdditionalConfig = additionalConfig
	return spec
}

// additionalConfig is a Container Linux Config with all supported sections.
const additionalConfig = `
ignition:
  timeouts: {http_total: 30}
  config:
    append: [{source: "s3://bucket/more.ign", verification: {hash: {function: sha512, sum: "` + sum + `"}}}]
systemd:
  units:
  - name: kubeadm.service
    enabled: true
    dropins:
    - name: 10-flatcar.conf
      contents: |
        [Unit]
        Requires=coreos-metadata.service
        After=coreos-metadata.service
        [Service]
        EnvironmentFile=/run/metadata/*
  - {name: locksmithd.service, mask: true}
networkd:
  units:
  - name: 10-static.network
    contents: "[Match]\nName=eth1\n"
    dropins: [{name: 20.conf, contents: "[Network]\nDHCP=yes\n"}]
passwd:
  users:
  - {name: core, uid: 500, password_hash: "$6$x", ssh_authorized_keys: [ssh-ed25519 BBBB], groups: [sudo], shell: /bin/bash, no_create_home: true}
  groups: [{name: ops, gid: 1000}]
storage:
  disks:
  - device: /dev/sdb
    wipe_table: true
    partitions: [{label: one, number: 1, size: 10GiB, start: 1MiB, type_guid: raid_partition}, {number: 2}]
  raid: [{name: data, level: raid1, devices: [/dev/sdc, /dev/sdd], spares: 0}]
  filesystems:
  - {name: md, mount: {device: /dev/md/data, format: ext4, wipe_filesystem: true, label: MD, options: [-m, "1"]}}
  files:
  - path: /opt/hello.sh
    mode: 0755
    user: {name: core}
    group: {id: 500}
    contents: {inline: "#!/bin/bash\necho 'hello' # 100%\n"}
  - path: /opt/tool
    filesystem: md
    overwrite: true
    contents: {remote: {url: "https://example.com/tool.gz", compression: gzip, verification: {hash: {function: sha512, sum: "` + sum + `"}}}}
  - {path: /opt/empty, mode: 0600}
  directories: [{path: /opt/dir, mode: 0700, user: {id: 0}}, {path: /opt/other}]
  links: [{path: /opt/link, target: /opt/tool, hard: false, overwrite: true}]
docker: {flags: [--debug, --log-level=warn]}
update: {group: Stable, server: "https://updates.example.com"}
locksmith: {reboot_strategy: "off", window_start: "Sun 04:00", window_length: 2h}
`

const sum = "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"

// machines returns each role with versions on both sides of every threshold.
func machines(t *testing.T, spec func() bootstrapv1.KubeadmConfigSpec) map[string]boot.Machine {
	t.Helper()
	out := map[string]boot.Machine{}
	for _, version := range []string{"v1.29.5", "v1.30.14", "v1.31.0", "v1.34.2", "v1.35.3", "v1.36.1"} {
		for _, role := range []boot.Role{boot.Init, boot.JoinControlPlane, boot.JoinWorker} {
			out[fmt.Sprintf("%s %s", version, role)] = machine(t, role, version, spec())
		}
	}
	return out
}

// TestCloudConfig compares the cloud-config with that of Cluster API. Intended
// differences are in intended and cloudConfig.
func TestCloudConfig(t *testing.T) {
	for name, spec := range map[string]func() bootstrapv1.KubeadmConfigSpec{"plain": plain, "kubeadm": kubeadmFields, "sections": sections} {
		for which, m := range machines(t, spec) {
			t.Run(name+" "+which, func(t *testing.T) {
				want := cloudConfig(t, upstream(t, m))
				for _, f := range want["write_files"].([]any) {
					if docs, ok := f.(object)["content"].(object); ok {
						expect(m, docs)
					}
				}
				ours, err := boot.Render(m)
				require.NoError(t, err)
				assert.Equal(t, boot.CloudConfig, ours.Format)
				same(t, want, cloudConfig(t, ours.Content))
			})
		}
	}
}

// same reports where two documents differ, without printing all of them.
func same(t *testing.T, want, got object) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Cluster API's (-) and ours (+):\n%s", diff)
	}
}

// expect applies the intended differences to the documents of one machine. A taint in the
// manifest stays.
func expect(m boot.Machine, docs object) {
	intended(m.Role, docs)
	join, ok := docs["JoinConfiguration"].(object)
	if taints := m.Spec.JoinConfiguration.NodeRegistration.Taints; ok && m.Role == boot.JoinWorker && taints != nil {
		var own []any
		for _, taint := range *taints {
			own = append(own, object{"key": taint.Key, "value": taint.Value, "effect": string(taint.Effect)})
		}
		join["nodeRegistration"].(object)["taints"] = own
	}
}

// TestIgnition holds our Ignition configuration against Cluster API's.
// Differences beside those for kubeadm:
//
//   - files, sshd_config, ntp.conf and units are compared without comments;
//   - permissions are octal with or without a leading zero (there 644 is
//     decimal), append and gzip encodings are honoured (there the first is
//     dropped and the second written as it is), files without permissions get
//     0644 (there they are refused), groups may be separated by
//     commas alone, layout: false makes no partition, names of mount units are
//     escaped, and mounts may name LABEL= or a device: manifests that use these
//     do not work there, so they are tested in package boot.
func TestIgnition(t *testing.T) {
	for which, m := range machines(t, flatcar) {
		t.Run(which, func(t *testing.T) {
			want := ignition(t, upstream(t, m))
			for _, f := range want["storage"].(object)["files"].([]any) {
				if docs, ok := f.(object)["contents"].(object)["source"].(object); ok {
					expect(m, docs)
				}
			}
			ours, err := boot.Render(m)
			require.NoError(t, err)
			assert.Equal(t, boot.Ignition, ours.Format)
			same(t, want, ignition(t, ours.Content))
			validIgnition(t, ours.Content)
		})
	}
}

// validIgnition runs Ignition's own validator.
func validIgnition(t *testing.T, content []byte) {
	t.Helper()
	_, report, err := ignition23.Parse(content)
	require.NoError(t, err, report.String())
	assert.Empty(t, report.Entries, report.String())
}

// TestIgnitionOfOurOwn validates features that Cluster API does not have.
func TestIgnitionOfOurOwn(t *testing.T) {
	spec := flatcar()
	spec.Files = []bootstrapv1.File{
		{Path: "/a", Content: "a", Append: ptr(true)},
		{Path: "/b", Encoding: bootstrapv1.GzipBase64, Content: "H4sIAAAAAAAA/8pIzcnJBwQAAP//hqYQNgUAAAA=", Permissions: "644", Owner: "core"},
		{Path: "/c"},
	}
	spec.DiskSetup.Partitions[0].Layout = ptr(false)
	spec.Mounts = []bootstrapv1.MountPoints{{"LABEL=data", "/var/my-data"}, {"LABEL=other", "/x"}, {"/dev/sdz", "/y"}}
	for _, role := range []boot.Role{boot.Init, boot.JoinControlPlane, boot.JoinWorker} {
		ours, err := boot.Render(machine(t, role, "v1.34.2", spec))
		require.NoError(t, err)
		validIgnition(t, ours.Content)
	}
}

// TestIgnitionPointer validates the configuration that points to S3, in both
// specifications.
func TestIgnitionPointer(t *testing.T) {
	content, err := boot.IgnitionPointer(&infrav1.Ignition{Version: "2.3"}, "s3://bucket/node/m")
	require.NoError(t, err)
	validIgnition(t, content)

	content, err = boot.IgnitionPointer(&infrav1.Ignition{
		Version: "3.4",
		Proxy: &infrav1.IgnitionProxy{
			HTTPProxy:  ptr("http://proxy:3128"),
			HTTPSProxy: ptr("https://proxy:3129"),
			NoProxy:    []infrav1.IgnitionNoProxy{"169.254.169.254"},
		},
		TLS: &infrav1.IgnitionTLS{CASources: []infrav1.IgnitionCASource{"https://example.com/ca.pem"}},
	}, "s3://bucket/node/m")
	require.NoError(t, err)
	config, report, err := ignition34.Parse(content)
	require.NoError(t, err, report.String())
	assert.Empty(t, report.Entries, report.String())
	assert.Equal(t, "s3://bucket/node/m", *config.Ignition.Config.Merge[0].Source)
	assert.Equal(t, "https://example.com/ca.pem", *config.Ignition.Security.TLS.CertificateAuthorities[0].Source)
	assert.Equal(t, "http://proxy:3128", *config.Ignition.Proxy.HTTPProxy)
}
