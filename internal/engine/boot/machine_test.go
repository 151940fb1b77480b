package boot

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	testToken    = "abcdef.0123456789abcdef"
	testEndpoint = "prod-apiserver-1a2b.elb.us-east-1.amazonaws.com:6443"
	hostname     = "{{ ds.meta_data.local_hostname }}"
)

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

// fixedPKI returns the PKI in testdata.
func fixedPKI(t *testing.T) *PKI {
	t.Helper()
	files, err := filepath.Glob("testdata/pki/*")
	require.NoError(t, err)
	entries := map[string][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		entries[filepath.Base(file)] = content
	}
	p, err := ParsePKI(entries)
	require.NoError(t, err)
	return p
}

// quickStart returns the configuration of the control plane in CAPA's quick start.
func quickStart() bootstrapv1.KubeadmConfigSpec {
	external := "external"
	node := bootstrapv1.NodeRegistrationOptions{
		Name:             hostname,
		KubeletExtraArgs: []bootstrapv1.Arg{{Name: "cloud-provider", Value: &external}},
	}
	return bootstrapv1.KubeadmConfigSpec{
		ClusterConfiguration: bootstrapv1.ClusterConfiguration{
			ControllerManager: bootstrapv1.ControllerManager{ExtraArgs: node.KubeletExtraArgs},
		},
		InitConfiguration: bootstrapv1.InitConfiguration{NodeRegistration: node},
		JoinConfiguration: bootstrapv1.JoinConfiguration{NodeRegistration: node},
	}
}

// machine returns a machine of a cluster "prod" with the network of the quick start.
func machine(t *testing.T, role Role, version string, spec bootstrapv1.KubeadmConfigSpec) Machine {
	t.Helper()
	return Machine{
		Role:    role,
		Version: version,
		Cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "prod", Namespace: "default"},
			Spec: clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{
				Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16"}},
			}},
		},
		Spec:     spec,
		Endpoint: testEndpoint,
		PKI:      fixedPKI(t),
		Token:    testToken,
		TokenTTL: 2 * time.Hour,
		Secret: func(name, key string) ([]byte, error) {
			if name == "extra" && key == "motd" {
				return []byte("from a secret\n"), nil
			}
			if name == "extra" && key == "password" {
				return []byte("$6$rounds=4096$hash"), nil
			}
			return nil, os.ErrNotExist
		},
	}
}

// render renders a valid machine.
func render(t *testing.T, m Machine) Data {
	t.Helper()
	data, err := Render(m)
	require.NoError(t, err)
	return data
}

// everything returns a worker's configuration with all sections of cloud-init.
func everything() bootstrapv1.KubeadmConfigSpec {
	yes, no, verbosity := true, false, int32(5)
	spec := quickStart()
	spec.Verbosity = &verbosity
	spec.Files = []bootstrapv1.File{
		{
			Path:        "/etc/motd",
			Owner:       "root:root",
			Permissions: "0644",
			ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "extra", Key: "motd"}},
		},
		{Path: "/etc/blob", Encoding: bootstrapv1.Base64, Content: "aGVsbG8=", Append: &yes},
		{Path: "/etc/node", Content: `name={{ ds.meta_data["local_hostname"] }}` + "  \n\tindented 'quoted' \"twice\"\n"},
		{Path: "/etc/empty", Append: &no},
	}
	spec.BootCommands = []string{"echo boot: 1"}
	spec.PreKubeadmCommands = []string{"hostnamectl set-hostname " + hostname, `echo "a: b" # c`, "first\nsecond"}
	spec.PostKubeadmCommands = []string{"echo done"}
	spec.NTP = bootstrapv1.NTP{Enabled: &yes, Servers: []string{"0.pool.ntp.org", "169.254.169.123"}}
	spec.Users = []bootstrapv1.User{
		{
			Name: "ada", Gecos: "Ada L.", Groups: "docker, users", HomeDir: "/srv/ada", Shell: "/bin/bash", PrimaryGroup: "ada",
			PasswdFrom:   bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: "extra", Key: "password"}},
			LockPassword: &no, Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA ada@example.com"},
		},
		{Name: "007"},
	}
	spec.DiskSetup = bootstrapv1.DiskSetup{
		Partitions: []bootstrapv1.Partition{
			{Device: "/dev/nvme1n1", Layout: &yes, Overwrite: &no, TableType: "gpt"},
			{Device: "/dev/nvme2n1", TableType: "mbr", DiskLayout: []bootstrapv1.PartitionSpec{
				{Percentage: 20, PartitionType: bootstrapv1.PartitionTypeLinuxSwap}, {Percentage: 30}, {Percentage: 50, PartitionType: bootstrapv1.PartitionTypeLinux},
			}},
		},
		Filesystems: []bootstrapv1.Filesystem{
			{Device: "/dev/nvme1n1", Filesystem: "ext4", Label: "data", Partition: "1", Overwrite: &yes, ExtraOpts: []string{"-E", "lazy_itable_init=1"}},
			{Device: "ephemeral0.1", Filesystem: "xfs", Label: "scratch", Partition: "auto", ReplaceFS: "ntfs"},
		},
	}
	spec.Mounts = []bootstrapv1.MountPoints{{"LABEL=data", "/var/lib/data"}, {"LABEL=scratch", "/scratch", "xfs", "noatime", "0", "2"}}
	return spec
}

// flatcar returns a worker's configuration with all sections of Ignition.
func flatcar() bootstrapv1.KubeadmConfigSpec {
	no := false
	spec := everything()
	for _, node := range []*bootstrapv1.NodeRegistrationOptions{&spec.InitConfiguration.NodeRegistration, &spec.JoinConfiguration.NodeRegistration} {
		node.Name = "${COREOS_EC2_HOSTNAME}"
	}
	spec.Format = bootstrapv1.Ignition
	spec.BootCommands = nil
	spec.DiskSetup.Partitions[1] = bootstrapv1.Partition{Device: "/dev/nvme2n1", Layout: &no}
	spec.DiskSetup.Filesystems[0].Partition = ""
	spec.DiskSetup.Filesystems[1].ReplaceFS = ""
	spec.PreKubeadmCommands = []string{"envsubst < /etc/kubeadm.yml > /etc/kubeadm.yml.tmp", "mv /etc/kubeadm.yml.tmp /etc/kubeadm.yml"}
	spec.Ignition.ContainerLinuxConfig.AdditionalConfig = `systemd:
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
storage:
  files:
  - path: /opt/hello.sh
    mode: 0755
    contents:
      inline: |
        #!/bin/bash
        echo hello
passwd:
  users:
  - name: core
    ssh_authorized_keys: [ssh-ed25519 BBBB core@example.com]
locksmith:
  reboot_strategy: "off"
`
	return spec
}
