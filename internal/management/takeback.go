package management

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Takeback takes one cluster from the controllers of a management cluster.
type Takeback struct {
	c               *Cluster
	namespace, name string
	kinds           map[schema.GroupKind]schema.GroupVersionResource
	cluster         schema.GroupVersionResource
	paused          bool // before the takeback
	taken           bool // an earlier run has taken the cluster back, and has begun to remove the objects
	own             []unstructured.Unstructured
	shared          []unstructured.Unstructured // objects that other clusters may use, too
}

// takebackAnnotation is on a Cluster whose objects are being removed, so that a run that
// continues does not take the rest of them for the cluster.
const takebackAnnotation = "clusterawsadm/takeback"

// Taken reports whether an earlier run has taken the cluster back: what is left of its
// objects is only to be removed.
func (t *Takeback) Taken() bool { return t.taken }

// groupSuffix is the end of the API groups of Cluster API and its providers.
const groupSuffix = "cluster.x-k8s.io"

// Takeback finds a cluster and all of its objects.
func (c *Cluster) Takeback(ctx context.Context, namespace, name string) (*Takeback, error) {
	t := &Takeback{c: c, namespace: namespace, name: name, kinds: map[schema.GroupKind]schema.GroupVersionResource{}}
	var err error
	if t.cluster, err = c.kind(ctx, clusterGroup, "Cluster"); err != nil {
		return nil, err
	}
	if t.cluster.Version == "v1beta1" {
		return nil, fmt.Errorf("%s serves %s in %s only: Cluster API 1.11 or newer is needed", c.name, clusterGroup, t.cluster.Version)
	}
	cluster, err := c.objects.Resource(t.cluster).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, c.missing(ctx, "Cluster "+name, namespace, "'kubectl get clusters -A' lists all of them")
	}
	if err != nil {
		return nil, c.explain(err, "read Cluster "+name)
	}
	if cluster.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s is deleting Cluster %s: it cannot be taken back", c.name, name)
	}
	t.paused, _, _ = unstructured.NestedBool(cluster.Object, "spec", "paused")
	t.taken = cluster.GetAnnotations()[takebackAnnotation] != ""
	return t, t.find(ctx, cluster)
}

// find finds the objects of the cluster: those with its label, and those that they own.
func (t *Takeback) find(ctx context.Context, cluster *unstructured.Unstructured) error {
	all, err := t.list(ctx)
	if err != nil {
		return err
	}
	t.own = []unstructured.Unstructured{*cluster}
	uids := map[types.UID]bool{cluster.GetUID(): true}
	for grown := true; grown; {
		grown = false
		for _, o := range all {
			if uids[o.GetUID()] || isShared(o.GetKind()) {
				continue
			}
			belongs := o.GetLabels()[clusterNameLabel] == t.name ||
				slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return uids[r.UID] })
			if belongs {
				t.own, uids[o.GetUID()], grown = append(t.own, o), true, true
			}
		}
	}
	return t.findShared(ctx, all)
}

// isShared reports whether objects of a kind may belong to several clusters.
func isShared(kind string) bool {
	return slices.Contains([]string{"ClusterClass", "ClusterResourceSet", "ConfigMap"}, kind)
}

// findShared finds the ClusterResourceSets that were applied to the cluster, and what they
// contain.
func (t *Takeback) findShared(ctx context.Context, all []unstructured.Unstructured) error {
	sets := map[string]bool{}
	for _, o := range t.own {
		if o.GetKind() != "ClusterResourceSetBinding" {
			continue
		}
		bindings, _, _ := unstructured.NestedSlice(o.Object, "spec", "bindings")
		for _, each := range bindings {
			b, _ := each.(map[string]any)
			name, _ := b["clusterResourceSetName"].(string)
			sets[name] = true
		}
	}
	for _, o := range all {
		if o.GetKind() != "ClusterResourceSet" || !sets[o.GetName()] {
			continue
		}
		t.shared = append(t.shared, o)
		resources, _, _ := unstructured.NestedSlice(o.Object, "spec", "resources")
		for _, each := range resources {
			r, _ := each.(map[string]any)
			name, _ := r["name"].(string)
			resource := map[any]string{"ConfigMap": "configmaps", "Secret": "secrets"}[r["kind"]]
			x, err := t.c.objects.Resource(core(resource)).Namespace(t.namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return t.c.explain(err, fmt.Sprintf("read %v %s of ClusterResourceSet %s", r["kind"], name, o.GetName()))
			}
			t.shared = append(t.shared, *x)
		}
	}
	return nil
}

