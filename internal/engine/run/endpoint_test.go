package run_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The endpoint of the API server of an existing cluster cannot change: neither by another kind
// of load balancer, nor by another name, nor by another host or port.
func TestEndpointOfALivingCluster(t *testing.T) {
	name := "other"
	for what, change := range map[string]func(m *manifest.Cluster){
		"kind": func(m *manifest.Cluster) {
			m.Infra.Spec.ControlPlaneLoadBalancer.LoadBalancerType = infrav1.LoadBalancerTypeClassic
		},
		"disabled": func(m *manifest.Cluster) {
			m.Infra.Spec.ControlPlaneLoadBalancer.LoadBalancerType = infrav1.LoadBalancerTypeDisabled
		},
		"name": func(m *manifest.Cluster) { m.Infra.Spec.ControlPlaneLoadBalancer.Name = &name },
		"host": func(m *manifest.Cluster) { m.Infra.Spec.ControlPlaneEndpoint.Host = "api.example.com" },
		"port": func(m *manifest.Cluster) { m.Infra.Spec.ControlPlaneEndpoint.Port = 443 },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
				a := enginetest.Account(m, 0)
				enginetest.MustApply(t, m, a)
				before := slices.DeleteFunc(a.Detailed(), enginetest.IsLock)
				change(m)
				_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				assert.Regexp(t, `init-marker .*endpoint .*machines, certificates and kubeconfigs contain it`, err.Error())
				assert.Equal(t, before, slices.DeleteFunc(a.Detailed(), enginetest.IsLock))
			})
		})
	}
}
