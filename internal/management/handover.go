package management

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// handoverAnnotation is on all objects that a handover creates. The value identifies the
// cluster in AWS, so that an interrupted handover can tell its objects from others.
const handoverAnnotation = "clusterawsadm/handover"

// Object is an object to create, and the object that owns it. Owners come first.
type Object struct {
	unstructured.Unstructured
	Owner  *metav1.OwnerReference // without UID
	Status map[string]any         // nil for most objects: controllers find it out
}

// key identifies an object by group, kind, namespace and name.
type objectKey struct {
	schema.GroupKind
	namespace, name string
}

func (o *Object) key() objectKey {
	return objectKey{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

// title identifies an object in messages.
func title(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

// Handover gives one cluster to the controllers of a management cluster.
type Handover struct {
	c       *Cluster
	id      string // of the cluster, in handoverAnnotation
	objects []Object
	kinds   map[schema.GroupKind]schema.GroupVersionResource
	cluster *unstructured.Unstructured // the Cluster among objects

	begun bool // an earlier handover has created the Cluster
	freed bool // and removed the pause
}

// Handover prepares the handover of a cluster. It makes no call.
func (c *Cluster) Handover(id string, objects []Object) *Handover {
	h := &Handover{c: c, id: id, objects: objects, kinds: map[schema.GroupKind]schema.GroupVersionResource{}}
	for i := range objects {
		if objects[i].GetKind() == "Cluster" {
			h.cluster = &objects[i].Unstructured
		}
	}
	return h
}

// ID identifies the management cluster: the UID of its namespace kube-system.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	found, err := c.objects.Resource(core("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", c.explain(err, "identify the management cluster")
	}
	return string(found.GetUID()), nil
}

// Check returns all that prevents the handover: kinds and API versions that the management
// cluster does not serve, identities that it does not have, objects that exist already. It
// changes nothing.
func (h *Handover) Check(ctx context.Context) (problems []error) {
	problems = append(problems, h.checkKinds(ctx)...)
	if len(problems) > 0 {
		return problems
	}
	problems = append(problems, h.checkProviders(ctx)...)
	problems = append(problems, h.checkExisting(ctx)...)
	return append(problems, h.checkIdentity(ctx)...)
}

// providers are the objects with which "clusterctl init" records what it has installed.
func providers() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Resource: "providers"}
}

// checkProviders checks that the providers which clusterctl has installed work in the
// namespace of the cluster. Others are not known.
func (h *Handover) checkProviders(ctx context.Context) (problems []error) {
	list, err := h.c.objects.Resource(providers()).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return []error{h.c.explain(err, "list the providers")}
	}
	for _, x := range list.Items {
		watched, _, _ := unstructured.NestedString(x.Object, "watchedNamespace")
		if watched != "" && watched != h.cluster.GetNamespace() {
			version, _, _ := unstructured.NestedString(x.Object, "version")
			problems = append(
				problems,
				fmt.Errorf(
					"in %s, provider %s %s only watches the namespace %s, and the cluster is in %s",
					h.c.name,
					x.GetName(),
					version,
					watched,
					h.cluster.GetNamespace(),
				),
			)
		}
	}
	return problems
}

// checkKinds finds the resource of each kind, in the API version of the objects.
func (h *Handover) checkKinds(ctx context.Context) (problems []error) {
	failed := map[string]bool{} // by message: many kinds have the same problem
	for _, o := range h.objects {
		gk := o.GroupVersionKind().GroupKind()
		if _, known := h.kinds[gk]; known {
			continue
		}
		gvr, err := h.c.served(ctx, o.GroupVersionKind())
		if err != nil && !failed[err.Error()] {
			problems, failed[err.Error()] = append(problems, err), true
		}
		h.kinds[gk] = gvr
	}
	return problems
}

