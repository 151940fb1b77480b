package boot

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// mapping collects the entries of a YAML mapping in the order in which they
// are to be written. What is not set is left out.
type mapping struct{ entries []*yaml.Node }

func (m *mapping) node() *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: m.entries}
}

func (m *mapping) add(key string, value *yaml.Node) {
	m.entries = append(m.entries, text(key), value)
}

func (m *mapping) addText(key, value string) {
	if value != "" {
		m.add(key, text(value))
	}
}

func (m *mapping) addBool(key string, value *bool) {
	if value != nil {
		m.add(key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(*value)})
	}
}

func (m *mapping) addList(key string, values []string) {
	if len(values) > 0 {
		m.add(key, list(values))
	}
}

func list(values []string) *yaml.Node { return each(values, text) }

// each makes a YAML sequence of the nodes that f makes of the items.
func each[T any](items []T, f func(T) *yaml.Node) *yaml.Node {
	out := &yaml.Node{Kind: yaml.SequenceNode}
	for _, item := range items {
		out.Content = append(out.Content, f(item))
	}
	return out
}

func number(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: value}
}

// text is a string in the shortest style that keeps it one. A string with a
// jinja expression is written as a block: quoting would put backslashes or
// doubled quotes into the expression, which cloud-init evaluates first.
func text(value string) *yaml.Node {
	if strings.Contains(value, "{{") || strings.Contains(value, "{%") || strings.Contains(value, "\n") {
		return block(value)
	}
	node := &yaml.Node{}
	node.SetString(value)
	// Readers of YAML 1.1, as cloud-init's, see booleans, octal and
	// sexagesimal numbers where ours sees strings.
	if node.Tag == "!!str" && !plainInYAML11(value) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// plainInYAML11 reports whether an unquoted scalar is a string in YAML 1.1
// too. It errs on the side of quotes.
func plainInYAML11(value string) bool {
	if value == "" {
		return false
	}
	switch strings.ToLower(value) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~":
		return false
	}
	first := value[0]
	return first != '.' && first != '+' && first != '-' && (first < '0' || first > '9')
}

// block is a string as a literal block, in which nothing is escaped. Where
// YAML cannot keep the string that way, the encoder quotes it; what is not
// UTF-8 becomes !!binary, which cloud-init reads as bytes.
func block(value string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(value)
	if node.Tag != "!!str" || !utf8.ValidString(value) || value == "" {
		return node
	}
	node.Style = yaml.LiteralStyle
	var back string
	if raw, err := yaml.Marshal(node); err != nil || yaml.Unmarshal(raw, &back) != nil || back != value {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}
