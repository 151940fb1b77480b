package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
)

// The addresses of a pod network are those of the Cluster, and the cloud controller manager of a chart has a Node.
func TestPodNetworks(t *testing.T) {
	const (
		pods    = "      cidrBlocks: [192.168.0.0/16]\n"
		none    = "    pods:\n" + pods
		conf    = `"Network": "192.168.0.0/16"`
		cilium  = "    ipam:\n      mode: kubernetes # the blocks of Nodes that kube-controller-manager assigns\n"
		manager = "      controllerManager:\n        extraArgs:\n"
	)
	calico := func(cidr string) string {
		return "{apiVersion: operator.tigera.io/v1, kind: Installation, metadata: {name: default}, spec: {calicoNetwork: {ipPools: [{cidr: " + cidr + "}]}}}"
	}
	for _, tt := range []struct {
		name, file       string
		edit             []string
		objects          string
		problem, warning string
	}{
		{"flannel", "resource-sets", nil, "", "", ""},
		{"flannel with its default", "resource-sets", []string{conf, `"Network": "10.244.0.0/16"`}, "", `ConfigMap kube-flannel/flannel: data[net-conf.json]: flannel does not start: its Network, "10.244.0.0/16", does not contain 192.168.0.0/16, from which Nodes get the addresses of pods — set it to 192.168.0.0/16`, ""},
		{"other block of the Cluster", "resource-sets", []string{pods, "      cidrBlocks: [10.244.0.0/16]\n"}, "", "does not contain 10.244.0.0/16", ""},
		{"part of the block", "resource-sets", []string{pods, "      cidrBlocks: [192.168.64.0/18]\n"}, "", "", ""},
		{"too small", "resource-sets", []string{conf, `"Network": "192.168.0.0/24"`}, "", "does not contain 192.168.0.0/16", ""},
		{"small", "resource-sets", []string{conf, `"Network": "192.168.0.0/20"`}, "", "", ""},
		{"IPv6", "resource-sets", []string{pods, "      cidrBlocks: [192.168.0.0/16, 'fd00::/48']\n"}, "", `its IPv6Network, "", does not contain fd00::/48`, ""},
		{"no block", "resource-sets", []string{none, "    services: {cidrBlocks: [10.96.0.0/12]}\n"}, "", "the Cluster has none for them — set spec.clusterNetwork.pods.cidrBlocks of the Cluster to 192.168.0.0/16", ""},
		{"block of the controller manager", "resource-sets", []string{none, "    services: {cidrBlocks: [10.96.0.0/12]}\n", manager, manager + "        - {name: cluster-cidr, value: 192.168.0.0/16}\n        - {name: allocate-node-cidrs, value: 'true'}\n"}, "", "", ""},
		{"Calico", "quickstart", nil, calico("192.168.0.0/17"), "", ""},
		{"Calico elsewhere", "quickstart", nil, calico("172.16.0.0/16"), "Installation default: spec.calicoNetwork.ipPools[0].cidr: the operator of Calico does not accept 172.16.0.0/16: it is not within the blocks of pods of the Cluster, [192.168.0.0/16] — change one of them", ""},
		{"Cilium", "charts", nil, "", "", ""},
		{"cloud controller manager nowhere", "charts", []string{"control-plane: \"\"", "control-plane: \"true\""}, "", `no Node of the manifest takes the pods of chart aws-cloud-controller-manager (nodeSelector node-role.kubernetes.io/control-plane=true): Nodes wait for this cloud controller manager — write nodeSelector: {node-role.kubernetes.io/control-plane: ""}`, ""},
		{"cloud controller manager without tolerations", "charts", []string{"    hostNetworking: true", "    tolerations: [{key: node-role.kubernetes.io/control-plane}]\n    hostNetworking: true"}, "", "taint node.cloudprovider.kubernetes.io/uninitialized:NoSchedule", ""},
		{"Cilium with its default", "charts", []string{cilium, ""}, "", "", "ipam.operator.clusterPoolIPv4PodCIDRList of the chart cilium: pods get addresses of 10.0.0.0/8, and machines of 10.0.0.0/16: Nodes lose the connection to each other"},
		{"Cilium with a pool", "charts", []string{cilium, "    ipam: {operator: {clusterPoolIPv4PodCIDRList: [192.168.0.0/16]}}\n"}, "", "", ""},
		{"chart of Calico", "charts", []string{"  chartName: cilium\n", "  chartName: tigera-operator\n", cilium, "    installation: {calicoNetwork: {ipPools: [{cidr: 172.16.0.0/16}]}}\n"}, "", "installation.calicoNetwork.ipPools[0].cidr of the chart tigera-operator: the operator of Calico does not accept 172.16.0.0/16", ""},
		{"chart of flannel", "charts", []string{"  chartName: cilium\n", "  chartName: flannel\n"}, "", `podCidr of the chart flannel: flannel does not start: its Network, "10.244.0.0/16", does not contain`, ""},
		{"chart of flannel with the block", "charts", []string{"  chartName: cilium\n", "  chartName: flannel\n", cilium, "    podCidr: 192.168.0.0/16\n"}, "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := manifests.Edit(t, manifests.Read(t, "../../../../configs/"+tt.file+".yaml"), tt.edit...)
			c, err := loadBeside(t, text, tt.objects)
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				return
			}
			require.NoError(t, err)
			if found := strings.Join(manifests.Warnings(c), "\n"); tt.warning == "" {
				assert.NotContains(t, found, "addresses of")
			} else {
				assert.Contains(t, found, tt.warning)
			}
		})
	}
}
