package oracle

import (
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	capa "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/oracle"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

func eksNode(t *testing.T) boot.EKSNode {
	t.Helper()
	return boot.EKSNode{Cluster: boot.EKSCluster{
		Name: "default_prod", Endpoint: "https://0123ABCD.gr7.us-east-1.eks.amazonaws.com", CA: fixedPKI(t).CA.Cert, ServiceCIDR: "10.100.0.0/16",
	}}
}

// cloudInit sets the common fields, as far as CAPA renders them correctly: it changes
// booleans that are false to true, or omits them.
func cloudInit() (files []eksbootstrapv1.File, users []eksbootstrapv1.User, disks *eksbootstrapv1.DiskSetup, mounts []eksbootstrapv1.MountPoints, ntp *eksbootstrapv1.NTP) {
	files = []eksbootstrapv1.File{
		{Path: "/etc/blob", Encoding: eksbootstrapv1.Base64, Content: "aGVsbG8=", Append: true},
		{Path: "/etc/yaml", Owner: "root:root", Permissions: "0640", Content: "a: b\nc:\n  - \"d\"\n# e\n\nf: 'g'"},
	}
	users = []eksbootstrapv1.User{
		{
			Name:         "ada",
			Gecos:        ptr("Ada L."),
			Groups:       ptr("docker, users"),
			HomeDir:      ptr("/srv/ada"),
			Shell:        ptr("/bin/bash"),
			PrimaryGroup: ptr("ada"),
			Inactive:     ptr(true),
			Passwd: ptr(
				"$6$rounds=4096$hash",
			),
			LockPassword:      ptr(false),
			Sudo:              ptr("ALL=(ALL) NOPASSWD:ALL"),
			SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA ada@example.com"},
		},
		{Name: "bob"},
	}
	disks = &eksbootstrapv1.DiskSetup{
		Partitions: []eksbootstrapv1.Partition{{Device: "/dev/nvme1n1", Layout: true, Overwrite: ptr(true), TableType: ptr("gpt")}, {Device: "/dev/nvme2n1"}},
		Filesystems: []eksbootstrapv1.Filesystem{
			{Device: "/dev/nvme1n1", Filesystem: "ext4", Label: "data", Partition: ptr("1"), Overwrite: ptr(true), ExtraOpts: []string{"-F", "-E"}},
			{Device: "/dev/nvme2n1", Filesystem: "xfs", Label: "scratch"},
		},
	}
	mounts = []eksbootstrapv1.MountPoints{{"LABEL=data", "/var/lib/data"}, {"LABEL=scratch", "/scratch", "xfs", "noatime", "0", "2"}}
	ntp = &eksbootstrapv1.NTP{Enabled: ptr(true), Servers: []string{"0.pool.ntp.org", "169.254.169.123"}}
	return files, users, disks, mounts, ntp
}

// plainly returns a YAML document with all scalars as strings: CAPA writes some strings
// as numbers, which mean the same to their readers.
func plainly(t *testing.T, text string) any {
	t.Helper()
	var node yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &node), text)
	var value func(n *yaml.Node) any
	value = func(n *yaml.Node) any {
		switch n.Kind {
		case yaml.DocumentNode:
			return value(n.Content[0])
		case yaml.MappingNode:
			out := map[string]any{}
			for i := 0; i < len(n.Content); i += 2 {
				out[n.Content[i].Value] = value(n.Content[i+1])
			}
			return out
		case yaml.SequenceNode:
			out := []any{}
			for _, item := range n.Content {
				out = append(out, value(item))
			}
			return out
		default:
			return strings.TrimRight(n.Value, "\n")
		}
	}
	return value(&node)
}

func TestEKSConfig(t *testing.T) {
	n := eksNode(t)
	files, users, disks, mounts, ntp := cloudInit()
	for name, spec := range map[string]eksbootstrapv1.EKSConfigSpec{
		"empty":    {},
		"override": {BootstrapCommandOverride: ptr("/opt/bootstrap.sh --dry"), UseMaxPods: ptr(true)},
		"ipv6":     {ServiceIPV6Cidr: ptr("fd12::/108")},
		"everything": {
			KubeletExtraArgs: map[string]string{"node-labels": "a=b,c=d", "max-pods": "58"}, ContainerRuntime: ptr("containerd"), DNSClusterIP: ptr("10.100.0.10"),
			DockerConfigJSON: ptr(`{"debug":true}`), APIRetryAttempts: ptr(5), PauseContainer: &eksbootstrapv1.PauseContainer{AccountNumber: "602401143452", Version: "3.10"},
			UseMaxPods: ptr(false), PreBootstrapCommands: []string{`echo "a: b" # c`, "first\nsecond"}, PostBootstrapCommands: []string{"echo done"},
			Files: files, Users: users, DiskSetup: disks, Mounts: mounts, NTP: ntp,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := eksConfigOfCAPA(t, n, spec)
			got, err := boot.RenderEKSConfig(n, spec)
			require.NoError(t, err)
			assert.Equal(t, plainly(t, string(want)), plainly(t, string(got.Content)))
		})
	}
}

