package incluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// WorkloadsKind is the name of the kind of Workloads.
const WorkloadsKind = "workloads"

// Workloads are the objects of an add-on that a run waits for: those that have pods (Deployments,
// DaemonSets, StatefulSets, Jobs and Pods), and those that extend the API
// (CustomResourceDefinitions and APIServices). An object is ready when its status says so, by the
// rules of kstatus, which Flux and helm 4 use, too. They are described in pkg/kstatus/README.md of
// https://github.com/kubernetes-sigs/cli-utils.
type Workloads struct {
	API     *API
	Server  *graph.Ref[APIServerState]
	Name    string // of the add-on
	Objects []AddonObject
	// Optional says that objects which do not exist are not waited for: somebody has replaced them.
	Optional bool
	After    []graph.Edge // the objects, and the Nodes for their pods
	Types    []string     // the instance types of all Nodes; none if some are not known
}

// WorkloadsState says what does not work yet.
type WorkloadsState struct {
	Name  string
	Waits []WaitingWorkload
}

// WaitingWorkload is an object that does not work yet.
type WaitingWorkload struct {
	Title     string // "Deployment kube-system/coredns"
	Namespace string // "" if it is in none
	Why       string
}

// CloudID implements graph.State.
func (s WorkloadsState) CloudID() string { return s.Name }

var (
	_ graph.Desired[WorkloadsState] = (*Workloads)(nil)
	_ graph.TimeLimited             = (*Workloads)(nil)
	_ graph.Doubted                 = (*Workloads)(nil)
)

// HasStatus reports whether the run waits until the status of an object says that it is ready. Other
// kinds have no status, or one that only their own controllers understand. A Job that is suspended and a
// Deployment that is paused do not start pods until somebody changes them.
func (o AddonObject) HasStatus() bool {
	spec, _ := o.Object["spec"].(map[string]any)
	if o.kind() == "Job" && spec["suspend"] == true || o.kind() == "Deployment" && spec["paused"] == true {
		return false
	}
	version, _ := o.Object["apiVersion"].(string)
	return slices.Contains([]string{
		"apps/v1 Deployment", "apps/v1 DaemonSet", "apps/v1 StatefulSet", "batch/v1 Job", "v1 Pod",
		"apiextensions.k8s.io/v1 CustomResourceDefinition", "apiregistration.k8s.io/v1 APIService",
	}, version+" "+o.kind())
}

// RunsOnControlPlane reports whether an object can become ready in a cluster without workers: its pods
// tolerate the taint of the control plane, or it needs no pods.
func (o AddonObject) RunsOnControlPlane() bool {
	path := []string{"spec", "template", "spec", "tolerations"}
	switch o.kind() {
	case "DaemonSet", "CustomResourceDefinition", "APIService": // a DaemonSet needs no Node that takes its pods
		return true
	case "Pod":
		path = []string{"spec", "tolerations"}
	}
	all, _, _ := unstructured.NestedSlice(o.object().Object, path...) // another type has no tolerations
	return slices.ContainsFunc(all, func(x any) bool {
		t, _ := x.(map[string]any)
		return t["key"] == nil || t["key"] == "" || t["key"] == controlPlaneLabel
	})
}

// SystemWorkloads are the objects that kubeadm installs, unless its phases are skipped
// (cmd/kubeadm/app/phases/addons).
func SystemWorkloads() (all []AddonObject) {
	for _, x := range [][2]string{{"DaemonSet", "kube-proxy"}, {"Deployment", "coredns"}} {
		all = append(all, AddonObject{Title: x[0] + " kube-system/" + x[1], Origin: "kubeadm", Object: map[string]any{
			"apiVersion": "apps/v1", "kind": x[0], "metadata": map[string]any{"namespace": metav1.NamespaceSystem, "name": x[1]},
		}})
	}
	return all
}

