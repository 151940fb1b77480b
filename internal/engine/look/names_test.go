package look_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestSameNames describes every example by its manifest and by its name: what exists has the same names.
func TestSameNames(t *testing.T) {
	for _, file := range enginetest.Examples(t) {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, file)
				a := enginetest.Prepared(t, m)
				c := enginetest.Waiting(m, a.Process(), plan.Infrastructure)
				_, err := c.Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				byManifest, err := look.Status(t.Context(), c)
				require.NoError(t, err)
				target := c.Target
				target.Config.Region = c.Region
				byName, err := look.Status(t.Context(), run.OpenByName(c.Name, target))
				require.NoError(t, err)
				names := map[string][]plan.ID{}
				for _, r := range byManifest.Resources {
					names[r.CloudID] = append(names[r.CloudID], r.Resource)
				}
				for _, r := range byName.Resources {
					all := names[r.CloudID]
					if slices.Contains(all, "load-balancer/secondary/network") { // no tag tells the two apart
						continue
					}
					if len(all) > 0 {
						assert.Contains(t, all, r.Resource, r.CloudID)
					}
				}
			})
		})
	}
}
