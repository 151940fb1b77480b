package yamldoc

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"go.yaml.in/yaml/v3"
)

// Use says what the text is for that contains a ${…}.
type Use int

// What a ${…} is in.
const (
	useNone    Use = iota // an object that is not part of the cluster: nothing reads it
	useForeign            // an object of another provider: only its name matters
	useText               // text for a machine, the cluster or AWS, in which ${…} has another meaning
	useCommand            // a shell command; otherwise as useText
	useSetting            // a value in which ${…} is possible and unusual
	UseField              // a field in which ${…} is never valid: only a template has it there
)

// Template is a source with the uses of its variables.
type Template struct {
	source input.Source
	uses   []Use    // of each ${ and $${ outside of comments, in order
	names  []string // of the variables; "" if the text between the braces is none
	is     bool     // kubectl could not apply it: a ${…} is where it is never valid
}

// recogniseTemplate finds out what each ${…} of a source is for.
//
// "clusterctl generate" replaces all of them, "kubectl apply", Argo CD and Flux none. A source is
// a template if it has one in a field where an API server would refuse it, such as metadata.name
// or spec.region, or a $${ in a kubeadm configuration, which only a template has.
func recogniseTemplate(s input.Source) Template {
	t := Template{source: s}
	if !strings.Contains(string(s.Data), "${") {
		return t
	}
	m := marker{token: "vclusterawsadm"}
	for strings.Contains(string(s.Data), m.token) {
		m.token += "x"
	}
	marked := m.source(s)
	t.uses, t.names = make([]Use, len(m.marks)), make([]string, len(m.marks))
	for i, mark := range m.marks {
		t.names[i] = mark.name
	}
	w := useFinder{uses: t.uses, token: regexp.MustCompile(m.token + `(\d+)z`)}
	documents, _ := Split(marked)
	for _, d := range documents {
		w.document(d.Root)
	}
	for i, mark := range m.marks {
		switch {
		case w.found(i):
		case mark.alone:
			t.uses[i] = UseField // lines of the manifest: without them, it is no YAML
		default:
			t.uses[i] = useText // the document cannot be read
		}
		field := t.uses[i] == UseField && mark.name != ""
		t.is = t.is || field || mark.escaped && t.uses[i] == useSetting
	}
	return t
}

// mark is one ${ or $${ in a source.
type mark struct {
	name    string // of the variable; "" if the text between the braces is none
	escaped bool
	alone   bool // the line has nothing else
}

// marker replaces each ${…} with a word that is valid YAML everywhere.
type marker struct {
	token string
	marks []mark
}