// list lists all objects of Cluster API and its providers in the namespace, and Secrets.
func (t *Takeback) list(ctx context.Context) (all []unstructured.Unstructured, err error) {
	var groups metav1.APIGroupList
	if err := t.c.get(ctx, "/apis", &groups); err != nil {
		return nil, t.c.explain(err, "ask for the API groups")
	}
	resources := []schema.GroupVersionResource{core("secrets")}
	for _, g := range groups.Groups {
		if g.Name != groupSuffix && !strings.HasSuffix(g.Name, "."+groupSuffix) {
			continue
		}
		var kinds metav1.APIResourceList
		if err := t.c.get(ctx, "/apis/"+g.PreferredVersion.GroupVersion, &kinds); err != nil {
			return nil, t.c.explain(err, "ask for the kinds of "+g.PreferredVersion.GroupVersion)
		}
		for _, r := range kinds.APIResources {
			if r.Namespaced && slices.Contains(r.Verbs, "list") {
				gvr := schema.GroupVersionResource{Group: g.Name, Version: g.PreferredVersion.Version, Resource: r.Name}
				t.kinds[schema.GroupKind{Group: g.Name, Kind: r.Kind}] = gvr
				resources = append(resources, gvr)
			}
		}
	}
	t.kinds[schema.GroupKind{Kind: "Secret"}] = core("secrets")
	for _, r := range resources {
		list, err := t.c.objects.Resource(r).Namespace(t.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, t.c.explain(err, "list "+r.Resource)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// Objects returns the objects of the cluster, and those it shares with others.
func (t *Takeback) Objects() (all []map[string]any) {
	for _, o := range slices.Concat(t.own, t.shared) {
		all = append(all, o.Object)
	}
	return all
}

// Secrets returns the Secrets with the keys of the cluster.
func (t *Takeback) Secrets() (all []map[string]any) {
	for _, o := range t.own {
		kind, _, _ := unstructured.NestedString(o.Object, "type")
		if o.GetKind() != "Secret" || kind != "cluster.x-k8s.io/secret" {
			continue
		}
		for _, purpose := range []string{"ca", "etcd", "proxy", "sa", "apiserver-etcd-client"} {
			if o.GetName() == t.name+"-"+purpose {
				all = append(all, map[string]any{
					"apiVersion": "v1", "kind": "Secret", "type": kind, "data": o.Object["data"],
					"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()},
				})
			}
		}
	}
	return all
}

// Pause stops the controllers from working on the cluster.
func (t *Takeback) Pause(ctx context.Context) error { return t.setPaused(ctx, true) }

// Undo lets the controllers go on, if they worked on the cluster before.
func (t *Takeback) Undo(ctx context.Context) error {
	if t.paused {
		return nil
	}
	return t.setPaused(ctx, false)
}

func (t *Takeback) setPaused(ctx context.Context, paused bool) error {
	return t.patch(ctx, pausing(paused), "pause")
}

// patch changes the Cluster.
func (t *Takeback) patch(ctx context.Context, change map[string]any, what string) error {
	if err := t.c.patch(ctx, t.cluster, t.namespace, t.name, change); err != nil {
		return t.c.explain(err, what+" Cluster "+t.name)
	}
	return nil
}

// lastReconciliation is how long a reconciliation by CAPA that has begun before the pause may
// take, of a cluster that is as desired: it is about thirty calls. CAPA v2.13.0 does not
// report when it has seen the pause: it ignores the event.
const lastReconciliation = 5 * time.Second

// AwaitPause waits until the controllers have seen the pause.
func (t *Takeback) AwaitPause(ctx context.Context) error {
	for {
		busy, err := t.busy(ctx)
		if err != nil {
			return err
		}
		if busy == "" {
			return t.c.clock.Sleep(ctx, lastReconciliation)
		}
		if err := t.c.clock.Sleep(ctx, pollEvery); err != nil {
			return errors.Join(err, fmt.Errorf("the controller of %s has not seen the pause: does it run?", busy))
		}
	}
}

// ofCAPA reports whether a controller of CAPA works on the objects of a kind.
func ofCAPA(kind string) bool {
	return strings.HasPrefix(kind, "AWS") || strings.HasPrefix(kind, "EKS") || strings.HasPrefix(kind, "Nodeadm")
}

// busy returns an object whose controller reports that it is not paused; "" for none.
func (t *Takeback) busy(ctx context.Context) (string, error) {
	for _, o := range t.own {
		gvr, known := t.kinds[o.GroupVersionKind().GroupKind()]
		if status, _ := condition(&o, "Paused"); !known || status == "" || ofCAPA(o.GetKind()) {
			continue
		}
		have, err := t.c.objects.Resource(gvr).Namespace(t.namespace).Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", t.c.explain(err, "read "+title(&o))
		}
		if status, _ := condition(have, "Paused"); status != string(metav1.ConditionTrue) {
			return title(have), nil
		}
	}
	return "", nil
}

// Remove removes the objects of the cluster without their finalizers, so that no controller
// deletes anything in AWS: what is owned before its owner, and the Cluster last, whose pause
// holds for all.
func (t *Takeback) Remove(ctx context.Context) (n int, err error) {
	if err := t.patch(ctx, map[string]any{"metadata": map[string]any{"annotations": map[string]any{takebackAnnotation: "done"}}}, "mark"); err != nil {
		return 0, err
	}
	for _, o := range slices.Backward(t.own) {
		gvr, known := t.kinds[o.GroupVersionKind().GroupKind()]
		if !known {
			continue
		}
		err := t.c.patch(ctx, gvr, t.namespace, o.GetName(), map[string]any{"metadata": map[string]any{"finalizers": nil}})
		if err == nil {
			background := metav1.DeletePropagationBackground
			err = t.c.objects.Resource(gvr).Namespace(t.namespace).Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return n, t.c.explain(err, "remove "+title(&o))
		}
		n++
	}
	return n, nil
}

// Refresh reads all objects again.
func (t *Takeback) Refresh(ctx context.Context) error {
	cluster, err := t.c.objects.Resource(t.cluster).Namespace(t.namespace).Get(ctx, t.name, metav1.GetOptions{})
	if err != nil {
		return t.c.explain(err, "read Cluster "+t.name)
	}
	t.shared = nil
	return t.find(ctx, cluster)
}

// Documents encodes objects as YAML documents.
func Documents(objects []map[string]any) (out []byte, err error) {
	for _, x := range objects {
		data, err := yaml.Marshal(x)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), data...)
	}
	return out, nil
}
