package boot

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
)

func ptr[T any](v T) *T { return &v }

// eksNode is a machine of an EKS cluster "prod".
func eksNode(t *testing.T) EKSNode {
	t.Helper()
	return EKSNode{
		Cluster: EKSCluster{
			Name:        "default_prod",
			Endpoint:    "https://0123ABCD.gr7.us-east-1.eks.amazonaws.com",
			CA:          fixedPKI(t).CA.Cert,
			ServiceCIDR: "10.100.0.0/16",
		},
		Secret: machine(t, JoinWorker, "v1.34.2", quickStart()).Secret,
	}
}

func eksFiles() []eksbootstrapv1.File {
	return []eksbootstrapv1.File{
		{
			Path:        "/etc/motd",
			Owner:       "root:root",
			Permissions: "0644",
			ContentFrom: &eksbootstrapv1.FileSource{Secret: eksbootstrapv1.SecretFileSource{Name: "extra", Key: "motd"}},
		},
		{Path: "/etc/blob", Encoding: eksbootstrapv1.Base64, Content: "aGVsbG8=", Append: true},
	}
}

func eksUsers() []eksbootstrapv1.User {
	return []eksbootstrapv1.User{
		{
			Name: "ada", Gecos: ptr("Ada L."), Groups: ptr("docker, users"), HomeDir: ptr("/srv/ada"), Shell: ptr("/bin/bash"), PrimaryGroup: ptr("ada"),
			PasswdFrom:   &eksbootstrapv1.PasswdSource{Secret: eksbootstrapv1.SecretPasswdSource{Name: "extra", Key: "password"}},
			LockPassword: ptr(false), Sudo: ptr("ALL=(ALL) NOPASSWD:ALL"), SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA ada@example.com"},
		},
		{Name: "bob"},
	}
}

func eksDisks() *eksbootstrapv1.DiskSetup {
	return &eksbootstrapv1.DiskSetup{
		Partitions: []eksbootstrapv1.Partition{{Device: "/dev/nvme1n1", Layout: true, Overwrite: ptr(false), TableType: ptr("gpt")}},
		Filesystems: []eksbootstrapv1.Filesystem{
			{Device: "/dev/nvme1n1", Filesystem: "ext4", Label: "data", Partition: ptr("auto"), Overwrite: ptr(true), ExtraOpts: []string{"-E", "lazy_itable_init=1"}},
		},
	}
}

var eksMounts = []eksbootstrapv1.MountPoints{{"LABEL=data", "/var/lib/data"}, {"LABEL=scratch", "/scratch", "xfs", "noatime", "0", "2"}}

// eksEverything uses all fields of an EKSConfig that can be combined.
func eksEverything() eksbootstrapv1.EKSConfigSpec {
	return eksbootstrapv1.EKSConfigSpec{
		KubeletExtraArgs:     map[string]string{"node-labels": "role=worker,it's=fine", "max-pods": "58", "eviction-hard": "memory.available<5%"},
		ContainerRuntime:     ptr("containerd"),
		DNSClusterIP:         ptr("10.100.0.10"),
		DockerConfigJSON:     ptr(`{"debug": true, "log-opts": {"tag": "it's $HOME"}}`),
		APIRetryAttempts:     ptr(5),
		PauseContainer:       &eksbootstrapv1.PauseContainer{AccountNumber: "602401143452", Version: "3.10"},
		UseMaxPods:           ptr(false),
		ServiceIPV6Cidr:      ptr("fd12:3456::/108"),
		PreBootstrapCommands: []string{`echo "a: b" # c`, "first\nsecond"}, PostBootstrapCommands: []string{"echo done"},
		Files: eksFiles(), Users: eksUsers(), NTP: &eksbootstrapv1.NTP{Enabled: ptr(false), Servers: []string{"169.254.169.123"}},
		DiskSetup: eksDisks(), Mounts: eksMounts,
	}
}

// nodeadmEverything uses all fields of a NodeadmConfig.
func nodeadmEverything() eksbootstrapv1.NodeadmConfigSpec {
	return eksbootstrapv1.NodeadmConfigSpec{
		Kubelet: &eksbootstrapv1.KubeletOptions{
			Config: &runtime.RawExtension{Raw: []byte(`{"maxPods":110,"shutdownGracePeriod":"30s","featureGates":{"DisableKubeletCloudCredentialProviders":true},` +
				`"evictionHard":{"memory.available":"5%"},"registerWithTaints":[{"key":"a","value":"on","effect":"NoSchedule"}],"allowedUnsafeSysctls":[],"imageGCHighThresholdPercent":85}`)},
			Flags: []string{"--node-labels=role=worker,a=\"b\"", "--v=2"},
		},
		Containerd: &eksbootstrapv1.ContainerdOptions{
			Config:          "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndiscard_unpacked_layers = false\n",
			BaseRuntimeSpec: &runtime.RawExtension{Raw: []byte(`{"process":{"rlimits":[{"type":"RLIMIT_NOFILE","soft":1024,"hard":1024}]}}`)},
		},
		FeatureGates:       map[eksbootstrapv1.Feature]bool{eksbootstrapv1.FeatureInstanceIDNodeName: true, eksbootstrapv1.FeatureFastImagePull: false},
		PreNodeadmCommands: []string{"echo before: 1", "touch /tmp/\"a b\""},
		Files:              eksFiles(), Users: eksUsers(), NTP: &eksbootstrapv1.NTP{Enabled: ptr(true), Servers: []string{"169.254.169.123"}},
		DiskSetup: eksDisks(), Mounts: eksMounts,
	}
}

