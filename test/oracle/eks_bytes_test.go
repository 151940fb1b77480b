package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

// bytesOfEKS are configurations for which the user data is that of CAPA, byte for byte.
func bytesOfEKS() (configs map[string]eksbootstrapv1.EKSConfigSpec, nodeadm map[string]eksbootstrapv1.NodeadmConfigSpec) {
	files := []eksbootstrapv1.File{
		{Path: "/etc/motd", Owner: "root:root", Permissions: "0644", Content: "hello: world # yes\n\n  two\n"},
		{Path: "/etc/blob", Encoding: eksbootstrapv1.Base64, Content: "aGVsbG8=", Append: true},
	}
	_, users, _, _, ntp := cloudInit()
	disks := &eksbootstrapv1.DiskSetup{
		Partitions: []eksbootstrapv1.Partition{{Device: "/dev/nvme1n1", Layout: true, Overwrite: ptr(false), TableType: ptr("gpt")}},
		Filesystems: []eksbootstrapv1.Filesystem{
			{Device: "/dev/nvme1n1", Filesystem: "ext4", Label: "data", Partition: ptr("auto"), Overwrite: ptr(true), ExtraOpts: []string{"-E", "lazy_itable_init=1"}},
		},
	}
	mounts := []eksbootstrapv1.MountPoints{{"LABEL=data", "/var/lib/data"}, {"LABEL=scratch", "/scratch", "xfs", "noatime"}}
	kubelet := &eksbootstrapv1.KubeletOptions{Flags: []string{"--node-labels=role=worker", "--v=2"}, Config: &runtime.RawExtension{Raw: []byte(
		`{"maxPods":110,"shutdownGracePeriod":"30s","evictionHard":{"memory.available":"5%"},"registerWithTaints":[{"key":"a","value":"on","effect":"NoSchedule"}],"allowedUnsafeSysctls":[]}`,
	)}}
	configs = map[string]eksbootstrapv1.EKSConfigSpec{
		"empty": {},
		"options": {
			KubeletExtraArgs: map[string]string{
				"node-labels": "role=worker,tier=web",
				"max-pods":    "58",
			},
			ContainerRuntime:         ptr("containerd"),
			DNSClusterIP:             ptr("10.100.0.10"),
			APIRetryAttempts:         ptr(5),
			PauseContainer:           &eksbootstrapv1.PauseContainer{AccountNumber: "602401143452", Version: "3.10"},
			UseMaxPods:               ptr(false),
			BootstrapCommandOverride: ptr("/opt/bootstrap.sh"),
			DockerConfigJSON:         ptr(`{"debug":true}`),
		},
		"cloud-init": {
			PreBootstrapCommands: []string{`echo "a: b" # c`, "first\nsecond"}, PostBootstrapCommands: []string{"echo done"},
			Files: files, Users: users, NTP: ntp, DiskSetup: disks, Mounts: mounts,
		},
		"IPv6": {ServiceIPV6Cidr: ptr("fd12:3456::/108")},
	}
	nodeadm = map[string]eksbootstrapv1.NodeadmConfigSpec{
		"empty": {},
		"commands": {
			FeatureGates:       map[eksbootstrapv1.Feature]bool{eksbootstrapv1.FeatureFastImagePull: true},
			PreNodeadmCommands: []string{`echo "fs.inotify.max_user_watches=524288" > /etc/sysctl.d/90-inotify.conf`, "sysctl --system"},
		},
		"kubelet": {Kubelet: kubelet},
		"flags":   {Kubelet: &eksbootstrapv1.KubeletOptions{Flags: []string{"--v=2"}}},
		"containerd": {Containerd: &eksbootstrapv1.ContainerdOptions{
			Config:          "|\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndiscard_unpacked_layers = false\n",
			BaseRuntimeSpec: &runtime.RawExtension{Raw: []byte(`{"process":{"rlimits":[{"type":"RLIMIT_NOFILE","soft":1024,"hard":1024}]}}`)},
		}},
		"everything": {
			Kubelet: kubelet, FeatureGates: map[eksbootstrapv1.Feature]bool{eksbootstrapv1.FeatureInstanceIDNodeName: true, eksbootstrapv1.FeatureFastImagePull: false},
			PreNodeadmCommands: []string{"echo before: 1"}, Files: files, Users: users, NTP: ntp, DiskSetup: disks, Mounts: mounts,
		},
	}
	return configs, nodeadm
}

// TestBytesOfEKS requires the user data of CAPA, byte for byte. Its controllers render it anew for
// pools that are handed over to them, and make a version of the launch template for another text.
func TestBytesOfEKS(t *testing.T) {
	n := eksNode(t)
	configs, nodeadm := bytesOfEKS()
	for name, spec := range configs {
		t.Run("EKSConfig "+name, func(t *testing.T) {
			ours, err := boot.RenderEKSConfig(n, spec)
			require.NoError(t, err)
			assert.Equal(t, string(eksConfigOfCAPA(t, n, spec)), string(ours.Content))
		})
	}
	for name, spec := range nodeadm {
		t.Run("NodeadmConfig "+name, func(t *testing.T) {
			ours, err := boot.RenderNodeadm(n, spec)
			require.NoError(t, err)
			assert.Equal(t, string(nodeadmOfCAPA(t, n, spec)), string(ours.Content))
		})
	}
}

// TestBytesThatDiffer lists what CAPA renders wrongly. If one of them fails, CAPA has changed.
func TestBytesThatDiffer(t *testing.T) {
	n := eksNode(t)
	for why, spec := range map[string]eksbootstrapv1.EKSConfigSpec{
		"a quote ends the argument":             {KubeletExtraArgs: map[string]string{"node-labels": "it's=fine"}},
		"': ' makes a mapping of the command":   {DockerConfigJSON: ptr(`{"debug": true}`)},
		"a service that is disabled is enabled": {NTP: &eksbootstrapv1.NTP{Enabled: ptr(false), Servers: []string{"169.254.169.123"}}},
		"a text is a number":                    {Mounts: []eksbootstrapv1.MountPoints{{"LABEL=a", "/a", "xfs", "noatime", "0"}}},
	} {
		ours, err := boot.RenderEKSConfig(n, spec)
		require.NoError(t, err)
		assert.NotEqual(t, string(eksConfigOfCAPA(t, n, spec)), string(ours.Content), why)
	}
	for why, spec := range map[string]eksbootstrapv1.NodeadmConfigSpec{
		"cloud-init reads it as Latin-1": {PreNodeadmCommands: []string{"echo Grüße"}},
		"a quote ends the flag":          {Kubelet: &eksbootstrapv1.KubeletOptions{Flags: []string{`--node-labels=a="b"`}}},
		"lines are joined":               {Containerd: &eksbootstrapv1.ContainerdOptions{Config: "a = 1\nb = 2\n"}},
	} {
		ours, err := boot.RenderNodeadm(n, spec)
		require.NoError(t, err)
		assert.NotEqual(t, string(nodeadmOfCAPA(t, n, spec)), string(ours.Content), why)
	}
}
