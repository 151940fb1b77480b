package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Each edit of an example causes one more warning, with the line of the edit; a wanted text of "" means none.
func TestEditsThatAreWarnedOf(t *testing.T) {
	const (
		config  = "  kubeadmConfigSpec:\n"
		initial = "    initConfiguration:\n"
		balance = "      azRebalance: true\n"
	)
	patch := func(content string) []string {
		return []string{
			config, config + "    files: [{path: /etc/patches/kubeletconfiguration.yaml, content: '" + content + "'}]\n",
			initial, initial + "      patches: {directory: /etc/patches}\n",
		}
	}
	for name, tt := range map[string]struct {
		file string
		edit []string
		want string
	}{
		"listeners of a classic load balancer": {
			"classic-elb",
			[]string{"    crossZoneLoadBalancing: true\n", "    crossZoneLoadBalancing: true\n    additionalListeners: [{port: 8132}]\n"},
			"cluster.yaml:32: AWSCluster/classic-elb spec.controlPlaneLoadBalancer.additionalListeners: has no effect: a classic load balancer has the listener of the API server only — use loadBalancerType: nlb, or remove it",
		},
		"tag of another cluster": {
			"quickstart",
			[]string{"  sshKeyName: \"\"", "  additionalTags: {kubernetes.io/cluster/other: owned, kubernetes.io/cluster/quickstart: owned}\n  sshKeyName: \"\""},
			"cluster.yaml:41: AWSCluster/quickstart spec.additionalTags.kubernetes.io/cluster/other: machines of the control plane have a tag of this cluster, too, and the AWS cloud controller manager does not start with two — remove it, or give the tag to subnets only",
		},
		"tag of another cluster on the control plane": {
			"quickstart",
			[]string{
				"      iamInstanceProfile: control-plane.cluster-api-provider-aws.sigs.k8s.io\n",
				"      iamInstanceProfile: control-plane.cluster-api-provider-aws.sigs.k8s.io\n      additionalTags: {kubernetes.io/cluster/other: shared}\n",
			},
			"cluster.yaml:86: AWSMachineTemplate/quickstart-control-plane spec.template.spec.additionalTags.kubernetes.io/cluster/other: machines of the control plane have a tag of this cluster, too, and the AWS cloud controller manager does not start with two — remove it, or give the tag to subnets only",
		},
		"tag of another cluster on workers": {
			"quickstart",
			[]string{
				"      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n",
				"      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n      additionalTags: {kubernetes.io/cluster/other: shared}\n",
			},
			"",
		},
		"suspended launches": {
			"machine-pool",
			[]string{balance, "      launch: true\n"},
			"cluster.yaml:130: AWSMachinePool/machine-pool-mp-0 spec.suspendProcesses.processes.launch: EC2 Auto Scaling launches no machines for the pool: it does not grow, and lost machines are not replaced — remove it when the pool has to grow",
		},
		"hook that abandons machines": {
			"machine-pool",
			[]string{"EC2_INSTANCE_TERMINATING", "EC2_INSTANCE_LAUNCHING", "    defaultResult: CONTINUE\n", ""},
			"cluster.yaml:135: AWSMachinePool/machine-pool-mp-0 spec.lifecycleHooks[0].defaultResult: Auto Scaling terminates each new machine that no program completes the hook for, so that the pool gets none — set CONTINUE, or let a program complete it that hears of it by EventBridge",
		},
		"all processes suspended": {
			"machine-pool",
			[]string{"    processes:\n" + balance, "    all: true\n"},
			"cluster.yaml:129: AWSMachinePool/machine-pool-mp-0 spec.suspendProcesses.all: EC2 Auto Scaling launches no machines for the pool: it does not grow, and lost machines are not replaced — remove it when the pool has to grow",
		},
		"all but launches suspended": {"machine-pool", []string{"    processes:\n" + balance, "    all: true\n    processes: {launch: false}\n"}, ""},
		"a field that the kubelet does not have": {
			"quickstart", patch("maxPodz: 20"),
			"cluster.yaml:59: KubeadmControlPlane/quickstart-control-plane spec.kubeadmConfigSpec.files[0].content: the kubelet ignores maxPodz: Kubernetes 1.34 has no such field — correct its name, or remove it",
		},
		"a field that a later kubelet has": {
			"quickstart", patch("memoryReservationPolicy: None"),
			"cluster.yaml:59: KubeadmControlPlane/quickstart-control-plane spec.kubeadmConfigSpec.files[0].content: the kubelet ignores memoryReservationPolicy: Kubernetes 1.34 has no such field; 1.36 has it — correct its name, or remove it",
		},
		"a field of the kubelet": {"quickstart", patch(`{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 20}`), ""},
		"a namespace that nothing makes": {
			"resource-sets",
			[]string{"      name: flannel\n      namespace: kube-flannel\n    data:", "      name: flannel\n      namespace: kube-flanel\n    data:"},
			"cluster.yaml:167: ConfigMap/flannel data.flannel.yaml: nothing in the manifest makes the namespace kube-flanel of ConfigMap kube-flanel/flannel, and the API server refuses objects in a namespace that does not exist — bring the Namespace too",
		},
		"a namespace of Kubernetes": {
			"resource-sets", []string{"      name: flannel\n      namespace: kube-flannel\n    data:", "      name: flannel\n      namespace: kube-public\n    data:"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := manifests.Read(t, "../../../../configs/"+tt.file+".yaml")
			before := manifests.Warnings(manifests.MustLoad(t, text, input.LoadOptions{}))
			var added []string
			for _, w := range manifests.Warnings(manifests.MustLoad(t, manifests.Edit(t, text, tt.edit...), input.LoadOptions{})) {
				if !slices.ContainsFunc(before, func(b string) bool { return what(b) == what(w) }) {
					added = append(added, w)
				}
			}
			var want []string
			if tt.want != "" {
				want = []string{tt.want}
			}
			assert.Equal(t, want, added)
		})
	}
}

// what is a warning without its line.
func what(warning string) string {
	_, text, _ := strings.Cut(warning, ": ")
	return text
}