// workloadsPatience is how long the objects of an add-on may take to work, from when all Nodes are
// ready: the default time in which a Deployment has to progress (spec.progressDeadlineSeconds).
const workloadsPatience = 10 * time.Minute

// TimeLimit implements graph.TimeLimited.
func (w *Workloads) TimeLimit() time.Duration { return workloadsPatience }

// Needs implements graph.Desired.
func (w *Workloads) Needs() []graph.Edge { return append(graph.Awaits(w.Server), w.After...) }

// Find implements graph.Desired.
func (w *Workloads) Find(ctx context.Context, c *cloud.Clients) (*WorkloadsState, error) {
	if !answers(w.Server) {
		return nil, nil // the API server does not answer yet
	}
	k, err := w.API.Client(c)
	if err != nil {
		return nil, err
	}
	waits, err := waiting(ctx, k, w.Objects, w.Optional)
	if err != nil {
		return nil, w.API.retryUnavailable(ctx, err)
	}
	return &WorkloadsState{Name: w.Name, Waits: waits}, nil
}

// WaitingSystemWorkloads lists the objects of kubeadm that exist and do not work yet.
func WaitingSystemWorkloads(ctx context.Context, k *kube.Client) ([]WaitingWorkload, error) {
	return waiting(ctx, k, SystemWorkloads(), true)
}

// waiting lists the objects that do not work yet. Optional ones need not exist.
func waiting(ctx context.Context, k *kube.Client, objects []AddonObject, optional bool) (all []WaitingWorkload, err error) {
	for _, o := range objects {
		switch why, err := waitsFor(ctx, k, o); {
		case err != nil:
			return nil, err
		case why != "" && (why != missing || !optional):
			all = append(all, WaitingWorkload{o.Title, o.object().GetNamespace(), why})
		}
	}
	return all, nil
}

// Namespaces are those of the objects.
func (w *Workloads) Namespaces() (all []string) {
	for _, o := range w.Objects {
		if name := o.object().GetNamespace(); name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// missing is what is said of an object that does not exist.
const missing = "it does not exist"

// waitsFor returns what an object waits for; "" if it works.
func waitsFor(ctx context.Context, k *kube.Client, o AddonObject) (string, error) {
	object := o.object()
	at, err := k.Kind(ctx, object)
	if err != nil {
		return "", err
	}
	live, err := at.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if o.expires() { // it was there, and has run
			return "", nil
		}
		return missing, nil
	}
	if err != nil {
		return "", err
	}
	is, err := status.Compute(live)
	switch {
	case err != nil:
		return "", fmt.Errorf("status of %s: %w", o.Title, err)
	case is.Status == status.CurrentStatus:
		return "", nil
	case refusedPods(live) != "":
		return refusedPods(live), nil
	case is.Message == "":
		return is.Status.String(), nil
	}
	return is.Message, nil
}

// refusedPods returns why the API server refuses the pods of a Deployment; "" if it does not. Other kinds have no condition that says so.
func refusedPods(live *unstructured.Unstructured) string {
	all, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, x := range all {
		if c, _ := x.(map[string]any); c["type"] == "ReplicaFailure" && c["status"] == "True" {
			return fmt.Sprintf("the API server refuses its pods: %v", c["message"])
		}
	}
	return ""
}

// Diff implements graph.Desired.
func (w *Workloads) Diff(have *WorkloadsState) (d plan.Diff) {
	if have.Name == "" { // the API server does not exist yet
		for _, o := range w.Objects {
			d.Await(o.Title, "", ready)
		}
	}
	for _, x := range have.Waits {
		d.Await(x.Title, x.Why, ready)
	}
	return d
}

func workloadsStatus(s WorkloadsState) (state, detail string) {
	if n := len(s.Waits); n > 0 {
		return "", fmt.Sprintf("%d not ready, such as %s: %s", n, s.Waits[0].Title, s.Waits[0].Why)
	}
	return ready, ""
}
