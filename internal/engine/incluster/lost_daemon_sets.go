package incluster

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// LostDaemonSets lists which of some DaemonSets in kube-system do not exist, unless a network plugin that may take their place does. EKS installs the
// VPC CNI and kube-proxy when it creates a cluster, and never again ("Amazon EKS add-ons", EKS user guide: self-managed add-ons).
func LostDaemonSets(ctx context.Context, k *kube.Client, names ...string) (lost []string, err error) {
	var all appsv1.DaemonSetList
	if err := k.Get(ctx, "/apis/apps/v1/daemonsets", &all); err != nil {
		return nil, err
	}
	has := func(match func(d *appsv1.DaemonSet) bool) bool {
		return slices.ContainsFunc(all.Items, func(d appsv1.DaemonSet) bool { return match(&d) })
	}
	others := []string{"cilium", "calico", "antrea", "kube-router", "ovn"}
	if has(func(d *appsv1.DaemonSet) bool {
		return slices.ContainsFunc(others, func(name string) bool { return strings.Contains(d.Name, name) })
	}) {
		return nil, nil
	}
	for _, name := range names {
		if !has(func(d *appsv1.DaemonSet) bool { return d.Name == name && d.Namespace == "kube-system" }) {
			lost = append(lost, name)
		}
	}
	return lost, nil
}
