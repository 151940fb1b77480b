package loader

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
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
		for _, root := range yamldoc.ListItems(d.Root) {
			if kind := yamldoc.ScalarField(root, "kind"); isIdentity(kind) || kind == manifest.KindSecret || kind == manifest.KindNamespace {
				l.identify(yamldoc.Document{File: d.File, From: d.From, Root: root})
			}
		}
	}
	for _, o := range l.objects {
		o.Used, o.Foreign = true, true
	}
}

func isIdentity(kind string) bool {
	return slices.Contains([]string{manifest.KindControllerIdentity, manifest.KindStaticIdentity, manifest.KindRoleIdentity}, kind)
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
func (l *loader) identityChain(from *manifest.Entry, path string, ref *infrav1.AWSIdentityReference, passed []string) []manifest.Identity {
	title := string(ref.Kind) + "/" + ref.Name
	if slices.Contains(passed, title) {
		l.fail(
			from.Problem(
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
	case manifest.KindControllerIdentity:
		l.controllerIdentity(r)
		return nil
	case manifest.KindStaticIdentity:
		return l.staticIdentity(r)
	case manifest.KindRoleIdentity:
		return l.roleIdentity(r, passed)
	default:
		l.fail(from.Problem(path+".kind", fmt.Sprintf("%q is not a kind of identity", ref.Kind),
			suggest.DidYouMean(string(ref.Kind), []string{manifest.KindControllerIdentity, manifest.KindRoleIdentity, manifest.KindStaticIdentity})))
		return nil
	}
}

// assumeIdentity reports whether the caller's own credentials are taken for an identity that the input does
// not have.
func (l *loader) assumeIdentity(r reference) bool {
	if !l.options.AssumeIdentities || r.kind == manifest.KindControllerIdentity || !isIdentity(r.kind) ||
		l.lookup(r.kind, r.name) != nil || l.asideNamed(r.kind, r.name) != nil {
		return false
	}
	l.warn(r.from.Problem(r.path, fmt.Sprintf("%s/%s is not in the input: the credentials of the caller are taken for it", r.kind, r.name), ""))
	return true
}

// assumeSecret does the same if the input has the identity, but not the Secret with its keys: few people keep Secrets beside manifests.
func (l *loader) assumeSecret(o *manifest.Entry, name string) bool {
	named := func(e *manifest.Entry) bool { return e.Name == name }
	if !l.options.AssumeIdentities || slices.ContainsFunc(l.ofKind(manifest.KindSecret), named) || l.asideNamed(manifest.KindSecret, name) != nil {
		return false
	}
	l.warn(o.Problem("spec.secretRef", fmt.Sprintf("%s/%s is not in the input: the credentials of the caller are taken for it", manifest.KindSecret, name), ""))
	return true
}

// controllerIdentity checks a reference to the credentials of the caller. The object need
// not be in the manifest: CAPA creates the one named "default".
func (l *loader) controllerIdentity(r reference) {
	if r.name != infrav1.AWSClusterControllerIdentityName {
		l.fail(r.from.Problem(r.path+".name", "the only AWSClusterControllerIdentity is named default", "use default"))
		return
	}
	o := l.lookup(manifest.KindControllerIdentity, r.name)
	if o == nil {
		return
	}
	o.Used = true
	if x, ok := o.Typed.(*infrav1.AWSClusterControllerIdentity); ok {
		l.mayUse(r, o, x.Spec.AllowedNamespaces)
	}
}

func (l *loader) staticIdentity(r reference) []manifest.Identity {
	o := l.follow(r, manifest.KindStaticIdentity)
	if o == nil {
		return nil
	}
	x, ok := o.Typed.(*infrav1.AWSClusterStaticIdentity)
	if !ok {
		return nil
	}
	l.mayUse(r, o, x.Spec.AllowedNamespaces)
	if l.assumeSecret(o, x.Spec.SecretRef) {
		return nil
	}
	s := l.identitySecret(o, x.Spec.SecretRef)
	if s == nil {
		return nil
	}
	return []manifest.Identity{{Origin: o.Title(), Static: &manifest.StaticIdentity{
		AccessKeyID:     strings.TrimSpace(string(s.Data[secretAccessKeyID])),
		SecretAccessKey: strings.TrimSpace(string(s.Data[secretSecretAccessKey])),
		SessionToken:    strings.TrimSpace(string(s.Data[secretSessionToken])),
	}}}
}

// identitySecret finds the Secret with the keys. It is in the namespace of CAPA's
// controller, whose name is unknown, so any namespace is accepted.
func (l *loader) identitySecret(o *manifest.Entry, name string) *corev1.Secret {
	var found *manifest.Entry
	for _, candidate := range l.ofKind(manifest.KindSecret) {
		if candidate.Name == name {
			found = candidate
			break
		}
	}
	if found == nil {
		if len(l.ofKind(manifest.KindSecret)) > 0 || l.asideNamed(manifest.KindSecret, name) != nil { // a wrong name, or a Secret that cannot be read
			l.missingObject(o, "spec.secretRef", manifest.KindSecret, name)
			return nil
		}
		l.absent(o.Problem("spec.secretRef", fmt.Sprintf("there is no %s/%s in the input", manifest.KindSecret, name), "its keys do not belong into "+
			"Git: pass a file with the Secret with --identities FILE, or remove spec.identityRef of the cluster to use your own credentials"))
		return nil
	}
	found.Used = true
	s, ok := found.Typed.(*corev1.Secret)
	if !ok {
		return nil
	}
	for _, entry := range []string{secretAccessKeyID, secretSecretAccessKey} {
		if len(s.Data[entry]) == 0 {
			l.fail(found.Problem("data", fmt.Sprintf("the key %s is missing", entry), "set AccessKeyID and SecretAccessKey, and SessionToken for temporary keys"))
		}
	}
	return s
}

func (l *loader) roleIdentity(r reference, passed []string) []manifest.Identity {
	o := l.follow(r, manifest.KindRoleIdentity)
	if o == nil {
		return nil
	}
	x, ok := o.Typed.(*infrav1.AWSClusterRoleIdentity)
	if !ok {
		return nil
	}
	l.mayUse(r, o, x.Spec.AllowedNamespaces)
	var chain []manifest.Identity
	if x.Spec.SourceIdentityRef != nil {
		chain = l.identityChain(o, "spec.sourceIdentityRef", x.Spec.SourceIdentityRef, passed)
	}
	return append(chain, manifest.Identity{Origin: o.Title(), Role: &x.Spec})
}

// mayUse checks allowedNamespaces: nil permits no namespace, an empty value permits all,
// otherwise the list or the selector must match.
func (l *loader) mayUse(r reference, o *manifest.Entry, allowed *infrav1.AllowedNamespaces) {
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
	l.fail(r.from.Problem(r.path, fmt.Sprintf("%s may not be used from the namespace %s", o.Title(), namespace),
		"allow it in spec.allowedNamespaces of the identity; {} allows all"))
}

// namespaceLabels returns the labels of a Namespace in the input, and the label that
// every namespace has.
func (l *loader) namespaceLabels(name string) labels.Set {
	set := labels.Set{corev1.LabelMetadataName: name}
	if o := l.byKey[key{kind: manifest.KindNamespace, name: name}]; o != nil {
		if n, ok := o.Typed.(*corev1.Namespace); ok {
			for label, value := range n.Labels {
				set[label] = value
			}
		}
	}
	return set
}
