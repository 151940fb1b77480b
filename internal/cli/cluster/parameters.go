package cluster

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parameter is a value of a manifest that flags can change.
type parameter int

const (
	region parameter = iota
	version
	versionOfEKS
	controlPlanes
	workers // of each group
	fewest  // of a pool
	most
)

// place is the kind of an object and a path in it. "[]" stands for every item of a
// list, "[x]" for the item with the name x.
type place struct{ kind, path string }

func places(of parameter) []place {
	switch of {
	case region:
		return []place{{"AWSCluster", "spec.region"}, {"AWSManagedControlPlane", "spec.region"}, {"Cluster", "spec.topology.variables.[region].value"}}
	case version:
		return append(places(versionOfEKS), []place{
			{"Cluster", "spec.topology.version"},
			{"KubeadmControlPlane", "spec.version"},
			{"MachineDeployment", "spec.template.spec.version"},
			{"MachinePool", "spec.template.spec.version"},
			{"Machine", "spec.version"},
		}...)
	case versionOfEKS:
		return []place{{"AWSManagedControlPlane", "spec.version"}}
	case controlPlanes:
		return []place{{"Cluster", "spec.topology.controlPlane.replicas"}, {"KubeadmControlPlane", "spec.replicas"}}
	case workers:
		return []place{
			{"Cluster", "spec.topology.workers.machineDeployments.[].replicas"},
			{"Cluster", "spec.topology.workers.machinePools.[].replicas"},
			{"MachineDeployment", "spec.replicas"},
			{"MachinePool", "spec.replicas"},
		}
	case fewest:
		return []place{{"AWSManagedMachinePool", "spec.scaling.minSize"}, {"AWSMachinePool", "spec.minSize"}}
	case most:
		return []place{{"AWSManagedMachinePool", "spec.scaling.maxSize"}, {"AWSMachinePool", "spec.maxSize"}}
	}
	return nil
}

// errNotSet says that a manifest does not set the parameter.
var errNotSet = errors.New("the manifest does not set it")

// parameterValues returns the nodes with the values of a parameter in a manifest, in order.
func parameterValues(text string, of parameter) (out []*yaml.Node, err error) {
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		kinds := walk(document.Content[0], "kind")
		for _, p := range places(of) {
			if len(kinds) == 1 && kinds[0].Value == p.kind {
				out = append(out, walk(document.Content[0], strings.Split(p.path, ".")...)...)
			}
		}
	}
	if len(out) == 0 {
		return nil, errNotSet
	}
	return out, nil
}

// walk returns the scalars at a path.
func walk(n *yaml.Node, path ...string) (out []*yaml.Node) {
	if len(path) == 0 {
		if n.Kind == yaml.ScalarNode {
			out = append(out, n)
		}
		return out
	}
	step, rest := path[0], path[1:]
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			if names := walk(item, "name"); step == "[]" || len(names) == 1 && "["+names[0].Value+"]" == step {
				out = append(out, walk(item, rest...)...)
			}
		}
		return out
	}
	for i, key := range n.Content { // a mapping: keys and values alternate
		if i%2 == 0 && key.Value == step && i+1 < len(n.Content) {
			out = append(out, walk(n.Content[i+1], rest...)...)
		}
	}
	return out
}

// setParameter returns a manifest with other values for a parameter. The rest, including comments,
// is unchanged. The values are plain scalars.
func setParameter(text string, of parameter, value func(was string) string) (string, error) {
	nodes, err := parameterValues(text, of)
	if err != nil {
		return text, err
	}
	lines := strings.Split(text, "\n")
	slices.Reverse(nodes) // from the end of a line to its start, so that columns stay valid
	for _, n := range nodes {
		line, rest := lines[n.Line-1][:n.Column-1], lines[n.Line-1][n.Column-1:]
		after, ok := strings.CutPrefix(rest, n.Value)
		if !ok {
			return "", fmt.Errorf("line %d: %q is not a plain YAML value", n.Line, n.Value)
		}
		lines[n.Line-1] = line + value(n.Value) + after
	}
	return strings.Join(lines, "\n"), nil
}
