package loader

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	kjson "sigs.k8s.io/json"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// admitAll processes every object as an API server would. An invalid object stays in the
// list, so that references to it are not reported too, but it has no typed value.
func (l *loader) admitAll(ctx context.Context) {
	for _, o := range l.objects {
		delete(o.Value, "status")
		dropCreationTimestamps(o.Value)
		l.checkUnsupported(o)
		l.checkKeyed(o)
		if !l.admitMetadata(o) {
			continue
		}
		switch {
		case l.kinds[o.Kind].schema:
			l.admitResource(ctx, o)
		case o.Kind == manifest.KindHelmChart:
			l.admitHelmChart(o)
		default:
			l.admitBuiltin(o)
		}
	}
}

// dropCreationTimestamps removes "creationTimestamp: null", which programs write into the
// metadata of templates.
func dropCreationTimestamps(value any) {
	switch v := value.(type) {
	case map[string]any:
		if at, ok := v["creationTimestamp"]; ok && at == nil {
			delete(v, "creationTimestamp")
		}
		for _, below := range v {
			dropCreationTimestamps(below)
		}
	case []any:
		for _, below := range v {
			dropCreationTimestamps(below)
		}
	}
}

// admitMetadata checks names, labels and annotations as the API server does, and reports
// whether the rest of the object can be checked.
func (l *loader) admitMetadata(o *manifest.Entry) bool {
	if meta, ok := o.Value["metadata"].(map[string]any); ok {
		named := true
		for _, name := range []string{"name", "namespace"} {
			named = (meta[name] == nil || l.textIn(o, meta, "metadata", name)) && named
		}
		if !named {
			return false
		}
	}
	l.textOnly(o, "metadata.labels")
	l.textOnly(o, "metadata.annotations")
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(o.Value, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		l.fail(o.Problem("metadata", "the metadata is invalid: "+err.Error(), ""))
		return false
	}
	for _, path := range unknown {
		l.unknown(o, path, []string{"name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"})
	}
	if l.incomplete {
		return true
	}
	if l.kinds[o.Kind].clusterScoped {
		meta.Namespace = ""
	} else if meta.Namespace == "" {
		meta.Namespace = corev1.NamespaceDefault
	}
	errs := apivalidation.ValidateObjectMeta(meta, !l.kinds[o.Kind].clusterScoped, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	l.failFields(o, errs)
	return true
}

// textOnly reports values in a map of strings that are not strings in YAML, and replaces
// them by their text.
func (l *loader) textOnly(o *manifest.Entry, path string) {
	at := any(o.Value)
	for step := range strings.SplitSeq(path, ".") {
		m, _ := at.(map[string]any)
		at = m[step]
	}
	m, _ := at.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		l.textIn(o, m, path, name)
	}
}

// textIn reports whether a value of a mapping is text. Otherwise that is a problem, and it makes text of the value.
func (l *loader) textIn(o *manifest.Entry, m map[string]any, path, name string) bool {
	_, is := m[name].(string)
	if !is {
		l.fail(o.Problem(yamldoc.Join(path, name), fmt.Sprintf("must be a string, not %s", typeName(m[name])), textFix(m[name])))
		switch m[name].(type) {
		case nil, map[string]any, []any: // what is wrong with such a text follows
			l.invalid[o] = append(l.invalid[o], yamldoc.Join(path, name))
		}
		m[name] = fmt.Sprint(m[name])
	}
	return is
}

// textFix is the advice for a value that is no text.
func textFix(v any) string {
	switch v.(type) {
	case nil:
		return `write "" for an empty text, or remove it`
	case map[string]any, []any:
		return "write a text"
	}
	return "put the value in quotes"
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	case float64: // 022985595394, the number of an account, is one
		return "the number " + strconv.FormatFloat(v, 'f', -1, 64)
	case int64:
		return fmt.Sprintf("the number %d", v)
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	default:
		return "this"
	}
}

// commandOf returns the path of the command that has a field; "" if none has it.
func commandOf(path string) string {
	if m := regex.Of(`(?i)^(.*commands?\[\d+\])\.`).FindStringSubmatch(path); m != nil {
		return m[1]
	}
	return ""
}

