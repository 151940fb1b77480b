package boot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	"sigs.k8s.io/yaml"
)

const (
	// nodeadmBoundary is the same as in CAPA.
	nodeadmBoundary = "//"

	// strict makes bash stop at the first command that fails, as in CAPA.
	strict = "#!/bin/bash\nset -o errexit\nset -o pipefail\nset -o nounset\n"
)

// RenderNodeadm renders the bootstrap data for EKS's Amazon Linux 2023 AMIs, byte for byte
// as CAPA does: a MIME message with two or three parts. These are a script with the commands
// before nodeadm, if there are any, the NodeConfig that nodeadm reads, and a cloud-config.
// The data differs from CAPA's only where that means something else than the spec: CAPA does
// not encode values, including non-ASCII text. All fields of n.Cluster are required.
//
// nodeadm reads its NodeConfig from the user data of the instance, compressed or not. The
// data must not be delivered with a backend and a boothook.
func RenderNodeadm(n EKSNode, spec eksbootstrapv1.NodeadmConfigSpec) (Data, error) {
	if err := n.Cluster.check(); err != nil {
		return Data{}, err
	}
	config, err := n.nodeConfig(spec)
	if err != nil {
		return Data{}, err
	}
	s, err := n.sections(common{spec.Files, spec.Users, spec.NTP, spec.DiskSetup, spec.Mounts})
	if err != nil {
		return Data{}, err
	}
	m := nodeadmMessage{config: config}
	if len(spec.PreNodeadmCommands) > 0 {
		m.script = strict + strings.Join(spec.PreNodeadmCommands, "\n")
	}
	cloud, err := cloudConfig(plainHeader, s)
	if err != nil {
		return Data{}, err
	}
	m.cloudConfig = strings.TrimSuffix(string(cloud), "\n")
	return Data{Format: CloudConfig, Content: []byte(m.encode())}, nil
}

// nodeadmMessage has the parts of a message, without the newline at their end.
type nodeadmMessage struct {
	script      string // "" if there is none
	config      string // a NodeConfig
	cloudConfig string // always written, as in CAPA
}

// encode returns the message. As in CAPA, an empty part follows the script, and the message
// ends without a newline. CAPA's controller compares the user data of a launch template with
// its own, byte for byte. If they differ, it creates a new version of the launch template.
func (m nodeadmMessage) encode() string {
	b := m.boundary()
	out := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + b + "\"\n\n"
	if m.script != "" {
		out += "\n--" + b + "\n" + attachment(`text/x-shellscript; charset="us-ascii"`, "commands.sh", m.script) + "\n--" + b + "\n"
	}
	out += "\n--" + b + "\nContent-Type: application/node.eks.aws\n\n" + m.config + "\n\n--" + b
	return out + "\n" + attachment("text/cloud-config", "cloud-config.yaml", m.cloudConfig) + "\n--" + b + "--"
}

// attachment returns a part for cloud-init, whose Python decoder reads non-ASCII text as
// Latin-1 unless it is base64.
func attachment(kind, file, content string) string {
	encoding := "7bit"
	if strings.ContainsFunc(content, func(r rune) bool { return r >= 0x80 }) {
		encoding, content = "base64", base64.StdEncoding.EncodeToString([]byte(content+"\n"))
		kind = strings.Replace(kind, "us-ascii", "utf-8", 1)
	}
	return "Content-Type: " + kind + "\nMIME-Version: 1.0\nContent-Transfer-Encoding: " + encoding +
		"\nContent-Disposition: attachment; filename=\"" + file + "\"\n\n" + content
}

// boundary returns CAPA's boundary, or a longer one if a line in the parts begins with
// it.
func (m nodeadmMessage) boundary() string {
	b, all := nodeadmBoundary, "\n"+m.script+"\n"+m.config+"\n"+m.cloudConfig
	for strings.Contains(all, "\n--"+b) {
		b += "/"
	}
	return b
}

// nodeConfig returns the NodeConfig in its only API version.
func (n EKSNode) nodeConfig(spec eksbootstrapv1.NodeadmConfigSpec) (string, error) {
	var out strings.Builder
	out.WriteString("---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:")
	for _, each := range []struct{ key, value string }{
		{"name", n.Cluster.Name}, {"apiServerEndpoint", n.Cluster.Endpoint}, {"certificateAuthority", n.Cluster.authority()}, {"cidr", n.Cluster.ServiceCIDR},
	} {
		line, err := oneLine(text(each.value))
		if err != nil {
			return "", fmt.Errorf("%s of the EKS cluster: %w", each.key, err)
		}
		out.WriteString("\n    " + each.key + ": " + line)
	}
	if len(spec.FeatureGates) > 0 {
		out.WriteString("\n  featureGates:")
		for _, name := range slices.Sorted(maps.Keys(spec.FeatureGates)) {
			fmt.Fprintf(&out, "\n    %s: %t", name, spec.FeatureGates[name])
		}
	}
	if err := addKubelet(&out, spec.Kubelet); err != nil {
		return "", err
	}
	if err := addContainerd(&out, spec.Containerd); err != nil {
		return "", err
	}
	return out.String(), nil
}

func addKubelet(out *strings.Builder, o *eksbootstrapv1.KubeletOptions) error {
	if o == nil {
		return nil
	}
	config, err := rawYAML(o.Config)
	if err != nil {
		return fmt.Errorf("kubelet.config: %w", err)
	}
	if config == "" && len(o.Flags) == 0 {
		return nil
	}
	out.WriteString("\n  kubelet:")
	if config != "" {
		out.WriteString("\n    config:\n" + indented(config))
	}
	if len(o.Flags) > 0 {
		out.WriteString("\n    flags:")
		for _, flag := range o.Flags {
			out.WriteString("\n       - " + strconv.Quote(flag))
		}
	}
	return nil
}

func addContainerd(out *strings.Builder, o *eksbootstrapv1.ContainerdOptions) error {
	if o == nil {
		return nil
	}
	base, err := rawYAML(o.BaseRuntimeSpec)
	if err != nil {
		return fmt.Errorf("containerd.baseRuntimeSpec: %w", err)
	}
	if o.Config == "" && base == "" {
		return nil
	}
	out.WriteString("\n  containerd:")
	if o.Config != "" {
		out.WriteString("\n    config:" + containerdConfig(o.Config))
	}
	if base != "" {
		out.WriteString("\n    baseRuntimeSpec:\n" + indented(base))
	}
	return nil
}

// rawYAML returns an object without schema as YAML; "" if there is none.
func rawYAML(raw *runtime.RawExtension) (string, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return "", nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw.Raw, &object); err != nil {
		return "", errors.New("must be an object")
	}
	out, err := yaml.JSONToYAML(raw.Raw)
	return string(out), err
}

// valueIndent is the indentation of values in the NodeConfig.
const valueIndent = "      "

// indented indents all lines of a text, also the empty one at its end.
func indented(text string) string {
	return valueIndent + strings.ReplaceAll(text, "\n", "\n"+valueIndent)
}

// containerdConfig returns a TOML text as a value in YAML. CAPA copies the text into the
// NodeConfig unchanged, so that it has to begin with the header of a block. TOML never
// does: a text without a header gets one.
func containerdConfig(config string) string {
	first, _, found := strings.Cut(config, "\n")
	if found && strings.HasPrefix(first, "|") && strings.Trim(first, "|+-0123456789 \t") == "" {
		return "\n" + indented(config)
	}
	out := bytes.NewBufferString(" ")
	writeBlock(out, config, len(valueIndent))
	return strings.TrimSuffix(out.String(), "\n")
}
