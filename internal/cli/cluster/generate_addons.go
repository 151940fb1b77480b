package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// noNetwork is the value of --cni for a manifest without a pod network.
const noNetwork = "none"

// addonLabel is the label of a Cluster that the ClusterResourceSets of its add-ons select.
const addonLabel = "cluster.x-k8s.io/cluster-name"

// rule is a rule for packets between machines, as in spec.network.cni of an AWSCluster.
type rule struct {
	what, protocol string
	port           int
}

func (r rule) String() string {
	return fmt.Sprintf("- {description: %s, protocol: %s, fromPort: %d, toPort: %d}", r.what, r.protocol, r.port, r.port)
}

// network is a pod network that --cni selects.
type network struct {
	name   string // also of its file in configs.Addons
	charts []string
	rules  []rule
}

// networks returns the pod networks; the first is the default.
func networks() []network {
	return []network{
		{name: "flannel", charts: []string{"flannel"}, rules: []rule{{"flannel (VXLAN)", "udp", 8472}}},
		{name: "calico", charts: []string{"tigera-operator", "calico"}, rules: []rule{{"Calico (VXLAN)", "udp", 4789}, {"Calico (Typha)", "tcp", 5473}}},
		{name: "cilium", charts: []string{"cilium"}, rules: []rule{{"Cilium (VXLAN)", "udp", 8472}, {"Cilium (health)", "tcp", 4240}}},
	}
}

// networkNames are the values of --cni.
func networkNames() (names []string) {
	for _, n := range networks() {
		names = append(names, n.name)
	}
	return append(names, noNetwork)
}

// skeleton is what the add-ons need to know of a manifest.
type skeleton struct {
	cluster, infra *yaml.Node // documents
	spec           *yaml.Node // of the AWSCluster, or of its template
	eks            bool
	plane          *yaml.Node // the document of the control plane of EKS
	nodes          bool       // it has nodes that are EC2 instances
	installs       bool       // it has ClusterResourceSets or charts of its own
	managedBy      bool       // somebody else manages the infrastructure
}

// readSkeleton reads the documents of a manifest.
func readSkeleton(text string) (s skeleton, err error) {
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return s, nil
		} else if err != nil {
			return s, err
		}
		root := document.Content[0]
		switch kind := field(root, "kind"); {
		case kind == nil:
		case kind.Value == "Cluster":
			s.cluster = root
		case kind.Value == "AWSManagedControlPlaneTemplate":
			s.eks = true
		case kind.Value == "AWSManagedControlPlane":
			s.eks, s.plane = true, root
		case kind.Value == "MachinePool" || kind.Value == "MachineDeployment":
			s.nodes = true
		case kind.Value == "ClusterResourceSet" || kind.Value == "HelmChartProxy":
			s.installs = true
		case kind.Value == "AWSCluster":
			s.infra, s.spec = root, field(root, "spec")
			s.managedBy = field(root, "metadata", "annotations", "cluster.x-k8s.io/managed-by") != nil
		case kind.Value == "AWSClusterTemplate":
			s.infra, s.spec = root, field(root, "spec", "template", "spec")
		}
	}
}

// field returns the value at a path of a mapping, or nil.
func field(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		if n = valueOf(n, name); n == nil {
			return nil
		}
	}
	return n
}

func valueOf(n *yaml.Node, name string) *yaml.Node {
	if key := keyOf(n, name); key >= 0 {
		return n.Content[key+1]
	}
	return nil
}

// keyOf returns the index of a key in a mapping, or -1.
func keyOf(n *yaml.Node, name string) int {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// insertion is text before a line of a manifest.
type insertion struct {
	line int // from 1
	text string
}

// withAddons returns a manifest that also installs what Nodes need to become ready, and pods need
// to have volumes. Its objects are documents at the end; the label that selects the Cluster and
// the rules of the security groups are in the documents of the flavor.
func (o *generateOptions) withAddons(text, name string) (string, error) { //nolint:cyclop // a case for each kind of cluster
	s, err := readSkeleton(text)
	if err != nil {
		return "", err
	}
	switch {
	case s.eks && o.cni.value != networks()[0].name:
		return "", env.Usagef("--cni: the flavor %s has the pod network of EKS, the Amazon VPC CNI", o.flavor.value)
	case s.installs && o.cni.value != networks()[0].name:
		return "", env.Usagef("--cni: the flavor %s has a pod network of its own", o.flavor.value)
	case s.plane != nil && (s.nodes || s.autoMode()):
		return withStorage(text, name, s)
	case s.eks || s.cluster == nil || s.spec == nil:
		return text, nil
	}
	v, err := valuesOf(text, name, s)
	if err != nil {
		return "", err
	}
	inserted := labelled(s.cluster, name)
	var files []string
	if i := slices.IndexFunc(networks(), func(n network) bool { return n.name == o.cni.value }); i >= 0 && !s.installs {
		n := networks()[i]
		files = append(files, n.name)
		if !s.managedBy {
			inserted = append(inserted, allowed(s.spec, n.rules))
		}
	}
	if !s.installs {
		files = append(files, "cloud-controller-manager")
	}
	return addonsOf(insert(text, inserted), append(files, "ebs-csi"), v)
}

// labelled returns the label of the Cluster, unless it has it.
func labelled(cluster *yaml.Node, name string) []insertion {
	metadata := field(cluster, "metadata")
	if field(metadata, "labels", addonLabel) != nil {
		return nil
	}
	if i := keyOf(metadata, "labels"); i >= 0 {
		return []insertion{{metadata.Content[i].Line + 1, fmt.Sprintf("    %s: %s\n", addonLabel, name)}}
	}
	return []insertion{{cluster.Content[keyOf(cluster, "spec")].Line, fmt.Sprintf("  labels:\n    %s: %s\n", addonLabel, name)}}
}

// allowed returns the rules for packets between machines, in the spec of an AWSCluster.
func allowed(spec *yaml.Node, rules []rule) insertion {
	for _, port := range walk(spec, "network", "cni", "cniIngressRules", "[]", "fromPort") { // EC2 stores no rule twice
		rules = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return strconv.Itoa(r.port) == port.Value })
	}
	first := spec.Content[0]
	indent := strings.Repeat(" ", first.Column-1)
	lines := func(depth int) string {
		var b strings.Builder
		for _, r := range rules {
			b.WriteString(indent + strings.Repeat("  ", depth) + r.String() + "\n")
		}
		return b.String()
	}
	network := keyOf(spec, "network")
	if network < 0 {
		text := indent + "network:\n" + indent + "  cni:\n" + indent + "    cniIngressRules: # between the machines\n" + lines(2)
		at := first.Line
		if i := keyOf(spec, "controlPlaneLoadBalancer"); i >= 0 {
			at = spec.Content[i].Line
		}
		return insertion{at, text}
	}
	if i := keyOf(field(spec, "network", "cni"), "cniIngressRules"); i >= 0 {
		return insertion{field(spec, "network", "cni").Content[i].Line + 1, lines(2)}
	}
	return insertion{spec.Content[network].Line + 1, indent + "  cni:\n" + indent + "    cniIngressRules: # between the machines\n" + lines(2)}
}

