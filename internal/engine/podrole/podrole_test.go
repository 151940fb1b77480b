package podrole_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/podrole"
)

// IAM permits 64 characters in the name of a role. Names that would be longer differ nevertheless, and are the same in each run.
func TestName(t *testing.T) {
	require.Equal(t, "demo-us-east-1-karpenter", podrole.Name("demo", "us-east-1", podrole.Karpenter))
	long := strings.Repeat("x", 100) // the longest name of an EKS cluster
	seen := map[string]bool{}
	for _, region := range []string{"us-east-1", "ap-southeast-2"} {
		for _, purpose := range []string{podrole.Karpenter, podrole.KarpenterNode, "kube-system-aws-node"} {
			for _, cluster := range []string{"demo", long, long[:99], long[:50]} {
				name := podrole.Name(cluster, region, purpose)
				require.LessOrEqual(t, len(name), 64)
				require.False(t, seen[name], "%s is the name of two roles", name)
				seen[name] = true
				require.Equal(t, name, podrole.Name(cluster, region, purpose))
			}
		}
	}
	require.Len(t, podrole.Name(strings.Repeat("x", 64-len("-us-east-1-karpenter")), "us-east-1", podrole.Karpenter), 64, "it needs not be shortened")
}

// Only one role is that of Karpenter's controller: not that of its nodes, and not that of a cluster of another name or region.
func TestIsKarpenter(t *testing.T) {
	arn := func(cluster, region, purpose string) string {
		return "arn:aws:iam::123456789012:role" + podrole.Path(cluster, region) + podrole.Name(cluster, region, purpose)
	}
	require.Equal(t, "arn:aws:iam::123456789012:role/clusterawsadm/us-east-1/demo/demo-us-east-1-karpenter", arn("demo", "us-east-1", podrole.Karpenter))
	require.True(t, podrole.IsKarpenter(arn("demo", "us-east-1", podrole.Karpenter), "demo", "us-east-1"))
	long := strings.Repeat("x", 100)
	require.True(t, podrole.IsKarpenter(arn(long, "us-east-1", podrole.Karpenter), long, "us-east-1"))
	for name, other := range map[string]string{
		"role of its nodes":  arn("demo", "us-east-1", podrole.KarpenterNode),
		"another region":     arn("demo", "eu-west-1", podrole.Karpenter),
		"another cluster":    arn("my-demo", "us-east-1", podrole.Karpenter),
		"a role of the user": "arn:aws:iam::123456789012:role/demo-us-east-1-karpenter",
		"a path below":       "arn:aws:iam::123456789012:role/team/clusterawsadm/us-east-1/demo/demo-us-east-1-karpenter",
		"a profile":          strings.Replace(arn("demo", "us-east-1", podrole.Karpenter), ":role/", ":instance-profile/", 1),
		"none":               "",
	} {
		require.False(t, podrole.IsKarpenter(other, "demo", "us-east-1"), name)
	}
}
