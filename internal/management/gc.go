package management

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The annotations that control CAPA's garbage collection of resources of the cloud
// controller.
const (
	gcAnnotation      = "aws.cluster.x-k8s.io/external-resource-gc"       // "true" or "false"
	gcTasksAnnotation = "aws.cluster.x-k8s.io/external-resource-tasks-gc" // tasks, separated by commas; absent means all
)

const (
	clusterGroup      = "cluster.x-k8s.io"
	controlPlaneGroup = "controlplane.cluster.x-k8s.io"
	managedKind       = "AWSManagedControlPlane"
)

// GCTasks returns the tasks of the garbage collection.
func GCTasks() []string { return []string{"load-balancer", "target-group", "security-group"} }

// CheckGCTasks returns an error for a task that CAPA does not support.
func CheckGCTasks(tasks []string) error {
	for _, t := range tasks {
		if !slices.Contains(GCTasks(), t) {
			return fmt.Errorf("unsupported gc task: %s; supported: %s", t, strings.Join(GCTasks(), ", "))
		}
	}
	return nil
}

// Annotated is an object with the desired annotation.
type Annotated struct {
	Kind, Namespace, Name string
	Already               bool // the annotation was up to date before
}

// SetGC enables or disables the garbage collection of a cluster.
func (c *Cluster) SetGC(ctx context.Context, namespace, cluster string, on bool) ([]Annotated, error) {
	value := fmt.Sprint(on)
	return c.annotate(ctx, namespace, cluster, gcAnnotation, &value)
}

// SetGCTasks limits the garbage collection of a cluster to some tasks. Without tasks it
// removes the limit.
func (c *Cluster) SetGCTasks(ctx context.Context, namespace, cluster string, tasks []string) ([]Annotated, error) {
	if err := CheckGCTasks(tasks); err != nil {
		return nil, err
	}
	if len(tasks) == 0 {
		return c.annotate(ctx, namespace, cluster, gcTasksAnnotation, nil)
	}
	value := strings.Join(tasks, ",")
	return c.annotate(ctx, namespace, cluster, gcTasksAnnotation, &value)
}

// annotate sets or removes an annotation on the objects that CAPA's controllers read. It
// reads all objects before it changes the first one.
func (c *Cluster) annotate(ctx context.Context, namespace, cluster, key string, value *string) (done []Annotated, err error) {
	targets, err := c.steered(ctx, namespace, cluster)
	if err != nil {
		return nil, err
	}
	change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}}
	for _, t := range targets {
		a := Annotated{Kind: t.object.GetKind(), Namespace: namespace, Name: t.object.GetName()}
		old, ok := t.object.GetAnnotations()[key]
		if a.Already = value == nil && !ok || value != nil && ok && old == *value; !a.Already {
			if err := c.patch(ctx, t.resource, namespace, a.Name, change); err != nil {
				return done, c.explain(err, fmt.Sprintf("annotate %s %s/%s", a.Kind, namespace, a.Name))
			}
		}
		done = append(done, a)
	}
	return done, nil
}

// target is an object to annotate.
type target struct {
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
}

// ref is a reference in a Cluster. In v1beta2 it has an API group, in v1beta1 a group and
// version.
type ref struct{ APIGroup, APIVersion, Kind, Name string }

func (r ref) group() string {
	if r.APIGroup != "" {
		return r.APIGroup
	}
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return group
}

// steered returns the objects to annotate: for EKS first the AWSManagedControlPlane,
// whose controller does the garbage collection; and the object of infrastructureRef,
// which upstream's clusterawsadm annotates.
func (c *Cluster) steered(ctx context.Context, namespace, cluster string) (all []target, err error) {
	gvr, err := c.kind(ctx, clusterGroup, "Cluster")
	if err != nil {
		return nil, err
	}
	object, err := c.objects.Resource(gvr).Namespace(namespace).Get(ctx, cluster, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, c.missing(ctx, "Cluster "+cluster, namespace, "'kubectl get clusters -A' lists all clusters")
	case err != nil:
		return nil, c.explain(err, fmt.Sprintf("look up Cluster %s/%s", namespace, cluster))
	}
	var refs []ref
	if r := refOf(object, "controlPlaneRef"); r.Kind == managedKind && r.group() == controlPlaneGroup {
		refs = append(refs, r)
	}
	infra := refOf(object, "infrastructureRef")
	if infra.Name == "" {
		return nil, fmt.Errorf("cluster %s/%s has no spec.infrastructureRef yet: nothing to annotate", namespace, cluster)
	}
	if !slices.Contains(refs, infra) {
		refs = append(refs, infra)
	}
	for _, r := range refs {
		gvr, err := c.kind(ctx, r.group(), r.Kind)
		if err != nil {
			return nil, err
		}
		object, err := c.objects.Resource(gvr).Namespace(namespace).Get(ctx, r.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("cluster %s/%s names the %s %s, which does not exist", namespace, cluster, r.Kind, r.Name)
		case err != nil:
			return nil, c.explain(err, fmt.Sprintf("look up %s %s/%s", r.Kind, namespace, r.Name))
		}
		all = append(all, target{gvr, object})
	}
	return all, nil
}

func refOf(o *unstructured.Unstructured, field string) ref {
	get := func(name string) string {
		v, _, _ := unstructured.NestedString(o.Object, "spec", field, name)
		return v
	}
	return ref{get("apiGroup"), get("apiVersion"), get("kind"), get("name")}
}
