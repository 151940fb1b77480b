package incluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Addons are objects that are applied to the cluster: those of a ClusterResourceSet,
// or of a file.
type Addons struct {
	API       *API
	Server    *graph.Ref[APIServerState]
	Name      string
	Reconcile bool // keep the objects as in the manifest; else create those that are missing
	Objects   []AddonObject
	// Brought are the kinds and namespaces that the add-ons of the cluster define, as
	// returned by Brings: objects that need one wait for it.
	Brought map[string]bool
	// Definitions are the CustomResourceDefinitions of all add-ons of the cluster, by AddonObject.Definition of the objects that they define.
	Definitions map[string]AddonObject
	Charts      bool // the cluster has charts, which may define kinds and namespaces, too
}

// AddonObject is one object of an add-on.
type AddonObject struct {
	Title  string         // "DaemonSet kube-system/calico-node"
	Origin string         // its position in the manifest or file
	Object map[string]any // decoded JSON; not changed
}

// AddonsState is the state of the objects.
type AddonsState struct {
	Name string
	Seen []string // state of each object: "" if it is missing

	refusals map[int]error // why the API server refuses to change an object, by its place in the list
	unclear  error         // error for an object whose kind is not defined yet, or that is not accepted yet
}

// CloudID implements graph.State.
func (s AddonsState) CloudID() string { return s.Name }

// The states of an object that is neither missing nor different.
const (
	there        = "there"
	asInManifest = "as written"
	notAccepted  = "not known yet"
)

var (
	_ graph.Desired[AddonsState] = (*Addons)(nil)
	_ graph.Creator[AddonsState] = (*Addons)(nil)
	_ graph.Updater[AddonsState] = (*Addons)(nil)
	_ graph.TimeLimited          = (*Addons)(nil)
	_ graph.CheckedParts         = (*Addons)(nil)
)

// Needs implements graph.Desired.
func (a *Addons) Needs() []graph.Edge { return graph.Awaits(a.Server) }

// TimeLimit implements graph.TimeLimited: a chart on which objects wait may take helm's time limit.
func (a *Addons) TimeLimit() time.Duration {
	if a.Charts {
		return 30 * time.Minute
	}
	return 0
}

// brought reports whether an add-on of the cluster defines, or may define, a kind or a namespace.
func (a *Addons) brought(what string) bool { return a.Brought[what] || a.Charts }

// Find implements graph.Desired.
func (a *Addons) Find(ctx context.Context, c *cloud.Clients) (*AddonsState, error) {
	if !answers(a.Server) {
		return nil, nil // the API server does not answer yet
	}
	k, err := a.API.Client(c)
	if err != nil {
		return nil, err
	}
	have, err := a.read(ctx, k)
	if err != nil || !slices.ContainsFunc(have.Seen, func(s string) bool { return s != "" }) {
		return nil, err
	}
	return have, nil
}

// Diff implements graph.Desired. It lists the objects that differ, without values: they
// may be Secrets.
func (a *Addons) Diff(have *AddonsState) (d plan.Diff) {
	for i, o := range a.Objects {
		seen := ""
		if i < len(have.Seen) {
			seen = have.Seen[i]
		}
		d.Set(o.Title, seen, a.wanted())
	}
	return d
}

func (a *Addons) wanted() string {
	if a.Reconcile {
		return asInManifest
	}
	return there
}

// Create implements graph.Creator.
func (a *Addons) Create(ctx context.Context, c *cloud.Clients) (*AddonsState, error) {
	return a.apply(ctx, c)
}

// Update implements graph.Updater.
func (a *Addons) Update(ctx context.Context, c *cloud.Clients, _ *AddonsState, _ plan.Diff) (*AddonsState, error) {
	return a.apply(ctx, c)
}