// served returns the resource of a kind, which has to be served in its version.
func (c *Cluster) served(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	if gvk.Group == "" {
		return core(map[string]string{"Namespace": "namespaces", "Secret": "secrets", "ConfigMap": "configmaps"}[gvk.Kind]), nil
	}
	var list metav1.APIResourceList
	err := c.get(ctx, "/apis/"+gvk.GroupVersion().String(), &list)
	if apierrors.IsNotFound(err) {
		if _, err := c.kind(ctx, gvk.Group, gvk.Kind); err != nil {
			return schema.GroupVersionResource{}, err
		}
		return schema.GroupVersionResource{}, fmt.Errorf(
			"%s does not serve %s: upgrade its providers: Cluster API 1.11 or newer is needed",
			c.name,
			gvk.GroupVersion(),
		)
	}
	if err != nil {
		return schema.GroupVersionResource{}, c.explain(err, "ask for the kinds of "+gvk.GroupVersion().String())
	}
	if name := resource(list, gvk.Kind); name != "" {
		return gvk.GroupVersion().WithResource(name), nil
	}
	return schema.GroupVersionResource{}, fmt.Errorf("%s has no kind %s in %s: %s", c.name, gvk.Kind, gvk.GroupVersion(), notInstalled(gvk.Group))
}

// shared reports whether other clusters may use the object, too. A handover does not change
// such an object if it exists.
func (o *Object) shared() bool {
	return slices.Contains(
		[]string{
			"Namespace",
			"ConfigMap",
			"ClusterResourceSet",
			"HelmChartProxy",
			"AWSClusterControllerIdentity",
			"AWSClusterRoleIdentity",
			"AWSClusterStaticIdentity",
		},
		o.GetKind(),
	) ||
		o.GetKind() == "Secret" && o.Owner == nil
}

// checkExisting refuses objects that exist and that no handover of this cluster has
// created.
func (h *Handover) checkExisting(ctx context.Context) (problems []error) {
	for i := range h.objects {
		o := &h.objects[i]
		have, err := h.of(o).Get(ctx, o.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			problems = append(problems, h.c.explain(err, "read "+title(&o.Unstructured)))
		case o.GetKind() == "Cluster" && have.GetAnnotations()[handoverAnnotation] == h.id:
			h.begun = true
			paused, _, _ := unstructured.NestedBool(have.Object, "spec", "paused")
			h.freed = !paused
		case !o.shared() && have.GetAnnotations()[handoverAnnotation] != h.id:
			problems = append(
				problems,
				fmt.Errorf("%s has %s in namespace %s already, which is not from a handover of this cluster", h.c.name, title(&o.Unstructured), o.GetNamespace()),
			)
		}
	}
	return problems
}

// checkIdentity checks that the identity of the AWSCluster exists. CAPA itself creates the
// one named default.
func (h *Handover) checkIdentity(ctx context.Context) []error {
	for i := range h.objects {
		ref, found, _ := unstructured.NestedStringMap(h.objects[i].Object, "spec", "identityRef")
		if !found || ref["kind"] == "AWSClusterControllerIdentity" {
			continue
		}
		if slices.ContainsFunc(h.objects, func(o Object) bool { return o.GetKind() == ref["kind"] && o.GetName() == ref["name"] }) {
			continue
		}
		gvr, err := h.c.kind(ctx, identityGroup, ref["kind"])
		if err == nil {
			_, err = h.c.objects.Resource(gvr).Get(ctx, ref["name"], metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			return []error{
				fmt.Errorf("%s has no %s/%s, which %s refers to: create it there first", h.c.name, ref["kind"], ref["name"], title(&h.objects[i].Unstructured)),
			}
		}
		if err != nil {
			return []error{h.c.explain(err, "read "+ref["kind"]+"/"+ref["name"])}
		}
	}
	return nil
}

// of returns the client for an object.
func (h *Handover) of(o *Object) dynamic.ResourceInterface {
	r := h.c.objects.Resource(h.kinds[o.GroupVersionKind().GroupKind()])
	if o.GetNamespace() == "" {
		return r
	}
	return r.Namespace(o.GetNamespace())
}

// Done reports whether an earlier run has handed the cluster over: its controllers may have
// replaced machines since.
func (h *Handover) Done() bool { return h.freed }

// Create creates the objects, with the Cluster paused. Objects that exist are from an
// earlier run, or shared.
func (h *Handover) Create(ctx context.Context) error {
	if err := h.createNamespace(ctx); err != nil {
		return err
	}
	uids := map[objectKey]types.UID{}
	for i := range h.objects {
		o := &h.objects[i]
		x := h.prepared(o, uids)
		made, err := h.of(o).Create(ctx, x, metav1.CreateOptions{FieldManager: fieldManager})
		if apierrors.IsAlreadyExists(err) {
			made, err = h.of(o).Get(ctx, o.GetName(), metav1.GetOptions{})
		}
		if err == nil && o.Status != nil {
			err = h.setStatus(ctx, o)
		}
		if err != nil {
			return h.c.explain(err, "create "+title(&o.Unstructured))
		}
		uids[o.key()] = made.GetUID()
	}
	return nil
}

// setStatus writes the status of an object. An API server ignores the status in the request that
// creates the object.
func (h *Handover) setStatus(ctx context.Context, o *Object) error {
	change, err := json.Marshal(map[string]any{"status": o.Status})
	if err != nil {
		return err
	}
	_, err = h.of(o).Patch(ctx, o.GetName(), types.MergePatchType, change, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	return err
}

// createNamespace creates the namespace of the cluster, if it does not exist.
func (h *Handover) createNamespace(ctx context.Context) error {
	name := cmp.Or(h.cluster.GetNamespace(), corev1.NamespaceDefault)
	r := h.c.objects.Resource(core("namespaces"))
	_, err := r.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = r.Create(
			ctx,
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}},
			metav1.CreateOptions{FieldManager: fieldManager},
		)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return h.c.explain(err, "create namespace "+name)
	}
	return nil
}

