package run_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const external = "external.yaml"

// In externally managed infrastructure, a run writes only to machines, their secrets and
// their registration with the load balancer. Machines have only their own security groups,
// and no default key pair.
func TestExternallyManagedInfrastructure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, external, nil)
		a := enginetest.Prepared(t, m)
		before := a.Detailed()
		p, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		for _, s := range p.Steps {
			if s.Action == plan.Create || s.Action == plan.Update {
				assert.Contains(t, []string{"machine", "targets", "certificates", "init-marker", "bootstrap-names"}, s.Resource.Kind(), "%s", s.Resource)
			}
		}
		_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		after := a.Detailed()
		for _, line := range before {
			assert.True(t, slices.Contains(after, line) || strings.HasPrefix(line, "TargetGroup"), "changed: %s", line)
		}
		a.Edit(func(s *awssim.State) {
			assert.Len(t, s.EC2.Instances, 4)
			for _, i := range s.EC2.Instances {
				assert.Empty(t, i.Key)
				for _, id := range i.Interfaces {
					assert.Equal(t, []string{"sg-0aaaaaaaaaaaaaaa2"}, s.EC2.Interfaces[id].Groups)
				}
			}
		})
		_, err = enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		left := slices.DeleteFunc(a.Detailed(), enginetest.IsLock)
		assert.ElementsMatch(t, before, left)
	})
}

// A load balancer that does not exist is not created.
func TestExternalLoadBalancerIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, external, nil)
		a := enginetest.Prepared(t, m)
		name := "other"
		m.Infra.Spec.ControlPlaneLoadBalancer.Name = &name
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorContains(t, err, "load-balancer/network")
		require.ErrorContains(t, err, "does not exist in this account and region")
		require.NotContains(t, err.Error(), "\n")
	})
}