// unknown reports a field that does not exist.
func (l *loader) unknown(o *manifest.Entry, path string, known []string) {
	if command := commandOf(path); command != "" { // that YAML reads as a mapping
		p := o.Problem("", "must be of type string, not object", notAText)
		p.Path, p.Position = command, o.Position(command)
		l.fail(p)
		return
	}
	name := path[strings.LastIndexAny(path, ".]")+1:]
	what, fix := "the field does not exist", suggest.DidYouMean(name, known)
	parent := strings.TrimSuffix(path, name)
	meant := parent + suggest.Nearest(name, known)
	if now := nameNow(o, path); now != "" {
		fix, meant = "its name is now "+now, parent
	} else if gone := l.goneFix(o, path); gone != "" {
		what, fix, meant = "the field does not exist in "+o.Version+" any more, and "+manifest.VersionOld+" ignores it", gone, parent
	} else if other := l.versionWith(o, path, name); other != "" {
		what, meant = fmt.Sprintf("the field does not exist in %s, but in %s", o.Version, other), parent
		switch gv := l.kinds[o.Kind].group + "/" + other; {
		case other == manifest.VersionNew:
			fix = "convert the file: " + convertCommand(o)
		case fix == "":
			fix = "use " + gv
		default:
			fix = "use " + gv + "; " + fix
		}
	} else if at := l.elsewhere(o, path, name); at != "" && !strings.HasPrefix(fix, "did you mean") {
		fix = "move it to " + at
	}
	p := o.Problem("", what, fix)
	p.Path, p.Position = path, o.Position(path)
	if l.options.IgnoreUnknown {
		p.What += " and is ignored"
		l.warn(p)
		return
	}
	l.misnamed[o] = append(l.misnamed[o], meant)
	l.fail(p)
}

// elsewhere returns the path of the only field of an object's kind that has a name, if that name is in the wrong place;
// "" for any other name.
func (l *loader) elsewhere(o *manifest.Entry, path, name string) string {
	if !l.kinds[o.Kind].schema || strings.ContainsAny(path, "[") {
		return ""
	}
	s, err := crd.For(o.Kind, o.Version)
	if err != nil {
		return ""
	}
	if !strings.Contains(path, ".") && slices.Contains([]string{"name", "namespace", "labels", "annotations", "finalizers"}, name) {
		return "metadata." + name
	}
	all := s.Find(name)
	if len(all) != 1 || all[0] == path {
		return ""
	}
	is, should := parentOf(path), parentOf(all[0])
	if !strings.HasPrefix(is, should) && !strings.HasPrefix(should, is) { // "version" of an image is not that of Ignition
		return ""
	}
	return all[0]
}

// parentOf returns the path of the object that has a field, with a dot at its end; "" for the document.
func parentOf(path string) string { return path[:strings.LastIndexByte(path, '.')+1] }

// nameNow returns the name of a field that had another one in v1alpha3; "" for any other field.
func nameNow(o *manifest.Entry, path string) string {
	switch {
	case o.Kind == manifest.KindControlPlane && path == "spec.infrastructureTemplate" && o.Version == manifest.VersionOld:
		return "spec.machineTemplate.infrastructureRef"
	case o.Kind == manifest.KindControlPlane && path == "spec.infrastructureTemplate":
		return "spec.machineTemplate.spec.infrastructureRef"
	case (o.Kind == manifest.KindAWSCluster || o.Kind == manifest.KindManagedPlane) && path == "spec.networkSpec":
		return "spec.network"
	}
	return ""
}

// isMisnamed reports whether a field is missing because it has the wrong name, or that of another version: that is
// reported already.
func (l *loader) isMisnamed(o *manifest.Entry, path string) bool {
	return slices.ContainsFunc(l.misnamed[o], func(meant string) bool {
		return meant == path || strings.HasSuffix(meant, ".") && meant == path[:strings.LastIndexAny(path, ".[")+1]
	})
}

// prune removes fields that do not exist from an object, and reports them. It does not report the fields of a mapping that stands
// where the schema has a list: the wrong type is reported instead.
func (l *loader) prune(o *manifest.Entry, s *crd.Schema) {
	for _, path := range s.Prune(o.Value, true) {
		if !s.InList(path) && (!s.InScalar(path) || commandOf(path) != "") {
			l.unknown(o, path, s.Siblings(path))
		}
	}
}

// versionWith returns another version of an object's kind in which a field exists; "" for none.
func (l *loader) versionWith(o *manifest.Entry, path, name string) string {
	if strings.HasPrefix(path, "metadata.") {
		return ""
	}
	return l.otherVersion(o, func(s *crd.Schema) bool { return slices.Contains(s.Siblings(path), name) })
}

// otherVersion returns another version of an object's kind whose schema satisfies a condition; "" for none.
func (l *loader) otherVersion(o *manifest.Entry, has func(*crd.Schema) bool) string {
	k := l.kinds[o.Kind]
	if !k.schema {
		return ""
	}
	for _, version := range slices.Sorted(maps.Keys(k.versions)) {
		if version == o.Version {
			continue
		}
		if s, err := crd.For(o.Kind, version); err == nil && has(s) {
			return version
		}
	}
	return ""
}

