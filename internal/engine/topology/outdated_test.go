package topology_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// age makes the machines of a role older. The launch time of an instance changes when it
// is stopped and started.
func age(a *awssim.AWS, role string, by time.Duration) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == role {
				for _, n := range s.EC2.Interfaces {
					if n.Owner == i.ID {
						n.Born = n.Born.Add(-by)
					}
				}
			}
		}
	})
}

// requireReplaced applies a manifest that replaces that many machines of a group, one by
// one, and nothing else. Another run has no changes.
func requireReplaced(t *testing.T, a *awssim.AWS, m *manifest.Cluster, why string, count int) {
	t.Helper()
	p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, count, p.CountKind("retired", plan.Remove), "%v", enginetest.Steps(p))
	require.Equal(t, count, p.CountKind("machine", plan.Create), "%v", enginetest.Steps(p))
	for _, s := range p.Steps {
		if s.Resource.Kind() == "retired" && s.Action == plan.Remove {
			require.Contains(t, s.Origin, why)
		}
	}
	_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: (&enginetest.Witness{T: t, A: a}).Observe})
	require.NoError(t, err)
	enginetest.RequireDone(t, m, a)
}

// TestRolloutAfter replaces machines that were launched before rollout.after, after that
// time.
func TestRolloutAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 3, 2))
		at := metav1.NewTime(time.Now().Add(time.Hour))
		m := func() *manifest.Cluster {
			m := enginetest.Sized(t, 3, 2)
			m.Deployments[0].Object.Spec.Rollout.After = at
			return m
		}
		enginetest.RequireDone(t, m(), a) // the time is in the future
		time.Sleep(time.Hour)
		requireReplaced(t, a, m(), "launched before rollout.after, "+at.UTC().Format(time.RFC3339), 2)
		all := enginetest.Sized(t, 3, 2)
		all.ControlPlane.Object.Spec.Rollout.After = metav1.Now()
		time.Sleep(time.Minute)
		requireReplaced(t, a, all, "launched before rollout.after, ", 3)
		enginetest.RequireHealthy(t, a, 3, 2)
	})
}

// TestCertificatesExpire replaces machines of the control plane before their certificates
// expire, if the manifest has rollout.before; otherwise it reports the expiry.
func TestCertificatesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 3, 1))
		const day = 24 * time.Hour
		age(a, "control-plane", 300*day)
		m := enginetest.Sized(t, 3, 1)
		m.ControlPlane.Object.Spec.Rollout.Before.CertificatesExpiryDays = 30
		enginetest.RequireDone(t, m, a) // 65 days are left

		age(a, "control-plane", 10*day)
		var said []string
		target := enginetest.RollingTarget(a.Process())
		target.Warn = func(s string) { said = append(said, s) }
		_, err := run.Open(enginetest.Sized(t, 3, 1), target).Plan(t.Context())
		require.NoError(t, err)
		until := time.Now().Add(55 * day).UTC()
		assert.True(t, slices.ContainsFunc(said, func(s string) bool {
			return strings.Contains(s, "certificates of the control plane expire on "+until.Format("2006-01"))
		}), "%q", said)

		age(a, "control-plane", 30*day)
		requireReplaced(t, a, m, "its certificates expire on "+until.Add(-30*day).Format("2006-01"), 3)
		enginetest.RequireHealthy(t, a, 3, 1)
	})
}

// TestDeletionOrder deletes surplus machines in the order of the manifest.
func TestDeletionOrder(t *testing.T) {
	for order, left := range map[clusterv1.MachineSetDeletionOrder]string{
		clusterv1.OldestMachineSetDeletionOrder: "machine/three-zones-md-0/1",
		clusterv1.NewestMachineSetDeletionOrder: "machine/three-zones-md-0/0",
		clusterv1.RandomMachineSetDeletionOrder: "machine/three-zones-md-0/0",
	} {
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Alive(t, enginetest.Sized(t, 1, 1))
			_, err := enginetest.Rolling(enginetest.Sized(t, 1, 2), a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			require.NoError(t, err)
			m := enginetest.Sized(t, 1, 1)
			m.Deployments[0].Object.Spec.Deletion.Order = order
			_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
			require.NoError(t, err)
			a.Edit(func(s *awssim.State) {
				for _, i := range s.EC2.Instances {
					if i.Terminating.IsZero() && i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "node" {
						assert.Equal(t, left, i.Tags["clusterawsadm/resource"], order)
					}
				}
			})
			enginetest.RequireDone(t, m, a)
		})
	}
}

// TestExcludedFromDraining does not drain a Node if its machine has the annotation for
// it.
func TestExcludedFromDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 2))
		m := enginetest.Sized(t, 1, 1)
		m.Deployments[0].Object.Spec.Template.Annotations = map[string]string{clusterv1.ExcludeNodeDrainingAnnotation: ""}
		p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		assert.Zero(t, p.CountKind("drain", plan.Remove), "%v", enginetest.Steps(p))
		assert.Equal(t, 1, p.CountKind("retired", plan.Remove), "%v", enginetest.Steps(p))
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		require.Len(t, enginetest.NodeNames(a), 2)
	})
}

// TestCoreDNS updates CoreDNS if the manifest has its version, unless an annotation
// excludes it.
func TestCoreDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Alive(t, enginetest.Sized(t, 1, 1))
		planned := func(annotation string) plan.Plan {
			m := enginetest.Sized(t, 1, 1)
			m.ControlPlane.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.DNS.ImageTag = "v1.13.0"
			m.ControlPlane.Object.Annotations = map[string]string{annotation: ""}
			p, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
			require.NoError(t, err)
			return p
		}
		assert.Equal(t, 1, planned("other").CountKind("coredns", plan.Update))
		assert.Zero(t, planned(controlplanev1.SkipCoreDNSAnnotation).CountKind("coredns", plan.Update))
	})
}
