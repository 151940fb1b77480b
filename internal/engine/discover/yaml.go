package discover

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
)

// Object is a Kubernetes object with comments.
type Object struct {
	APIVersion, Kind, Name string
	Namespace              string // "" for the default one
	Labels, Annotations    map[string]any
	Spec                   map[string]any

	comments map[string]string // by path
}

func object(version, kind, name string, spec map[string]any) Object {
	return Object{APIVersion: version, Kind: kind, Name: name, Spec: spec, comments: map[string]string{}}
}

// reference returns a reference to another object of the cluster.
func reference(group, kind, name string) map[string]any {
	return map[string]any{"apiGroup": group, "kind": kind, "name": name}
}

// comment adds a comment above a field; none if it is "".
func (o *Object) comment(path, text string) {
	if text != "" {
		o.comments[path] = text
	}
}

// commentWidth is the length of the lines of a comment.
const commentWidth = 88

// YAML returns objects as YAML documents. The head is a comment at the beginning.
func YAML(head []string, all []Object) ([]byte, error) {
	var out bytes.Buffer
	for _, line := range head {
		fmt.Fprintln(&out, strings.TrimRight("# "+line, " "))
	}
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	for _, o := range all {
		metadata := map[string]any{"name": o.Name}
		set(metadata, "namespace", o.Namespace, defaultNamespace)
		setMap(metadata, "labels", o.Labels)
		setMap(metadata, "annotations", o.Annotations)
		var doc yaml.Node
		if err := doc.Encode(map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "metadata": metadata, "spec": o.Spec}); err != nil {
			return nil, err
		}
		inOrder(&doc)
		for path, text := range o.comments {
			if key := field(&doc, strings.Split(path, ".")); key != nil {
				key.HeadComment = text
			}
		}
		if err := enc.Encode(&doc); err != nil {
			return nil, err
		}
	}
	err := enc.Close()
	return yamldoc.Literal(out.Bytes()), err // for kubectl, and for this program
}

// inOrder sorts the keys of maps as people write them: first those that say which thing it
// is, then the others by name.
func inOrder(n *yaml.Node) {
	for _, c := range n.Content {
		inOrder(c)
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	first := []string{"apiVersion", "apiGroup", "kind", "name", "id", "principalARN", "policyARN", "key", "clusterName", "region", "version"}
	rank := func(key string) int {
		if i := slices.Index(first, key); i >= 0 {
			return i
		}
		return len(first)
	}
	pairs := slices.Collect(slices.Chunk(n.Content, 2))
	slices.SortStableFunc(pairs, func(x, y []*yaml.Node) int { return rank(x[0].Value) - rank(y[0].Value) })
	n.Content = slices.Concat(pairs...)
}

// field returns the key of a field; nil if there is none.
func field(in *yaml.Node, path []string) *yaml.Node {
	for i := 0; i+1 < len(in.Content); i += 2 {
		key, value := in.Content[i], in.Content[i+1]
		switch {
		case key.Value != path[0]:
		case len(path) == 1:
			return key
		default:
			return field(value, path[1:])
		}
	}
	return nil
}

// set sets a field, unless the value is empty or the default.
func set(in map[string]any, key, value, byDefault string) {
	if value != "" && value != byDefault {
		in[key] = value
	}
}

func setMap(in map[string]any, key string, value map[string]any) {
	if len(value) > 0 {
		in[key] = value
	}
}

func setList(in map[string]any, key string, value []any) {
	if len(value) > 0 {
		in[key] = value
	}
}

func anys(all []string) (out []any) {
	for _, s := range all {
		out = append(out, s)
	}
	return out
}

func anyMap(all map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range all {
		out[k] = v
	}
	return out
}