// admitBuiltin decodes a kind of Kubernetes strictly.
func (l *loader) admitBuiltin(o *manifest.Entry) {
	if l.incomplete {
		return
	}
	for _, path := range []string{"data", "stringData", "binaryData"} {
		l.textOnly(o, path)
	}
	l.base64Only(o)
	raw, err := json.Marshal(o.Value)
	if err != nil {
		l.fail(o.Problem("", err.Error(), ""))
		return
	}
	into := map[string]any{manifest.KindConfigMap: &corev1.ConfigMap{}, manifest.KindSecret: &corev1.Secret{}, manifest.KindNamespace: &corev1.Namespace{}}[o.Kind]
	strict, err := kjson.UnmarshalStrict(raw, into)
	for _, unknown := range strict {
		var at kjson.FieldError
		if errors.As(unknown, &at) {
			l.unknown(o, at.FieldPath(), []string{"apiVersion", "kind", "metadata", "data", "stringData", "binaryData", "type", "immutable", "spec"})
		}
	}
	if err != nil {
		l.fail(o.Problem("", "the object cannot be read", "data and stringData are mappings of names to text"))
		return
	}
	if secret, ok := into.(*corev1.Secret); ok {
		mergeStringData(secret)
	}
	o.Typed = into
}

// base64Only reports values that are not base64, without quoting them.
func (l *loader) base64Only(o *manifest.Entry) {
	path := "binaryData"
	if o.Kind == manifest.KindSecret {
		path = "data"
	}
	m, _ := o.Value[path].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		encoded, _ := m[name].(string)
		if _, err := base64.StdEncoding.DecodeString(encoded); err != nil {
			l.fail(
				o.Problem(
					yamldoc.Join(path, name),
					"the value is not base64",
					"encode it, or move it to "+map[string]string{"data": "stringData", "binaryData": "data"}[path],
				),
			)
			delete(m, name)
			l.invalid[o] = append(l.invalid[o], yamldoc.Join(path, name))
		}
	}
}

// mergeStringData merges stringData into data, as the API server does; stringData takes
// precedence.
func mergeStringData(s *corev1.Secret) {
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for name, value := range s.StringData {
		s.Data[name] = []byte(value)
	}
	s.StringData = nil
}

// admitResource validates a custom resource with its schema, converts it to the newest
// version and runs the webhooks.
func (l *loader) admitResource(ctx context.Context, o *manifest.Entry) {
	s, err := crd.For(o.Kind, o.Version)
	if err != nil {
		l.fail(o.Problem("", err.Error(), ""))
		return
	}
	l.prune(o, s)
	if l.incomplete {
		return
	}
	s.Fill(o.Value)
	hooks.WriteRequired(o.Kind, o.Version, o.Value)
	if errs := validate(ctx, o, s); len(errs) > 0 {
		l.failFields(o, errs)
		if !l.dropInvalid(ctx, o, s, errs) {
			return
		}
	}
	newest, ok := l.decodeOrDrop(ctx, o)
	if !ok {
		return
	}
	l.webhook(ctx, o, newest)
	o.Typed = newest
}

// dropInvalid removes the invalid values, and reports whether the rest is a valid object.
// That object only serves to find further problems.
func (l *loader) dropInvalid(ctx context.Context, o *manifest.Entry, s *crd.Schema, errs field.ErrorList) bool {
	l.dropped = true
	for _, e := range errs {
		remove(o.Value, e.Field)
		l.invalid[o] = append(l.invalid[o], e.Field)
	}
	s.Fill(o.Value)
	errs = validate(ctx, o, s)
	for _, e := range errs {
		if !standIn(o.Value, e) {
			return false
		}
	}
	return len(errs) == 0 || len(validate(ctx, o, s)) == 0
}

// standIn sets a required value that is missing, and on which no reference depends: the other problems of the object are found then.
func standIn(object map[string]any, e *field.Error) bool {
	values := map[string]any{"version": "v1.34.0", "instanceType": "t3.large"}
	parent := manifest.Parent(e.Field)
	name := strings.TrimPrefix(e.Field, parent+".")
	holder, ok := manifest.ValueAt(object, parent).(map[string]any)
	if e.Type != field.ErrorTypeRequired || values[name] == nil || !ok {
		return false
	}
	holder[name] = values[name]
	return true
}

// decode returns the typed value. A converted object gets the defaults of the newest
// schema too, as when it is read from the API server.
func (l *loader) decode(ctx context.Context, o *manifest.Entry) (any, error) {
	versions := l.kinds[o.Kind].versions
	newest, err := versions[o.Version](ctx, o.Value)
	if err != nil || o.Version == manifest.VersionNew || o.Kind == manifest.KindDrainRule {
		return newest, err
	}
	s, err := crd.For(o.Kind, manifest.VersionNew)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(newest)
	if err != nil {
		return nil, err
	}
	value := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return nil, err
	}
	s.Fill(value)
	return versions[manifest.VersionNew](ctx, value)
}

