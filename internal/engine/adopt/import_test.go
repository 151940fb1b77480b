package adopt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// A cluster that another tool has made in its own VPC is imported, and adopted: it gets tags
// and no other change. From then on it lives like any other cluster; a deletion leaves the
// VPC.
func TestImportStranger(t *testing.T) {
	enginetest.EachOf(t, []string{"eks-byo-vpc.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		enginetest.Strangers(a)
		kind := ""
		a.Edit(func(s *awssim.State) { // a node group that no manifest can describe
			for _, g := range enginetest.Plane(s).NodeGroups {
				kind, g.Kind = g.Kind, "WINDOWS_FULL_2025_x86_64"
			}
		})
		target := cluster.Target{Config: a.Process().Config(), Owner: "test"}
		i, err := adopt.Import(t.Context(), m.KubernetesName(), target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"node-group/default_eks-byo-vpc-pool-0: an AWSManagedMachinePool cannot have the amiType WINDOWS_FULL_2025_x86_64"}, i.LeftOut)
		require.Contains(t, string(i.Manifest), "# - node-group/default_eks-byo-vpc-pool-0: an AWSManagedMachinePool cannot have")

		a.Edit(func(s *awssim.State) {
			for _, g := range enginetest.Plane(s).NodeGroups {
				g.Kind = kind
			}
		})
		i, err = adopt.Import(t.Context(), m.KubernetesName(), target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Differences)
		require.False(t, i.Plan.Empty(), "tags are missing")
		res, err := i.Adopt(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.NotZero(t, res.Writes)

		again, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: i.Manifest}}, input.LoadOptions{})
		require.NoError(t, err)
		c := run.Open(again, target)
		p, err := c.Plan(t.Context())
		require.NoError(t, err)
		require.True(t, p.Empty(), "%v", p.Steps)
		_, err = c.Delete(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) { require.Empty(t, s.EKS.Clusters) })
	})
}

// A cluster that does not exist is told.
func TestImportOfNothing(t *testing.T) {
	enginetest.EachOf(t, []string{"quickstart.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		target := cluster.Target{Config: a.Process().Config(), Owner: "test"}
		_, err := adopt.Import(t.Context(), "nobody", target, cluster.ImportOptions{})
		require.ErrorIs(t, err, cluster.ErrNotFound)
	})
}