// apply applies the objects that differ, Namespaces first. It reads them again just
// before: without Reconcile, an object that exists by then is not changed. If the API
// server rejects one object, the others are still applied, and then the rejected one again: it may need them.
func (a *Addons) apply(ctx context.Context, c *cloud.Clients) (*AddonsState, error) {
	k, err := a.API.Client(c)
	if err != nil {
		return nil, err
	}
	have, err := a.read(ctx, k)
	if err != nil {
		return nil, err
	}
	var left []int
	for _, namespaces := range []bool{true, false} {
		for i, o := range a.Objects {
			if (o.kind() == "Namespace") == namespaces && have.Seen[i] != a.wanted() && have.Seen[i] != notAccepted {
				left = append(left, i)
			}
		}
	}
	defined := map[string]bool{} // what has changed in this call
	var wrong []error
	for progress := true; progress; {
		progress = false
		var refused []int
		wrong = nil
		for _, i := range left {
			if err := a.applyOne(ctx, k, i, have, defined); err != nil {
				wrong, refused = append(wrong, err), append(refused, i)
			}
			progress = progress || have.Seen[i] == a.wanted()
		}
		left = refused
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	if have.unclear != nil {
		return nil, graph.NotYet(have.unclear)
	}
	return have, nil
}

// applyOne applies one object, and stores the result in have. It returns an error
// only if trying again would not help.
func (a *Addons) applyOne(ctx context.Context, k *kube.Client, i int, have *AddonsState, defined map[string]bool) error {
	o := a.Objects[i]
	switch err := write(ctx, k, o, have.Seen[i]); {
	case err == nil:
		have.Seen[i] = a.wanted()
		defined[o.Brings()] = true
	case a.temporary(o, err), kube.Rejected(err) && defined[o.Definition()]: // the API server may still have the old definition
		have.unclear = &AddonError{o, err, a.awaited(o, err)}
	default:
		return &AddonError{o, err, o.advice(err, have.Seen[i] != "")}
	}
	return nil
}

// write applies an object in the state seen.
func write(ctx context.Context, k *kube.Client, o AddonObject, seen string) (err error) {
	if seen != notRecorded {
		_, err = k.Apply(ctx, o.object(), false)
	}
	if err == nil && o.expires() {
		err = recordJob(ctx, k, o)
	}
	return err
}

// read reads the state of every object.
func (a *Addons) read(ctx context.Context, k *kube.Client) (*AddonsState, error) {
	have := &AddonsState{Name: a.Name, refusals: map[int]error{}}
	var wrong []error
	jobs := recorded{k: k}
	for i, o := range a.Objects {
		seen, err := a.compare(ctx, k, o)
		if err == nil {
			seen, err = jobs.state(ctx, a, o, seen)
		}
		var refusal *refusedError
		switch {
		case err == nil:
		case errors.As(err, &refusal):
			seen, have.refusals[i] = refusal.seen, refusal.error
		case !a.temporary(o, err):
			wrong = append(wrong, &AddonError{o, err, o.advice(err, false)})
		case errors.As(err, new(apierrors.APIStatus)): // for example a webhook that is not available yet
			seen, have.unclear = notAccepted, &AddonError{o, err, ""}
		default:
			return nil, graph.NotYet(&AddonError{o, err, ""})
		}
		have.Seen = append(have.Seen, seen)
	}
	return have, errors.Join(wrong...)
}

// Blocked returns why the API server does not accept an object now, by dry runs; nil if it accepts all.
func (a *Addons) Blocked(ctx context.Context, k *kube.Client) error {
	for _, o := range a.Objects {
		if seen, err := a.compare(ctx, k, o); err != nil {
			return &AddonError{o, err, ""}
		} else if seen == a.wanted() {
			continue
		}
		if _, err := k.Apply(ctx, o.object(), true); err != nil {
			return &AddonError{o, err, ""}
		}
	}
	return nil
}

// compare compares one object with the cluster, with a dry run of apply: only the API server
// knows the defaults, and which lists are sets.
func (a *Addons) compare(ctx context.Context, k *kube.Client, o AddonObject) (string, error) {
	object := o.object()
	at, err := k.Kind(ctx, object)
	if errors.As(err, new(*kube.UnknownKindError)) && !o.Builtin() {
		// Its definition may come from elsewhere, also before the object is applied: until then, it concerns
		// no other resource (CAPI's controller of ClusterResourceSets applies the others, too, and tries again).
		return "", nil
	}
	if err != nil {
		return "", err
	}
	live, err := at.Get(ctx, object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	case !a.Reconcile:
		return there, nil
	}
	after, err := k.Apply(ctx, object, true)
	switch {
	case err == nil:
		return differsIn(differences("", live.Object, after.Object)), nil
	case kube.Rejected(err) && !a.temporary(o, err):
		return "", refused(err, live.Object, object.Object)
	}
	return "", err
}

// differsIn says in which fields an object differs.
func differsIn(paths []string) string {
	if len(paths) == 0 {
		return asInManifest
	}
	const most = 3
	if more := len(paths) - most; more > 0 {
		paths = append(paths[:most], fmt.Sprintf("%d more", more))
	}
	return "differs in " + strings.Join(paths, ", ")
}

// temporary reports whether an object may be accepted later: another object defines
// what it needs, or the API server or a webhook is unavailable.
func (a *Addons) temporary(o AddonObject, err error) bool {
	switch {
	case errors.As(err, new(*kube.UnknownKindError)):
		return a.brought(o.Definition()) && !o.Builtin()
	case apierrors.IsNotFound(err): // its namespace, or a kind that is defined but not served yet
		return a.brought(o.Definition()) || a.brought("Namespace "+o.object().GetNamespace())
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return a.brought("Namespace " + o.object().GetNamespace())
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return o.object().GetUID() == "" && o.object().GetResourceVersion() == "" // with one of these, it is refused again and again
	}
	_, unanswered := kube.Unavailable(err)
	return unanswered && !errors.Is(err, cloud.ErrLockLost) && !errors.As(err, new(*cloud.RefusedError))
}

// differences lists the paths at which an object differs from what it would be,
// except for fields that the API server or controllers set.
func differences(path string, have, want any) (paths []string) {
	switch path {
	case "status", "metadata.managedFields", "metadata.resourceVersion", "metadata.generation",
		"metadata.annotations.deprecated.daemonset.template.generation":
		return nil
	}
	h, _ := have.(map[string]any)
	w, _ := want.(map[string]any)
	if h != nil && w != nil {
		both := map[string]bool{}
		for key := range h {
			both[key] = true
		}
		for key := range w {
			both[key] = true
		}
		for _, key := range slices.Sorted(maps.Keys(both)) {
			paths = append(paths, differences(strings.TrimPrefix(path+"."+key, "."), h[key], w[key])...)
		}
		return paths
	}
	hs, _ := have.([]any)
	ws, _ := want.([]any)
	if len(hs) == len(ws) && hs != nil && ws != nil {
		for i := range hs {
			paths = append(paths, differences(fmt.Sprintf("%s[%d]", path, i), hs[i], ws[i])...)
		}
		return paths
	}
	if reflect.DeepEqual(have, want) {
		return nil
	}
	return []string{path}
}

// object returns a copy of the object for one request.
func (o AddonObject) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.Object)}
}

