package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/jinja"
)

const (
	// ignoresAll is what cloud-init does with a text that jinja2 cannot render: "Ignoring jinja template for part-001" (handle_part in
	// cloudinit/handlers/jinja_template.py).
	ignoresAll = "cloud-init renders the whole configuration with jinja, and would ignore all of it: "

	// missingPrefix is what cloud-init writes instead of a variable that it does not have (MISSING_JINJA_PREFIX in cloudinit/templater.py).
	missingPrefix = "CI_MISSING_JINJA_VAR/"
)

// templatePart is a text of a manifest that becomes a part of the cloud-config of a machine.
type templatePart struct {
	path     string // the field
	text     string
	argument string // of which argument it is the value; "" for none
}

// checkTemplates checks the text in a KubeadmConfig as a jinja2 template. The cloud-config of Cluster API begins with "## template: jinja", so
// cloud-init renders all of it before it parses it as YAML (bootstrap/kubeadm/internal/cloudinit/cloudinit.go). A statement may begin in one field
// and end in another. fields are those of the specification.
func (c *checks) checkTemplates(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, fields map[string]any, plane bool) {
	if spec.Format == bootstrapv1.Ignition {
		return
	}
	documents := [][]string{{"joinConfiguration"}}
	if plane {
		documents = append(documents, []string{"clusterConfiguration", "initConfiguration"})
	}
	for _, of := range documents {
		parts := templateParts(o, prefix, fields, of)
		all := ""
		for _, p := range parts {
			all += p.text + "\n"
		}
		if !strings.Contains(all, "{{") && !strings.Contains(all, "{%") && !strings.Contains(all, "{#") {
			continue
		}
		whole, wrong := jinja.Parse(all)
		if bad := c.checkTemplateParts(o, parts, wrong); bad {
			continue
		}
		if wrong != nil { // a statement that ends in no other field either
			p, at := partAt(parts, wrong.At)
			c.failTemplate(o, p, &jinja.Error{At: wrong.At - at, What: wrong.What})
			continue
		}
		for _, r := range whole.Reads {
			p, _ := partAt(parts, r.At)
			c.checkVariable(o, p, r)
		}
	}
}

// checkTemplateParts checks each field on its own. If all fields together are a valid template, the only possible error is a tag that begins in
// one field and ends in another: it would hide the text between them.
func (c *checks) checkTemplateParts(o *manifest.Entry, parts []templatePart, whole *jinja.Error) (bad bool) {
	for _, p := range parts {
		if _, err := jinja.Parse(p.text + "\n"); err != nil && (whole != nil || err.Open) {
			c.failTemplate(o, p, err)
			bad = true
		}
	}
	return bad
}

func (c *checks) failTemplate(o *manifest.Entry, p templatePart, err *jinja.Error) {
	where, line := "", 1+strings.Count(p.text[:min(err.At, len(p.text))], "\n")
	if strings.Contains(strings.TrimRight(p.text, "\n"), "\n") {
		where = fmt.Sprintf("line %d: ", line)
	}
	c.failFirst(o.Problem(p.path, ignoresAll+where+err.What, "correct it, or write {% raw %} before and {% endraw %} after what is not for cloud-init"))
}

// partAt returns the part that contains a position in the joined text of all parts, and the position at which the part begins.
func partAt(parts []templatePart, at int) (p templatePart, begin int) {
	for _, p := range parts {
		if at <= begin+len(p.text) {
			return p, begin
		}
		begin += len(p.text) + 1
	}
	return parts[len(parts)-1], begin - len(parts[len(parts)-1].text) - 1
}

// templateFields returns the fields of a KubeadmConfig, with the values that files and users take from Secrets of the manifest.
func (c *checks) templateFields(spec *bootstrapv1.KubeadmConfigSpec) map[string]any {
	raw, err := json.Marshal(spec)
	var fields map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err != nil {
		return nil
	}
	c.fillInSecrets(fields["files"])
	c.fillInSecrets(fields["users"])
	return fields
}

// templateParts returns all texts in the cloud-config of a machine, roughly in their order there. of names the kubeadm configurations that the
// cloud-config contains.
func templateParts(o *manifest.Entry, prefix string, fields map[string]any, of []string) (parts []templatePart) {
	sections := append([]string{"files"}, of...)
	sections = append(sections, "bootCommands", "preKubeadmCommands", "postKubeadmCommands", "ntp", "users", "diskSetup", "mounts")
	for _, section := range sections {
		var found []templatePart
		eachText(o, prefix+"."+section, fields[section], func(p templatePart) { found = append(found, p) })
		if slices.Contains(of, section) {
			for i := range found {
				found[i].text = asYAML(found[i].text)
			}
		}
		parts = append(parts, found...)
	}
	return parts
}

// asYAML returns a text as it is written in kubeadm's configuration, which is YAML. YAML doubles a single quote inside single quotes.
func asYAML(text string) string {
	if !strings.Contains(text, "'") {
		return text
	}
	out, err := yaml.Marshal(text)
	if err != nil {
		return text
	}
	return strings.TrimRight(string(out), "\n")
}

// fillInSecrets replaces each contentFrom and passwdFrom in a list by the value in the Secret that it refers to. A reference to a Secret
// that is not in the manifest stays.
func (c *checks) fillInSecrets(list any) {
	items, _ := list.([]any)
	for _, x := range items {
		item, _ := x.(map[string]any)
		for _, name := range []string{"contentFrom", "passwdFrom"} {
			from, _ := item[name].(map[string]any)
			of, _ := from["secret"].(map[string]any)
			name, _ := of["name"].(string)
			key, _ := of["key"].(string)
			if s := c.cluster.Secrets[name]; s != nil {
				from["secret"] = string(s.Data[key])
			}
		}
	}
}

// eachText calls a function for each text in a value of a manifest.
func eachText(o *manifest.Entry, path string, value any, do func(templatePart)) {
	switch v := value.(type) {
	case string:
		do(templatePart{path: path, text: v})
	case []any:
		for i, item := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			if arg, is := item.(map[string]any); is && strings.HasSuffix(path, "xtraArgs") {
				name, _ := arg["name"].(string)
				text, _ := arg["value"].(string)
				do(templatePart{argumentPath(o, path, i, name), text, name})
				continue
			}
			eachText(o, at, item, do)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := path + "." + name
			if text, is := v[name].(string); is && name == "secret" {
				do(templatePart{path: path, text: text})
				continue
			}
			eachText(o, at, v[name], do)
		}
	}
}
