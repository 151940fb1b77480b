package loader

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	phrase "github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// notYet says what a source is that a tool turns into a manifest, and how.
type notYet struct {
	line      int
	what, fix string
}

// pipe is the rest of a command whose output is the manifest.
const pipe = " | clusterawsadm cluster … -f -"

// unrendered recognises a source that is input of another tool.
func unrendered(s input.Source) (notYet, bool) {
	switch base := filepath.Base(s.Name); base {
	case "kustomization.yaml", "kustomization.yml", "Kustomization":
		return notYet{1, "the file is a Kustomization, which changes other files", "build it first: kustomize build " + filepath.Dir(s.Name) + pipe}, true
	case "Chart.yaml":
		return notYet{1, "the file belongs to a Helm chart", "render it first: helm template " + filepath.Dir(s.Name) + pipe}, true
	}
	readable := sync.OnceValue(func() bool { return yamldoc.IsReadable(s) })
	if what, fix := otherFormat(s.Data, readable); what != "" {
		return notYet{1, what, fix}, true
	}
	if what, fix := settings(filepath.Base(s.Name), s.Data); what != "" {
		return notYet{1, what, fix}, true
	}
	return templateIn(s, readable)
}

// templateIn recognises a template by its lines. In a text that is YAML, {{ is no sign of one.
func templateIn(s input.Source, readable func() bool) (notYet, bool) {
	var scan yamldoc.Scanner
	first := true
	for i, line := range strings.Split(string(s.Data), "\n") {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "\ufeff"), "\r")
		within := scan.Block && (strings.TrimSpace(line) == "" || yamldoc.Indentation(line) > scan.Depth) || scan.Quote != 0
		end := scan.Comment(line)
		what, fix := "", ""
		content := strings.TrimSpace(line[:end])
		switch {
		case strings.HasPrefix(line[end:], "#@"):
			what, fix = "this is a template of ytt", "render it first: ytt -f FILE"+pipe
		case within:
		case first && content != "":
			first = false
			if what, fix = languageOf(content); what == "" {
				what, fix = templateOf(content, scan.Quote)
			}
		default:
			what, fix = templateOf(content, scan.Quote)
		}
		if what != "" && (!strings.Contains(what, "{{") || !readable()) {
			return notYet{i + 1, what, fix}, true
		}
	}
	return notYet{}, false
}

// otherFormat recognises a file that is no YAML by its first bytes, or by a line that another format has.
func otherFormat(data []byte, readable func() bool) (what, fix string) {
	text := strings.ToLower(strings.TrimLeft(string(data[:min(len(data), 512)]), " \t\r\n\ufeff"))
	if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		return "the file is compressed with gzip", "unpack it first: gunzip -c FILE" + pipe
	}
	for _, f := range []struct {
		begin, line string // a pattern of the text in lower case, or of a line
		mayBeYAML   bool   // the sign is enough only if the text cannot be read
		what, fix   string
	}{
		{
			begin: `^<(!doctype|html|\?xml|head|body|div|p|pre|table|h[1-6])[ >]`, what: "this is a web page",
			fix: "download the file itself: in GitHub, its address is that of the button Raw",
		},
		{begin: `^(diff --git |--- a/|index [0-9a-f]{7})`, what: "this is a patch", fix: "apply it first, and pass the file that results"},
		{begin: `^error(:| from server)`, mayBeYAML: true, what: "this is the error message of another command", fix: "correct that command"},
		{begin: `^#!`, mayBeYAML: true, what: "this is a script", fix: "run it, or pass the manifest that is in it"},
		{line: "^```(ya?ml)?[ \t\r]*$", mayBeYAML: true, what: "this is Markdown, with a manifest between two lines ```", fix: "pass only what is between these lines"},
		{line: `^\[source,\s*ya?ml`, mayBeYAML: true, what: "this is AsciiDoc, with a manifest between two lines ----", fix: "pass only what is between these lines"},
		{line: `^\s*%\{ ?(for|if) .*\}`, mayBeYAML: true, what: "this is a template of Terraform (%{ … })", fix: "render it first, with templatefile"},
		{line: `^\w.*<<-?\s*['"]?EOF`, mayBeYAML: true, what: "this is a script", fix: "run it, or pass the manifest that is in it"},
	} {
		found := f.begin != "" && regex.Of(f.begin).MatchString(text) || f.line != "" && regex.Of("(?m)"+f.line).Match(data)
		if found && (!f.mayBeYAML || !readable()) {
			return f.what, f.fix
		}
	}
	return "", ""
}

