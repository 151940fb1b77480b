package run_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A version that EKS does not offer has no images either. The plan names the version, once, and no parameter of an
// image.
func TestVersionThatEKSDoesNotOffer(t *testing.T) {
	const file = "eks-machines.yaml"
	m := enginetest.LoadQuick(t, file)
	m.EKS.ControlPlane.Spec.Version = new("v1.60")
	m.Version = "v1.60.0"
	for i := range m.Deployments {
		m.Deployments[i].Object.Spec.Template.Spec.Version = "v1.60.0"
	}
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		var refused *plan.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Len(t, refused.Reasons, 1)
		require.ErrorContains(t, err, "spec.version): version: EKS does not offer Kubernetes 1.60: use one of v1.")
		require.NotContains(t, err.Error(), "optimized-ami")
	})
}

// Add-ons of such a version are no mistakes of their own, whatever their versions.
func TestAddonsOfVersionThatEKSDoesNotOffer(t *testing.T) {
	const file = "eks-fargate.yaml"
	m := enginetest.LoadQuick(t, file)
	m.EKS.ControlPlane.Spec.Version = new("v1.60")
	m.Version = "v1.60.0"
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		var refused *plan.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Len(t, refused.Reasons, 1)
		require.ErrorContains(t, err, "EKS does not offer Kubernetes 1.60: use one of v1.")
	})
}

// A plan warns of node classes that select nothing: Karpenter would make no node.
func TestNodeClassesSelectWhatThereIs(t *testing.T) {
	terms := func(m *manifest.Cluster, field string, term map[string]any) {
		for _, set := range m.ResourceSets {
			for _, d := range set.Documents {
				if d.Kind() == "EC2NodeClass" {
					d.Object["spec"].(map[string]any)[field] = []any{term}
				}
			}
		}
	}
	for _, x := range []struct {
		field string
		term  map[string]any
		told  string
	}{
		{"subnetSelectorTerms", map[string]any{"tags": map[string]any{"karpenter.sh/discovery": "eks-karpenter"}}, ""},
		{"subnetSelectorTerms", map[string]any{"tags": map[string]any{"karpenter.sh/discovery": "*"}}, ""},
		{"subnetSelectorTerms", map[string]any{"tags": map[string]any{"karpenter.sh/discovery": "other"}}, "match no subnet that this run makes or that exists"},
		{"subnetSelectorTerms", map[string]any{"id": "subnet-0123456789abcdef0"}, "match no subnet"},
		{"securityGroupSelectorTerms", map[string]any{"tags": map[string]any{"kubernetes.io/cluster/eks-karpenter": "owned"}}, ""},
		{"securityGroupSelectorTerms", map[string]any{"tags": map[string]any{"karpenter.sh/discovery": "eks-karpenter"}}, "match no security group"},
		{"securityGroupSelectorTerms", map[string]any{"name": "nodes"}, "match no security group"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Load(t, "eks-karpenter.yaml", nil)
			terms(m, x.field, x.term)
			a := enginetest.Prepared(t, m)
			var told []string
			_, err := run.Open(m, cluster.Target{Config: a.Config(), Warn: func(s string) { told = append(told, s) }}).Plan(t.Context())
			require.NoError(t, err)
			told = slices.DeleteFunc(told, func(s string) bool { return !strings.Contains(s, "EC2NodeClass") })
			if x.told == "" {
				require.Empty(t, told)
				return
			}
			require.Len(t, told, 1)
			require.Contains(t, told[0], "spec."+x.field+" of the EC2NodeClass default "+x.told)
			require.Contains(t, told[0], "eks-karpenter.yaml:")
		})
	}
}