// prepared returns an object as it is created.
func (h *Handover) prepared(o *Object, uids map[objectKey]types.UID) *unstructured.Unstructured {
	x := o.DeepCopy()
	if !o.shared() {
		annotations := maps.Clone(x.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[handoverAnnotation] = h.id
		x.SetAnnotations(annotations)
	}
	if o.GetKind() == "Cluster" {
		_ = unstructured.SetNestedField(x.Object, true, "spec", "paused") // fails only if spec is no object
	}
	if o.Owner != nil {
		ref := *o.Owner
		gv, _ := schema.ParseGroupVersion(ref.APIVersion) // of an object that was encoded
		ref.UID = uids[objectKey{gv.WithKind(ref.Kind).GroupKind(), o.GetNamespace(), ref.Name}]
		x.SetOwnerReferences([]metav1.OwnerReference{ref})
	}
	return x
}

// Pause stops the controllers from working on the cluster, or lets them go on.
func (h *Handover) Pause(ctx context.Context, paused bool) error {
	clusters := h.kinds[h.cluster.GroupVersionKind().GroupKind()]
	if err := h.c.patch(ctx, clusters, h.cluster.GetNamespace(), h.cluster.GetName(), pausing(paused)); err != nil {
		what := "let the controllers work on"
		if paused {
			what = "pause"
		}
		return h.c.explain(err, what+" "+title(h.cluster))
	}
	h.freed = !paused
	return nil
}

// pausing is the change of a Cluster that pauses it, or lets its controllers go on.
func pausing(paused bool) map[string]any {
	return map[string]any{"spec": map[string]any{"paused": paused}}
}

// ChangedError says that controllers have begun to replace machines, and that the Cluster was
// paused for that.
type ChangedError struct {
	What  string
	Pause error // why it could not be paused
}

func (e *ChangedError) Error() string {
	if e.Pause != nil {
		return e.What + "; and the Cluster could not be paused: " + e.Pause.Error()
	}
	return e.What + ": the Cluster is paused again"
}

// Unwrap returns why the Cluster could not be paused.
func (e *ChangedError) Unwrap() error { return e.Pause }

// Await waits until all objects are ready, and returns what is not when the context ends.
// If a controller makes or deletes a machine, Await pauses the Cluster: a handover changes
// nothing.
func (h *Handover) Await(ctx context.Context, tell func(waiting []string)) error {
	said := ""
	for {
		waiting, changed, err := h.look(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case changed != "":
			return &ChangedError{changed, h.Pause(context.WithoutCancel(ctx), true)}
		case len(waiting) == 0:
			return nil
		}
		if text := strings.Join(waiting, "; "); text != said {
			tell(waiting)
			said = text
		}
		if err := h.c.clock.Sleep(ctx, pollEvery); err != nil {
			return errors.Join(err, errors.New("not ready: "+strings.Join(waiting, "; ")))
		}
	}
}

// look returns what is not ready, and what controllers have changed that they should not.
func (h *Handover) look(ctx context.Context) (waiting []string, changed string, err error) {
	mine := map[string]bool{}
	for i := range h.objects {
		o := &h.objects[i]
		if readiness(o.GetKind()) == "" {
			continue
		}
		have, err := h.of(o).Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, title(&o.Unstructured) + " was deleted in the management cluster", nil
		}
		if err != nil {
			return nil, "", h.c.explain(err, "read "+title(&o.Unstructured))
		}
		if have.GetDeletionTimestamp() != nil {
			return nil, "the controllers delete " + title(have) + whyReplaced(have), nil
		}
		if o.GetKind() == "Machine" {
			mine[o.GetName()] = true
		}
		if why := notReady(have); why != "" {
			waiting = append(waiting, title(have)+": "+why)
		}
	}
	extra, err := h.extraMachine(ctx, mine)
	return waiting, extra, err
}

