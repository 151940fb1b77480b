package run_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// A network load balancer listens on the port of the endpoint, and the machines on 6443.
func TestAPIServerPort(t *testing.T) {
	m := enginetest.Rewritten(t, enginetest.Quickstart, "    pods:\n", "    apiServerPort: 8443\n    pods:\n")
	require.Empty(t, m.Warnings)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, m)
		a.Edit(func(s *awssim.State) {
			require.Len(t, s.ELB.Listeners, 1)
			for _, l := range s.ELB.Listeners {
				assert.Equal(t, int32(8443), l.Port)
			}
			for _, g := range s.ELB.TargetGroups {
				assert.Equal(t, int32(6443), g.Port)
			}
		})
		enginetest.RequireHealthy(t, a, 1, 1)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
	})
}
