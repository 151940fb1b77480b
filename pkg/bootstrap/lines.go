package bootstrap

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// lines has the line numbers of the fields of a file.
type lines struct {
	file string
	of   map[string]int // by path; the document is ""
}

func (l lines) at(path string) input.Position {
	for {
		if line, ok := l.of[path]; ok {
			return input.Position{File: l.file, Line: line}
		}
		if path == "" {
			return input.Position{File: l.file}
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// order sorts problems by line.
func (l lines) order(problems []input.Problem) {
	slices.SortStableFunc(problems, func(a, b input.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
}

// Limits of a document: an alias may be inside its own anchor, or multiply nodes.
const (
	maxDepth = 64
	maxNodes = 200_000
)

// locate records the line of each field. Another parser reports YAML errors.
func (l *loader) locate(data []byte) {
	defer func() { _ = recover() }() // the other parser reports the error
	l.budget = maxNodes
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if decoder.Decode(&document) != nil || document.Kind != yaml.DocumentNode {
		return
	}
	l.place(document.Content[0], "", maxDepth)
	if decoder.Decode(&second) == nil && second.Kind == yaml.DocumentNode && second.Content[0].ShortTag() != "!!null" {
		l.warnings = append(l.warnings, input.Problem{
			Position: input.Position{File: l.lines.file, Line: second.Content[0].Line},
			What:     "only the first document of a file is used", Fix: "remove the others",
		})
	}
}

func (l *loader) place(n *yaml.Node, path string, depth int) {
	l.budget--
	if depth == 0 || l.budget < 0 {
		return
	}
	if _, known := l.lines.of[path]; !known {
		l.lines.of[path] = n.Line
	}
	switch n.Kind {
	case yaml.AliasNode:
		l.place(n.Alias, path, depth-1)
	case yaml.SequenceNode:
		for i, item := range n.Content {
			l.place(item, path+"["+strconv.Itoa(i)+"]", depth-1)
		}
	case yaml.MappingNode:
		l.placeFields(n, path, depth-1)
	case yaml.DocumentNode, yaml.ScalarNode:
	}
}

func (l *loader) placeFields(n *yaml.Node, path string, depth int) {
	set := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			defer l.place(value, path, depth) // an explicit key precedes a merged one
			continue
		}
		below := join(path, jsonKey(key))
		if first, twice := set[below]; twice {
			l.warnings = append(l.warnings, input.Problem{
				Position: input.Position{File: l.lines.file, Line: key.Line}, Path: below,
				What: "the field is duplicated, first on line " + strconv.Itoa(first) + "; the last value is used", Fix: "keep one of them",
			})
		}
		set[below] = key.Line
		l.lines.of[below] = key.Line
		l.place(value, below, depth)
	}
}

// jsonKey returns a key as YAML 1.1 converts it to a string.
func jsonKey(key *yaml.Node) string {
	if key.Style == 0 {
		switch strings.ToLower(key.Value) {
		case "y", "yes", "on":
			return "true"
		case "n", "no", "off":
			return "false"
		}
	}
	return key.Value
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
