package topology

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// template are the launch settings of a group: version, kubeadm configuration, and the
// properties that AWS cannot change on a running machine. Settings that are updated in place,
// such as CoreDNS, are not part of it.
type template struct {
	digest string // the template tag
	fields []templateField
}

// templateField is one setting: the instance type, or the arguments of the kubelet.
type templateField struct {
	name   string // "rootVolume.size"
	source source // where it is in the manifest
	value  string
	secret bool // it may contain a secret: the value is not shown
}

// templateOf returns the template of a group.
func templateOf(g group) template {
	spec := g.spec.DeepCopy()
	spec.AdditionalTags, spec.AdditionalSecurityGroups, spec.InstanceMetadataOptions, spec.ProviderID, spec.InstanceID = nil, nil, nil, nil, nil
	kubeadm := g.kubeadm.DeepCopy()
	if kubeadm != nil && g.controlPlane {
		kubeadm.InitConfiguration = bootstrapv1.InitConfiguration{} // only the first machine used it
		kubeadm.ClusterConfiguration.DNS = bootstrapv1.DNS{}
	}
	parts := []any{spec, kubeadm, g.zone}
	if g.eks != nil {
		parts = append(parts, g.eks.Config, g.eks.Nodeadm)
	}
	var words []string
	for _, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			return template{} // these types can always be encoded
		}
		words = append(words, string(text))
	}
	words = append(words, g.version, string(g.data))
	t := template{digest: suffix(words...) + suffix(append(words, "")...)}
	t.add("", source{g.specAt, g.specPath}, spec, false)
	t.add(BootPrefix, g.boot, kubeadm, true)
	if g.eks != nil {
		t.add(BootPrefix, g.boot, g.eks.Config, true)
		t.add(BootPrefix, g.boot, g.eks.Nodeadm, true)
	}
	t.add("", g.machine, map[string]string{"version": g.version, "failureDomain": g.zone}, false)
	slices.SortFunc(t.fields, func(x, y templateField) int { return strings.Compare(x.name, y.name) })
	return t
}

// BootPrefix is the prefix of the names of fields of the bootstrap configuration.
const BootPrefix = "bootstrap."

// add adds the fields of an object that are set.
func (t *template) add(prefix string, from source, object any, secret bool) {
	text, err := json.Marshal(object)
	if err != nil {
		return
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if m, ok := v.(map[string]any); ok {
			for _, key := range slices.Sorted(maps.Keys(m)) {
				walk(strings.TrimPrefix(path+"."+key, "."), m[key])
			}
			return
		}
		value, ok := v.(string)
		if !ok && v != nil {
			encoded, _ := json.Marshal(v) // it was decoded from JSON
			value = string(encoded)
		}
		if value != "" && path != "" {
			t.fields = append(t.fields, templateField{prefix + path, source{from.object, from.path + "." + path}, value, secret})
		}
	}
	walk("", tree)
}

// mostTagValue is the length of the value of a tag in EC2.
const mostTagValue = 256

// encodeFields encodes the fields of a template for a tag: for each one four letters that
// stand for its name, and its value if that is short and no secret, or else three letters
// that stand for the value: "jk2f=t3.large x0d8=100 k9xw:a4c". If there are too many fields, the
// last word is "+".
func encodeFields(fields []templateField) string {
	all := encoded(fields, false)
	if len(all) > mostTagValue {
		all = encoded(fields, true)
	}
	if len(all) > mostTagValue {
		all = all[:strings.LastIndexByte(all[:mostTagValue-1], ' ')] + " +"
	}
	return all
}

func encoded(fields []templateField, brief bool) string {
	var words []string
	for _, f := range fields {
		words = append(words, f.word(brief))
	}
	return strings.Join(words, " ")
}

// shortValue matches the values that are encoded as they are.
const shortValue = `^[\w./+-]{1,12}$`

// word encodes one field.
func (f templateField) word(brief bool) string {
	if !brief && !f.secret && regex.Of(shortValue).MatchString(f.value) {
		return letters(f.name) + "=" + f.value
	}
	return letters(f.name) + ":" + suffix(f.value)[2:]
}

// agrees reports whether a field may have the value that is encoded in a word without its
// letters.
func (f templateField) agrees(word string) bool {
	return word == f.word(false)[nameLength:] || word == f.word(true)[nameLength:]
}

// letters are four characters that stand for the name of a field.
func letters(name string) string { return suffix(name)[1:] } // the first one is rarely above 3

// nameLength is the length of letters.
const nameLength = 4

// templateChanges compares a template with the fields that are encoded in a tag.
func (in inputs) templateChanges(t template, tag string) (out []plan.Change) {
	if tag == "" {
		return nil
	}
	record := RecordedTemplate(cloud.Tags{cloud.TemplateFieldsTag: tag})
	have, complete := record.words, record.Complete
	for _, f := range t.fields {
		old, known := have[letters(f.name)]
		delete(have, letters(f.name))
		if f.agrees(old) || !known && !complete {
			continue
		}
		out = append(out, plan.Change{Field: f.name, Have: shown(old), Want: f.shown(), Remedy: plan.Replace, Origin: in.m.Origin(f.source.object, f.source.path)})
	}
	names := fieldNames()
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if name := names[key]; name != "" { // it is not set any more
			out = append(out, plan.Change{Field: name, Have: shown(have[key]), Remedy: plan.Replace})
		}
	}
	return out
}

// notKnown is an earlier value of which the tag contains three letters only.
const notKnown = "(another value)"

// shown returns the value of an encoded field, if the tag contains it.
func shown(value string) string {
	switch {
	case value == "":
		return ""
	case value[0] == '=':
		return value[1:]
	}
	return notKnown
}

func (f templateField) shown() string {
	if f.secret {
		return plan.NotShown
	}
	return f.value
}

// fieldNames returns the names of all fields that a template can have, by their letters.
//
//nolint:gochecknoglobals // computed once from types, and never changed
var fieldNames = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for _, name := range listFields() {
		out[letters(name)] = name
	}
	return out
})

// listFields lists the names of all fields that a template can have.
func listFields() []string {
	out := fieldsOf("", reflect.TypeFor[infrav1.AWSMachineSpec]())
	for _, t := range []reflect.Type{
		reflect.TypeFor[bootstrapv1.KubeadmConfigSpec](), reflect.TypeFor[eksbootstrapv1.EKSConfigSpec](), reflect.TypeFor[eksbootstrapv1.NodeadmConfigSpec](),
	} {
		out = append(out, fieldsOf(strings.TrimSuffix(BootPrefix, "."), t)...)
	}
	slices.Sort(out) // configurations have fields of the same name
	return append(slices.Compact(out), "version", "failureDomain")
}

// fieldsOf lists the names of the fields of a type, and of the types of its fields.
func fieldsOf(path string, t reflect.Type) (out []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return []string{path}
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, fieldsOf(path, f.Type)...)
		case name != "" && name != "-":
			out = append(out, fieldsOf(strings.TrimPrefix(path+"."+name, "."), f.Type)...)
		}
	}
	return out
}
