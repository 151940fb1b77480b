package boot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
)

const (
	// nodeadmBoundary is the same as in CAPA.
	nodeadmBoundary = "//"

	// strict makes bash stop at the first command that fails, as in CAPA.
	strict = "#!/bin/bash\nset -o errexit\nset -o pipefail\nset -o nounset\n"
)

// RenderNodeadm renders the bootstrap data for EKS's Amazon Linux 2023 AMIs with the
// layout of CAPA: a MIME message with up to three parts. These are a script with the
// commands before nodeadm, the NodeConfig that nodeadm reads, and a cloud-config. Unlike
// CAPA, it encodes all values, including non-ASCII text. All fields of n.Cluster are
// required.
//
// nodeadm reads its NodeConfig from the user data of the instance, compressed or not. The
// data must not be delivered with a backend and a boothook.
func RenderNodeadm(n EKSNode, spec eksbootstrapv1.NodeadmConfigSpec) (Data, error) {
	if err := n.Cluster.check(); err != nil {
		return Data{}, err
	}
	var parts []part
	if len(spec.PreNodeadmCommands) > 0 {
		script := strict + strings.Join(spec.PreNodeadmCommands, "\n") + "\n"
		parts = append(parts, attachment(`text/x-shellscript; charset="us-ascii"`, "commands.sh", []byte(script)))
	}
	config, err := n.nodeConfig(spec)
	if err != nil {
		return Data{}, err
	}
	parts = append(parts, part{header: textproto.MIMEHeader{"Content-Type": {"application/node.eks.aws"}}, content: config})
	s, err := n.sections(common{spec.Files, spec.Users, spec.NTP, spec.DiskSetup, spec.Mounts})
	if err != nil {
		return Data{}, err
	}
	if len(s.node().Content) > 0 {
		content, err := cloudConfig(plainHeader, s)
		if err != nil {
			return Data{}, err
		}
		parts = append(parts, attachment("text/cloud-config", "cloud-config.yaml", content))
	}
	content, err := message(boundary(parts), parts)
	return Data{Format: CloudConfig, Content: content}, err
}

// attachment returns a part for cloud-init, whose Python decoder reads non-ASCII text as
// Latin-1 unless it is base64.
func attachment(kind, file string, content []byte) part {
	encoding := "7bit"
	if bytes.ContainsFunc(content, func(r rune) bool { return r >= 0x80 }) {
		encoding, content = "base64", []byte(base64.StdEncoding.EncodeToString(content)+"\n")
		kind = strings.Replace(kind, "us-ascii", "utf-8", 1)
	}
	return part{content: content, header: textproto.MIMEHeader{
		"Content-Type": {kind}, "MIME-Version": {"1.0"}, "Content-Transfer-Encoding": {encoding},
		"Content-Disposition": {`attachment; filename="` + file + `"`},
	}}
}

// boundary returns CAPA's boundary, or a longer one if a line in the parts begins with
// it.
func boundary(parts []part) string {
	b := nodeadmBoundary
	for slices.ContainsFunc(parts, func(p part) bool { return bytes.Contains(append([]byte("\n"), p.content...), []byte("\n--"+b)) }) {
		b += "/"
	}
	return b
}

// nodeConfig returns the NodeConfig in its only API version.
func (n EKSNode) nodeConfig(spec eksbootstrapv1.NodeadmConfigSpec) ([]byte, error) {
	cluster, out := &mapping{}, &mapping{}
	cluster.addText("name", n.Cluster.Name)
	cluster.addText("apiServerEndpoint", n.Cluster.Endpoint)
	cluster.addText("certificateAuthority", n.Cluster.authority())
	cluster.addText("cidr", n.Cluster.ServiceCIDR)
	out.add("cluster", cluster.node())
	if len(spec.FeatureGates) > 0 {
		gates := &mapping{}
		for _, name := range slices.Sorted(maps.Keys(spec.FeatureGates)) {
			on := spec.FeatureGates[name]
			gates.addBool(string(name), &on)
		}
		out.add("featureGates", gates.node())
	}
	if err := addKubelet(out, spec.Kubelet); err != nil {
		return nil, err
	}
	if err := addContainerd(out, spec.Containerd); err != nil {
		return nil, err
	}
	doc := &mapping{}
	doc.addText("apiVersion", "node.eks.aws/v1alpha1")
	doc.addText("kind", "NodeConfig")
	doc.add("spec", out.node())
	text := bytes.NewBufferString("---\n")
	if err := writeYAML(text, doc.node(), 0); err != nil {
		return nil, fmt.Errorf("NodeConfig: %w", err)
	}
	return text.Bytes(), nil
}

func addKubelet(out *mapping, o *eksbootstrapv1.KubeletOptions) error {
	if o == nil {
		return nil
	}
	kubelet := &mapping{}
	if err := kubelet.addRaw("config", o.Config); err != nil {
		return fmt.Errorf("kubelet.config: %w", err)
	}
	kubelet.addList("flags", o.Flags)
	if len(kubelet.entries) > 0 {
		out.add("kubelet", kubelet.node())
	}
	return nil
}

func addContainerd(out *mapping, o *eksbootstrapv1.ContainerdOptions) error {
	if o == nil {
		return nil
	}
	containerd := &mapping{}
	if config := bareTOML(o.Config); config != "" {
		containerd.add("config", block(config))
	}
	if err := containerd.addRaw("baseRuntimeSpec", o.BaseRuntimeSpec); err != nil {
		return fmt.Errorf("containerd.baseRuntimeSpec: %w", err)
	}
	if len(containerd.entries) > 0 {
		out.add("containerd", containerd.node())
	}
	return nil
}

// bareTOML removes the header of a YAML block scalar, which CAPA needs because it copies
// the text into the NodeConfig unchanged. TOML never begins with such a header.
func bareTOML(config string) string {
	first, rest, found := strings.Cut(config, "\n")
	if found && strings.HasPrefix(first, "|") && strings.Trim(first, "|+-0123456789 \t") == "" {
		return rest
	}
	return config
}

// addRaw adds a JSON object without schema, with sorted keys.
func (m *mapping) addRaw(key string, raw *runtime.RawExtension) error {
	if raw == nil || len(raw.Raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw.Raw))
	decoder.UseNumber() // keep the notation
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return errors.New("must be an object")
	}
	if len(object) > 0 {
		m.add(key, jsonNode(object))
	}
	return nil
}

// jsonNode converts decoded JSON to YAML.
func jsonNode(value any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		}
		object := &mapping{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			object.add(key, jsonNode(v[key]))
		}
		return object.node()
	case []any:
		if len(v) == 0 {
			return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		}
		return each(v, jsonNode)
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: numberTag(v), Value: v.String()}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case string:
		return text(v)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

func numberTag(n json.Number) string {
	if _, err := n.Int64(); err == nil {
		return "!!int"
	}
	return "!!float"
}
