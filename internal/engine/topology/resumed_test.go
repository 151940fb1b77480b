package topology_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// serving counts the machines of the control plane that have joined and are registered
// with the load balancer, and the workers that are ready and not cordoned.
func serving(a *awssim.AWS) (control, workers int) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Boot == nil || !i.Boot.ControlPlane || i.Boot.Joined.IsZero() || !i.Terminating.IsZero() {
				continue
			}
			for _, g := range s.ELB.TargetGroups {
				if slices.ContainsFunc(g.Targets, func(t *awssim.Target) bool { return t.ID == i.ID && t.Drained.IsZero() }) {
					control++
				}
			}
		}
	})
	enginetest.Inside(a, func(c *kubesim.Cluster) {
		for path, o := range c.Objects {
			if !strings.HasPrefix(path, "/api/v1/nodes/") {
				continue
			}
			labels, _ := o["metadata"].(kubesim.Object)["labels"].(kubesim.Object)
			spec, _ := o["spec"].(kubesim.Object)
			_, is := labels["node-role.kubernetes.io/control-plane"]
			if !is && spec["unschedulable"] != true && strings.Contains(fmt.Sprint(o["status"]), "reason:KubeletReady") {
				workers++
			}
		}
	})
	return control, workers
}

// killedAtLaunch kills a run after it has launched a machine.
func killedAtLaunch(t *testing.T, m *manifest.Cluster, a *awssim.AWS, observe func(plan.Event)) {
	t.Helper()
	p := a.Process()
	fault := func(_ int, _, op string) awssim.Fault {
		if op == "RunInstances" {
			return awssim.KillAfter
		}
		return awssim.None
	}
	require.Error(t, enginetest.Faulty(t, p, fault, func(ctx context.Context) error {
		_, err := enginetest.Rolling(m, p).Apply(ctx, cluster.Options{Observe: observe})
		return err
	}))
}

// TestResumedRollout kills a rollout after a new machine was launched: the next run
// deletes no machine before that one has joined.
func TestResumedRollout(t *testing.T) {
	for _, control := range []int32{1, 3} {
		t.Run(fmt.Sprint(control), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Alive(t, enginetest.Version(enginetest.Sized(t, control, 2), "v1.33.0"))
				m := enginetest.Version(enginetest.Sized(t, control, 2), "v1.34.2")
				watch := &order{&enginetest.Witness{T: t, A: a}, int(control), 2}
				killedAtLaunch(t, m, a, watch.observe)
				_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: watch.observe})
				require.NoError(t, err)
				enginetest.RequireHealthy(t, a, int(control), 2)
				enginetest.RequireVersion(t, a, "v1.34.2")
				enginetest.RequireDone(t, m, a)
			})
		})
	}
	t.Run("workers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Alive(t, enginetest.Sized(t, 1, 1))
			m := enginetest.Sized(t, 1, 1)
			m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
			watch := &order{&enginetest.Witness{T: t, A: a}, 1, 1}
			killedAtLaunch(t, m, a, watch.observe)
			_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: watch.observe})
			require.NoError(t, err)
			enginetest.RequireDone(t, m, a)
		})
	})
}

// TestMachinesThatCannotJoin replaces workers with a template that cannot join: however
// often it runs, existing machines stay.
func TestMachinesThatCannotJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 3))
		watch := &order{&enginetest.Witness{T: t, A: a}, 1, 3}
		for range 3 {
			m := enginetest.Sized(t, 1, 3)
			m.Deployments[0].Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
			m.Deployments[0].Bootstrap.Spec.Template.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = "abcdef.0123456789abcdef"
			_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: watch.observe})
			require.ErrorContains(t, err, "node/")
		}
		m := enginetest.Sized(t, 1, 3)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: watch.observe})
		require.NoError(t, err, "the manifest is as it was")
		enginetest.RequireHealthy(t, a, 1, 3)
		enginetest.RequireDone(t, m, a)
	})
}

// TestNoSurge replaces a control plane with maxSurge 0.
func TestNoSurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Version(enginetest.Sized(t, 3, 1), "v1.33.0"))
		m := enginetest.Version(enginetest.Sized(t, 3, 1), "v1.34.2")
		zero := intstr.FromInt32(0)
		m.ControlPlane.Object.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = &zero
		most := 0
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
			control, _ := serving(a)
			most = max(most, control)
			assert.GreaterOrEqual(t, control, 2, "%s %s", e.What, e.Resource)
		}})
		require.NoError(t, err)
		assert.Equal(t, 3, most)
		enginetest.RequireHealthy(t, a, 3, 1)
		enginetest.RequireVersion(t, a, "v1.34.2")
	})
}

