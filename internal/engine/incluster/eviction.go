package incluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// drainLabel is the label of a pod that tells Cluster API how to handle it when its Node
// is drained.
const drainLabel = "cluster.x-k8s.io/drain"

// staysInDrain reports whether a pod is left on its Node: that of a DaemonSet,
// which would be recreated at once, a static pod, and one whose label says so.
func staysInDrain(p *corev1.Pod) bool {
	_, static := p.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(p)
	return static || strings.EqualFold(p.Labels[drainLabel], "skip") || owner != nil && owner.Kind == "DaemonSet"
}

// waitsForCompletion reports whether a pod is not evicted: the drain waits until
// it has completed.
func waitsForCompletion(p *corev1.Pod) bool {
	return strings.EqualFold(strings.Replace(p.Labels[drainLabel], "-", "", 1), "waitcompleted")
}

// claimsOf names the volume claims of a pod, with their namespace.
func claimsOf(p *corev1.Pod) (out []string) {
	for _, v := range p.Spec.Volumes {
		switch {
		case v.Ephemeral != nil:
			out = append(out, p.Namespace+"/"+p.Name+"-"+v.Name)
		case v.PersistentVolumeClaim != nil:
			out = append(out, p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

func podName(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func podNames(pods []corev1.Pod) string {
	names := make([]string, 0, len(pods))
	for i := range pods {
		names = append(names, podName(&pods[i]))
	}
	return text.Several(names)
}

// nodePods are the pods of a Node to drain.
type nodePods struct {
	leave      []corev1.Pod // that have to leave the Node
	keptClaims []string     // volume claims of those that stay
}

// podsOf lists the pods of a Node.
func podsOf(ctx context.Context, k *kube.Client, node NodeState) (out nodePods, err error) {
	var list corev1.PodList
	err = k.Get(ctx, "/api/v1/pods?fieldSelector=spec.nodeName="+node.Name, &list)
	for i := range list.Items {
		p := &list.Items[i]
		finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		lost := node.Unreachable && p.DeletionTimestamp != nil // there is no kubelet that finishes the deletion
		switch {
		case staysInDrain(p):
			out.keptClaims = append(out.keptClaims, claimsOf(p)...)
		case !finished && !lost:
			out.leave = append(out.leave, *p)
		}
	}
	return out, err
}

// evictionTime is how long one round of evictions may take.
const evictionTime = 10 * time.Second

// evict evicts the pods of a Node, as far as their disruption budgets allow it. A
// pod that may not be evicted yet does not delay the others.
func evict(ctx context.Context, c *cloud.Clients, k *kube.Client, from *DrainState) error {
	left, began := make([]string, 0, len(from.Pods)), c.Clock.Now()
	for i := range from.Pods {
		p, why := &from.Pods[i], ""
		switch {
		case waitsForCompletion(p):
			why = " (when it has completed)"
		case p.DeletionTimestamp == nil && c.Clock.Since(began) < evictionTime:
			err := evictPod(ctx, k, p, from.Node)
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				continue // the pod is deleted
			}
			if err != nil {
				if why = refusal(err); why == "" {
					return fmt.Errorf("evict %s: %w", podName(p), err)
				}
				why = " (" + why + ")"
			}
		}
		left = append(left, podName(p)+why)
	}
	return graph.NotYet(fmt.Errorf("%s to leave the Node: %s", text.Count(len(left), "pod"), text.Several(left)))
}

func evictPod(ctx context.Context, k *kube.Client, p *corev1.Pod, from NodeState) error {
	uid, grace := p.UID, int64(1)
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}} // a StatefulSet recreates its pod with the same name
	if from.Unreachable {
		options.GracePeriodSeconds = &grace
	}
	return k.Post(ctx, "/api/v1/namespaces/"+p.Namespace+"/pods/"+p.Name+"/eviction", &policyv1.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}, DeleteOptions: options,
	})
}

// refusal returns why a pod may not be evicted yet; "" for another error: the API server
// did not respond, or the user may not evict.
func refusal(err error) string {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return ""
	}
	status := api.Status()
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "its namespace is being deleted"
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err) && !strings.Contains(status.Message, "admission webhook"):
		return ""
	}
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == policyv1.DisruptionBudgetCause {
				return strings.Replace(cause.Message, "The ", "the ", 1)
			}
		}
	}
	return cmp.Or(status.Message, err.Error())
}
