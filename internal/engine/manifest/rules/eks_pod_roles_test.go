package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Roles of pods and settings of EKS Auto Mode that EKS or IAM would refuse are reported.
func TestPodRolesAndAutoMode(t *testing.T) {
	yaml := manifests.Read(t, "../../../../configs/eks.yaml")
	const plane, policy = "kind: AWSManagedControlPlane\nmetadata:\n", "arn:aws:iam::aws:policy/ReadOnlyAccess"
	app := func(rest string) string {
		return "pod-identity-associations: '[{namespace: a, serviceAccount: b, " + rest + "}]'"
	}
	const both = "the association of a/b has both roleARN and policyARNs — name an existing role, or the policies of a role that is made"
	for annotation, want := range map[string]string{
		app("policyARNs: []"): "association 1 lacks a field",

		app("policyARNs: [" + policy + "], roleARN: \"arn:aws:iam::123456789012:role/x\""): both,
		app("policyARNs: [" + policy + "," + policy + "]"):                                 "the association of a/b has an empty policy, or one twice",

		app("policyARNs: [\"\"]"):                                                                   "the association of a/b has an empty policy, or one twice",
		app("policyARNs: [ReadOnlyAccess]"):                                                         `"ReadOnlyAccess" is not an ARN`,
		app("policyARNs: [\"arn:aws-cn:iam::aws:policy/ReadOnlyAccess\"]"):                          "is of the partition aws-cn, but the region us-east-1 is in aws",
		app("policyARNs: [\"arn:aws:iam::123456789012:role/x\"]"):                                   "is not the ARN of an IAM policy",
		app("policyARNs: " + policy):                                                                "it is not a list of associations",
		app("policyARNs: [" + strings.Repeat(policy+",", 11) + "]"):                                 "the association of a/b has 11 policies, and a role can have 10",
		app("policies: [" + policy + "]"):                                                           "it is not a list of associations",
		"addon-pod-identities: '[{addon: vpc-cni, serviceAccount: aws-node, policyARNs: [\"x\"]}]'": `"x" is not an ARN`,

		"auto-mode: ''":                                       "it names nothing — set it to node pools of EKS (general-purpose, system), to none, or to false",
		"auto-mode: 'true'":                                   "EKS has no node pool true",
		"auto-mode: sistem":                                   `EKS has no node pool sistem — did you mean "system"?`,
		"auto-mode: 'system,system'":                          "system is in it twice",
		"auto-mode: 'system,none'":                            "none excludes all other words",
		"auto-mode: 'false,system'":                           "false excludes all other words",
		"auto-mode: system":                                   "EKS Auto Mode needs access entries — set spec.accessConfig.authenticationMode: api",
		"auto-mode-role: x":                                   "it has no effect without clusterawsadm/auto-mode",
		"auto-mode: none, clusterawsadm/auto-mode-role: x":    "only node pools of EKS take a role",
		"auto-mode: 'false', clusterawsadm/auto-mode-role: x": "only node pools of EKS take a role",
		"auto-mode: system, clusterawsadm/auto-mode-role: ''": "it is not the name of a role",
		"auto-mode: system, clusterawsadm/auto-mode-role: 'arn:aws:iam::123456789012:user/x'": "is not the ARN of an IAM role",
	} {
		_, err := manifests.Load(t, manifests.Edit(t, yaml, plane, plane+"  annotations: {clusterawsadm/"+annotation+"}\n"), input.LoadOptions{})
		require.ErrorContains(t, err, want, annotation)
		assert.Contains(t, err.Error(), "cluster.yaml:", annotation)
		assert.Regexp(t, `metadata\.annotations(\.clusterawsadm/[a-z-]+)?: `, err.Error(), annotation)
	}
	auto := manifests.Read(t, "../../../../configs/eks-auto.yaml")
	_, err := manifests.Load(
		t,
		manifests.Edit(t, auto, "  version: v1.34\n", "  version: v1.34\n  addons: [{name: coredns, version: v1.12.3-eksbuild.1}]\n"),
		input.LoadOptions{},
	)
	require.ErrorContains(t, err, "spec.addons[0]: EKS Auto Mode has coredns in its nodes, and the cluster has no others")
	m := manifests.MustLoad(t, auto, input.LoadOptions{EKSEnableIAM: true})
	assert.Equal(t, &manifest.AutoMode{Enabled: true, NodePools: []string{"general-purpose", "system"}, Role: "AmazonEKSAutoNodeRole"}, m.EKS.AutoMode)
	m = manifests.MustLoad(t, manifests.Edit(t, auto, "    clusterawsadm/auto-mode-role: AmazonEKSAutoNodeRole\n", ""), input.LoadOptions{EKSEnableIAM: true})
	assert.Equal(t, "default_eks-auto-us-east-1-auto-node", m.EKS.AutoMode.Role)
}

// A name that is too long for IAM is cut, and stays different.
func TestPodRoleName(t *testing.T) {
	e := manifests.MustLoad(t, manifests.Read(t, "../../../../configs/eks.yaml"), input.LoadOptions{}).EKS
	assert.Equal(t, "default_eks-eu-west-1-shop.orders", e.PodRoleName("eu-west-1", "shop.orders"))
	long := strings.Repeat("long-", 12)
	one, other := e.PodRoleName("eu-west-1", long+"a"), e.PodRoleName("eu-west-1", long+"b")
	assert.Len(t, one, 64)
	assert.NotEqual(t, one, other)
}