// TestSingleControlPlaneMachines replaces stand-alone Machines of the control plane, one
// after the other.
func TestSingleControlPlaneMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func() *manifest.Cluster { return enginetest.Load(t, "single-machines.yaml", nil) }
		a := enginetest.Alive(t, read())
		before := len(enginetest.NodeNames(a))
		m := read()
		for i := range m.Machines {
			m.Machines[i].Infra.Spec.InstanceType = "m5.xlarge"
		}
		w := &enginetest.Witness{T: t, A: a}
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
			w.Observe(e)
			control, _ := serving(a)
			assert.GreaterOrEqual(t, control, 3, "%s %s", e.What, e.Resource)
			assert.LessOrEqual(t, control, 4, "%s %s", e.What, e.Resource)
		}})
		require.NoError(t, err)
		assert.Len(t, enginetest.NodeNames(a), before)
		enginetest.Inside(a, func(c *kubesim.Cluster) { assert.Len(t, c.Members, 3) })
		enginetest.RequireDone(t, m, a)
	})
}

// TestAdoptedWithAnotherVersion adopts a cluster whose machines have no template tag: a
// new version is refused before the first write, and is accepted with rollout.after.
func TestAdoptedWithAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Version(enginetest.Sized(t, 1, 1), "v1.33.0"))
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				delete(i.Tags, "clusterawsadm/template")
			}
		})
		calls := len(a.Calls())
		_, err := enginetest.Rolling(enginetest.Version(enginetest.Sized(t, 1, 1), "v1.34.2"), a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "machines do not say which version they are of")
		require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))

		_, err = run.Open(enginetest.Version(enginetest.Sized(t, 1, 1), "v1.34.2"), cluster.Target{Config: a.Process().Config(), Owner: "test"}).
			Apply(t.Context(), cluster.Options{})
		require.NoError(t, err, "nobody waits for Kubernetes")
		_, err = enginetest.Rolling(enginetest.Version(enginetest.Sized(t, 1, 1), "v1.34.2"), a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "machines do not say which version they are of", "and nothing was said of them")

		m := enginetest.Version(enginetest.Sized(t, 1, 1), "v1.34.2")
		m.ControlPlane.Object.Spec.Rollout.After = metav1.Now()
		m.Deployments[0].Object.Spec.Rollout.After = metav1.Now()
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		enginetest.RequireVersion(t, a, "v1.34.2")
	})
}

// TestDNSAlone changes a setting that is updated in place: no machine is replaced.
func TestDNSAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 1))
		m := enginetest.Sized(t, 1, 1)
		spec := &m.ControlPlane.Object.Spec.KubeadmConfigSpec
		spec.ClusterConfiguration.DNS.ImageTag = "v1.13.1" // kubeadm 1.34 installs 1.12.1
		spec.InitConfiguration.NodeRegistration.KubeletExtraArgs = append(
			spec.InitConfiguration.NodeRegistration.KubeletExtraArgs,
			bootstrapv1.Arg{Name: "v", Value: new(string)},
		)
		res, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		for _, s := range res.Plan.Steps {
			assert.False(t, s.Does() && (s.Resource.Kind() == "machine" || s.Resource.Kind() == "retired"), "%s %s", s.Action, s.Resource)
		}
		require.Equal(t, 1, res.Plan.CountKind("coredns", plan.Update))
		enginetest.RequireDone(t, m, a)
	})
}

// TestListenerWithoutProcess replaces a control plane behind another listener without a
// process: the run waits only for the API server.
func TestListenerWithoutProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listening := func() *manifest.Cluster {
			m := enginetest.Sized(t, 1, 1)
			m.Infra.Spec.ControlPlaneLoadBalancer.AdditionalListeners = []infrav1.AdditionalListenerSpec{{Port: 8132, Protocol: "TCP"}}
			return m
		}
		a := enginetest.Alive(t, listening())
		m := listening()
		m.ControlPlane.Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		enginetest.RequireDone(t, m, a)
	})
}
