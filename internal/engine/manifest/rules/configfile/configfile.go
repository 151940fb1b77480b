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
	Component string // such as components.APIServer
	Argument  string // without --
	Text      string
	Minor     uint64                           // the minor version of Kubernetes; 0 if it is not known
	Gates     string                           // the feature gates of the component
	Other     bool                             // the component may be another program than that of Kubernetes, with more plugins
	Read      func(path string) (string, bool) // another file that the component sees; false if its text is not known
}

// Finding is a reason why a component does not start with a file, or a part of the file that it ignores.
type Finding struct {
	What, Fix string
	Ignored   bool
	Other     string // the path of the file that it is about, as given to Read; "" for the file that the argument names
}

// Check returns what is wrong with a file, nil if nothing is known of it.
func Check(f File) []Finding {
	r := &reader{File: f}
	switch {
	case f.Component == components.Scheduler && f.Argument == "config":
		r.document("KubeSchedulerConfiguration", f.Text, r.scheduler)
	case f.Component == components.Kubelet && f.Argument == "image-credential-provider-config":
		r.document("CredentialProviderConfig", f.Text, r.credentialProviders)
	case f.Component == components.APIServer && r.readsDocument():
	default:
		r.plain()
	}
	return r.found
}

// readsDocument reads a document of the API server. It returns false if the argument names another file.
func (r *reader) readsDocument() bool {
	switch r.Argument {
	case "audit-policy-file":
		r.document("Policy", r.Text, r.auditPolicy)
	case "encryption-provider-config":
		r.document("EncryptionConfiguration", r.Text, r.encryption)
	case "admission-control-config-file":
		r.admission()
	case "authentication-config":
		r.document("AuthenticationConfiguration", r.Text, r.authentication)
	case "authorization-config":
		r.document("AuthorizationConfiguration", r.Text, r.authorization)
	case "tracing-config-file":
		r.document("TracingConfiguration", r.Text, r.tracing)
	case "egress-selector-config-file":
		r.document("EgressSelectorConfiguration", r.Text, func(runtime.Object) {})
	default:
		return false
	}
	return true
}

// reader collects what is wrong with one file.
type reader struct {
	File
	at    string // the part of the file that is read, as a prefix for findings
	other string // the path of the other file that is read
	found []Finding
}

func (r *reader) refuse(fix, format string, args ...any) {
	r.found = append(r.found, Finding{What: r.at + fmt.Sprintf(format, args...), Fix: fix, Other: r.other})
}

func (r *reader) ignore(fix, format string, args ...any) {
	r.found = append(r.found, Finding{What: r.at + fmt.Sprintf(format, args...), Fix: fix, Ignored: true, Other: r.other})
}

// refuseAll reports the findings of a validation of Kubernetes. A value that is more than a word may contain keys, and is not shown.
func (r *reader) refuseAll(list field.ErrorList) {
	for _, e := range list {
		what, large := e.Error(), []reflect.Kind{reflect.Struct, reflect.Pointer, reflect.Map, reflect.Slice}
		if slices.Contains(large, reflect.ValueOf(e.BadValue).Kind()) {
			what = e.Field + ": " + cmp.Or(e.Detail, e.Type.String())
		}
		r.refuse("correct the field", "%s", what)
	}
}

// strictSince is the first minor version of Kubernetes whose component refuses unknown fields of a kind, instead of ignoring them
// (serializer.EnableStrict where the component makes its decoder). Kinds that are not listed have always been strict.
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

// document reads a text with an apiVersion and a kind, and checks the object in it. The check gets the internal type of the kind if there is one.
// A version that this program does not know is not read further.
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

// typed returns the text as JSON, and its type if it is a version of the kind that the component knows.
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

// serves reports whether the component knows a version of a kind, and refuses it otherwise.
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

// versions returns the API versions of a kind that the component knows.
func (r *reader) versions(kind string) (all []string) {
	for _, name := range components.Kinds(r.Component) {
		apiVersion, of := name[:strings.LastIndexByte(name, '/')], name[strings.LastIndexByte(name, '/')+1:]
		if _, has := components.Kind(r.Component, name).In(r.Minor); has && of == kind {
			all = append(all, apiVersion)
		}
	}
	return all
}

// decode reads an object and returns its unknown and repeated fields, too.
func decode(raw []byte, gvk schema.GroupVersionKind) (obj runtime.Object, unknown []string, err error) {
	read := func(of serializer.CodecFactory) (runtime.Object, error) {
		if gvk.Group == schedulerv1.GroupName || gvk.Group == kubeletv1.GroupName { // their internal types are in k8s.io/kubernetes
			return runtime.Decode(of.UniversalDeserializer(), raw)
		}
		return runtime.Decode(of.UniversalDecoder(), raw)
	}
	_, err = read(serializer.NewCodecFactory(known(), serializer.EnableStrict))
	if strict, is := runtime.AsStrictDecodingError(err); is {
		for _, e := range strict.Errors() {
			if !slices.Contains(unknown, e.Error()) {
				unknown = append(unknown, e.Error())
			}
		}
	} else if err != nil {
		return nil, nil, reason(err)
	}
	obj, err = read(serializer.NewCodecFactory(known()))
	return obj, unknown, reason(err)
}

// reason returns the innermost error: what the decoders add names Go's types.
func reason(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}
