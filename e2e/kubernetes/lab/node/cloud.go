package node

import (
	"context"
	"log"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/wire"
)

const (
	cloudController = "cloud-controller-manager"

	// adminKubeconfig is that of kubeadm. The real cloud controller manager has a service
	// account.
	adminKubeconfig = "/etc/kubernetes/admin.conf"

	uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
)

// cloud replaces the node controllers of the AWS cloud controller manager: it sets the
// provider ID of Nodes and removes the taint for that; it deletes Nodes that are not
// ready and whose instance is terminated. It runs in pods, on control planes.
func cloud() error {
	self, err := whoAmI()
	if err != nil {
		return err
	}
	client, err := clientFrom(adminKubeconfig)
	if err != nil {
		return err
	}
	aws := wire.Client{Endpoint: self.Endpoint, Region: self.Region, HTTP: &http.Client{Timeout: 10 * time.Second}}
	for ; ; time.Sleep(2 * time.Second) {
		if err := cloudRound(context.Background(), client, aws, self.ID); err != nil {
			log.Print(err)
		}
	}
}

func cloudRound(ctx context.Context, client kubernetes.Interface, aws wire.Client, self string) error {
	all, err := aws.Instances(ctx)
	if err != nil {
		return err
	}
	instances := clusterOf(self, all)
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		at := slices.IndexFunc(instances, func(x wire.Instance) bool { return x.Name == node.Name && x.State == "running" })
		switch {
		case at < 0 && node.Spec.ProviderID != "" && !nodeIsReady(node):
			err = client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
		case at >= 0 && slices.ContainsFunc(node.Spec.Taints, isUninitialized):
			err = initialize(ctx, client, node, instances[at], aws.Region)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clusterOf returns the instances that have the cluster's tag of an instance. Those of other
// clusters may have the same private DNS names.
func clusterOf(id string, all []wire.Instance) (instances []wire.Instance) {
	self := slices.IndexFunc(all, func(x wire.Instance) bool { return x.ID == id })
	if self < 0 {
		return nil
	}
	tag := slices.IndexFunc(all[self].Tags, func(t wire.Tag) bool { return strings.HasPrefix(t.Key, "kubernetes.io/cluster/") })
	if tag < 0 {
		return nil
	}
	for _, x := range all {
		if x.Tag(all[self].Tags[tag].Key) != "" {
			instances = append(instances, x)
		}
	}
	return instances
}

func initialize(ctx context.Context, client kubernetes.Interface, node *corev1.Node, x wire.Instance, region string) error {
	node.Spec.ProviderID = "aws:///" + x.Zone + "/" + x.ID
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isUninitialized)
	node.Labels[corev1.LabelTopologyZone], node.Labels[corev1.LabelTopologyRegion] = x.Zone, region
	node.Labels[corev1.LabelInstanceTypeStable] = x.Type
	_, err := client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	return err
}

func isUninitialized(t corev1.Taint) bool { return t.Key == uninitialized }

func nodeIsReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
