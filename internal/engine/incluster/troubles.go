package incluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// mostTroubles is how many reasons are told.
const mostTroubles = 5

// Troubles says why pods do not run, one line for each reason: those of a namespace, "" for all. Pods of one workload
// with the same reason are one line. It does not mention pods that wait for a Node, unless waiting is set.
func Troubles(ctx context.Context, k *kube.Client, namespace string, waiting bool) (lines []string, err error) {
	path := "/api/v1/pods"
	if namespace != "" {
		path = "/api/v1/namespaces/" + namespace + "/pods"
	}
	var list corev1.PodList
	if err := k.Get(ctx, path, &list); err != nil {
		return nil, err
	}
	seen := map[string]int{}
	for i := range list.Items {
		if line := trouble(&list.Items[i], waiting); line != "" {
			seen[line]++
		}
	}
	for _, line := range slices.Sorted(maps.Keys(seen)) {
		if n := seen[line]; n > 1 {
			line += fmt.Sprintf(" (%d pods)", n)
		}
		lines = append(lines, line)
	}
	if more := len(lines) - mostTroubles; more > 0 {
		lines = append(lines[:mostTroubles], fmt.Sprintf("%d more reasons (kubectl get pods -A)", more))
	}
	return lines, nil
}

// trouble says why a pod does not run; "" if it does, or starts. The reasons are those of the kubelet
// (pkg/kubelet/images/types.go, pkg/kubelet/container/sync_result.go of Kubernetes v1.34.2).
func trouble(p *corev1.Pod, waiting bool) string {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded {
		return ""
	}
	for _, c := range p.Status.Conditions {
		if waiting && c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return fmt.Sprintf("%s cannot be scheduled: %s", OwnerOf(p), strings.TrimSuffix(c.Message, "."))
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "SignatureValidationFailed", "RegistryUnavailable":
			return fmt.Sprintf(
				"%s cannot pull the image %s (%s): check its name, and that machines reach its registry: %s", OwnerOf(p), c.Image, w.Reason, pullError(w.Message),
			)
		case "CrashLoopBackOff":
			ended := ""
			if t := c.LastTerminationState.Terminated; t != nil {
				ended = fmt.Sprintf(", %s with exit code %d", t.Reason, t.ExitCode)
			}
			return fmt.Sprintf("container %s of %s ends again and again (CrashLoopBackOff, %d restarts%s): kubectl logs -n %s %s -c %[1]s --previous",
				c.Name, OwnerOf(p), c.RestartCount, ended, p.Namespace, LogsOf(p))
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return fmt.Sprintf("container %s of %s cannot start (%s): %s", c.Name, OwnerOf(p), w.Reason, w.Message)
		}
	}
	return ""
}

// pullError returns the last part of what the kubelet says of a pull, which has the cause.
func pullError(message string) string {
	const before = "ErrImagePull: "
	if at := strings.LastIndex(message, before); at >= 0 {
		message = message[at+len(before):]
	}
	return message
}

// OwnerOf names the workload of a pod: "DaemonSet kube-system/cilium", "Deployment shop/web".
func OwnerOf(p *corev1.Pod) string {
	kind, name := "Pod", p.Name
	for _, o := range p.OwnerReferences {
		if o.Controller == nil || !*o.Controller {
			continue
		}
		kind, name = o.Kind, o.Name
		if at := strings.LastIndexByte(name, '-'); kind == "ReplicaSet" && at > 0 {
			kind, name = "Deployment", name[:at]
		}
	}
	return kind + " " + p.Namespace + "/" + name
}

// LogsOf names the workload of a pod for "kubectl logs".
func LogsOf(p *corev1.Pod) string {
	kind, name, _ := strings.Cut(OwnerOf(p), " ")
	return strings.ToLower(kind) + name[strings.IndexByte(name, '/'):]
}
