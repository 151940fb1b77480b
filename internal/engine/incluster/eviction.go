package incluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
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
		Volumes    []struct {
			Name                  string
			PersistentVolumeClaim struct{ ClaimName string }
			Ephemeral             *struct{}
		}
	}
	Status struct {
		Phase, Message, Reason string
		Conditions             []struct{ Type, Status string }
	}
}

func (p *podObject) String() string { return p.Metadata.Namespace + "/" + p.Metadata.Name }

// drainLabel is how Cluster API lets a pod say what becomes of it when its node
// is drained.
const drainLabel = "cluster.x-k8s.io/drain"

// stays reports whether a pod is let alone: that of a DaemonSet, which would be
// back at once, a static one, and one that says so.
func (p *podObject) stays() bool {
	_, static := p.Metadata.Annotations["kubernetes.io/config.mirror"]
	stays := static || strings.EqualFold(p.Metadata.Labels[drainLabel], "skip")
	for _, o := range p.Metadata.OwnerReferences {
		stays = stays || o.Controller && o.Kind == "DaemonSet"
	}
	return stays
}

// completes reports whether a pod is not evicted, but waited for.
func (p *podObject) completes() bool {
	return strings.EqualFold(strings.Replace(p.Metadata.Labels[drainLabel], "-", "", 1), "waitcompleted")
}

// claims names the volume claims of a pod, with their namespace.
func (p *podObject) claims() (out []string) {
	for _, v := range p.Spec.Volumes {
		name := v.PersistentVolumeClaim.ClaimName
		if v.Ephemeral != nil {
			name = p.Metadata.Name + "-" + v.Name
		}
		if name != "" {
			out = append(out, p.Metadata.Namespace+"/"+name)
		}
	}
	return out
}

// podsHere is what runs on a node whose machine is to go.
type podsHere struct {
	leave  []podObject // those that have to go first
	spared []string    // claims of those that stay until the end
}

// podsOn lists the pods of a node.
func podsOn(ctx context.Context, k *kube.Client, node NodeState) (here podsHere, err error) {
	var list struct{ Items []podObject }
	err = k.Get(ctx, "/api/v1/pods?fieldSelector=spec.nodeName="+node.Name, &list)
	for _, p := range list.Items {
		finished := p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
		lost := node.Unreachable && p.Metadata.DeletionTimestamp != "" // nobody is there to finish it
		switch {
		case p.stays():
			here.spared = append(here.spared, p.claims()...)
		case !finished && !lost:
			here.leave = append(here.leave, p)
		}
	}
	return here, err
}

// evictionsTake is how long one round of evictions may take.
const evictionsTake = 10 * time.Second

// evict asks the pods of a node to go, as far as their disruption budgets let
// them. One that may not go now holds up none of the others.
func evict(ctx context.Context, c *cloud.Clients, k *kube.Client, from *DrainState) error {
	left, began := make([]string, 0, len(from.Pods)), c.Clock.Now()
	for _, p := range from.Pods {
		why := ""
		switch {
		case p.completes():
			why = " (when it has completed)"
		case p.Metadata.DeletionTimestamp == "" && c.Clock.Since(began) < evictionsTake:
			err := p.evict(ctx, k, from.Node)
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				continue // it is gone
			}
			if err != nil {
				if why = refusal(err); why == "" {
					return fmt.Errorf("evict %s: %w", p.String(), err)
				}
				why = " (" + why + ")"
			}
		}
		left = append(left, p.String()+why)
	}
	return graph.NotYet(fmt.Errorf("%s to go: %s", text.Count(len(left), "pod"), text.Several(left)))
}

func (p *podObject) evict(ctx context.Context, k *kube.Client, from NodeState) error {
	options := map[string]any{"preconditions": map[string]any{"uid": p.Metadata.UID}} // one of a StatefulSet comes again by the same name
	if from.Unreachable {
		options["gracePeriodSeconds"] = 1
	}
	return k.Post(ctx, "/api/v1/namespaces/"+p.Metadata.Namespace+"/pods/"+p.Metadata.Name+"/eviction", map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": options,
		"metadata": map[string]any{"name": p.Metadata.Name, "namespace": p.Metadata.Namespace},
	})
}

// refusal says why one pod may not go now; "" when that is not what the error
// says: nobody has answered, or we may not evict any.
func refusal(err error) string {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return ""
	}
	status := api.Status()
	switch {
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return "its namespace is being deleted, and is to take it along"
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err) && !strings.Contains(status.Message, "admission webhook"):
		return ""
	}
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			if cause.Type == "DisruptionBudget" {
				return strings.Replace(cause.Message, "The ", "the ", 1)
			}
		}
	}
	return cmp.Or(status.Message, err.Error())
}

func podNames(pods []podObject) string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.String())
	}
	return text.Several(names)
}
