package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// eksExamples lists the examples of EKS clusters.
func eksExamples(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(examples(t), func(file string) bool { return !strings.HasPrefix(name(file), "eks") })
}

// A cluster that was made from a manifest is imported as a manifest with the same graph, of
// which the plan is empty. What only the machines know is not in it.
func TestImport(t *testing.T) {
	refused := map[string]string{
		"eks-machines":  "no manifest can be made of retired/machine/eks-machines-md-0/0/",
		"eks-templates": "no manifest can be made of node-group/default_eks-templates-batch: what its launch template lt-",
	}
	eachOf(t, eksExamples(t), awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		mustApply(t, m, a)
		before := a.Detailed()
		target := reconcile.Target{Config: a.Process().Config(), Owner: "test"}
		i, err := reconcile.Import(t.Context(), m.Name, target, reconcile.LoadOptions{})
		require.Equal(t, before, a.Detailed(), "an import changes nothing")
		if why := refused[m.Name]; why != "" {
			require.ErrorAs(t, err, new(*reconcile.RefusedError))
			require.ErrorContains(t, err, why)
			return
		}
		require.NoError(t, err)
		require.Equal(t, m.Name, i.Name)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Differences, "%s", i.Manifest)
		require.True(t, i.Plan.Empty())
		again, err := reconcile.Load([]reconcile.Source{{Name: "imported.yaml", Data: i.Manifest}}, reconcile.LoadOptions{EKSEnableIAM: m.EKS.EnableIAM})
		require.NoError(t, err)
		want, err := open(m, a.Process()).EngineGraph()
		require.NoError(t, err)
		have, err := reconcile.Open(again, target).EngineGraph()
		require.NoError(t, err)
		requireSameGraph(t, want, have)
	})
}

// requireSameGraph requires that a graph has the resources and the edges of another one, and
// all of its desired fields. It may have more: values that AWS has chosen.
func requireSameGraph(t *testing.T, want, have *graph.Graph) {
	t.Helper()
	require.Equal(t, edges(want), edges(have))
	for _, r := range want.Resources() {
		fields := have.Resource(r.ID()).Wanted()
		for _, c := range r.Wanted() {
			require.Contains(t, fields, c, r.ID())
		}
	}
}

// edges prints the edges of a graph.
func edges(g *graph.Graph) (out []string) {
	for _, r := range g.Resources() {
		out = append(out, string(r.ID()))
		for _, e := range r.Needs() {
			out = append(out, fmt.Sprintf("%s needs %s %t %t", r.ID(), e.Resource.ID(), e.Existing, e.Loose))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// strangers removes all tags of Cluster API and of this program from an account, as if
// another tool had made its resources.
func strangers(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		for _, tags := range allTags(s) {
			maps.DeleteFunc(tags, func(key, _ string) bool {
				return strings.HasPrefix(key, "sigs.k8s.io/") || strings.HasPrefix(key, "clusterawsadm/") || strings.HasPrefix(key, "kubernetes.io/cluster/")
			})
		}
	})
}

// A cluster that another tool has made in its own VPC is imported, and adopted: it gets tags
// and no other change. From then on it lives like any other cluster; a deletion leaves the
// VPC.
func TestImportStranger(t *testing.T) {
	eachOf(t, []string{"../../configs/eks-byo-vpc.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		mustApply(t, m, a)
		strangers(a)
		a.Edit(func(s *awssim.State) { // a node group that no manifest can describe
			for _, g := range plane(s).NodeGroups {
				g.InstanceTypes = append(g.InstanceTypes, "t3.xlarge")
			}
		})
		target := reconcile.Target{Config: a.Process().Config(), Owner: "test"}
		i, err := reconcile.Import(t.Context(), m.KubernetesName(), target, reconcile.LoadOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"node-group/default_eks-byo-vpc-pool-0: it has several instance types (t3.large, t3.xlarge), and an AWSManagedMachinePool has one"}, i.LeftOut)
		require.Contains(t, string(i.Manifest), "# - node-group/default_eks-byo-vpc-pool-0: it has several instance types")

		a.Edit(func(s *awssim.State) {
			for _, g := range plane(s).NodeGroups {
				g.InstanceTypes = g.InstanceTypes[:1]
			}
		})
		i, err = reconcile.Import(t.Context(), m.KubernetesName(), target, reconcile.LoadOptions{})
		require.NoError(t, err)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Differences)
		require.False(t, i.Plan.Empty(), "tags are missing")
		res, err := i.Adopt(t.Context(), reconcile.Options{})
		require.NoError(t, err)
		require.NotZero(t, res.Writes)

		again, err := reconcile.Load([]reconcile.Source{{Name: "imported.yaml", Data: i.Manifest}}, reconcile.LoadOptions{})
		require.NoError(t, err)
		c := reconcile.Open(again, target)
		p, err := c.Plan(t.Context())
		require.NoError(t, err)
		require.True(t, p.Empty(), "%v", p.Steps)
		_, err = c.Delete(t.Context(), reconcile.Options{Observe: tell(t)})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) { require.Empty(t, s.EKS.Clusters) })
	})
}

// What cannot be imported is told: a name that does not exist, and a self-managed cluster.
func TestImportRefused(t *testing.T) {
	eachOf(t, []string{"../../configs/quickstart.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		mustApply(t, m, a)
		target := reconcile.Target{Config: a.Process().Config(), Owner: "test"}
		_, err := reconcile.Import(t.Context(), "nobody", target, reconcile.LoadOptions{})
		require.ErrorIs(t, err, reconcile.ErrNotFound)
		_, err = reconcile.Import(t.Context(), m.Name, target, reconcile.LoadOptions{})
		require.ErrorAs(t, err, new(*reconcile.RefusedError))
		require.ErrorContains(t, err, "is self-managed")
	})
}
