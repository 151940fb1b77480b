package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// What Karpenter needs of the cluster is required, and a role that it may not pass has a warning.
func TestKarpenter(t *testing.T) {
	yaml := manifests.Read(t, "../../../../configs/eks-karpenter.yaml")
	const annotation = "clusterawsadm/karpenter: kube-system/karpenter\n"
	for _, x := range []struct{ old, new, want string }{
		{annotation, "clusterawsadm/karpenter: karpenter\n", "it is not a namespace and a service account — write those of Karpenter's controller: kube-system/karpenter"},
		{annotation, "clusterawsadm/karpenter: \"\"\n", "it is not a namespace and a service account"},
		{annotation, "clusterawsadm/karpenter: kube-system/Karpenter\n", "it is not a namespace and a service account"},
		{annotation, annotation + "    clusterawsadm/auto-mode: none\n", "EKS Auto Mode has a Karpenter of its own — remove one of the two annotations"},
		{
			annotation, annotation + "    clusterawsadm/pod-identity-associations: '[{namespace: kube-system, serviceAccount: karpenter, policyARNs: [arn:aws:iam::aws:policy/ReadOnlyAccess]}]'\n",
			"clusterawsadm/pod-identity-associations has the same service account — remove it there",
		},
		{"authenticationMode: api", "authenticationMode: config_map", "the nodes of Karpenter are let in by an access entry — set spec.accessConfig.authenticationMode: api"},
		{
			"  - name: eks-pod-identity-agent # gives the controller its role\n    version: v1.3.9-eksbuild.3\n", "",
			"its controller gets its role by EKS Pod Identity — add the add-on eks-pod-identity-agent to spec.addons",
		},
		{
			"eksClusterName: eks-karpenter", "eksClusterName: a1234567890123456789012345678901234567890123456789012345678901234567890123456789b",
			"its 81 characters are too many for the name of Karpenter's queue — use at most 80",
		},
	} {
		_, err := manifests.Load(t, manifests.Edit(t, yaml, x.old, x.new), input.LoadOptions{})
		require.ErrorContains(t, err, x.want)
		assert.Contains(t, err.Error(), "cluster.yaml:")
	}
	m := manifests.MustLoad(t, yaml, input.LoadOptions{})
	assert.Equal(t, &manifest.Karpenter{Namespace: "kube-system", ServiceAccount: "karpenter"}, m.EKS.Karpenter)
	assert.Empty(t, m.Warnings)
	m = manifests.MustLoad(t, manifests.Edit(t, yaml, "role: eks-karpenter-us-east-1-karpenter-node", "role: KarpenterNodeRole"), input.LoadOptions{})
	require.Len(t, m.Warnings, 1)
	assert.Contains(
		t,
		m.Warnings[0].String(),
		"spec.role of the EC2NodeClass is KarpenterNodeRole, which is not the role that is made for Karpenter's nodes — set it to eks-karpenter-us-east-1-karpenter-node",
	)
}
