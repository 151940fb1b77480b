package topology_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A plan says which steps belong to the replacement of a machine, and how people call the machine.
func TestStepsOfAReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 1))
		p, err := enginetest.Rolling(enginetest.Larger(t, 1), a.Process()).Plan(t.Context())
		require.NoError(t, err)
		steps, gone := map[plan.ID]plan.Step{}, plan.Step{}
		for _, s := range p.Steps {
			steps[s.Resource] = s
			if strings.HasPrefix(string(s.Resource), "retired/machine/three-zones-md-0/") {
				gone = s
			}
		}
		assert.Equal(t, plan.ID("machine/three-zones-md-0/0"), gone.Label)
		assert.Equal(t, "retired/machine/three-zones-md-0", gone.Group)
		assert.Equal(t, plan.AreaWorkers, gone.Area)
		assert.Empty(t, gone.PartOf)
		parts := map[string]bool{}
		for _, s := range steps {
			if s.PartOf == gone.Resource {
				parts[s.Resource.Kind()] = true
			}
		}
		assert.Equal(t, map[string]bool{"machine": true, "drain": true, "node-object": true}, parts)
		fresh := steps[gone.ReplacedBy]
		assert.Equal(t, "machine/three-zones-md-0", fresh.Group)
		assert.Equal(t, gone.Resource, fresh.PartOf)
		for _, s := range p.Steps {
			assert.NotEmpty(t, s.Area, s.Resource)
			assert.Equal(t, s.Resource.Group(), s.Group)
		}
	})
}
