package node

import (
	"context"
	"log"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// heartbeat is the interval of status updates, the same as in the real kubelet.
const heartbeat = 10 * time.Second

// registration is the Node object.
type registration struct {
	kubelet *kubelet
	client  kubernetes.Interface
	flags   map[string]string
	uid     string // UID of the Node, for owner references
}

// keep registers the node, and sends its status when it changes, and at every heartbeat.
func (n *registration) keep(ctx context.Context) {
	var said time.Time
	ready, last := false, ""
	await(ctx, func() bool {
		now := networkIsThere()
		if now == ready && time.Since(said) < heartbeat {
			return false
		}
		err := n.say(ctx, now)
		if err == nil {
			if now != ready || said.IsZero() {
				log.Printf("kubelet: node %s is registered; network: %t", n.kubelet.nodeName(), now)
			}
			ready, said, last = now, time.Now(), ""
		} else if err.Error() != last {
			last = err.Error()
			log.Printf("kubelet: node: %v", err)
		}
		return false
	})
}

// networkIsThere reports whether a CNI plugin has written its configuration, as container
// runtimes do.
func networkIsThere() bool {
	found, _ := filepath.Glob("/etc/cni/net.d/*.conf*") // the pattern is valid
	return len(found) > 0
}

func (n *registration) say(ctx context.Context, ready bool) error {
	node, err := n.client.CoreV1().Nodes().Get(ctx, n.kubelet.nodeName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = n.client.CoreV1().Nodes().Create(ctx, n.node(), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	n.uid = string(node.UID)
	n.fill(node, ready)
	if _, err := n.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return n.renew(ctx, node)
}

// node returns the object to register. The cloud controller manager sets its fields, if
// there is to be one.
func (n *registration) node() *corev1.Node {
	self := n.kubelet.self
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.kubelet.nodeName(), Labels: map[string]string{
		corev1.LabelHostname: self.Name, corev1.LabelOSStable: goruntime.GOOS, corev1.LabelArchStable: goruntime.GOARCH,
	}}}
	for _, label := range split(n.flags["node-labels"]) {
		name, value, _ := strings.Cut(label, "=")
		node.Labels[name] = value
	}
	for _, taint := range split(n.flags["register-with-taints"]) {
		name, effect, _ := strings.Cut(taint, ":")
		key, value, _ := strings.Cut(name, "=")
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	if n.flags["cloud-provider"] == "external" {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	node.Spec.ProviderID = n.flags["provider-id"]
	return node
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// fill sets the status.
func (n *registration) fill(node *corev1.Node, ready bool) {
	self := n.kubelet.self
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: self.nodeIP()}, {Type: corev1.NodeHostName, Address: self.Name}, {Type: corev1.NodeInternalDNS, Address: self.Name},
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: self.Version, OperatingSystem: goruntime.GOOS, Architecture: goruntime.GOARCH, ContainerRuntimeVersion: "lab://1", OSImage: "lab",
		MachineID: self.ID, SystemUUID: self.ID, BootID: self.ID,
	}
	node.Status.DaemonEndpoints = endpoints()
	now := metav1.Now()
	for _, c := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
		readiness(ready),
	} {
		c.LastHeartbeatTime = now
		setCondition(node, c)
	}
}

func readiness(network bool) corev1.NodeCondition {
	if network {
		return corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	}
	return corev1.NodeCondition{
		Type:    corev1.NodeReady,
		Status:  corev1.ConditionFalse,
		Reason:  "KubeletNotReady",
		Message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
	}
}

func setCondition(node *corev1.Node, c corev1.NodeCondition) {
	c.LastTransitionTime = c.LastHeartbeatTime
	for i, has := range node.Status.Conditions {
		if has.Type == c.Type {
			if has.Status == c.Status {
				c.LastTransitionTime = has.LastTransitionTime
			}
			node.Status.Conditions[i] = c
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, c)
}

// renew renews the node's lease, without which the Node becomes not ready.
func (n *registration) renew(ctx context.Context, node *corev1.Node) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds, now := int32(40), metav1.NowMicro()
	lease, err := leases.Get(ctx, node.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
