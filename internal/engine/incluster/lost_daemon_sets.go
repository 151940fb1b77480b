package incluster

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// LostAddons lists which workloads of kubeadm init do not exist any more: "DaemonSet kube-proxy", "Deployment coredns". Their ConfigMaps, which kubeadm
// creates before them (cmd/kubeadm/app/phases/addons), show that it has installed them. Who replaces kube-proxy for good deletes that as well ("Kubernetes
// Without kube-proxy", docs.cilium.io), because kubeadm upgrade installs kube-proxy again otherwise.
func LostAddons(ctx context.Context, k *kube.Client) (lost []string, err error) {
	installed := func(name string) (bool, error) {
		err := k.Get(ctx, "/api/v1/namespaces/kube-system/configmaps/"+name, &corev1.ConfigMap{})
		return err == nil, ignoreNotFound(err)
	}
	var proxy appsv1.DaemonSet
	if err := k.Get(ctx, "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy", &proxy); apierrors.IsNotFound(err) {
		if was, err := installed("kube-proxy"); err != nil {
			return nil, err
		} else if was {
			lost = append(lost, "DaemonSet kube-proxy")
		}
	} else if err != nil {
		return nil, err
	}
	var deployments appsv1.DeploymentList
	if err := k.Get(ctx, "/apis/apps/v1/namespaces/kube-system/deployments", &deployments); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(deployments.Items, func(d appsv1.Deployment) bool { return strings.Contains(d.Name, "dns") }) { // or another one in its place
		if was, err := installed("coredns"); err != nil {
			return nil, err
		} else if was {
			lost = append(lost, "Deployment coredns")
		}
	}
	return lost, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

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
