package rules_test

import (
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Without kube-proxy, pods reach no Service, unless something replaces it.
func TestClusterWithoutKubeProxy(t *testing.T) {
	const (
		plane, noReplicas = "  version: v1.34\n", "  scaling:\n    minSize: 0\n"
		bare              = plane + "  bootstrapSelfManagedAddons: false\n"
		disabled          = "spec.kubeProxy.disable: kube-proxy is disabled, and nothing takes its place: pods on the nodes reach no Service"
		missing           = "spec.bootstrapSelfManagedAddons: nothing installs kube-proxy: pods on the nodes reach no Service"
		labels            = "metadata:\n  name: eks\nspec:\n  controlPlaneRef"
		selected          = "metadata:\n  name: eks\n  labels: {cni: 'yes'}\nspec:\n  controlPlaneRef"
		chart             = "---\napiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: cilium}\nspec: {clusterSelector: {matchLabels: {cni: 'yes'}}, " +
			"repoURL: https://helm.cilium.io, chartName: cilium, version: 1.18.2, namespace: kube-system, valuesTemplate: 'ipam: {mode: kubernetes}'}\n---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: MachinePool\n"
	)
	for name, tt := range map[string]struct {
		edit []string
		want string
	}{
		"of EKS":                        {nil, ""},
		"disabled":                      {[]string{plane, plane + "  kubeProxy: {disable: true}\n"}, disabled},
		"disabled, and the VPC CNI":     {[]string{plane, plane + "  kubeProxy: {disable: true}\n  vpcCni: {disable: true}\n"}, "spec.vpcCni.disable"},
		"disabled, no nodes":            {[]string{plane, plane + "  kubeProxy: {disable: true}\n", "replicas: 2", "replicas: 0", "  scaling:\n    minSize: 1\n", noReplicas}, ""},
		"VPC CNI alone":                 {[]string{plane, bare + "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.1}]\n"}, missing},
		"both add-ons":                  {[]string{plane, bare + "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.1}, {name: kube-proxy, version: v1.34.0-eksbuild.2}]\n"}, ""},
		"disabled, in favour of Cilium": {[]string{plane, plane + "  kubeProxy: {disable: true}\n", labels, selected, "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: MachinePool\n", chart}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := manifests.MustLoad(t, manifests.Edit(t, manifests.Read(t, "../../../../configs/eks.yaml"), tt.edit...), input.LoadOptions{})
			if tt.want == "" {
				assert.Empty(t, manifests.Warnings(c))
				return
			}
			require.Len(t, manifests.Warnings(c), 1)
			assert.Contains(t, manifests.Warnings(c)[0], tt.want)
		})
	}
}