// settings recognises a file without objects that has the settings of a tool, by its name or its first keys.
func settings(name string, data []byte) (what, fix string) {
	has := func(pattern string) bool { return regex.Of("(?m)" + pattern).Match(data) }
	switch {
	case has(`^\s*"?(apiVersion|kind)"?:`):
	case regex.Of(`^values.*\.ya?ml$`).MatchString(name):
		what, fix = "the file has values for a Helm chart", "render the chart with them first: helm template CHART -f "+name+pipe
	case has(`^(clusterctl|providers):`) || has(`^CLUSTER_TOPOLOGY:`):
		what, fix = "the file is the configuration of clusterctl", "pass the manifest of a cluster; its variables are set with --set NAME=VALUE"
	case has(`^services:`) && has(`^  +image:|\bimage:`):
		what, fix = "the file is for Docker Compose", "write a manifest: clusterawsadm cluster generate NAME"
	case has(`^- +(hosts|import_playbook):`):
		what, fix = "the file is a playbook of Ansible", "run it, and pass the manifest that it writes"
	case has(`^\s*\{?\s*"AWSTemplateFormatVersion"`), has(`^AWSTemplateFormatVersion:`):
		what, fix = "this is a template of CloudFormation", "write a manifest: clusterawsadm cluster generate NAME"
	}
	return what, fix
}

// languageOf recognises another language by the first line of a file.
func languageOf(line string) (what, fix string) {
	for _, l := range []struct{ pattern, what, fix string }{
		{`^(local\s+\w+\s*=|function\s*\(|import\s*['"(]|//|/\*)`, "this is Jsonnet", "evaluate it first: jsonnet -y FILE" + pipe},
		{`^(import\s+.*["'];?|import\s+(os|sys|json|yaml|subprocess|textwrap)\b.*|from\s+\S+\s+import\s.*)$`, "this is a program", "run it, and pass the manifest that it writes"},
		{`^\$\s+\w+.*$`, "this is a session of a shell", "pass only the manifest in it"},
		{`^[a-z0-9.-]+/\S+ (created|configured|unchanged)$`, "this is what kubectl apply prints", "use the file that was applied, or kubectl get -o yaml"},
		{`^(import\s+[\w.]+(\s+as\s+\w+)?|schema\s+\w+.*:|\w+\s*=\s*\w+\s*\{)$`, "this is KCL", "run it first: kcl run FILE" + pipe},
		{`^package\s+\w+$`, "this is CUE", "export it first: cue export --out yaml FILE" + pipe},
		{`^(resource|module|provider|terraform|variable|data|locals)(\s+"[^"]*")*\s*\{$`, "this is a configuration of Terraform", "see docs/guides/moving.md"},
	} {
		if regex.Of(l.pattern).MatchString(line) {
			return l.what, l.fix
		}
	}
	return "", ""
}

// templateOf recognises a line of a template outside of texts and comments: in the middle of a plain text, {{ is text.
// open is the quote that begins on the line and ends on a later one, or 0.
func templateOf(line string, open byte) (what, fix string) {
	plain := regex.Of(`"(\\.|[^"\\])*"|'[^']*'`).ReplaceAllString(line, "")
	if i := strings.IndexByte(plain, open); open != 0 && i >= 0 {
		plain = plain[:i]
	}
	begin := regex.Of(`(?:^|[:?-]\s+|[\[{,]\s*)\{\{-?\s*(\w*)|^\}\}`).FindStringSubmatch(plain)
	switch {
	case begin != nil && (begin[1] == "ds" || begin[1] == "v1"): // https://docs.cloud-init.io/en/latest/explanation/instancedata.html
		return "the text {{ … }} for cloud-init is not in quotes", "put the whole value in quotes"
	case begin != nil:
		return goTemplate, goTemplateFix + pipe
	case strings.HasPrefix(plain, "<<<<<<< "):
		return "a conflict of a merge begins here", "resolve it first"
	case strings.HasPrefix(plain, "{%"):
		return "this is a Jinja template ({% … %})", "render it first: jinja2 FILE" + pipe
	}
	return "", ""
}

