// Package configfile reads the configuration files of Kubernetes' components as the components do when they start: an audit policy, the
// encryption of Secrets, the configuration of admission plugins, authentication and authorization, profiles of the scheduler, credential
// providers of the kubelet. The types and most of the rules are those of k8s.io/apiserver, k8s.io/pod-security-admission, k8s.io/kube-scheduler and
// k8s.io/kubelet. The simulated machines (internal/awssim/kubernetes) share no code with this package, so that each can be tested with the other.
package configfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	serverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	auditinstall "k8s.io/apiserver/pkg/apis/audit/install"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	kubeletv1 "k8s.io/kubelet/config/v1"
	kubeletv1alpha1 "k8s.io/kubelet/config/v1alpha1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	podsecurity "k8s.io/pod-security-admission/admission/api"
	podsecurityv1 "k8s.io/pod-security-admission/admission/api/v1"
	podsecurityv1alpha1 "k8s.io/pod-security-admission/admission/api/v1alpha1"
	podsecurityv1beta1 "k8s.io/pod-security-admission/admission/api/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
)

// File is a file that an argument of a component names.
type File struct {
	Component  string // such as components.APIServer
	Argument   string // without --
	Text       string
	Minor      uint64                           // the minor version of Kubernetes; 0 if it is not known
	Gates      string                           // the feature gates of the component
	OtherImage bool                             // the component runs from an image that may have more plugins than that of Kubernetes
	Read       func(path string) (string, bool) // another file that the component sees; false if its text is not known
}

// Finding is a reason why a component does not start with a file, or a part of the file that it ignores.
type Finding struct {
	What, Fix string
	Ignored   bool
	Path      string // of the other file that it is about, as given to Read; "" for the file that the argument names
}

// Check returns what is wrong with a file. It returns nil for a file that it has no rules for.
func Check(f File) []Finding {
	r := &reader{File: f}
	switch f.Component + " --" + f.Argument {
	case components.APIServer + " --audit-policy-file":
		r.document("Policy", f.Text, r.auditPolicy)
	case components.APIServer + " --encryption-provider-config":
		r.document("EncryptionConfiguration", f.Text, r.encryption)
	case components.APIServer + " --admission-control-config-file":
		r.admission()
	case components.APIServer + " --authentication-config":
		r.document("AuthenticationConfiguration", f.Text, r.authentication)
	case components.APIServer + " --authorization-config":
		r.document("AuthorizationConfiguration", f.Text, r.authorization)
	case components.APIServer + " --tracing-config-file":
		r.document("TracingConfiguration", f.Text, r.tracing)
	case components.APIServer + " --egress-selector-config-file":
		r.document("EgressSelectorConfiguration", f.Text, func(runtime.Object) {})
	case components.Scheduler + " --config":
		r.document("KubeSchedulerConfiguration", f.Text, r.scheduler)
	case components.Kubelet + " --image-credential-provider-config":
		r.document("CredentialProviderConfig", f.Text, r.credentialProviders)
	default:
		r.plain()
	}
	return r.found
}

// reader collects what is wrong with one file.
type reader struct {
	File
	at    string // a prefix for findings, which says to which part of the file they belong
	path  string // of the other file to which findings belong
	found []Finding
}

func (r *reader) refuse(fix, format string, args ...any) {
	r.found = append(r.found, Finding{What: r.at + fmt.Sprintf(format, args...), Fix: fix, Path: r.path})
}

func (r *reader) ignore(fix, format string, args ...any) {
	r.found = append(r.found, Finding{What: r.at + fmt.Sprintf(format, args...), Fix: fix, Ignored: true, Path: r.path})
}

// refuseAll reports the errors of Kubernetes' own validation. Errors show the wrong value, but not if it is a struct, a map or a list, which may
// contain secrets.
func (r *reader) refuseAll(list field.ErrorList) {
	for _, e := range list {
		what, large := e.Error(), []reflect.Kind{reflect.Struct, reflect.Pointer, reflect.Map, reflect.Slice}
		if slices.Contains(large, reflect.ValueOf(e.BadValue).Kind()) {
			what = e.Field + ": " + cmp.Or(e.Detail, e.Type.String())
		}
		r.refuse("correct the field", "%s", what)
	}
}

// strictSince returns the first minor version of Kubernetes in which unknown fields of a kind are an error. Before, the component ignores them.
// The source is whether the component creates its decoder with serializer.EnableStrict. It returns 0 for kinds that have always been strict.
func strictSince(kind string) uint64 {
	const never = 1 << 16
	switch kind {
	case "Policy", "Configuration":
		return never
	case "EncryptionConfiguration":
		return 31
	case "AdmissionConfiguration", "TracingConfiguration", "CredentialProviderConfig", "EgressSelectorConfiguration", "ResourceQuotaConfiguration":
		return 32
	case "PodSecurityConfiguration":
		return 30
	case "WebhookAdmissionConfiguration":
		return 36
	}
	return 0
}

