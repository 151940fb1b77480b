package topology

import (
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// Recorded has the settings of a template that the tag of a machine contains: the names of
// the fields, abbreviated, and the values that are short and not secret. Other values are
// replaced by three letters of their hash.
type Recorded struct {
	Complete bool              // the tag has all fields
	words    map[string]string // "=t3.large" or ":a4c", by the letters of the name
}

// RecordedTemplate reads the tag with the fields of a template.
func RecordedTemplate(tags cloud.Tags) Recorded {
	r := Recorded{Complete: tags[cloud.TemplateFieldsTag] != "", words: map[string]string{}}
	for word := range strings.FieldsSeq(tags[cloud.TemplateFieldsTag]) {
		if len(word) <= nameLength {
			r.Complete = false
			continue
		}
		r.words[word[:nameLength]] = word[nameLength:]
	}
	return r
}

// Names lists the names of the fields that are set, sorted: "instanceType",
// "bootstrap.files".
func (r Recorded) Names() (out []string) {
	names := fieldNames()
	for key := range r.words {
		if names[key] != "" {
			out = append(out, names[key])
		}
	}
	slices.Sort(out)
	return out
}

// Value returns the value of a field, if the tag contains it.
func (r Recorded) Value(name string) (value string, known bool) {
	return strings.CutPrefix(r.words[letters(name)], "=")
}

// Has reports whether a field is set.
func (r Recorded) Has(name string) bool { return r.words[letters(name)] != "" }

// Agrees reports whether a field has a value, as far as the tag tells.
func (r Recorded) Agrees(name, value string) bool {
	f := templateField{name: name, value: value, secret: strings.HasPrefix(name, BootPrefix)}
	return f.agrees(r.words[letters(name)])
}

// Differs lists the names of the fields that two templates do not have in common. A field
// that this version does not know is "another field".
func (r Recorded) Differs(other Recorded) (out []string) {
	names := fieldNames()
	keys := maps.Clone(r.words)
	maps.Copy(keys, other.words)
	for key := range keys {
		have, want := r.words[key], other.words[key]
		partial := have == "" && !r.Complete || want == "" && !other.Complete
		if have == want || partial {
			continue
		}
		name := names[key]
		if name == "" {
			name = "another field"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// MachineFields returns the fields of a machine's spec, as templates record them.
func MachineFields(spec *infrav1.AWSMachineSpec) map[string]string { return flat("", spec) }

// BootFields returns the fields of a bootstrap configuration, as templates record them: their
// names begin with BootPrefix.
func BootFields(spec any) map[string]string { return flat(BootPrefix, spec) }

func flat(prefix string, object any) map[string]string {
	var t template
	t.add(prefix, source{}, object, false)
	out := map[string]string{}
	for _, f := range t.fields {
		out[f.name] = f.value
	}
	return out
}

// TemplateTags returns the tags with which a run would record the templates of the groups of
// a manifest, by the name of the group.
func TemplateTags(m *manifest.Cluster) map[string]cloud.Tags {
	out := map[string]cloud.Tags{}
	for _, g := range (inputs{m: m, spec: &m.Infra.Spec}).groupsOfMachines(nil) {
		t := templateOf(g)
		out[g.name] = cloud.Tags{cloud.TemplateTag: t.digest, cloud.TemplateFieldsTag: encodeFields(t.fields)}
	}
	return out
}

// GroupOf returns the name of the group of a machine from its identity tag; "" if it has
// none.
func GroupOf(tags cloud.Tags) string {
	name, ok := strings.CutPrefix(tags[cloud.ResourceTag], "machine/")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, "/") // names of objects have no slash
	return name
}

// APIServerName returns the name that a load balancer of the API server has, if the manifest
// sets none.
func APIServerName(namespace, cluster string, classic bool) string {
	if classic {
		return loadBalancerName(cluster)
	}
	return loadBalancerName(namespace + "-" + cluster)
}
