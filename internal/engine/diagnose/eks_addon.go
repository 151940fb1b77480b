package diagnose

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// EKSAddon says why an add-on of EKS is not active: what its pods lack, which are in kube-system. fargate says that the manifest has Fargate profiles.
func EKSAddon(cluster *graph.Ref[eks.ClusterState], fargate bool) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) {
		s, ok := cluster.Found()
		if !ok {
			return nil, ""
		}
		k, err := s.Client(c)
		if err != nil || k == nil {
			return nil, ""
		}
		if lost, err := incluster.LostDaemonSets(ctx, k, "kube-proxy"); err == nil && len(lost) > 0 {
			const without = "the cluster has no DaemonSet kube-system/kube-proxy, without which pods on nodes reach no Service: add the add-on kube-proxy to spec.addons"
			findings = append(findings, without)
		}
		if fargate {
			findings = append(findings, missedProfile(ctx, k)...)
		}
		return append(findings, Pods(ctx, k, []string{"kube-system"})...), "kubectl get pods -n kube-system"
	}
}

// WithoutServices returns the test whether pods on the nodes of an EKS cluster reach no Service, and so neither the API server: nothing has installed
// kube-proxy, or what replaces it.
func WithoutServices(cluster *graph.Ref[eks.ClusterState]) func(context.Context, *cloud.Clients) bool {
	return func(ctx context.Context, c *cloud.Clients) bool {
		s, ok := cluster.Found()
		if !ok {
			return false
		}
		k, err := s.Client(c)
		if err != nil || k == nil {
			return false
		}
		lost, err := incluster.LostDaemonSets(ctx, k, "kube-proxy")
		return err == nil && len(lost) > 0
	}
}

// missedProfile names the Deployments in kube-system with pods that wait for nodes. EKS gives a pod to Fargate when the pod is created, if a profile selects it
// then ("Getting started with AWS Fargate for your cluster", EKS user guide, restarts CoreDNS for that reason).
func missedProfile(ctx context.Context, k *kube.Client) (findings []string) {
	var pods corev1.PodList
	if k.Get(ctx, "/api/v1/namespaces/kube-system/pods", &pods) != nil {
		return nil
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Status.Phase != corev1.PodPending || p.Spec.NodeName != "" || p.DeletionTimestamp != nil || p.Spec.SchedulerName == "fargate-scheduler" {
			continue
		}
		name := incluster.OwnerOf(p)
		line := fmt.Sprintf(
			"%s waits for a node: if a Fargate profile selects it that was made later than its pods, restart it: kubectl rollout restart -n kube-system %s",
			name,
			incluster.LogsOf(p),
		)
		if !slices.Contains(findings, line) {
			findings = append(findings, line)
		}
	}
	return findings
}
