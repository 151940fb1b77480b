package boot

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// mapping collects the entries of a YAML mapping in order. Empty values are omitted.
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

// each returns a YAML sequence of the nodes that f returns for the items.
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

// text returns a string in the shortest style that stays a string. A string with a jinja
// expression becomes a block: quoting would add backslashes or doubled quotes to the
// expression, which cloud-init evaluates first.
func text(value string) *yaml.Node {
	if isJinja(value) || strings.Contains(value, "\n") {
		return block(value)
	}
	// Parsers of YAML 1.1, such as cloud-init's, read some of these strings as booleans,
	// octal or sexagesimal numbers.
	if !plainInYAML11(value) {
		return quoted(value)
	}
	node := &yaml.Node{}
	node.SetString(value)
	return node
}

// isJinja reports whether cloud-init may evaluate an expression in a text.
func isJinja(value string) bool {
	return strings.Contains(value, "{{") || strings.Contains(value, "{%")
}

// quoted returns a string in double quotes.
func quoted(value string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(value)
	if node.Tag == "!!str" {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// plainInYAML11 reports whether an unquoted scalar is a string in YAML 1.1, too.
func plainInYAML11(value string) bool {
	if value == "" {
		return false
	}
	switch strings.ToLower(value) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "=":
		return false
	}
	return !regex.Of(number11).MatchString(value)
}

// number11 matches numbers and times of YAML 1.1: decimal, octal, hexadecimal, binary and
// sexagesimal ones, and also some texts that only begin like one.
const number11 = `^[-+]?(\.?[0-9][0-9_]*(:[0-9:_]+)?(\.[0-9_]*)?([eE][-+]?[0-9]+)?|0[xb][0-9a-fA-F_]+|\.(inf|Inf|INF|nan|NaN|NAN))$|^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}`

// block returns a string as a literal block without escapes. If YAML cannot represent the
// string as a block, it is quoted. Text that is not UTF-8 becomes !!binary, which
// cloud-init reads as bytes.
func block(value string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(value)
	switch {
	case node.Tag != "!!str" || strings.Trim(value, " \n") == "":
		node.Style = 0
	case strings.ContainsFunc(value, mustBeEscaped):
		node.Style = yaml.DoubleQuotedStyle
	default:
		node.Style = yaml.LiteralStyle
	}
	return node
}

// mustBeEscaped reports whether YAML permits a character in double quotes only: control
// characters, and line breaks of YAML 1.1.
func mustBeEscaped(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u0085', '\u2028', '\u2029', '\ufeff', utf8.RuneError:
		return true
	}
	return r < ' ' || r >= 0x7f && r < 0xa0
}

// writeYAML writes a node and its children. The library's encoder writes the scalars;
// blocks are written here, because the library quotes texts whose lines end with spaces,
// and quotes break jinja expressions.
func writeYAML(out *bytes.Buffer, node *yaml.Node, indent int) error {
	switch {
	case node.Style == yaml.FlowStyle:
		return encode(out, node)
	case node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if i > 0 {
				out.WriteString(strings.Repeat(" ", indent))
			}
			if err := writeEntry(out, node.Content[i], node.Content[i+1], indent); err != nil {
				return err
			}
		}
		return nil
	case node.Kind == yaml.SequenceNode:
		for i, item := range node.Content {
			if i > 0 {
				out.WriteString(strings.Repeat(" ", indent))
			}
			out.WriteString("-")
			if item.Kind == yaml.SequenceNode && item.Style != yaml.FlowStyle {
				out.WriteString("\n" + strings.Repeat(" ", indent+2)) // as in Cluster API
			} else {
				out.WriteByte(' ')
			}
			if err := writeYAML(out, item, indent+2); err != nil {
				return err
			}
		}
		return nil
	case node.Tag == contentTag:
		writeContent(out, node.Value, indent)
		return nil
	case node.Style == yaml.LiteralStyle:
		writeBlock(out, node.Value, indent)
		return nil
	}
	return encode(out, node)
}

// contentTag marks a block that is read with exactly one newline at its end, however many its
// text has.
const contentTag = "!content"

// fileContent returns the content of a file.
func fileContent(value string) *yaml.Node {
	node := block(oneNewline(value))
	if node.Style == yaml.LiteralStyle {
		node.Tag, node.Value = contentTag, value
	}
	return node
}

// writeContent writes a block as Cluster API does: all lines are indented, also the empty one
// after the last newline.
func writeContent(out *bytes.Buffer, value string, indent int) {
	out.WriteByte('|')
	if value[0] == ' ' || value[0] == '\n' {
		out.WriteByte('2') // Cluster API's is not valid
	}
	for line := range strings.SplitSeq(value, "\n") {
		out.WriteString("\n" + strings.Repeat(" ", indent) + line)
	}
	out.WriteByte('\n')
}

// encode writes a node on one line.
func encode(out *bytes.Buffer, node *yaml.Node) error {
	line, err := oneLine(node)
	out.WriteString(line + "\n")
	return err
}

// oneLine returns a node without a newline at the end.
func oneLine(node *yaml.Node) (string, error) {
	if node.Kind == yaml.ScalarNode && node.Style == yaml.DoubleQuotedStyle {
		return strconv.Quote(node.Value), nil // escapes of Go are escapes of YAML
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", node.Tag, err)
	}
	return strings.TrimRight(string(text), "\n"), nil
}

// writeEntry writes one entry of a mapping, after the indentation.
func writeEntry(out *bytes.Buffer, key, value *yaml.Node, indent int) error {
	name, err := yaml.Marshal(key)
	if err != nil {
		return fmt.Errorf("encode a key: %w", err)
	}
	out.Write(bytes.TrimRight(name, "\n"))
	out.WriteByte(':')
	switch {
	case value.Style == yaml.LiteralStyle:
		out.WriteByte(' ')
		return writeYAML(out, value, indent+2)
	case value.Kind == yaml.ScalarNode || value.Style == yaml.FlowStyle:
		out.WriteByte(' ')
	default:
		out.WriteString("\n" + strings.Repeat(" ", indent+2))
	}
	return writeYAML(out, value, indent+2)
}

// writeBlock writes a literal block with indented lines.
func writeBlock(out *bytes.Buffer, value string, indent int) {
	out.WriteByte('|')
	if value[0] == ' ' || value[0] == '\n' {
		// The first line begins with a space, so the header must contain the indentation.
		out.WriteByte('2')
	}
	body := strings.TrimRight(value, "\n")
	switch ends := len(value) - len(body); {
	case ends == 0:
		out.WriteByte('-')
	case ends > 1:
		out.WriteByte('+')
	}
	out.WriteByte('\n')
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			out.WriteString(strings.Repeat(" ", indent) + line)
		}
		out.WriteByte('\n')
	}
	for range len(value) - len(body) - 1 {
		out.WriteByte('\n')
	}
}
