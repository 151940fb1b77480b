package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Keys of the Secret of an AWSClusterStaticIdentity.
const (
	secretAccessKeyID     = "AccessKeyID"
	secretSecretAccessKey = "SecretAccessKey"
	secretSessionToken    = "SessionToken"
)

// readIdentities reads the identities, Secrets and Namespaces of the sources, and ignores all
// other objects. It is no warning if the manifest does not use them.
func (l *loader) readIdentities(sources []input.Source) {
	for _, d := range l.documents(sources) {
		for _, root := range listItems(d.root) {
			if kind := scalarField(root, "kind"); isIdentity(kind) || kind == kindSecret || kind == kindNamespace {
				l.identify(document{file: d.file, from: d.from, root: root})
			}
		}
	}
	for _, o := range l.objects {
		o.used, o.foreign = true, true
	}
}

func isIdentity(kind string) bool {
	return slices.Contains([]string{kindControllerIdentity, kindStaticIdentity, kindRoleIdentity}, kind)
}

// resolveIdentity resolves identityRef to the chain of identities.
func (l *loader) resolveIdentity() {
	if l.cluster.Infra == nil || l.cluster.Infra.Spec.IdentityRef == nil {
		return
	}
	l.cluster.Identity = l.identityChain(l.infra, "spec.identityRef", l.cluster.Infra.Spec.IdentityRef, nil)
}

// identityChain resolves a reference and the identities it is based on, the source first.
// passed has the names on the path, to detect cycles.
func (l *loader) identityChain(from *object, path string, ref *infrav1.AWSIdentityReference, passed []string) []Identity {
	title := string(ref.Kind) + "/" + ref.Name
	if slices.Contains(passed, title) {
		l.fail(
			from.problem(
				path,
				"the identities refer to each other in a cycle: "+strings.Join(append(passed, title), " → "),
				"change the source of one of them to AWSClusterControllerIdentity/default",
			),
		)
		return nil
	}
	passed = append(passed, title)
	r := reference{from: from, path: path, kind: string(ref.Kind), name: ref.Name}
	if l.assumeIdentity(r) {
		return nil
	}
	switch r.kind {
	case kindControllerIdentity:
		l.controllerIdentity(r)
		return nil
	case kindStaticIdentity:
		return l.staticIdentity(r)
	case kindRoleIdentity:
		return l.roleIdentity(r, passed)
	default:
		l.fail(from.problem(path+".kind", fmt.Sprintf("%q is not a kind of identity", ref.Kind),
			suggest.DidYouMean(string(ref.Kind), []string{kindControllerIdentity, kindRoleIdentity, kindStaticIdentity})))
		return nil
	}
}

// assumeIdentity reports whether the caller's own credentials are taken for an identity that the input does
// not have.
func (l *loader) assumeIdentity(r reference) bool {
	if !l.options.AssumeIdentities || r.kind == kindControllerIdentity || !isIdentity(r.kind) ||
		l.lookup(r.kind, r.name) != nil || l.asideNamed(r.kind, r.name) != nil {
		return false
	}
	l.warn(r.from.problem(r.path, fmt.Sprintf("%s/%s is not in the input: the credentials of the caller are taken for it", r.kind, r.name), ""))
	return true
}

// controllerIdentity checks a reference to the credentials of the caller. The object need
// not be in the manifest: CAPA creates the one named "default".
func (l *loader) controllerIdentity(r reference) {
	if r.name != infrav1.AWSClusterControllerIdentityName {
		l.fail(r.from.problem(r.path+".name", "the only AWSClusterControllerIdentity is named default", "use default"))
		return
	}
	o := l.lookup(kindControllerIdentity, r.name)
	if o == nil {
		return
	}
	o.used = true
	if x, ok := o.typed.(*infrav1.AWSClusterControllerIdentity); ok {
		l.mayUse(r, o, x.Spec.AllowedNamespaces)
	}
}

func (l *loader) staticIdentity(r reference) []Identity {
	o := l.follow(r, kindStaticIdentity)
	if o == nil {
		return nil
	}
	x, ok := o.typed.(*infrav1.AWSClusterStaticIdentity)
	if !ok {
		return nil
	}
	l.mayUse(r, o, x.Spec.AllowedNamespaces)
	s := l.identitySecret(o, x.Spec.SecretRef)
	if s == nil {
		return nil
	}
	return []Identity{{Origin: o.title(), Static: &StaticIdentity{
		AccessKeyID:     strings.TrimSpace(string(s.Data[secretAccessKeyID])),
		SecretAccessKey: strings.TrimSpace(string(s.Data[secretSecretAccessKey])),
		SessionToken:    strings.TrimSpace(string(s.Data[secretSessionToken])),
	}}}
}

// identitySecret finds the Secret with the keys. It is in the namespace of CAPA's
// controller, whose name is unknown, so any namespace is accepted.
func (l *loader) identitySecret(o *object, name string) *corev1.Secret {
	var found *object
	for _, candidate := range l.ofKind(kindSecret) {
		if candidate.name == name {
			found = candidate
			break
		}
	}
	if found == nil {
		l.missingObject(o, "spec.secretRef", kindSecret, name)
		return nil
	}
	found.used = true
	s, ok := found.typed.(*corev1.Secret)
	if !ok {
		return nil
	}
	for _, entry := range []string{secretAccessKeyID, secretSecretAccessKey} {
		if len(s.Data[entry]) == 0 {
			l.fail(found.problem("data", fmt.Sprintf("the key %s is missing", entry), "set AccessKeyID and SecretAccessKey, and SessionToken for temporary keys"))
		}
	}
	return s
}

func (l *loader) roleIdentity(r reference, passed []string) []Identity {
	o := l.follow(r, kindRoleIdentity)
	if o == nil {
		return nil
	}
	x, ok := o.typed.(*infrav1.AWSClusterRoleIdentity)
	if !ok {
		return nil
	}
	l.mayUse(r, o, x.Spec.AllowedNamespaces)
	var chain []Identity
	if x.Spec.SourceIdentityRef != nil {
		chain = l.identityChain(o, "spec.sourceIdentityRef", x.Spec.SourceIdentityRef, passed)
	}
	return append(chain, Identity{Origin: o.title(), Role: &x.Spec})
}

// mayUse checks allowedNamespaces: nil permits no namespace, an empty value permits all,
// otherwise the list or the selector must match.
func (l *loader) mayUse(r reference, o *object, allowed *infrav1.AllowedNamespaces) {
	namespace := l.cluster.Namespace
	if allowed != nil && (reflect.ValueOf(*allowed).IsZero() || slices.Contains(allowed.NamespaceList, namespace)) {
		return
	}
	if allowed != nil {
		selector, err := metav1.LabelSelectorAsSelector(&allowed.Selector)
		if err == nil && !selector.Empty() && selector.Matches(l.namespaceLabels(namespace)) {
			return
		}
	}
	l.fail(r.from.problem(r.path, fmt.Sprintf("%s may not be used from the namespace %s", o.title(), namespace),
		"allow it in spec.allowedNamespaces of the identity; {} allows all"))
}

// namespaceLabels returns the labels of a Namespace in the input, and the label that
// every namespace has.
func (l *loader) namespaceLabels(name string) labels.Set {
	set := labels.Set{corev1.LabelMetadataName: name}
	if o := l.byKey[key{kind: kindNamespace, name: name}]; o != nil {
		if n, ok := o.typed.(*corev1.Namespace); ok {
			for label, value := range n.Labels {
				set[label] = value
			}
		}
	}
	return set
}