func renderEKS(t *testing.T, n EKSNode, spec eksbootstrapv1.EKSConfigSpec) string {
	t.Helper()
	data, err := RenderEKSConfig(n, spec)
	require.NoError(t, err)
	assert.Equal(t, CloudConfig, data.Format)
	return string(data.Content)
}

func renderNodeadm(t *testing.T, n EKSNode, spec eksbootstrapv1.NodeadmConfigSpec) string {
	t.Helper()
	data, err := RenderNodeadm(n, spec)
	require.NoError(t, err)
	assert.Equal(t, CloudConfig, data.Format)
	return string(data.Content)
}

func TestEKSGolden(t *testing.T) {
	for name, render := range map[string]func() string{
		"eksconfig-empty.yaml":      func() string { return renderEKS(t, eksNode(t), eksbootstrapv1.EKSConfigSpec{}) },
		"eksconfig-everything.yaml": func() string { return renderEKS(t, eksNode(t), eksEverything()) },
		"nodeadm-empty.mime":        func() string { return renderNodeadm(t, eksNode(t), eksbootstrapv1.NodeadmConfigSpec{}) },
		"nodeadm-everything.mime":   func() string { return renderNodeadm(t, eksNode(t), nodeadmEverything()) },
	} {
		first := render()
		golden(t, name, []byte(first))
		for range 5 {
			assert.Equal(t, first, render(), name)
		}
	}
}

// eksCommand returns the command that runs the bootstrap script, after YAML parsing.
func eksCommand(t *testing.T, content string) string {
	t.Helper()
	var doc document
	require.NoError(t, yaml.Unmarshal([]byte(content), &doc))
	require.NotEmpty(t, doc.Runcmd)
	for _, line := range doc.Runcmd {
		if strings.Contains(line, "default_prod") {
			return line
		}
	}
	require.Fail(t, "no bootstrap command")
	return ""
}

func TestEKSBootstrapCommand(t *testing.T) {
	for want, spec := range map[string]eksbootstrapv1.EKSConfigSpec{
		"/etc/eks/bootstrap.sh default_prod":                                            {},
		"/etc/eks/bootstrap.sh default_prod --kubelet-extra-args '--a=1 --b=2'":         {KubeletExtraArgs: map[string]string{"b": "2", "a": "1"}},
		"/etc/eks/bootstrap.sh default_prod --use-max-pods false":                       {UseMaxPods: ptr(false)},
		"/etc/eks/bootstrap.sh default_prod --aws-api-retry-attempts 0":                 {APIRetryAttempts: ptr(0)},
		"/etc/eks/bootstrap.sh default_prod --container-runtime 'a; reboot'":            {ContainerRuntime: ptr("a; reboot"), DNSClusterIP: ptr("")},
		"/etc/eks/bootstrap.sh default_prod --ip-family ipv6 --service-ipv6-cidr f::/9": {ServiceIPV6Cidr: ptr("f::/9")},
		"mine --fast; /etc/eks/bootstrap.sh default_prod --use-max-pods true":           {BootstrapCommandOverride: ptr("mine --fast; /etc/eks/bootstrap.sh"), UseMaxPods: ptr(true)},
	} {
		assert.Equal(t, want, eksCommand(t, renderEKS(t, eksNode(t), spec)))
	}
	six := eksNode(t)
	six.Cluster.ServiceCIDR = "fd30::/108"
	assert.Equal(
		t,
		"/etc/eks/bootstrap.sh default_prod --ip-family ipv6 --service-ipv6-cidr fd30::/108",
		eksCommand(t, renderEKS(t, six, eksbootstrapv1.EKSConfigSpec{})),
	)
	assert.Equal(t, "/etc/eks/bootstrap.sh default_prod", eksCommand(t, renderEKS(t, six, eksbootstrapv1.EKSConfigSpec{ServiceIPV6Cidr: ptr("")})))
}

// TestEKSBootstrapCommandInAShell runs the command with a bootstrap script that prints
// its arguments.
func TestEKSBootstrapCommandInAShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	line := eksCommand(t, renderEKS(t, eksNode(t), eksEverything()))
	told, err := exec.CommandContext(t.Context(), bash, "-c", `tell() { printf '%s\n' "$@"; }; `+strings.Replace(line, bootstrapScript, "tell", 1)).Output()
	require.NoError(t, err)
	assert.Equal(t, []string{
		"default_prod",
		"--kubelet-extra-args", "--eviction-hard=memory.available<5% --max-pods=58 --node-labels=role=worker,it's=fine",
		"--container-runtime", "containerd", "--ip-family", "ipv6", "--service-ipv6-cidr", "fd12:3456::/108",
		"--use-max-pods", "false", "--aws-api-retry-attempts", "5",
		"--pause-container-account", "602401143452", "--pause-container-version", "3.10",
		"--dns-cluster-ip", "10.100.0.10", "--docker-config-json", `{"debug": true, "log-opts": {"tag": "it's $HOME"}}`,
	}, strings.Split(strings.TrimSpace(string(told)), "\n"))
	shellcheck(t, "#!/bin/bash\n"+line+"\n")
}