const (
	goTemplate    = "this is a Helm chart or another Go template ({{ … }})"
	goTemplateFix = "render it first: helm template CHART"
)

// takeUnrendered reports a source that is input of another tool.
func (l *loader) takeUnrendered(s input.Source, all []input.Source) bool {
	found, ok := unrendered(s)
	if ok {
		if besideManifests(s, all) {
			found.fix = "leave it out, and name the manifests one by one, each with -f; or " + found.fix
		}
		l.fail(manifest.Problem{Position: manifest.Position{File: s.Name, Line: found.line}, What: found.what, Fix: found.fix})
		l.unreadable = true
	}
	return ok
}

// besideManifests reports whether the folder of a file also has manifests. The user has then named the folder, and not the file.
func besideManifests(s input.Source, all []input.Source) bool {
	return slices.ContainsFunc(all, func(other input.Source) bool {
		_, tool := unrendered(other)
		return other.Name != s.Name && filepath.Dir(other.Name) == filepath.Dir(s.Name) && !tool
	})
}

// placeholders reports values that somebody has to replace first: those of "{REGION}", "<REGION>",
// "$REGION", "REPLACE_ME", and of a template in quotes. Only in fields where they are never valid,
// and not in the templates of a ClusterClass, whose patches may replace them.
func (l *loader) placeholders(o *manifest.Entry) {
	l.classes = strings.HasSuffix(o.Kind, "Template") && l.has(manifest.KindClusterClass)
	l.findPlaceholders(o, o.Value, "", "")
}

// has reports whether the input has an object of that kind.
func (l *loader) has(kind string) bool { return len(l.ofKind(kind)) > 0 }

func (l *loader) findPlaceholders(o *manifest.Entry, value any, path, general string) {
	what, fix := "", "replace it by the value"
	switch v := value.(type) {
	case map[string]any:
		if name := loneName(v); name != "" {
			what = fmt.Sprintf("{%s} looks like a placeholder", name)
			break
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			l.findPlaceholders(o, v[name], yamldoc.Join(path, name), yamldoc.Join(general, name))
		}
	case []any:
		for i, item := range v {
			l.findPlaceholders(o, item, fmt.Sprintf("%s[%d]", path, i), general+"[]")
		}
	case string:
		switch {
		case strings.Contains(v, "{{") && !mayHaveTemplate(general):
			what, fix = goTemplate, goTemplateFix+pipe
		case shellVariable(general, v) != "":
			what, fix = shellTemplate, "replace its variables, such as "+shellVariable(general, v)+", first: envsubst < FILE"+pipe
		case l.looksLikePlaceholder(v):
			what = fmt.Sprintf("%q looks like a placeholder", v)
		case regex.Of(`^[“”„‘’].*[“”‘’]$`).MatchString(v):
			what, fix = v+" is in typographic quotes, which are part of the value", `write ", or no quotes`
		}
	}
	if what != "" && yamldoc.UseIn(o.Kind, general, false) == yamldoc.UseField {
		l.placeholder(o, path, what, fix)
	}
}

// looksLikePlaceholder reports whether a text is one that somebody has to replace.
func (l *loader) looksLikePlaceholder(v string) bool {
	return regex.Of(`<[A-Za-z][\w .-]*>`).MatchString(v) || !l.classes &&
		regex.Of(`^(@@?[A-Z][A-Z0-9_]*@@?|__[A-Z][A-Z0-9_]*__|[A-Z][A-Z0-9_]*_HERE|(REPLACE|CHANGE)[_-]?(ME|THIS|WITH)([_-].*)?|YOUR[_-][A-Z0-9_-]+)$`).MatchString(v)
}

