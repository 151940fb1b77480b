package eks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// askingForBudgets is how long the API server is asked which pods are in the way.
const askingForBudgets = 20 * time.Second

// inTheWay says which disruption budgets keep pods on the nodes that EKS could not drain: PodEvictionFailure ("Managed node
// group update behavior", EKS user guide). "" if the API server does not answer, or no budget does.
func (g *NodeGroup) inTheWay(ctx context.Context, c *cloud.Clients, e types.ErrorDetail) string {
	if g.Kubernetes == nil || e.ErrorCode != types.ErrorCodePodEvictionFailure {
		return ""
	}
	ctx, cancel := c.Clock.WithTimeout(ctx, askingForBudgets, nil)
	defer cancel()
	k, err := g.Kubernetes(c)
	if err != nil || k == nil {
		return ""
	}
	kept, err := keptPods(ctx, k, g.Name, e.ResourceIds)
	if err != nil || len(kept) == 0 {
		return ""
	}
	return fmt.Sprintf(
		": %s; change the budget or the number of replicas, or set the annotation clusterawsadm/force-update: \"true\" of the AWSManagedMachinePool",
		text.Several(kept),
	)
}

// keptPods lists the pods on nodes of a group that a disruption budget does not let go: "PodDisruptionBudget shop/orders keeps
// shop/orders-0 on ip-10-0-0-7". Without names, all nodes of the group are looked at.
func keptPods(ctx context.Context, k *kube.Client, group string, nodes []string) (kept []string, err error) {
	var all corev1.NodeList
	if err := k.Get(ctx, "/api/v1/nodes?labelSelector=eks.amazonaws.com/nodegroup="+group, &all); err != nil {
		return nil, err
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := k.Get(ctx, "/apis/policy/v1/poddisruptionbudgets", &budgets); err != nil {
		return nil, err
	}
	budgets.Items = slices.DeleteFunc(budgets.Items, func(b policyv1.PodDisruptionBudget) bool { return b.Status.DisruptionsAllowed > 0 })
	for i := range all.Items {
		node := all.Items[i].Name
		if len(nodes) > 0 && !slices.Contains(nodes, node) || len(budgets.Items) == 0 {
			continue
		}
		var pods corev1.PodList
		if err := k.Get(ctx, "/api/v1/pods?fieldSelector=spec.nodeName="+node, &pods); err != nil {
			return nil, err
		}
		for _, pod := range pods.Items {
			for _, b := range budgets.Items {
				if covers(&b, &pod) {
					kept = append(kept, fmt.Sprintf("PodDisruptionBudget %s/%s keeps pod %s on %s", b.Namespace, b.Name, pod.Name, node))
				}
			}
		}
	}
	return kept, nil
}

// covers reports whether a budget is about a pod that is still running.
func covers(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return err == nil && !ended && b.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels))
}

// failedUpdate describes an error of an update, with what it is about.
func failedUpdate(e types.ErrorDetail) string {
	message, of := aws.ToString(e.ErrorMessage), ""
	if unnamed := slices.DeleteFunc(slices.Clone(e.ResourceIds), func(id string) bool { return strings.Contains(message, id) }); len(unnamed) > 0 {
		of = " (" + text.Several(unnamed) + ")"
	}
	return string(e.ErrorCode) + ": " + message + of + remedyOf(types.AddonIssueCode(e.ErrorCode))
}
