package rules_test

import (
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// EKS sets the users, the groups and the permissions of nodes itself. Only entries of nodes of Auto Mode have access policies.
func TestAccessEntriesOfNodes(t *testing.T) {
	const (
		plane    = "  version: v1.34\n"
		role     = "principalARN: 'arn:aws:iam::123456789012:role/nodes'"
		user     = "principalARN: 'arn:aws:iam::123456789012:user/ada'"
		policies = ", accessPolicies: [{policyARN: 'arn:aws:eks::aws:cluster-access-policy/AmazonEKSAutoNodePolicy', accessScope: {type: cluster}}]"
		at       = "AWSManagedControlPlane/eks spec.accessEntries[0]."
	)
	for entry, want := range map[string]string{
		role + policies:                                          "",
		user + policies:                                          "",
		role + ", type: ec2" + policies:                          "",
		role + ", type: hybrid_linux":                            "",
		role + ", type: fargate_linux" + policies:                at + "accessPolicies: EKS associates no access policies in an access entry of the type fargate_linux",
		role + ", type: hybrid_linux" + policies:                 at + "accessPolicies: EKS associates no access policies",
		role + ", type: hyperpod_linux" + policies:               at + "accessPolicies: EKS associates no access policies",
		role + ", type: ec2, kubernetesGroups: [a]":              at + "kubernetesGroups: EKS sets the groups in an access entry of the type ec2",
		role + ", type: fargate_linux, kubernetesGroups: [a]":    at + "kubernetesGroups: EKS sets the groups",
		role + ", type: ec2_linux, username: a":                  at + "username: EKS sets the username in an access entry of the type ec2_linux",
		role + ", type: hybrid_linux, username: a":               at + "username: EKS sets the username",
		user + ", type: ec2_linux":                               at + "principalARN: EKS takes roles only",
		user + ", type: fargate_linux":                           at + "principalARN: EKS takes roles only",
		role + ", username: '{{SessionName}}'" + policies:        at + `username: "{{SessionName}}": EKS wants a colon before the name of the session`,
		role + ", username: 'a-{{SessionNameRaw}}'" + policies:   at + `username: "a-{{SessionNameRaw}}": EKS wants a colon`,
		role + ", username: 'team:{{SessionName}}'" + policies:   "",
		role + ", username: 'team:a-{{SessionName}}'" + policies: "",
	} {
		t.Run(strings.TrimPrefix(entry, "principalARN: "), func(t *testing.T) {
			edited := plane + "  accessConfig: {authenticationMode: api}\n  accessEntries: [{" + entry + "}]\n"
			_, err := manifests.Load(t, manifests.Edit(t, manifests.Read(t, "../../../../configs/eks.yaml"), plane, edited), input.LoadOptions{})
			if want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, want)
		})
	}
}

// The role of an add-on needs the OIDC provider of the cluster.
func TestRoleOfAnAddonWithoutProvider(t *testing.T) {
	const (
		plane = "  version: v1.34\n"
		addon = plane + "  addons: [{name: vpc-cni, version: v1.20.4-eksbuild.1, serviceAccountRoleARN: 'arn:aws:iam::123456789012:role/cni'}]\n"
	)
	warnings := func(edited string) []string {
		return manifests.Warnings(manifests.MustLoad(t, manifests.Edit(t, manifests.Read(t, "../../../../configs/eks.yaml"), plane, edited), input.LoadOptions{}))
	}
	assert.Empty(t, warnings(addon+"  associateOIDCProvider: true\n"))
	require.Len(t, warnings(addon), 1)
	assert.Contains(t, warnings(addon)[0], "spec.addons[0].serviceAccountRoleARN: nothing in the manifest makes the OIDC provider of the cluster")
	assert.Len(t, warnings(addon+"  associateOIDCProvider: false\n"), 1)
}