// decodeOrDrop decodes an object. If decoding or conversion fails, it finds the position
// of the value by the text in the error, removes the value and tries again, to find
// further problems.
func (l *loader) decodeOrDrop(ctx context.Context, o *manifest.Entry) (any, bool) {
	for {
		newest, err := l.decode(ctx, o)
		if err == nil {
			return newest, true
		}
		what, path := err.Error(), ""
		if m := regex.Of(`"([^"]*)"`).FindStringSubmatch(what); m != nil {
			path = findString(o.Value, "", m[1])
		}
		l.fail(o.Problem(path, what, "change the value"))
		l.dropped = true
		if path == "" || !remove(o.Value, path) {
			return nil, false
		}
	}
}

// findString returns the path of a string in an object, or "".
func findString(value any, path, wanted string) string {
	switch v := value.(type) {
	case string:
		if v == wanted {
			return path
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if at := findString(v[name], yamldoc.Join(path, name), wanted); at != "" {
				return at
			}
		}
	case []any:
		for i, item := range v {
			if at := findString(item, path+"["+strconv.Itoa(i)+"]", wanted); at != "" {
				return at
			}
		}
	}
	return ""
}

// webhook applies the defaults and rules of a kind's webhook.
func (l *loader) webhook(ctx context.Context, o *manifest.Entry, newest any) {
	switch x := newest.(type) {
	case *clusterv1.Cluster:
		l.failFields(o, hooks.ValidateCluster(x))
	case *clusterv1.MachineDeployment:
		l.failFields(o, hooks.DefaultDeployment(x))
		l.failFields(o, hooks.ValidateDeployment(x))
	case *clusterv1.MachinePool:
		l.failFields(o, hooks.DefaultPool(x))
		l.failFields(o, hooks.ValidatePool(x))
	case *clusterv1.Machine:
		hooks.DefaultMachine(x)
		l.failFields(o, hooks.ValidateMachine(x))
	case *clusterv1.MachineHealthCheck:
		hooks.DefaultHealthCheck(x)
		l.failFields(o, hooks.ValidateHealthCheck(x))
	case *controlplanev1.KubeadmControlPlane:
		hooks.DefaultControlPlane(x)
		l.failFields(o, hooks.ValidateControlPlane(x))
	case *bootstrapv1.KubeadmConfig:
		l.failFields(o, hooks.ValidateConfig(&x.Spec, false, field.NewPath("spec")))
	case *bootstrapv1.KubeadmConfigTemplate:
		l.failFields(o, hooks.ValidateConfig(&x.Spec.Template.Spec, false, field.NewPath("spec", "template", "spec")))
	case *addonsv1.ClusterResourceSet:
		hooks.DefaultResourceSet(x)
		l.failFields(o, hooks.ValidateResourceSet(x))
	default:
		l.webhookOfCAPA(ctx, o, newest)
	}
}

// webhookOfCAPA does the same for CAPA's kinds: with CAPA's webhooks, except for pools
// and Fargate profiles, whose package imports ROSA's webhooks and another module.
func (l *loader) webhookOfCAPA(ctx context.Context, o *manifest.Entry, newest any) {
	switch x := newest.(type) {
	case *ekscontrolplanev1.AWSManagedControlPlane:
		l.setNamespace(x)
		l.capaWebhook(ctx, o, x)
		if asked, ok := manifest.ValueAt(o.Value, "spec.bootstrapSelfManagedAddons").(bool); ok {
			x.Spec.BootstrapSelfManagedAddons = asked // CAPA's webhook always sets true
		}
	case *expinfrav1.AWSManagedMachinePool:
		l.setNamespace(x)
		l.failFields(o, hooks.DefaultNodeGroup(x))
		l.failFields(o, hooks.ValidateNodeGroup(x))
	case *expinfrav1.AWSMachinePool:
		hooks.DefaultScaling(x)
		l.failFields(o, hooks.ValidateScaling(x))
	case *expinfrav1.AWSFargateProfile:
		l.setNamespace(x)
		l.failFields(o, hooks.DefaultFargate(x))
		l.failFields(o, hooks.ValidateFargate(x))
	default:
		l.capaWebhook(ctx, o, newest)
	}
}

// setNamespace gives an object without a namespace that of the Cluster, before its
// defaults are set: default names in EKS begin with the namespace.
func (l *loader) setNamespace(o metav1.Object) {
	if o.GetNamespace() == "" {
		o.SetNamespace(l.namespace())
	}
}

// namespace returns the namespace of the Cluster.
func (l *loader) namespace() string {
	for _, o := range l.ofKind(manifest.KindCluster) {
		return cmp.Or(o.Namespace, corev1.NamespaceDefault)
	}
	return corev1.NamespaceDefault
}
