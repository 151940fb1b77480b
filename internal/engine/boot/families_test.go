package boot_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ipv6 returns the example with more machines.
func ipv6(t *testing.T, control, workers int32) *manifest.Cluster {
	t.Helper()
	m := enginetest.Load(t, enginetest.IPv6Example, nil)
	m.ControlPlane.Object.Spec.Replicas, m.Deployments[0].Object.Spec.Replicas = &control, &workers
	return m
}

// The addresses of etcd members and Nodes of the example are IPv6: a lost machine of the
// control plane is replaced, and the control plane is scaled in, as with IPv4.
func TestControlPlaneWithIPv6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, ipv6(t, 3, 1))
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			for _, m := range c.Members {
				assert.Contains(t, m.IP, ":")
			}
			for _, o := range c.All("Node") {
				addresses, _ := o["status"].(kubesim.Object)["addresses"].([]any)
				assert.Contains(t, addresses[0].(kubesim.Object)["address"], ":")
			}
		})
		enginetest.Lose(a, "machine/ipv6-control-plane/1")
		res, err := enginetest.Rolling(ipv6(t, 3, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: t, A: a}).Observe})
		require.NoError(t, err)
		require.Equal(t, 1, res.Plan.CountKind("etcd-members", plan.Update))
		enginetest.RequireHealthy(t, a, 3, 1)
		enginetest.RequireDone(t, ipv6(t, 3, 1), a)
		_, err = enginetest.Rolling(ipv6(t, 1, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: t, A: a}).Observe})
		require.NoError(t, err)
		enginetest.RequireHealthy(t, a, 1, 1)
		enginetest.RequireDone(t, ipv6(t, 1, 1), a)
	})
}

// An API server whose address has not the family of Services does not start: the simulated
// kubeadm refuses what the rules of the manifest refuse before.
func TestFamilyOfTheAPIServer(t *testing.T) {
	for name, edit := range map[string]func(*bootstrapv1.KubeadmConfigSpec){
		"no address": func(s *bootstrapv1.KubeadmConfigSpec) { s.InitConfiguration.LocalAPIEndpoint.AdvertiseAddress = "" },
		"IPv4": func(s *bootstrapv1.KubeadmConfigSpec) {
			s.InitConfiguration.LocalAPIEndpoint.AdvertiseAddress = "0.0.0.0"
		},
		"argument": func(s *bootstrapv1.KubeadmConfigSpec) {
			own := "10.0.0.7"
			s.ClusterConfiguration.APIServer.ExtraArgs = append(s.ClusterConfiguration.APIServer.ExtraArgs, bootstrapv1.Arg{Name: "advertise-address", Value: &own})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, enginetest.IPv6Example, nil)
				edit(&m.ControlPlane.Object.Spec.KubeadmConfigSpec)
				a := enginetest.Account(m, enginetest.Lag)
				_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.ErrorContains(t, err, "api-server")
				var consoles string
				a.Edit(func(s *awssim.State) {
					for _, i := range s.EC2.Instances {
						consoles += i.Boot.Output()
					}
				})
				require.Contains(t, consoles, "must match public address family")
			})
		})
	}
	t.Run("a machine that joins", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Alive(t, ipv6(t, 1, 1))
			m := ipv6(t, 3, 1)
			m.ControlPlane.Object.Spec.KubeadmConfigSpec.JoinConfiguration.ControlPlane = nil
			_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			require.ErrorContains(t, err, "node/ipv6-control-plane/")
			require.Len(t, enginetest.NodeNames(a), 2)
		})
	})
}
