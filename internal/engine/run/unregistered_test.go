package run_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// The API server is not reached when the load balancer has no machine. Machines that are to join wait for the API server, so the load balancer
// gets back the machines that are there before others join.
func TestUnregisteredControlPlane(t *testing.T) {
	terminate := func(a *awssim.AWS) { enginetest.Terminate(a, "machine/three-zones-control-plane/0", time.Minute) }
	none := func(*awssim.AWS) {}
	deregister := func(s *awssim.State) {
		for _, g := range s.ELB.TargetGroups {
			g.Targets = []*elb.Target{}
		}
		for _, lb := range s.ELB.Classic {
			clear(lb.Instances)
		}
	}
	wrong := func(s *awssim.State) { // only a worker, on which no API server answers, is registered
		deregister(s)
		for _, g := range s.ELB.TargetGroups {
			g.Targets = append(g.Targets, &elb.Target{ID: enginetest.MachineOf(s, "machine/three-zones-md-0/0").ID, Port: 6443})
		}
	}
	remove := func(s *awssim.State) { clear(s.ELB.TargetGroups); clear(s.ELB.Listeners) }
	for _, x := range []struct {
		name    string
		balance infrav1.LoadBalancerType
		lose    func(*awssim.State)
		also    func(*awssim.AWS)
		edit    string // instance type of the control plane
	}{
		{"deregistered, and one machine is gone", infrav1.LoadBalancerTypeNLB, deregister, terminate, ""},
		{"deregistered, and the control plane is to be replaced", infrav1.LoadBalancerTypeNLB, deregister, none, "m5.xlarge"},
		{"a worker is registered, and one machine is gone", infrav1.LoadBalancerTypeNLB, wrong, terminate, ""},
		{"no target group, and one machine is gone", infrav1.LoadBalancerTypeNLB, remove, terminate, ""},
		{"no target group, and the control plane is to be replaced", infrav1.LoadBalancerTypeNLB, remove, none, "m5.xlarge"},
		{"classic, and one machine is gone", infrav1.LoadBalancerTypeClassic, deregister, terminate, ""},
		{"classic, and the control plane is to be replaced", infrav1.LoadBalancerTypeClassic, deregister, none, "m5.xlarge"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sized := func() *manifest.Cluster {
					m := enginetest.Sized(t, 3, 1)
					m.Infra.Spec.ControlPlaneLoadBalancer.LoadBalancerType = x.balance
					return m
				}
				m := sized()
				a := enginetest.Alive(t, m)
				time.Sleep(time.Hour)
				x.also(a)
				a.Edit(x.lose)
				if x.edit != "" {
					m = sized()
					m.ControlPlane.Template.Spec.Template.Spec.InstanceType = x.edit
				}
				_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.NoError(t, err)
				enginetest.RequireHealthy(t, a, 3, 1)
				enginetest.RequireDone(t, m, a)
			})
		})
	}
}