//nolint:gochecknoglobals // constant data, which is made when it is needed first
var known = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	serverinstall.Install(scheme)
	auditinstall.Install(scheme)
	for _, add := range []func(*runtime.Scheme) error{
		podsecurity.AddToScheme, podsecurityv1.AddToScheme, podsecurityv1beta1.AddToScheme, podsecurityv1alpha1.AddToScheme,
		schedulerv1.AddToScheme, kubeletv1.AddToScheme, kubeletv1beta1.AddToScheme, kubeletv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
})

// document reads an object of a kind, and calls check with it. If Kubernetes publishes an internal type of the kind, the object has that type.
// An API version for which this program has no types is not decoded.
func (r *reader) document(kind, text string, check func(runtime.Object)) {
	raw, gvk, ok := r.typed(kind, text)
	if !ok || !known().Recognizes(gvk) {
		return
	}
	obj, unknown, err := decode(raw, gvk)
	if err != nil {
		r.refuse("correct the text", "it is not read: %v", err)
		return
	}
	strict := r.Minor == 0 || r.Minor >= strictSince(kind)
	for _, what := range unknown {
		if strict {
			r.refuse("correct its name, or remove it", "%s", what)
		} else {
			r.ignore("correct its name, or remove it", "%s is ignored", what)
		}
	}
	if len(unknown) == 0 || !strict { // otherwise, what is missing may have the wrong name
		check(obj)
	}
}

// typed converts a text to JSON, and returns its type. ok is false if the text is not an object of the kind, in an API version that the component
// reads.
func (r *reader) typed(kind, text string) (raw []byte, gvk schema.GroupVersionKind, ok bool) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") && !json.Valid([]byte(text)) { // hasJSONPrefix in k8s.io/apimachinery/pkg/util/yaml
		r.refuse("write it as JSON, or as YAML that does not begin with {", "it begins with {, so it is read as JSON, which it is not")
		return nil, gvk, false
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		r.refuse("correct the text", "it is not YAML: %v", err)
		return nil, gvk, false
	}
	var is struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(raw, &is); err != nil || is.Kind == "" || is.APIVersion == "" {
		r.refuse("add apiVersion and kind: "+kind, "it has no apiVersion, or no kind")
		return nil, gvk, false
	}
	if is.Kind == "EncryptionConfig" && is.APIVersion == "v1" { // the name of before Kubernetes 1.13, which is still known
		is.APIVersion, is.Kind = "apiserver.config.k8s.io/v1", "EncryptionConfiguration"
	}
	if is.Kind != kind {
		r.refuse("write one", "%s %s is not the kind %s", is.APIVersion, is.Kind, kind)
		return nil, gvk, false
	}
	return raw, schema.FromAPIVersionAndKind(is.APIVersion, kind), r.serves(is.APIVersion, kind)
}

// serves reports whether the component reads an API version of a kind. If it does not, that is a finding.
func (r *reader) serves(apiVersion, kind string) bool {
	if !components.Known(r.Minor) {
		return true
	}
	row := components.Kind(r.Component, apiVersion+"/"+kind)
	if _, has := row.In(r.Minor); has {
		return true
	}
	what := fmt.Sprintf("Kubernetes 1.%d does not know the version %s of %s", r.Minor, apiVersion, kind)
	if since, added := row.Added(r.Minor); added {
		what += fmt.Sprintf("; 1.%d does", since)
	}
	fix := "remove the file, or choose another version of Kubernetes"
	if has := r.versions(kind); len(has) > 0 {
		fix = "use " + strings.Join(has, " or ")
	}
	r.refuse(fix, "%s", what)
	return false
}

// versions returns the API versions of a kind that the component reads in this version of Kubernetes.
func (r *reader) versions(kind string) (all []string) {
	for _, name := range components.Kinds(r.Component) {
		apiVersion, of := name[:strings.LastIndexByte(name, '/')], name[strings.LastIndexByte(name, '/')+1:]
		if _, has := components.Kind(r.Component, name).In(r.Minor); has && of == kind {
			all = append(all, apiVersion)
		}
	}
	return all
}

// decode decodes an object. unknown says which fields are unknown or repeated.
func decode(raw []byte, gvk schema.GroupVersionKind) (obj runtime.Object, unknown []string, err error) {
	read := func(of serializer.CodecFactory) (runtime.Object, error) {
		if gvk.Group == schedulerv1.GroupName || gvk.Group == kubeletv1.GroupName { // their internal types are in k8s.io/kubernetes
			return runtime.Decode(of.UniversalDeserializer(), raw)
		}
		return runtime.Decode(of.UniversalDecoder(), raw)
	}
	obj, err = read(serializer.NewCodecFactory(known(), serializer.EnableStrict))
	strict, is := runtime.AsStrictDecodingError(err)
	if !is {
		return obj, nil, reason(err)
	}
	for _, e := range strict.Errors() {
		if !slices.Contains(unknown, e.Error()) {
			unknown = append(unknown, e.Error())
		}
	}
	obj, err = read(serializer.NewCodecFactory(known()))
	return obj, unknown, reason(err)
}

// reason returns the innermost error. The outer ones name types of Go, which say nothing to the author of a file.
func reason(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}
