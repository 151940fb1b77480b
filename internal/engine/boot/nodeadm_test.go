package boot

import (
	"encoding/json"
	"maps"
	"net/netip"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	"sigs.k8s.io/yaml"
)

// nodeConfig is the schema of node.eks.aws/v1alpha1, from awslabs/amazon-eks-ami,
// nodeadm/api/v1alpha1/nodeconfig_types.go, without the parts that CAPA's types lack
// (instance, outposts).
type nodeConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority []byte `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
		} `json:"cluster"`
		Containerd struct {
			Config          string                     `json:"config"`
			BaseRuntimeSpec map[string]json.RawMessage `json:"baseRuntimeSpec"`
		} `json:"containerd"`
		Kubelet struct {
			Config map[string]json.RawMessage `json:"config"`
			Flags  []string                   `json:"flags"`
		} `json:"kubelet"`
		FeatureGates map[string]bool `json:"featureGates"`
	} `json:"spec"`
}

// readNodeConfig reads the NodeConfig as nodeadm does, but rejects unknown fields, and
// requires what nodeadm requires.
func readNodeConfig(t *testing.T, data string) nodeConfig {
	t.Helper()
	var found []nodeConfig
	for _, p := range mimeParts(t, data) {
		if p.kind != "application/node.eks.aws" {
			continue
		}
		var c nodeConfig
		require.NoError(t, yaml.UnmarshalStrict([]byte(p.content), &c), p.content)
		found = append(found, c)
	}
	require.Len(t, found, 1)
	c := found[0]
	assert.Equal(t, "node.eks.aws/v1alpha1", c.APIVersion)
	assert.Equal(t, "NodeConfig", c.Kind)
	assert.NotEmpty(t, c.Spec.Cluster.Name)
	u, err := url.Parse(c.Spec.Cluster.APIServerEndpoint)
	require.NoError(t, err)
	assert.Equal(t, "https", u.Scheme)
	_, err = parseCerts(c.Spec.Cluster.CertificateAuthority)
	require.NoError(t, err)
	_, err = netip.ParsePrefix(c.Spec.Cluster.CIDR)
	require.NoError(t, err)
	for gate := range c.Spec.FeatureGates {
		assert.Contains(t, []string{"InstanceIdNodeName", "FastImagePull"}, gate)
	}
	return c
}

func TestNodeConfig(t *testing.T) {
	bare := readNodeConfig(t, renderNodeadm(t, eksNode(t), eksbootstrapv1.NodeadmConfigSpec{}))
	assert.Equal(t, "10.100.0.0/16", bare.Spec.Cluster.CIDR)
	assert.Empty(t, bare.Spec.Kubelet)

	c := readNodeConfig(t, renderNodeadm(t, eksNode(t), nodeadmEverything()))
	assert.Equal(t, bare.Spec.Cluster, c.Spec.Cluster)
	assert.Equal(t, map[string]bool{"InstanceIdNodeName": true, "FastImagePull": false}, c.Spec.FeatureGates)
	assert.Equal(t, []string{`--node-labels=role=worker,a="b"`, "--v=2"}, c.Spec.Kubelet.Flags)
	assert.JSONEq(t, string(nodeadmEverything().Kubelet.Config.Raw), encoded(t, c.Spec.Kubelet.Config))
	assert.Equal(t, nodeadmEverything().Containerd.Config, c.Spec.Containerd.Config)
	assert.JSONEq(t, string(nodeadmEverything().Containerd.BaseRuntimeSpec.Raw), encoded(t, c.Spec.Containerd.BaseRuntimeSpec))
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}

// TestRawValuesSurvive parses values that are difficult in YAML 1.1, as nodeadm does.
func TestRawValuesSurvive(t *testing.T) {
	raw := `{"a":"on","b":"0777","c":"1e3","d":null,"e":{},"f":[],"g":[[1,2],[{}]],"h":"line\nline\n","i":1.5,"j":9007199254740993,` +
		`"k: l":"m # n","o":"{{ p }}","q":"","r":"🚀","s":-1,"t":"~","yes":true,"u":["no",false]}`
	c := readNodeConfig(
		t,
		renderNodeadm(t, eksNode(t), eksbootstrapv1.NodeadmConfigSpec{Kubelet: &eksbootstrapv1.KubeletOptions{Config: &runtime.RawExtension{Raw: []byte(raw)}}}),
	)
	var want map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(raw), &want))
	for _, key := range slices.Sorted(maps.Keys(want)) {
		require.Contains(t, c.Spec.Kubelet.Config, key)
		assert.JSONEq(t, string(want[key]), string(c.Spec.Kubelet.Config[key]), key)
	}
	assert.Len(t, c.Spec.Kubelet.Config, len(want))
	assert.Equal(t, "9007199254740993", string(c.Spec.Kubelet.Config["j"]), "not converted to a float")
}

func TestContainerdConfigWithBlockHeader(t *testing.T) {
	const toml = "  [plugins]\n  a = 1\n"
	const bare = "[plugins]\na = 1\n" // the indentation is that of the block
	for given, want := range map[string]string{toml: toml, "|\n" + toml: bare, "|-\n" + toml: strings.TrimSpace(bare), "|2 \n" + toml: toml, "| a\nb": "| a\nb"} {
		c := readNodeConfig(t, renderNodeadm(t, eksNode(t), eksbootstrapv1.NodeadmConfigSpec{Containerd: &eksbootstrapv1.ContainerdOptions{Config: given}}))
		assert.Equal(t, want, c.Spec.Containerd.Config, given)
	}
}

func TestNodeadmParts(t *testing.T) {
	kinds := func(spec eksbootstrapv1.NodeadmConfigSpec) (kinds []string) {
		for _, p := range mimeParts(t, renderNodeadm(t, eksNode(t), spec)) {
			kinds = append(kinds, p.kind)
		}
		return kinds
	}
	assert.Equal(
		t,
		[]string{"application/node.eks.aws", "text/cloud-config"},
		kinds(eksbootstrapv1.NodeadmConfigSpec{Files: []eksbootstrapv1.File{}, NTP: &eksbootstrapv1.NTP{}}),
	)
	assert.Equal(t, []string{"text/x-shellscript", "application/node.eks.aws", "text/cloud-config"}, kinds(nodeadmEverything()))

	script := mimeParts(t, renderNodeadm(t, eksNode(t), nodeadmEverything()))[0]
	assert.Equal(t, "#!/bin/bash\nset -o errexit\nset -o pipefail\nset -o nounset\necho before: 1\ntouch /tmp/\"a b\"", script.content)
	shellcheck(t, script.content)
}

func TestNodeadmBoundary(t *testing.T) {
	spec := eksbootstrapv1.NodeadmConfigSpec{PreNodeadmCommands: []string{"cat <<X\n--//\n--///--\nX"}}
	content := renderNodeadm(t, eksNode(t), spec)
	assert.Contains(t, content, `boundary="////"`)
	parts := mimeParts(t, content)
	require.Len(t, parts, 3)
	assert.Contains(t, parts[0].content, "\n--//\n--///--\nX")
	assert.Contains(t, renderNodeadm(t, eksNode(t), eksbootstrapv1.NodeadmConfigSpec{PreNodeadmCommands: []string{"a --//"}}), `boundary="//"`)
}

// TestNodeadmInPython reads the message with the decoder that cloud-init uses.
func TestNodeadmInPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	spec := nodeadmEverything()
	spec.PreNodeadmCommands = []string{"echo 'Grüße 🚀'"}
	spec.Files = []eksbootstrapv1.File{{Path: "/etc/motd", Content: "Grüße 🚀\n"}}
	spec.Kubelet.Flags = []string{"--node-labels=städte=ö"}
	content := renderNodeadm(t, eksNode(t), spec)
	cmd := exec.CommandContext(t.Context(), python, "-c", `
