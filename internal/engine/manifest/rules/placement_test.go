package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
)

// A run waits only for pods that can be scheduled. Control plane Nodes have the label and the taint of kubeadm, and all Nodes have the labels
// and taints of their kubelets.
func TestPlacement(t *testing.T) {
	const (
		plane    = "node-role.kubernetes.io/control-plane"
		selector = "          nodeSelector:\n            " + plane + ": \"\"\n"
		worker   = "      joinConfiguration:\n        nodeRegistration:\n          name: '{{ ds.meta_data.local_hostname }}'\n"
		tainted  = worker + "          taints: [{key: gpu, effect: NoSchedule}]\n"
		labelled = "          - {name: node-labels, value: 'pool=a,b=c'}\n"
		args     = worker + "          kubeletExtraArgs:\n"
		controls = "- operator: Exists\n          containers:\n          - name: manager\n"
		network  = "          - operator: Exists\n          initContainers:\n"
	)
	deployment := func(spec string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {selector: {matchLabels: {a: b}}, " +
			"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]" + spec + "}}}}"
	}
	twice := func(spec string) string {
		return strings.Replace(deployment(spec), "selector:", "replicas: 2, selector:", 1)
	}
	affinity := func(expression string) string {
		return deployment(
			", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [" + expression + "]}]}}}",
		)
	}
	for _, tt := range []struct {
		name             string
		edit             []string
		objects          string
		problem, warning string
	}{
		{"anything", nil, deployment(""), "", ""},
		{"label of the control plane with a value", []string{selector, strings.Replace(selector, `""`, `"true"`, 1)}, "", `no Node of the manifest takes the pods of DaemonSet kube-system/aws-cloud-controller-manager (nodeSelector node-role.kubernetes.io/control-plane=true): Nodes wait for this cloud controller manager — write spec.template.spec.nodeSelector: {node-role.kubernetes.io/control-plane: ""}`, ""},
		{"cloud controller manager without tolerations", []string{controls, strings.Replace(controls, "- operator: Exists", "- {key: "+plane+", operator: Exists}", 1)}, "", "(nodeSelector node-role.kubernetes.io/control-plane=; taint node.cloudprovider.kubernetes.io/uninitialized:NoSchedule): Nodes wait", ""},
		{"pod network without tolerations", []string{network, "          - {key: gpu, operator: Exists}\n          initContainers:\n"}, "", "some Nodes of the manifest do not take the pods of DaemonSet kube-flannel/flannel (taint node-role.kubernetes.io/control-plane:NoSchedule)", ""},
		{"pod network on some", []string{network, network[:len(network)-len("          initContainers:\n")] + "          nodeSelector: {pool: a}\n          initContainers:\n"}, "", "(nodeSelector pool=a): without the pod network", ""},
		{"unknown label", nil, deployment(", nodeSelector: {pool: a}"), "", "no Node of the manifest takes the pods of Deployment default/web (nodeSelector pool=a)"},
		{"label of a kubelet", []string{args, args + labelled}, deployment(", nodeSelector: {pool: a}"), "", ""},
		{"other value", []string{args, args + labelled}, deployment(", nodeSelector: {pool: b}"), "", "nodeSelector pool=b"},
		{"label of a script", []string{args, args + strings.Replace(labelled, "pool=a", "pool={{ ds.meta_data.local_hostname }}", 1)}, deployment(", nodeSelector: {pool: b}"), "", ""},
		{"label of a zone", nil, deployment(", nodeSelector: {topology.kubernetes.io/zone: us-east-1a}"), "", ""},
		{"Windows", nil, deployment(", nodeSelector: {kubernetes.io/os: windows}"), "", "nodeSelector kubernetes.io/os=windows"},
		{"control plane without toleration", nil, deployment(", nodeSelector: {" + plane + `: ""}`), "", "(nodeSelector " + plane + "=; taint " + plane + ":NoSchedule)"},
		{"control plane", nil, deployment(", nodeSelector: {" + plane + `: ""}, tolerations: [{key: ` + plane + "}]"), "", ""},
		{"taints everywhere", []string{worker, tainted}, deployment(""), "", "(taint gpu:NoSchedule; taint " + plane + ":NoSchedule)"},
		{"tolerated", []string{worker, tainted}, deployment(", tolerations: [{key: gpu, operator: Exists}]"), "", ""},
		{"preference", []string{worker, strings.Replace(tainted, "NoSchedule", "PreferNoSchedule", 1)}, deployment(""), "", ""},
		{"affinity", nil, affinity("{key: pool, operator: Exists}"), "", "affinity.nodeAffinity"},
		{"affinity to none", nil, affinity("{key: pool, operator: DoesNotExist}"), "", ""},
		{"affinity to others", nil, affinity("{key: pool, operator: NotIn, values: [a]}, {key: kubernetes.io/arch, operator: In, values: [amd64]}"), "", ""},
		{"two pods on one worker", nil, twice(", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}]}}"), "", "Deployment default/web has 2 pods, of which 1 find a Node: spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0] keeps two of them off one Node"},
		{"two pods away from others", nil, twice(", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: c}}}]}}"), "", ""},
		{"one port of the Node for two pods", nil, strings.Replace(twice(""), "image: a}", "image: a, ports: [{containerPort: 80, hostPort: 80}]}", 1), "", "spec.template.spec.containers[0].ports[0] keeps two of them off one Node"},
		{"two pods on two Nodes", nil, strings.Replace(twice(", tolerations: [{operator: Exists}]"), "image: a}", "image: a, ports: [{containerPort: 80, hostPort: 80}]}", 1), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := manifests.Edit(t, manifests.Read(t, "../../../../configs/resource-sets.yaml"), tt.edit...)
			c, err := loadBeside(t, text, tt.objects)
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				return
			}
			require.NoError(t, err)
			if found := manifests.Warnings(c); tt.warning == "" {
				assert.NotContains(t, strings.Join(found, "\n"), "Node")
			} else {
				assert.Contains(t, strings.Join(found, "\n"), tt.warning)
			}
		})
	}
}
