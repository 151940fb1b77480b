package discover

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// node returns a Node with labels, "key=value" or "key=value (kubelet)", and taints.
func node(labels string, taints ...corev1.Taint) incluster.Marks {
	m := incluster.Marks{Labels: map[string]string{}, ByKubelet: map[string]bool{}, Taints: taints}
	for word := range strings.FieldsSeq(labels) {
		pair, byKubelet := strings.CutSuffix(word, "(kubelet)")
		key, value, _ := strings.Cut(pair, "=")
		m.Labels[key], m.ByKubelet[key] = value, byKubelet
	}
	return m
}

// Labels and taints that Kubernetes and AWS set are not those of a group.
func TestUsualMarks(t *testing.T) {
	for key, usual := range map[string]bool{
		"kubernetes.io/hostname": true, "kubernetes.io/os": true, "beta.kubernetes.io/arch": true, "node.kubernetes.io/instance-type": true,
		"topology.kubernetes.io/zone": true, "topology.ebs.csi.aws.com/zone": true, "topology.k8s.aws/zone-id": true, "failure-domain.beta.kubernetes.io/zone": true,
		"eks.amazonaws.com/nodegroup": true, "node-role.kubernetes.io/control-plane": true, "feature.node.kubernetes.io/cpu-cpuid.AVX": true,
		"node.kubernetes.io/exclude-from-external-load-balancers": false,
		"team": false, "example.com/purpose": false, "node-role.kubernetes.io/worker": false, "node-restriction.kubernetes.io/tier": false,
		"node.kubernetes.io/lifecycle": false, "node.cluster.x-k8s.io/rack": false, "k8s.amazonaws.com/eniConfig": false,
	} {
		assert.Equal(t, usual, isUsualLabel(key, false), key)
	}
	assert.True(t, isUsualLabel("node.kubernetes.io/exclude-from-external-load-balancers", true), "kubeadm sets it on the control plane")
	for key, usual := range map[string]bool{
		"node.kubernetes.io/not-ready": true, "node.cloudprovider.kubernetes.io/uninitialized": true, "node.cluster.x-k8s.io/uninitialized": true,
		"ToBeDeletedByClusterAutoscaler": true, "dedicated": false, "node-role.kubernetes.io/control-plane": false, "nvidia.com/gpu": false,
	} {
		assert.Equal(t, usual, isUsualTaint(corev1.Taint{Key: key}), key)
	}
}

// Only what all Nodes have belongs to the group, by who has set it.
func TestMarksOfGroup(t *testing.T) {
	gpu := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	lost := corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}
	s := &SelfManaged{Nodes: map[string]incluster.Marks{
		"i-1": node("kubernetes.io/hostname=a(kubelet) pool=gpu(kubelet) node-role.kubernetes.io/gpu= team=a mine=1(kubelet) size=1", gpu),
		"i-2": node(
			"kubernetes.io/hostname=b(kubelet) pool=gpu(kubelet) node-role.kubernetes.io/gpu= team=a mine=1 size=2 new=",
			gpu,
			lost,
			corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoExecute},
		),
	}}
	m := s.marksOf(false, "i-1", "i-2", "i-3")
	require.Equal(t, 2, m.nodes, "i-3 has not joined")
	assert.Equal(t, map[string]string{"pool": "gpu"}, m.kubelet)
	assert.Equal(t, map[string]string{"node-role.kubernetes.io/gpu": ""}, m.synced)
	assert.Equal(t, map[string]string{"team": "a", "mine": "1"}, m.others)
	assert.Equal(t, []corev1.Taint{gpu}, m.taints)
	assert.Equal(t, []string{"new", "size", "taint own:NoExecute"}, m.some)
	assert.Equal(t, []string{"mine=1", "pool=gpu", "team=a", "taint gpu=yes:NoSchedule"}, m.unset(registered{}))
	assert.Equal(t, []string{"mine=1", "team=a"}, m.unset(registered{map[string]string{"pool": "gpu"}, []corev1.Taint{gpu}}))
}

// A comment lists the labels and taints that the manifest does not set.
func TestCommentOfMarks(t *testing.T) {
	s := &SelfManaged{}
	assert.Equal(t, "Not known: labels and taints of the Nodes.", s.marksOf(false, "i-1").comment(false, registered{}))
	assert.Equal(t, "Not known: labels and taints. None of the machines was found as a Node.", s.marksOf(false, "i-1").comment(true, registered{}))
	s.Nodes = map[string]incluster.Marks{"i-1": node("a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1 n=1")}
	assert.Contains(t, s.marksOf(false, "i-1").comment(true, registered{}), "k=1, l=1, 2 more.")
	s.Nodes = map[string]incluster.Marks{"i-1": node("")}
	assert.Equal(t, "Nodes that are added have the taint node-role.kubernetes.io/control-plane:NoSchedule. It\nhas been removed from others.",
		s.marksOf(true, "i-1").comment(true, registeredByKubeadm(bootstrapv1.NodeRegistrationOptions{}, true)))
	assert.Empty(t, s.marksOf(true, "i-1").comment(true, registeredByKubeadm(bootstrapv1.NodeRegistrationOptions{Taints: &[]corev1.Taint{}}, true)))
	assert.Empty(t, s.marksOf(false, "i-1").comment(true, registered{}))
}

// For a few elements, orders returns all lists of them. For many, it returns only the given list
// and the empty one.
func TestOrders(t *testing.T) {
	assert.Equal(t, [][]string{{"a", "b"}, {"b", "a"}, {"a"}, {"b"}, {}}, orders([]string{"a", "b"}))
	assert.Len(t, orders([]int{1, 2, 3, 4}), 65)
	assert.Len(t, orders([]int{1, 2, 3, 4, 5}), 2)
}

// The bootstrap of EKS sets labels and taints by arguments of the kubelet.
func TestRegisteredByEKS(t *testing.T) {
	want := registered{
		map[string]string{"role": "worker", "a": "b"},
		[]corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "own", Effect: corev1.TaintEffectNoExecute}},
	}
	flags := []string{`--node-labels=role=worker,a="b"`, "--register-with-taints=gpu=yes:NoSchedule,own:NoExecute"}
	assert.Equal(t, want, registeredByEKS(&boot.BootedEKS{Nodeadm: &eksbootstrapv1.NodeadmConfigSpec{Kubelet: &eksbootstrapv1.KubeletOptions{Flags: flags}}}))
	args := map[string]string{"node-labels": "role=worker,a=b", "register-with-taints": "gpu=yes:NoSchedule,own:NoExecute"}
	assert.Equal(t, want, registeredByEKS(&boot.BootedEKS{Config: &eksbootstrapv1.EKSConfigSpec{KubeletExtraArgs: args}}))
	assert.Equal(t, registered{}, registeredByEKS(nil))
}