// shellTemplate says that a file has variables as a shell writes them, without braces. Those with braces are variables of clusterctl.
const shellTemplate = "this is a template with variables of a shell ($NAME)"

// shellVariable returns the variable in a value: "$REGION", or in a name also "team-$TEAM" or "$(TEAM)". "" for none.
func shellVariable(general, v string) string {
	const name = `\$([A-Z_][A-Z0-9_]*|\([A-Z_][A-Z0-9_]*\))`
	if regex.Of(`(^|\.)(name|namespace|clusterName|region|version|sshKeyName)$`).MatchString(general) {
		return regex.Of(name).FindString(v)
	}
	return regex.Of(`^` + name + `$`).FindString(v)
}

// placeholder reports a value that is none. That a file is a template is reported once.
func (l *loader) placeholder(o *manifest.Entry, path, what, fix string) {
	l.incomplete = true // what follows from the value is no problem
	file := o.Lines[""].File
	if whole := what == goTemplate || what == shellTemplate; whole && l.rendering[file] {
		return
	} else if whole {
		l.rendering[file] = true
	}
	p := o.Problem("", what, fix)
	p.Path, p.Position = path, o.Position(path)
	l.fail(p)
	if _, isMap := manifest.ValueAt(o.Value, path).(map[string]any); isMap {
		remove(o.Value, path)
	}
}

// loneName returns the name in a value such as {REGION}, which YAML reads as a mapping.
func loneName(m map[string]any) string {
	for name, value := range m {
		if len(m) == 1 && value == nil && regex.Of(`^[A-Z][A-Z0-9_-]*$`).MatchString(name) {
			return name
		}
	}
	return ""
}

// mayHaveTemplate reports whether a field takes {{ … }}: names that Cluster API generates, and
// names of users of a Node.
func mayHaveTemplate(path string) bool {
	return strings.HasSuffix(path, ".template") || strings.HasSuffix(path, ".imageLookupFormat") || strings.Contains(path, "iamAuthenticatorConfig.") ||
		strings.Contains(path, "accessEntries[].")
}

// planes are the kinds of control planes that this program takes.
const planes = manifest.KindControlPlane + ", and " + manifest.KindManagedPlane + " for EKS"

// otherTool returns what an object is that another tool turns into a cluster, and what to do.
func otherTool(a *aside) (what, fix string) {
	const (
		guide  = "write a manifest: clusterawsadm cluster generate NAME (docs/guides/first-cluster.md)"
		moving = "see docs/guides/moving.md, or write a manifest: clusterawsadm cluster generate NAME"
	)
	switch {
	case a.group == "capi.weave.works", a.group == "templates.weave.works":
		return a.Kind + " contains the objects of a cluster as a template", "render it first, and pass the result"
	case strings.HasSuffix(a.group, ".mirantis.com"):
		return a.Kind + " names a template of a cluster, and contains no object of it", "render the template first, and pass the result"
	case a.group == "argoproj.io", strings.HasSuffix(a.group, ".toolkit.fluxcd.io"), a.group == "application.giantswarm.io":
		return a.Kind + " says where manifests are, and contains none", "pass what is there, rendered"
	case besideCluster(a) != "":
		return besideCluster(a), "pass the manifest of the cluster"
	case a.Kind == "AWSIAMConfiguration":
		return "AWSIAMConfiguration is for the roles that clusters need", "use it with: clusterawsadm bootstrap iam … --config FILE"
	case a.group == "template.openshift.io":
		return "a Template of OpenShift contains objects as a template", "process it first: oc process --local -f FILE -o yaml" + pipe
	case a.group == "eksctl.io":
		return a.Kind + " is the configuration of a cluster for eksctl", moving
	case a.group == "kops.k8s.io":
		return a.Kind + " describes a cluster for kOps", moving
	case a.group == "anywhere.eks.amazonaws.com":
		return a.Kind + " describes a cluster of EKS Anywhere", guide
	case a.group == "provisioning.cattle.io", a.group == "management.cattle.io":
		return a.Kind + " describes a cluster for Rancher", guide
	}
	if tool := toolOf(a.group); tool != "" {
		return a.Kind + " is an object of " + tool, guide
	}
	if manifest.IsClusterGroup(a.group) {
		return foreign(a.Kind)
	}
	return "", ""
}