// extraMachine says which Machine a controller has made that is not from this cluster's
// objects. Machines of MachinePools come and go with the instances.
func (h *Handover) extraMachine(ctx context.Context, mine map[string]bool) (string, error) {
	gvk := h.cluster.GroupVersionKind()
	gvk.Kind = "Machine"
	gvr, err := h.c.served(ctx, gvk)
	if err != nil {
		return "", err
	}
	list, err := h.c.objects.Resource(gvr).
		Namespace(h.cluster.GetNamespace()).
		List(ctx, metav1.ListOptions{LabelSelector: clusterNameLabel + "=" + h.cluster.GetName()})
	if err != nil {
		return "", h.c.explain(err, "list the Machines of "+title(h.cluster))
	}
	for _, m := range list.Items {
		if _, pool := m.GetLabels()[poolNameLabel]; !mine[m.GetName()] && !pool {
			return "the controllers have made " + title(&m), nil
		}
	}
	return "", nil
}

// Labels of Cluster API.
const (
	clusterNameLabel = "cluster.x-k8s.io/cluster-name"
	poolNameLabel    = "cluster.x-k8s.io/pool-name"
)

// whyReplaced returns the message of the condition UpToDate.
func whyReplaced(o *unstructured.Unstructured) string {
	if _, message := condition(o, "UpToDate"); message != "" {
		return " (" + message + ")"
	}
	return ""
}

// readiness is the condition by which objects of a kind report that they are ready; "ready"
// and "phase" for these fields of the status, and "" for kinds that do not report it.
func readiness(kind string) string {
	switch kind {
	case "Cluster", "KubeadmControlPlane", "MachineDeployment":
		return "Available"
	case "Machine":
		return "Ready"
	case "AWSCluster", "AWSMachine", "AWSManagedControlPlane", "AWSManagedCluster", "AWSMachinePool", "AWSManagedMachinePool":
		return "ready"
	case "MachinePool":
		return "phase"
	}
	return ""
}

// notReady says why an object is not ready; "" if it is.
func notReady(o *unstructured.Unstructured) string {
	name := readiness(o.GetKind())
	if name == "phase" {
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if phase == "Running" {
			return ""
		}
		return "not running yet"
	}
	if name == "ready" {
		if ready, _, _ := unstructured.NestedBool(o.Object, "status", "ready"); ready {
			return ""
		}
		if why := falseCondition(o); why != "" {
			return why
		}
		return "not ready yet"
	}
	status, message := condition(o, name)
	if status == string(metav1.ConditionTrue) {
		return ""
	}
	return cmp.Or(firstLine(message), "not "+strings.ToLower(name)+" yet")
}

// conditions returns the conditions of an object.
func conditions(o *unstructured.Unstructured) (all []map[string]any) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, each := range list {
		if c, ok := each.(map[string]any); ok {
			all = append(all, c)
		}
	}
	return all
}

// condition returns the status and message of a condition; "" if the object has none.
func condition(o *unstructured.Unstructured, name string) (status, message string) {
	for _, c := range conditions(o) {
		if c["type"] == name {
			status, _ = c["status"].(string)
			message, _ = c["message"].(string)
			return status, message
		}
	}
	return "", ""
}

// falseCondition returns the message, or else the reason, of a condition that is false.
func falseCondition(o *unstructured.Unstructured) string {
	for _, c := range conditions(o) {
		if c["status"] != string(metav1.ConditionFalse) || c["type"] == "Ready" {
			continue
		}
		message, _ := c["message"].(string)
		reason, _ := c["reason"].(string)
		return cmp.Or(firstLine(message), reason)
	}
	return ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "* "), "\n")
	return line
}
