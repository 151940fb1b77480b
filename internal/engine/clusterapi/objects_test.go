package clusterapi_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestObjects exports every example: each object comes after its owner, each machine has
// its objects with the ID of its instance, and nothing is written.
func TestObjects(t *testing.T) {
	enginetest.Each(t, awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		calls := len(a.Calls())
		all, err := adopt.Objects(t.Context(), enginetest.Open(m, a.Process()))
		require.NoError(t, err)
		require.True(t, all.Plan.Empty())
		require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
		seen, instances := map[string]bool{}, 0
		for _, x := range all.Items {
			o := unstructured.Unstructured{Object: x.Content}
			title := o.GetKind() + "/" + o.GetName()
			require.NotEmpty(t, o.GetAPIVersion(), title)
			require.NotEmpty(t, o.GetName())
			require.False(t, seen[title], "%s is there twice", title)
			if x.Owner != nil {
				require.True(t, seen[x.Owner.Kind+"/"+x.Owner.Name], "%s comes before its owner %s/%s", title, x.Owner.Kind, x.Owner.Name)
			}
			seen[title] = true
			if o.GetKind() == "Machine" {
				id, _, _ := unstructured.NestedString(o.Object, "spec", "providerID")
				require.True(t, strings.HasPrefix(id, "aws:///"), "%s: %q", title, id)
				instances++
			}
			require.NotContains(t, o.Object, "status", title)
		}
		machines := 0
		for _, s := range all.Plan.Steps {
			if s.Resource.Kind() == "machine" {
				machines++
			}
		}
		assert.Equal(t, machines, instances)
		if m.EKS == nil {
			for _, secret := range []string{"ca", "proxy", "sa", "kubeconfig"} {
				assert.True(t, seen["Secret/"+m.Name+"-"+secret], secret)
			}
		}
	})
}

// TestObjectsOfIncompleteCluster refuses to export a cluster of which machines are missing.
func TestObjectsOfIncompleteCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "quickstart.yaml", nil)
		a := enginetest.Account(m, enginetest.Lag)
		_, err := adopt.Objects(t.Context(), enginetest.Open(m, a.Process()))
		require.ErrorAs(t, err, new(*plan.RefusedError))
		assert.ErrorContains(t, err, "machine/quickstart-control-plane/0 does not exist yet")
	})
}
