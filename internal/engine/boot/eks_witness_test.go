//go:build e2e

package boot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
)

// eksCase is a configuration of a machine of EKS: one of two.
type eksCase struct {
	Config  *eksbootstrapv1.EKSConfigSpec
	Nodeadm *eksbootstrapv1.NodeadmConfigSpec

	// Differs says why the user data is not that of CAPA; "" if it is.
	Differs string `json:"-"`
}

// TestCAPARendersTheSame renders user data for EKS, and has the code of CAPA render it: it is
// the same, byte for byte. Otherwise the controllers would make new versions of the launch
// templates of pools that are handed over to them.
func TestCAPARendersTheSame(t *testing.T) {
	cases := eksCases()
	names := slices.Sorted(maps.Keys(cases))
	var input []eksCase
	for _, name := range names {
		input = append(input, cases[name])
	}
	theirs := renderWithCAPA(t, input)
	require.Len(t, theirs, len(names))
	n := eksNode(t)
	n.Cluster.Name, n.Cluster.CA = witnessName, []byte("a certificate")
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			var ours string
			if c := input[i]; c.Nodeadm != nil {
				ours = renderNodeadm(t, n, *c.Nodeadm)
			} else {
				ours = renderEKS(t, n, *c.Config)
			}
			if input[i].Differs != "" {
				assert.NotEqual(t, theirs[i], ours, "CAPA has changed: %s", input[i].Differs)
				return
			}
			assert.Equal(t, theirs[i], ours)
		})
	}
}

const witnessName = "default_prod"

func eksCases() map[string]eksCase {
	config := func(s eksbootstrapv1.EKSConfigSpec) eksCase { return eksCase{Config: &s} }
	nodeadm := func(s eksbootstrapv1.NodeadmConfigSpec) eksCase { return eksCase{Nodeadm: &s} }
	differs := func(why string, c eksCase) eksCase { c.Differs = why; return c }
	files := []eksbootstrapv1.File{
		{Path: "/etc/motd", Owner: "root:root", Permissions: "0644", Content: "hello: world # yes\n\n  two\n"},
		{Path: "/etc/blob", Encoding: eksbootstrapv1.Base64, Content: "aGVsbG8=", Append: true},
	}
	users := []eksbootstrapv1.User{
		{
			Name: "ada", Gecos: ptr("Ada L."), Groups: ptr("docker, users"), HomeDir: ptr("/srv/ada"), Shell: ptr("/bin/bash"), PrimaryGroup: ptr("ada"),
			Passwd: ptr("$6$rounds=4096$hash"), LockPassword: ptr(false), Sudo: ptr("ALL=(ALL) NOPASSWD:ALL"), SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA ada@example.com"},
		},
		{Name: "bob"},
	}
	ntp := &eksbootstrapv1.NTP{Enabled: ptr(true), Servers: []string{"169.254.169.123", "time.example.com"}}
	mounts := []eksbootstrapv1.MountPoints{{"LABEL=data", "/var/lib/data"}, {"LABEL=scratch", "/scratch", "xfs", "noatime"}}
	kubelet := &runtime.RawExtension{Raw: []byte(`{"maxPods":110,"shutdownGracePeriod":"30s","evictionHard":{"memory.available":"5%"},` +
		`"registerWithTaints":[{"key":"a","value":"on","effect":"NoSchedule"}],"allowedUnsafeSysctls":[],"imageGCHighThresholdPercent":85}`)}
	return map[string]eksCase{
		"eksconfig": config(eksbootstrapv1.EKSConfigSpec{}),
		"eksconfig options": config(eksbootstrapv1.EKSConfigSpec{
			KubeletExtraArgs: map[string]string{"node-labels": "role=worker,tier=web", "max-pods": "58"}, ContainerRuntime: ptr("containerd"), DNSClusterIP: ptr("10.100.0.10"),
			APIRetryAttempts: ptr(5), PauseContainer: &eksbootstrapv1.PauseContainer{AccountNumber: "602401143452", Version: "3.10"}, UseMaxPods: ptr(false),
			BootstrapCommandOverride: ptr("/opt/bootstrap.sh"), DockerConfigJSON: ptr(`{"debug":true}`),
		}),
		"eksconfig cloud-init": config(eksbootstrapv1.EKSConfigSpec{
			PreBootstrapCommands: []string{`echo "a: b" # c`, "first\nsecond"}, PostBootstrapCommands: []string{"echo done"},
			Files: files, Users: users, NTP: ntp, DiskSetup: eksDisks(), Mounts: mounts,
		}),
		"eksconfig IPv6": config(eksbootstrapv1.EKSConfigSpec{ServiceIPV6Cidr: ptr("fd12:3456::/108")}),
		"nodeadm":        nodeadm(eksbootstrapv1.NodeadmConfigSpec{}),
		"nodeadm example": nodeadm(eksbootstrapv1.NodeadmConfigSpec{
			FeatureGates:       map[eksbootstrapv1.Feature]bool{eksbootstrapv1.FeatureFastImagePull: true},
			PreNodeadmCommands: []string{`echo "fs.inotify.max_user_watches=524288" > /etc/sysctl.d/90-inotify.conf`, "sysctl --system"},
		}),
		"nodeadm kubelet": nodeadm(eksbootstrapv1.NodeadmConfigSpec{Kubelet: &eksbootstrapv1.KubeletOptions{Config: kubelet, Flags: []string{"--node-labels=role=worker", "--v=2"}}}),
		"nodeadm flags":   nodeadm(eksbootstrapv1.NodeadmConfigSpec{Kubelet: &eksbootstrapv1.KubeletOptions{Flags: []string{"--v=2"}}}),
		"nodeadm containerd": nodeadm(eksbootstrapv1.NodeadmConfigSpec{Containerd: &eksbootstrapv1.ContainerdOptions{
			Config: "|\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndiscard_unpacked_layers = false\n", BaseRuntimeSpec: nodeadmEverything().Containerd.BaseRuntimeSpec,
		}}),
		"nodeadm everything": nodeadm(eksbootstrapv1.NodeadmConfigSpec{
			Kubelet: &eksbootstrapv1.KubeletOptions{Config: kubelet, Flags: []string{"--v=2"}}, FeatureGates: nodeadmEverything().FeatureGates,
			PreNodeadmCommands: []string{"echo before: 1"}, Files: files, Users: users, NTP: ntp, DiskSetup: eksDisks(), Mounts: mounts,
		}),

		"quotes in an argument": differs("a quote ends the argument", config(eksbootstrapv1.EKSConfigSpec{KubeletExtraArgs: map[string]string{"node-labels": "it's=fine"}})),
		"JSON of Docker":        differs("': ' makes a mapping of the command", config(eksbootstrapv1.EKSConfigSpec{DockerConfigJSON: ptr(`{"debug": true}`)})),
		"NTP is disabled":       differs("it is enabled", config(eksbootstrapv1.EKSConfigSpec{NTP: &eksbootstrapv1.NTP{Enabled: ptr(false), Servers: ntp.Servers}})),
		"number in a mount":     differs("it is a number, not a text", config(eksbootstrapv1.EKSConfigSpec{Mounts: []eksbootstrapv1.MountPoints{{"LABEL=a", "/a", "xfs", "noatime", "0"}}})),
		"text of a command":     differs("cloud-init reads it as Latin-1", nodeadm(eksbootstrapv1.NodeadmConfigSpec{PreNodeadmCommands: []string{"echo Grüße"}})),
		"quotes in a flag":      differs("a quote ends the flag", nodeadm(eksbootstrapv1.NodeadmConfigSpec{Kubelet: &eksbootstrapv1.KubeletOptions{Flags: []string{`--node-labels=a="b"`}}})),
		"TOML":                  differs("its lines are joined", nodeadm(eksbootstrapv1.NodeadmConfigSpec{Containerd: &eksbootstrapv1.ContainerdOptions{Config: "a = 1\nb = 2\n"}})),
	}
}

