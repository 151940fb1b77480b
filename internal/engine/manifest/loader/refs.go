package loader

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// reference is a reference from one object to another.
type reference struct {
	from              *manifest.Entry
	path              string // path of the reference in from
	group, kind, name string
}

// contract converts a Cluster API reference.
func contract(from *manifest.Entry, path string, r clusterv1.ContractVersionedObjectReference) reference {
	return reference{from: from, path: path, group: r.APIGroup, kind: r.Kind, name: r.Name}
}

// follow returns the object that a reference names, which must be of one of the wanted
// kinds. If the result is nil, the problem was reported.
func (l *loader) follow(r reference, wanted ...string) *manifest.Entry {
	choice := strings.Join(wanted, " or ")
	if l.isForeign(r) {
		l.foreignReference(r, choice)
		return nil
	}
	if !slices.Contains(wanted, r.kind) {
		l.fail(r.from.Problem(r.path+".kind", fmt.Sprintf("must be %s, not %s", choice, r.kind), "change the reference"))
		return nil
	}
	group := l.kinds[r.kind].group
	if version, _ := r.from.ValueAt(r.path + ".apiVersion").(string); r.group == "" && version != "" {
		l.fail(r.from.Problem(r.path+".apiVersion", fmt.Sprintf("%q contains no API group", version), "change it to "+group+"/"+manifest.VersionNew))
		return nil
	}
	if r.group != "" && r.group != group {
		l.fail(r.from.Problem(r.path, fmt.Sprintf("%s is in the API group %s, not %s", r.kind, group, r.group), "change the reference"))
		return nil
	}
	if namespace, ok := manifest.ValueAt(r.from.Value, r.from.OldName(r.path)+".namespace").(string); ok && namespace != l.cluster.Namespace {
		l.warn(
			r.from.Problem(
				r.path+".namespace",
				fmt.Sprintf("the reference says %s, but Cluster API looks in the namespace of the Cluster, %s", namespace, l.cluster.Namespace),
				"remove it",
			),
		)
	}
	o := l.lookup(r.kind, r.name)
	if o == nil {
		l.missingObject(r.from, r.path+".name", r.kind, r.name)
		return nil
	}
	o.Used = true
	return o
}

// lookup returns the object with that kind and name in the namespace of the Cluster.
func (l *loader) lookup(kind, name string) *manifest.Entry {
	for _, namespace := range []string{l.cluster.Namespace, ""} {
		if o := l.byKey[key{kind, namespace, name}]; o != nil {
			return o
		}
	}
	return nil
}

// namesOf returns the fix for a name that does not exist.
func (l *loader) namesOf(kind, name string) string {
	var names []string
	for _, o := range l.ofKind(kind) {
		if o.Namespace != "" && o.Namespace != l.cluster.Namespace && o.Name == name {
			return fmt.Sprintf("it is in the namespace %s, but the Cluster is in %s: write the same in both", o.Namespace, l.cluster.Namespace)
		}
		names = append(names, o.Name)
	}
	for _, a := range l.asides {
		if a.failed && a.Name != "" && (a.Kind == kind || suggest.Nearest(a.Kind, []string{kind}) != "") {
			names = append(names, a.Name) // it is there, and its own problem is reported
		}
	}
	if len(names) == 0 {
		if isIdentity(kind) {
			return fmt.Sprintf("add it, pass --identities FILE, or remove spec.identityRef of the cluster to use your own credentials: the input has no %s", kind)
		}
		return fmt.Sprintf("add it: the input has no %s", kind)
	}
	if meant := suggest.Nearest(name, names); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	slices.Sort(names)
	return "use one that the input has (" + strings.Join(names, ", ") + "), or add it"
}

// resolved returns the typed object that a reference names. If the result is nil, the
// problem was reported.
func resolved[T any](l *loader, r reference, wanted string) *T {
	o := l.follow(r, wanted)
	if o == nil {
		return nil
	}
	t, _ := o.Typed.(*T)
	return t
}
