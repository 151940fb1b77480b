package adopt_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A cluster that Cluster API created is adopted: every desired resource is found by its
// tags and names, and gets the identity tag. Only the init marker is created.
func TestTakesOverWhatClusterAPIMade(t *testing.T) {
	for _, example := range []string{"quickstart", "three-zones", "classic-elb", "node-groups", "bastion"} {
		t.Run(example, func(t *testing.T) {
			m := enginetest.Load(t, ""+example+".yaml", nil)
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region})
				_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				a.Edit(func(s *awssim.State) { enginetest.AsClusterAPI(m, s) })
				time.Sleep(6 * time.Minute) // until ListSecrets lists the secrets
				p, err := enginetest.Open(m, a.Process()).Plan(t.Context())
				require.NoError(t, err)
				for _, s := range p.Steps {
					switch {
					case s.Resource == "init-marker":
						require.Equal(t, plan.Create, s.Action)
					case s.Does():
						require.Equal(t, plan.Update, s.Action, "%s: %v", s.Resource, s.Diff)
						require.Equal(t, plan.Diff{{Field: "tag " + cloud.ResourceTag, Want: string(s.Resource), Remedy: plan.InPlace}}, s.Diff, s.Resource)
					}
				}
				before := len(a.Calls())
				_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				for _, c := range a.Calls()[before:] {
					write := !cloud.Reads(c.Operation) && c.Service != "SSM"
					require.True(t, !write || slices.Contains([]string{"CreateTags", "AddTags"}, c.Operation), c.Operation)
				}
				p, err = enginetest.Open(m, a.Process()).Plan(t.Context())
				require.NoError(t, err)
				require.True(t, p.Empty())

				// Without the keys, no machine can be added: the run reports it and
				// changes nothing.
				m.Deployments[0].Object.Spec.Replicas = new(*m.Deployments[0].Object.Spec.Replicas + 1)
				machines := strings.Count(strings.Join(a.Inventory(), "\n"), "Instance ")
				_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, "the keys that the cluster was made with are not in this account: add its Secrets "+m.Name+"-ca")
				require.Equal(t, machines, strings.Count(strings.Join(a.Inventory(), "\n"), "Instance "))
				_, err = enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{})
				require.NoError(t, err)
			})
		})
	}
}