// renderWithCAPA renders cases with a copy of CAPA's package for user data, which no other
// module may import.
func renderWithCAPA(t *testing.T, cases []eksCase) []string {
	t.Helper()
	const module = "sigs.k8s.io/cluster-api-provider-aws/v2"
	versions := filepath.Join("..", "..", "..", "e2e", "kubernetes", "providers")
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = versions
	dir, err := list.Output()
	require.NoError(t, err)
	to := t.TempDir()
	from := filepath.Join(strings.TrimSpace(string(dir)), "bootstrap", "eks", "internal", "userdata")
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	write := func(name string, text []byte) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), text, 0o600))
	}
	read := func(file string) []byte {
		t.Helper()
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return text
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "_test.go") {
			write("userdata/"+e.Name(), read(filepath.Join(from, e.Name())))
		}
	}
	write("go.mod", regexp.MustCompile(`(?m)^module .*`).ReplaceAll(read(filepath.Join(versions, "go.mod")), []byte("module witness")))
	write("go.sum", read(filepath.Join(versions, "go.sum")))
	write("main.go", read(filepath.Join("testdata", "capa", "main.go")))

	n := eksNode(t)
	input, err := json.Marshal(map[string]any{
		"name": witnessName, "endpoint": n.Cluster.Endpoint, "ca": base64.StdEncoding.EncodeToString([]byte("a certificate")), "cidr": n.Cluster.ServiceCIDR, "cases": cases,
	})
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), "go", "run", ".")
	run.Dir, run.Stdin = to, bytes.NewReader(input)
	run.Env = append(os.Environ(), "GOFLAGS=-trimpath -mod=mod")
	var problems strings.Builder
	run.Stderr = &problems
	out, err := run.Output()
	require.NoError(t, err, problems.String())
	var texts []string
	require.NoError(t, json.Unmarshal(out, &texts))
	return texts
}