func (m *marker) source(s input.Source) Text {
	out := Text{File: s.Name}
	var scan Scanner
	for i, line := range strings.Split(string(s.Data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		end := scan.Comment(line)
		out.Lines = append(out.Lines, m.line(line[:end])+line[end:])
		out.From = append(out.From, i+1)
	}
	return out
}

func (m *marker) line(line string) string {
	var b strings.Builder
	whole := strings.TrimSpace(line)
	for {
		x, ok := nextVariable(line)
		if !ok {
			b.WriteString(line)
			return b.String()
		}
		b.WriteString(x.before)
		b.WriteString(m.token + strconv.Itoa(len(m.marks)) + "z")
		name := ""
		if isExpression(x.expression) {
			name = nameIn(x.expression)
		}
		m.marks = append(m.marks, mark{name: name, escaped: x.escaped, alone: whole == "${"+x.expression+"}"})
		if x.open {
			return b.String()
		}
		line = x.after
	}
}

// Variable is the first ${…} or $${ of a line.
type Variable struct {
	before, after string
	expression    string // text between the braces; of $${, what a template would have there
	text          string // as written
	escaped       bool   // $${
	open          bool   // it has no closing brace
}

// nextVariable finds the first ${…} or $${ of a line.
func nextVariable(line string) (x Variable, ok bool) {
	i := strings.Index(line, "${")
	if i < 0 {
		return x, false
	}
	n := closing(line[i+2:])
	if x.expression = line[i+2:]; n >= 0 {
		x.expression = line[i+2 : i+2+n]
	}
	switch {
	case i > 0 && line[i-1] == '$':
		x.escaped, x.before, x.text, x.after = true, line[:i-1], "$${", line[i+2:]
	case n < 0:
		x.open, x.before, x.text = true, line[:i], line[i:]
	default:
		x.before, x.text, x.after = line[:i], line[i:i+2+n+1], line[i+2+n+1:]
	}
	return x, true
}

// nameIn returns the name of the variable in an expression, or "".
func nameIn(expression string) string {
	s := strings.TrimPrefix(strings.TrimSpace(expression), "#")
	if n := strings.IndexFunc(s, func(r rune) bool { return !isNameRune(r) }); n >= 0 {
		s = s[:n]
	}
	if !isName(s) {
		return ""
	}
	return s
}

// isExpression reports whether clusterctl understands the text between braces. An IAM policy has
// ${aws:username}.
func isExpression(s string) bool {
	return regex.Of(`^\s*(#\w+|\w+(\^\^?|,,?|:?=.*|:-.*|:\s*\d+\s*(:\s*\d+\s*)?)?)\s*$`).MatchString(s)
}

// useFinder finds the marks in documents, and says what they are for.
type useFinder struct {
	uses  []Use
	seen  map[int]bool
	token *regexp.Regexp
	nodes int
}

func (w *useFinder) found(i int) bool { return w.seen[i] }

// document handles a document, or each item of a list.
func (w *useFinder) document(root *yaml.Node) {
	items := ListItems(root)
	if len(items) == 1 && items[0] == root {
		w.node(root, "", usesOf(ScalarField(root, "apiVersion"), ScalarField(root, "kind")))
		return
	}
	for _, item := range items {
		w.document(item)
	}
}

// node records the marks below a node. The path has "[]" for each item of a list.
func (w *useFinder) node(n *yaml.Node, path string, of func(path string, whole bool) Use) {
	if w.nodes++; w.nodes > 10*MaxNodes {
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		for _, found := range w.token.FindAllStringSubmatch(n.Value, -1) {
			i, err := strconv.Atoi(found[1])
			if err != nil || i >= len(w.uses) {
				continue
			}
			if w.seen == nil {
				w.seen = map[int]bool{}
			}
			w.seen[i] = true
			w.uses[i] = max(w.uses[i], of(path, found[0] == n.Value))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.node(n.Content[i], path+".", of)
			w.node(n.Content[i+1], Join(path, n.Content[i].Value), of)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			w.node(item, path+"[]", of)
		}
	case yaml.DocumentNode, yaml.AliasNode:
	}
}

// usesOf returns the function that says what the values of an object are for.
func usesOf(apiVersion, kind string) func(path string, whole bool) Use {
	group, _, _ := strings.Cut(apiVersion, "/")
	if !strings.Contains(apiVersion, "/") {
		group = ""
	}
	switch own, known := manifest.GroupOf(kind); {
	case known && own == group:
		return func(path string, whole bool) Use { return UseIn(kind, path, whole) }
	case manifest.IsClusterGroup(group):
		return func(string, bool) Use { return useForeign }
	case kind == "":
		return func(string, bool) Use { return useText } // no object: it is an error anyway
	default:
		return func(string, bool) Use { return useNone }
	}
}

// UseIn says what a value of a known kind is for. whole: the value is nothing but one ${…}.
func UseIn(kind, path string, whole bool) Use {
	switch {
	case strings.HasPrefix(path, "metadata.annotations.") || strings.Contains(path, ".metadata.annotations."):
		if regex.Of(`(^|\.)metadata\.annotations\.([a-z0-9.-]+\.)?x-k8s\.io/`).MatchString(path) {
			return UseField // of Cluster API, such as the sizes for the autoscaler
		}
		return useText
	case kind == manifest.KindConfigMap || kind == manifest.KindSecret:
		return useOfData(path)
	case kind == manifest.KindCluster || kind == manifest.KindClusterClass:
		return useInTopology(kind, path, whole)
	case isBootConfiguration(kind, path):
		return useOfBootText(path)
	case kind == manifest.KindManagedPlane && strings.HasPrefix(path, "spec.addons[].configuration"),
		kind == manifest.KindHelmChart && path == "spec.valuesTemplate":
		return useText
	case strings.Contains(path, "additionalTags.") || strings.HasSuffix(path, "escription"):
		return useSetting // of a rule; AWS takes ${…} there
	}
	return UseField
}

// useOfData is useIn for ConfigMaps and Secrets.
func useOfData(path string) Use {
	if strings.HasPrefix(path, "data.") || strings.HasPrefix(path, "stringData.") || strings.HasPrefix(path, "binaryData.") {
		return useText
	}
	return UseField
}

// useInTopology is useIn for Clusters and ClusterClasses: variables and patches may have any value.
func useInTopology(kind, path string, whole bool) Use {
	isVariable := kind == manifest.KindClusterClass && strings.HasPrefix(path, "spec.variables") ||
		kind == manifest.KindCluster && strings.HasPrefix(path, "spec.topology.") && strings.Contains(path, "variables")
	switch {
	case kind == manifest.KindClusterClass && strings.HasPrefix(path, "spec.patches"):
		return useText
	case isVariable && (whole || kind == manifest.KindCluster && !strings.Contains(path, ".value")):
		return useSetting
	case isVariable:
		return useText
	}
	return UseField
}

// useOfBootText is useIn for what a machine boots with.
func useOfBootText(path string) Use {
	switch {
	case strings.HasSuffix(path, "Commands[]"):
		return useCommand
	case isMachineText(path):
		return useText
	}
	return useSetting
}

// isBootConfiguration reports whether a path is below what a machine boots with.
func isBootConfiguration(kind, path string) bool {
	switch kind {
	case manifest.KindControlPlane, manifest.KindControlPlaneTemplate:
		return strings.Contains(path, "spec.kubeadmConfigSpec.")
	case manifest.KindConfig, manifest.KindEKSConfig, manifest.KindNodeadm:
		return strings.HasPrefix(path, "spec.")
	case manifest.KindConfigTemplate, manifest.KindEKSConfigTemplate, manifest.KindNodeadmTemplate:
		return strings.HasPrefix(path, "spec.template.spec.")
	default:
		return false
	}
}

// isMachineText reports whether a path of a boot configuration is a script, a file or another
// text with its own meaning of ${…}.
func isMachineText(path string) bool {
	steps := strings.Split(path, ".")
	return slices.ContainsFunc(steps, func(step string) bool {
		return step == "content" || step == "additionalConfig" || strings.HasSuffix(strings.TrimSuffix(step, "[]"), "Commands") ||
			strings.HasSuffix(step, "CommandOverride") || step == "instance" // of nodeadm
	}) || strings.Contains(path, ".kubelet.config")
}

// isCredential reports whether a name is that of a credential. Its value is not taken from the
// environment unless the user names it.
func isCredential(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "ACCESS_KEY", "PRIVATE_KEY", "API_KEY", "TOKEN"},
		func(word string) bool { return strings.Contains(name, word) })
}

// isOfShell reports whether shells and login programs set a variable, so that its presence in the
// environment says nothing about the manifest.
// https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap08.html
func isOfShell(name string) bool {
	return slices.Contains([]string{
		"HOME", "PATH", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "HOSTNAME", "HOST", "TERM", "LANG", "LANGUAGE", "TMPDIR", "TEMP", "TMP",
		"MAIL", "SHLVL", "EDITOR", "VISUAL", "PAGER", "DISPLAY", "IFS", "PS1", "PS2", "PS4", "TZ", "UID", "EUID", "GID", "PPID", "LINES", "COLUMNS",
		"USERNAME", "HOSTTYPE", "OSTYPE", "MACHTYPE", "RANDOM", "SECONDS", "LINENO", "OPTARG", "OPTIND", "NAME", "_",
		"SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK", "SSH_AGENT_PID",
	}, name) || slices.ContainsFunc([]string{"LC_", "XDG_", "SUDO_", "BASH"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Literal returns a text that Load reads as it is, and kubectl as well: it escapes ${ if the text
// would be a template without that.
func Literal(text []byte) []byte {
	if !recogniseTemplate(input.Source{Data: text}).is {
		return text
	}
	return []byte(strings.ReplaceAll(string(text), "${", "$${"))
}