// insert returns a text with insertions.
func insert(text string, all []insertion) string {
	lines := strings.SplitAfter(text, "\n")
	slices.SortStableFunc(all, func(a, b insertion) int { return b.line - a.line }) // from the end, so that lines stay valid
	for _, x := range all {
		lines = slices.Insert(lines, x.line-1, x.text)
	}
	return strings.Join(lines, "")
}

// valuesOf returns the values of a manifest that stand in the documents of add-ons.
func valuesOf(text, name string, s skeleton) (*strings.Replacer, error) {
	versions, err := parameterValues(text, version)
	if err != nil {
		return nil, err
	}
	minor := regex.Of(`^v?(1\.\d+)`).FindStringSubmatch(versions[0].Value)
	if minor == nil {
		return nil, fmt.Errorf("line %d: %q is not a Kubernetes version", versions[0].Line, versions[0].Value)
	}
	regions, err := parameterValues(text, region)
	if err != nil {
		return nil, err
	}
	namespace := ""
	if n := field(s.cluster, "metadata", "namespace"); n != nil {
		namespace = "\n  namespace: " + n.Value
	}
	v4, v6, err := podBlocks(s.cluster)
	if err != nil {
		return nil, err
	}
	families := ""
	for _, f := range []struct{ block, name string }{{v4, "ipv4"}, {v6, "ipv6"}} {
		if f.block != "" {
			families += "\n        NodeIPFamilies=" + f.name
		}
	}
	return strings.NewReplacer(
		"<cluster>", name, "<in-namespace>", namespace, "<minor>", minor[1], "<region>", regions[0].Value,
		"<flannel-network>", flannelNetwork(v4, v6), "\n<node-ip-families>", families,
		"\n<families>", fmt.Sprintf("\n    ipv4: {enabled: %t}\n    ipv6: {enabled: %t}", v4 != "", v6 != ""),
	), nil
}

// podBlocks returns the address blocks of pods; "" for a family that pods do not have.
func podBlocks(cluster *yaml.Node) (v4, v6 string, err error) {
	blocks := field(cluster, "spec", "clusterNetwork", "pods", "cidrBlocks")
	if blocks == nil || len(blocks.Content) == 0 {
		return "", "", errors.New("the Cluster has no spec.clusterNetwork.pods.cidrBlocks")
	}
	for _, n := range blocks.Content {
		block, err := netip.ParsePrefix(n.Value)
		switch {
		case err != nil:
			return "", "", fmt.Errorf("line %d: %w", n.Line, err)
		case block.Addr().Is4():
			v4 = cmp.Or(v4, n.Value)
		default:
			v6 = cmp.Or(v6, n.Value)
		}
	}
	return v4, v6, nil
}

// flannelNetwork returns net-conf.json of flannel.
func flannelNetwork(v4, v6 string) string {
	var fields []string
	if v4 != "" {
		fields = append(fields, fmt.Sprintf(`"Network": %q`, v4))
	} else {
		fields = append(fields, `"EnableIPv4": false`)
	}
	if v6 != "" {
		fields = append(fields, `"EnableIPv6": true`, fmt.Sprintf(`"IPv6Network": %q`, v6))
	}
	return "{" + strings.Join(append(fields, `"Backend": {"Type": "vxlan"}`), ", ") + "}"
}

// addonsOf returns a manifest with the documents of add-ons at its end.
func addonsOf(text string, files []string, values *strings.Replacer) (string, error) {
	for _, file := range files {
		data, err := configs.Addons.ReadFile("addons/" + file + ".yaml")
		if err != nil {
			return "", err
		}
		text += values.Replace(string(data))
	}
	return text, nil
}