// besideCluster says what an object is that is often kept beside the manifest of a cluster, such as a kubeconfig; "" for other objects.
func besideCluster(a *aside) string {
	switch {
	case a.Kind == "Config" && a.group == "":
		return "Config is a kubeconfig, with which one reaches a cluster"
	case a.Kind == "CustomResourceDefinition":
		return "a CustomResourceDefinition defines a kind of objects, and is none of them"
	case a.group == "clusterctl.cluster.x-k8s.io", a.group == "operator.cluster.x-k8s.io":
		return a.Kind + " is for a management cluster, and this program needs none"
	}
	return ""
}

// toolOf returns the tool whose objects are in an API group; "" for none that is known.
func toolOf(group string) string {
	for _, t := range []struct{ suffix, tool string }{
		{"hypershift.openshift.io", "OpenShift"},
		{"machine.openshift.io", "OpenShift"},
		{"hive.openshift.io", "Hive, for OpenShift"},
		{"kubermatic.k8c.io", "Kubermatic"},
		{"kubeone.k8c.io", "KubeOne"},
		{"gardener.cloud", "Gardener"},
		{"run.tanzu.vmware.com", "Tanzu"},
		{"upbound.io", "Crossplane"},
		{"crossplane.io", "Crossplane"},
		{"services.k8s.aws", "AWS Controllers for Kubernetes"},
		{"kind.x-k8s.io", "kind"},
		{"kubeadm.k8s.io", "kubeadm"},
		{"karmada.io", "Karmada"},
		{"open-cluster-management.io", "Open Cluster Management"},
	} {
		if isOfDomain(group, t.suffix) {
			return t.tool
		}
	}
	return ""
}

// isOfDomain reports whether an API group is a domain, or below it.
func isOfDomain(group, domain string) bool {
	return group == domain || strings.HasSuffix(group, "."+domain)
}

// foreign says what a kind of another provider is.
func foreign(kind string) (what, fix string) {
	p, known := providerOf(kind)
	if !known {
		return "", ""
	}
	return fmt.Sprintf("%s are not supported: %s comes from %s", p.what, kind, p.from), "this program takes " + planes
}

// emptyFix is what to do about an empty input: often, a command before a pipe has failed.
const emptyFix = "if another command writes it, correct that command; to begin with an example: clusterawsadm cluster generate NAME"

// noCluster reports that the input has no Cluster, and what it has instead.
func (l *loader) noCluster() {
	if len(l.problems) > 0 || l.unreadable {
		return
	}
	for _, a := range l.asides {
		what, fix := otherTool(a)
		if what == "" && a.Kind == manifest.KindCluster {
			what, fix = "the Cluster is one of "+a.group+", not of "+manifest.GroupCore, "write a manifest: clusterawsadm cluster generate NAME"
		}
		if what != "" {
			begin := "there is no Cluster in the input: "
			if a.Kind == manifest.KindCluster {
				begin = "there is no Cluster of Cluster API in the input: "
			}
			l.fail(a.Problem("kind", begin+what, fix))
			return
		}
	}
	if len(l.found) == 0 {
		l.fail(manifest.Problem{Position: l.begin, What: "there is no Cluster in the input: it is empty", Fix: emptyFix})
		return
	}
	what := "there is no Cluster in the input: it has " + phrase.Several(l.found)
	l.fail(manifest.Problem{Position: l.begin, What: what, Fix: "add the object of kind Cluster, or see: clusterawsadm cluster generate NAME"})
}
