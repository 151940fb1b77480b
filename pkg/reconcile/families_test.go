package reconcile_test

import (
	"testing"
	"testing/synctest"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

const ipv6Example = "../../configs/ipv6.yaml"

// ipv6 returns the example with more machines.
func ipv6(t *testing.T, control, workers int32) *manifest.Cluster {
	t.Helper()
	m := load(t, ipv6Example, nil)
	m.ControlPlane.Object.Spec.Replicas, m.Deployments[0].Object.Spec.Replicas = &control, &workers
	return m
}

// The addresses of etcd members and Nodes of the example are IPv6: a lost machine of the
// control plane is replaced, and the control plane is scaled in, as with IPv4.
func TestControlPlaneWithIPv6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := alive(t, ipv6(t, 3, 1))
		inside(a, func(c *kubesim.Cluster) {
			for _, m := range c.Members {
				assert.Contains(t, m.IP, ":")
			}
			for _, o := range c.All("Node") {
				addresses, _ := o["status"].(kubesim.Object)["addresses"].([]any)
				assert.Contains(t, addresses[0].(kubesim.Object)["address"], ":")
			}
		})
		lose(a, "machine/ipv6-control-plane/1")
		res, err := rolling(ipv6(t, 3, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: (&witness{t: t, a: a}).observe})
		require.NoError(t, err)
		require.Equal(t, 1, res.Plan.CountKind("etcd-members", plan.Update))
		requireHealthy(t, a, 3, 1)
		requireDone(t, ipv6(t, 3, 1), a)
		_, err = rolling(ipv6(t, 1, 1), a.Process()).Apply(t.Context(), cluster.Options{Observe: (&witness{t: t, a: a}).observe})
		require.NoError(t, err)
		requireHealthy(t, a, 1, 1)
		requireDone(t, ipv6(t, 1, 1), a)
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
				m := load(t, ipv6Example, nil)
				edit(&m.ControlPlane.Object.Spec.KubeadmConfigSpec)
				a := account(m, lag)
				_, err := waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: tell(t)})
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
			a := alive(t, ipv6(t, 1, 1))
			m := ipv6(t, 3, 1)
			m.ControlPlane.Object.Spec.KubeadmConfigSpec.JoinConfiguration.ControlPlane = nil
			_, err := rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: tell(t)})
			require.ErrorContains(t, err, "node/ipv6-control-plane/")
			require.Len(t, nodeNames(a), 2)
		})
	})
}