func shellcheck(t *testing.T, script string) {
	t.Helper()
	tool, err := exec.LookPath("shellcheck")
	if err != nil {
		return
	}
	cmd := exec.CommandContext(t.Context(), tool, "--severity=warning", "-") // dollars in single quotes are intended
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, string(out))
}

// mimePart is one part of a message, as nodeadm reads it.
type mimePart struct{ kind, encoding, content string }

func mimeParts(t *testing.T, data string) []mimePart {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(data))
	require.NoError(t, err)
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/mixed", kind)
	reader := multipart.NewReader(message.Body, params["boundary"])
	var parts []mimePart
	for {
		p, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return parts
		}
		require.NoError(t, err)
		if p.Header.Get("Content-Type") == "" {
			continue // nodeadm ignores it
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		require.NoError(t, err)
		content, err := io.ReadAll(p)
		require.NoError(t, err)
		parts = append(parts, mimePart{kind, p.Header.Get("Content-Transfer-Encoding"), string(content)})
	}
}

func TestEKSCloudInitSchema(t *testing.T) {
	cloudInit, err := exec.LookPath("cloud-init")
	if err != nil {
		t.Skip("cloud-init is not installed")
	}
	parts := mimeParts(t, renderNodeadm(t, eksNode(t), nodeadmEverything()))
	for name, config := range map[string]string{
		"eksconfig": renderEKS(t, eksNode(t), eksEverything()), "bare": renderEKS(t, eksNode(t), eksbootstrapv1.EKSConfigSpec{}),
		"nodeadm": parts[len(parts)-1].content,
	} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
		out, err := exec.CommandContext(t.Context(), cloudInit, "schema", "--config-file", path).CombinedOutput()
		assert.NoError(t, err, "%s: %s", name, out)
	}
}

func TestEKSErrors(t *testing.T) {
	n := eksNode(t)
	_, err := RenderEKSConfig(EKSNode{}, eksbootstrapv1.EKSConfigSpec{})
	require.ErrorContains(t, err, "no name of the EKS cluster")
	_, err = RenderEKSConfig(EKSNode{Cluster: n.Cluster}, eksbootstrapv1.EKSConfigSpec{Files: eksFiles()})
	require.EqualError(t, err, `files[0].contentFrom: secret "extra" is not in the manifest`)
	_, err = RenderNodeadm(EKSNode{Cluster: n.Cluster}, eksbootstrapv1.NodeadmConfigSpec{Users: eksUsers()})
	require.EqualError(t, err, `users[0].passwdFrom: secret "extra" is not in the manifest`)
	_, err = RenderNodeadm(EKSNode{Cluster: EKSCluster{Endpoint: "abc.eks.amazonaws.com"}}, eksbootstrapv1.NodeadmConfigSpec{})
	for _, want := range []string{"no name", `"abc.eks.amazonaws.com"`, "no certificate", "service CIDR"} {
		require.ErrorContains(t, err, want)
	}
	for want, spec := range map[string]eksbootstrapv1.NodeadmConfigSpec{
		"kubelet.config: must be an object":             {Kubelet: &eksbootstrapv1.KubeletOptions{Config: &runtime.RawExtension{Raw: []byte(`"maxPods"`)}}},
		"containerd.baseRuntimeSpec: must be an object": {Containerd: &eksbootstrapv1.ContainerdOptions{BaseRuntimeSpec: &runtime.RawExtension{Raw: []byte("[]")}}},
	} {
		_, err = RenderNodeadm(n, spec)
		require.EqualError(t, err, want)
	}
}

// An empty file stays empty: a block would end with a newline.
func TestEmptyFile(t *testing.T) {
	content := renderEKS(t, eksNode(t), eksbootstrapv1.EKSConfigSpec{Files: []eksbootstrapv1.File{{Path: "/etc/empty"}}})
	assert.Contains(t, content, "  - path: /etc/empty\n    content: \"\"\n")
}

func TestEKSDoesNotChangeTheSpec(t *testing.T) {
	eks, nodeadm := eksEverything(), nodeadmEverything()
	renderEKS(t, eksNode(t), eks)
	renderNodeadm(t, eksNode(t), nodeadm)
	assert.Equal(t, eksEverything(), eks)
	assert.Equal(t, nodeadmEverything(), nodeadm)
}

// TestNodeadmFitsUserData checks that the data of default machines fits into the user
// data.
func TestNodeadmFitsUserData(t *testing.T) {
	data, err := RenderNodeadm(eksNode(t), nodeadmEverything())
	require.NoError(t, err)
	fitting, err := Fit(data.Format, data.Content, nil)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data.Content, fitting), "uncompressed")
}