// eksConfigOfCAPA renders the user data as CAPA's controller does (joinWorker in
// bootstrap/eks/controllers/eksconfig_controller.go).
func eksConfigOfCAPA(t *testing.T, n boot.EKSNode, spec eksbootstrapv1.EKSConfigSpec) []byte {
	t.Helper()
	in := &capa.NodeInput{
		ClusterName: n.Cluster.Name, KubeletExtraArgs: spec.KubeletExtraArgs, ContainerRuntime: spec.ContainerRuntime, DNSClusterIP: spec.DNSClusterIP,
		DockerConfigJSON: spec.DockerConfigJSON, APIRetryAttempts: spec.APIRetryAttempts, UseMaxPods: spec.UseMaxPods,
		PreBootstrapCommands: spec.PreBootstrapCommands, PostBootstrapCommands: spec.PostBootstrapCommands, BootstrapCommandOverride: spec.BootstrapCommandOverride,
		Files: spec.Files, Users: spec.Users, DiskSetup: spec.DiskSetup, Mounts: spec.Mounts, NTP: spec.NTP,
	}
	if spec.PauseContainer != nil {
		in.PauseContainerAccount, in.PauseContainerVersion = &spec.PauseContainer.AccountNumber, &spec.PauseContainer.Version
	}
	if spec.ServiceIPV6Cidr != nil {
		in.ServiceIPV6Cidr, in.IPFamily = spec.ServiceIPV6Cidr, ptr("ipv6")
	}
	out, err := capa.EKSConfig(in)
	require.NoError(t, err)
	return out
}

// nodeadmOfCAPA renders the user data as CAPA's controller does (joinWorker in
// bootstrap/eks/controllers/nodeadmconfig_controller.go).
func nodeadmOfCAPA(t *testing.T, n boot.EKSNode, spec eksbootstrapv1.NodeadmConfigSpec) []byte {
	t.Helper()
	in := &capa.NodeadmInput{
		ClusterName:        n.Cluster.Name,
		APIServerEndpoint:  n.Cluster.Endpoint,
		CACert:             base64.StdEncoding.EncodeToString(n.Cluster.CA),
		ServiceCIDR:        n.Cluster.ServiceCIDR,
		FeatureGates:       spec.FeatureGates,
		PreNodeadmCommands: spec.PreNodeadmCommands,
		Files:              spec.Files,
		Users:              spec.Users,
		DiskSetup:          spec.DiskSetup,
		Mounts:             spec.Mounts,
		NTP:                spec.NTP,
	}
	if in.Files == nil {
		in.Files = []eksbootstrapv1.File{} // as FileResolver.ResolveFiles returns it
	}
	if spec.Kubelet != nil {
		in.KubeletConfig, in.KubeletFlags = spec.Kubelet.Config, spec.Kubelet.Flags
	}
	if spec.Containerd != nil {
		in.ContainerdConfig, in.ContainerdBaseRuntimeSpec = spec.Containerd.Config, spec.Containerd.BaseRuntimeSpec
	}
	out, err := capa.NodeadmConfig(in)
	require.NoError(t, err)
	return out
}

// message returns the parts of a MIME message, by kind and in order.
type message struct {
	kinds, files []string
	contents     map[string]string
	boundary     string
}

func readMessage(t *testing.T, data []byte) message {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(string(data)))
	require.NoError(t, err)
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", kind)
	out := message{contents: map[string]string{}, boundary: params["boundary"]}
	parts := multipart.NewReader(m.Body, out.boundary)
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		content, err := io.ReadAll(p)
		require.NoError(t, err)
		kind := p.Header.Get("Content-Type")
		if kind == "" {
			require.Empty(t, content) // CAPA has one boundary too many between two parts
			continue
		}
		out.kinds, out.files = append(out.kinds, kind), append(out.files, p.FileName())
		out.contents[kind] = string(content)
	}
}

func TestNodeadmConfig(t *testing.T) {
	n := eksNode(t)
	files, users, disks, mounts, ntp := cloudInit()
	raw := &runtime.RawExtension{
		Raw: []byte(`{"maxPods":110,"evictionHard":{"memory.available":"5%"},"registerWithTaints":[{"key":"a","value":"on","effect":"NoSchedule"}]}`),
	}
	const toml = "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndiscard_unpacked_layers = false\n"
	for name, spec := range map[string]eksbootstrapv1.NodeadmConfigSpec{
		"empty":    {},
		"commands": {PreNodeadmCommands: []string{"echo a", "echo 'b: c'"}},
		"ntp":      {NTP: ntp},
		"everything": {
			Kubelet: &eksbootstrapv1.KubeletOptions{Config: raw, Flags: []string{"--node-labels=role=worker", "--v=2"}},
			// CAPA copies it into the YAML unchanged, so it needs the header of a block
			// scalar.
			Containerd:         &eksbootstrapv1.ContainerdOptions{Config: "|\n" + toml, BaseRuntimeSpec: &runtime.RawExtension{Raw: []byte(`{"process":{"rlimits":[{"soft":1024}]}}`)}},
			FeatureGates:       map[eksbootstrapv1.Feature]bool{eksbootstrapv1.FeatureInstanceIDNodeName: true, eksbootstrapv1.FeatureFastImagePull: false},
			PreNodeadmCommands: []string{"echo a"}, Files: files, Users: users, DiskSetup: disks, Mounts: mounts, NTP: ntp,
		},
	} {
		t.Run(name, func(t *testing.T) {
			upstream := nodeadmOfCAPA(t, n, spec)
			ours, err := boot.RenderNodeadm(n, spec)
			require.NoError(t, err)
			want, got := readMessage(t, upstream), readMessage(t, ours.Content)
			assert.Equal(t, want.boundary, got.boundary)
			assert.Equal(t, want.kinds, got.kinds)
			assert.Equal(t, want.files, got.files)
			for kind, content := range want.contents {
				if strings.HasPrefix(kind, "text/x-shellscript") {
					assert.Equal(t, strings.TrimSpace(content), strings.TrimSpace(got.contents[kind]))
					continue
				}
				assert.Equal(t, plainly(t, content), plainly(t, got.contents[kind]), kind)
			}
		})
	}
}