import email, json, sys
message = email.message_from_string(sys.stdin.buffer.read().decode("utf-8"))
json.dump([[p.get_content_type(), p.get_filename(), p.get_payload(decode=True).decode("utf-8", "surrogateescape")]
  for p in message.walk() if not p.is_multipart() and p.get_content_maintype() == "text"], sys.stdout)
`)
	cmd.Stdin = strings.NewReader(content)
	out, err := cmd.Output()
	require.NoError(t, err)
	var parts [][]string
	require.NoError(t, json.Unmarshal(out, &parts))
	require.Len(t, parts, 3)
	assert.Equal(t, []string{"text/x-shellscript", "commands.sh", strict + "echo 'Grüße 🚀'\n"}, parts[0])
	assert.Equal(t, []string{"text/plain", "", ""}, parts[1], "as in CAPA")
	assert.Equal(t, []string{"text/cloud-config", "cloud-config.yaml"}, parts[2][:2])
	var doc document
	require.NoError(t, yaml.Unmarshal([]byte(parts[2][2]), &doc))
	assert.Contains(t, parts[2][2], "Grüße 🚀")
	assert.Equal(t, []string{"--node-labels=städte=ö"}, readNodeConfig(t, content).Spec.Kubelet.Flags, "nodeadm decodes nothing")
}