func (o AddonObject) kind() string {
	kind, _ := o.Object["kind"].(string)
	return kind
}

// awaited says what an object waits for that a chart may define.
func (a *Addons) awaited(o AddonObject, err error) string {
	switch namespace := o.object().GetNamespace(); {
	case errors.As(err, new(*kube.UnknownKindError)) && !a.Brought[o.Definition()]:
		return "; no chart of the manifest has defined it: bring its CustomResourceDefinition too"
	case apierrors.IsNotFound(err) && !a.Brought["Namespace "+namespace]:
		return "; no chart of the manifest has made the namespace: bring it too"
	}
	return ""
}

// Builtin reports whether the kind of the object belongs to Kubernetes itself: its group has no dot, or is one of those
// of the API server (https://kubernetes.io/docs/reference/kubernetes-api/). Other groups of k8s.io belong to
// add-ons, such as gateway.networking.k8s.io.
func (o AddonObject) Builtin() bool {
	_, group, _ := strings.Cut(o.Definition(), " of ")
	version, _ := o.Object["apiVersion"].(string)
	name, ok := strings.CutSuffix(group, ".k8s.io")
	return !strings.Contains(version, "/") || !strings.Contains(group, ".") || ok && slices.Contains([]string{
		"admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates", "coordination", "discovery", "events",
		"flowcontrol.apiserver", "internal.apiserver", "networking", "node", "rbac.authorization", "resource", "scheduling", "storage", "storagemigration",
	}, name)
}

// Definition returns the value of Brings for the definition of the object's kind.
func (o AddonObject) Definition() string {
	version, _ := o.Object["apiVersion"].(string)
	group, _, _ := strings.Cut(version, "/")
	return o.kind() + " of " + group
}

// Brings returns what the object defines, for Addons.Brought: a kind or a namespace; ""
// for nothing.
func (o AddonObject) Brings() string {
	object := o.object()
	switch o.kind() {
	case "Namespace":
		return "Namespace " + object.GetName()
	case "CustomResourceDefinition":
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		return kind + " of " + group
	}
	return ""
}

// AddonError says which object of an add-on the API server rejects, and why.
type AddonError struct {
	Object AddonObject
	Err    error
	Fix    string // how to fix it; "" if waiting may help
}

func (e *AddonError) Error() string {
	at := ""
	if e.Object.Origin != "" {
		at = " (" + e.Object.Origin + ")"
	}
	return fmt.Sprintf("%s%s: %s%s", e.Object.Title, at, e.Object.said(e.Err), e.Fix)
}

// Unwrap returns the error of the API server.
func (e *AddonError) Unwrap() error { return e.Err }
