package resource

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"clusterawsadm/internal/kube"
	"clusterawsadm/pkg/reconcile/graph"
)

// podObject is what matters here of a Pod.
type podObject struct {
	Metadata struct {
		Name, Namespace, UID string
		Labels, Annotations  map[string]string
		CreationTimestamp    metav1.Time
		DeletionTimestamp    string
		OwnerReferences      []struct {
			Kind       string
			Controller bool
		}
	}
	Spec struct {
		NodeName   string
		Containers []struct{ Name, Image string }
	}
	Status struct {
		Phase, Message, Reason string
		Conditions             []struct{ Type, Status string }
	}
}

func (p *podObject) String() string { return p.Metadata.Namespace + "/" + p.Metadata.Name }

// podsToMove lists the pods of a node that have to go before its machine can:
// all but those of DaemonSets, static ones, finished ones, and those that the
// label of Cluster API spares.
func podsToMove(ctx context.Context, k *kube.Client, node NodeState) (out []podObject, err error) {
	var list struct{ Items []podObject }
	err = k.Get(ctx, "/api/v1/pods?fieldSelector=spec.nodeName="+node.Name, &list)
	for _, p := range list.Items {
		_, static := p.Metadata.Annotations["kubernetes.io/config.mirror"]
		finished := p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
		spared := p.Metadata.Labels["cluster.x-k8s.io/drain"] == "skip"
		for _, o := range p.Metadata.OwnerReferences {
			spared = spared || o.Controller && o.Kind == "DaemonSet"
		}
		if node.Unreachable && p.Metadata.DeletionTimestamp != "" {
			continue // nobody is there to finish it
		}
		if !static && !finished && !spared {
			out = append(out, p)
		}
	}
	return out, err
}

// evict asks the pods of a node to go, as far as their disruption budgets let
// them.
func evict(ctx context.Context, k *kube.Client, from *DrainState) error {
	left := make([]string, 0, len(from.Pods))
	for _, p := range from.Pods {
		why := ""
		if p.Metadata.DeletionTimestamp == "" {
			options := map[string]any{"preconditions": map[string]any{"uid": p.Metadata.UID}} // one of a StatefulSet comes again by the same name
			if from.Node.Unreachable {
				options["gracePeriodSeconds"] = 1
			}
			err := k.Post(ctx, "/api/v1/namespaces/"+p.Metadata.Namespace+"/pods/"+p.Metadata.Name+"/eviction", map[string]any{
				"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": options,
				"metadata": map[string]any{"name": p.Metadata.Name, "namespace": p.Metadata.Namespace},
			})
			switch {
			case apierrors.IsNotFound(err), apierrors.IsConflict(err):
				continue // it is gone
			case err != nil:
				if why = refusal(err); why == "" {
					return fmt.Errorf("evict %s: %w", p.String(), err)
				}
				why = " (" + why + ")"
			}
		}
		left = append(left, p.String()+why)
	}
	return graph.NotYet(fmt.Errorf("%s to go: %s", counted(len(left), "pod"), several(left)))
}

// refusal says why a pod may not go now; "" when that is not what the error
// says.
func refusal(err error) string {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return ""
	}
	status := api.Status()
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == "DisruptionBudget" {
				return strings.Replace(cause.Message, "The ", "the ", 1)
			}
		}
	}
	if strings.Contains(status.Message, "isruption") { // budget, or more than one budget
		return status.Message
	}
	return ""
}

func podNames(pods []podObject) string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.String())
	}
	return several(names)
}
