package eks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Deletion protection and zonal shift of an EKS cluster are set by annotations, and changed.
// While it is protected, nothing is deleted.
func TestDeletionProtectionOfEKS(t *testing.T) {
	const file, plane = "eks.yaml", "kind: AWSManagedControlPlane\nmetadata:\n"
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Rewritten(t, file, plane, plane+"  annotations: {clusterawsadm/deletion-protection: 'true', clusterawsadm/zonal-shift: 'true'}\n")
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			for _, c := range s.EKS.Clusters {
				assert.True(t, c.Protected && c.ZonalShift)
			}
		})
		enginetest.RequireNoChange(t, m, a)
		before := a.Inventory()
		_, err := enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(
			t,
			err,
			"has deletion protection: aws eks update-cluster-config --region us-east-1 --name default_eks --no-deletion-protection turns it off",
		)
		assert.Subset(t, a.Inventory(), before)

		protected := m
		m = enginetest.Rewritten(t, file, plane, plane+"  annotations: {clusterawsadm/deletion-protection: 'false'}\n")
		enginetest.MustApply(t, m, a)
		_, err = enginetest.Open(protected, a.Process()).Delete(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError), "a manifest protects the cluster before a run has applied it")
		require.ErrorContains(t, err, `set the annotation clusterawsadm/deletion-protection to "false"`)
		enginetest.MustDelete(t, m, a)
	})
}

// With the annotation, an update of a node group goes on although pods cannot be evicted.
func TestForcedUpdateOfNodes(t *testing.T) {
	const file, pool = "eks.yaml", "kind: AWSManagedMachinePool\nmetadata:\n"
	for force, stops := range map[string]bool{"true": false, "false": true} {
		synctest.Test(t, func(t *testing.T) {
			at := func(version string) *manifest.Cluster {
				m := enginetest.Rewritten(t, file, pool, pool+"  annotations: {clusterawsadm/force-update: '"+force+"'}\n")
				m.Pools[0].Object.Spec.Template.Spec.Version = version
				return m
			}
			a := enginetest.Account(at("v1.33.0"), enginetest.Lag)
			enginetest.Prepare(t, a, at("v1.33.0"))
			enginetest.MustApply(t, at("v1.33.0"), a)
			a.Edit(func(s *awssim.State) {
				s.EKS.Faults = ekssim.Faults{Update: "PodEvictionFailure: Reached max retries while trying to evict pods"}
			})
			_, err := enginetest.Open(at("v1.34.0"), a.Process()).Apply(t.Context(), cluster.Options{})
			require.Equal(t, stops, err != nil, "%v", err)
		})
	}
}

// EKS keeps the log group of the control plane: a deletion says so.
func TestLogsOfEKSStay(t *testing.T) {
	const file = "eks.yaml"
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, file, nil)
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		told := func() (warnings []string) {
			target := enginetest.RollingTarget(a.Process())
			target.Warn = func(text string) { warnings = append(warnings, text) }
			_, err := run.Open(m, target).PlanDelete(t.Context(), cluster.Options{})
			require.NoError(t, err)
			return warnings
		}
		const want = "EKS keeps the logs of the control plane: aws logs delete-log-group --region us-east-1 --log-group-name /aws/eks/default_eks/cluster deletes them"
		m.EKS.ControlPlane.Spec.Logging = nil
		enginetest.MustApply(t, m, a)
		assert.NotContains(t, told(), want)
		m.EKS.ControlPlane.Spec.Logging = &ekscontrolplanev1.ControlPlaneLoggingSpec{Audit: true}
		enginetest.MustApply(t, m, a)
		assert.Contains(t, told(), want)
	})
}

// An update that fails because pods cannot be evicted names the node, and the disruption budget that keeps a pod on it.
func TestPodsInTheWay(t *testing.T) {
	const file = "eks.yaml"
	synctest.Test(t, func(t *testing.T) {
		at := func(version string) *manifest.Cluster {
			m := enginetest.Load(t, file, nil)
			m.Pools[0].Object.Spec.Template.Spec.Version = version
			return m
		}
		a := enginetest.Account(at("v1.33.0"), enginetest.Lag)
		enginetest.Prepare(t, a, at("v1.33.0"))
		enginetest.MustApply(t, at("v1.33.0"), a)
		enginetest.AddPods(a)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			c.Put(time.Now(), kubesim.Object{
				"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": kubesim.Object{"name": "web-budget", "namespace": "default"},
				"spec": kubesim.Object{"minAvailable": 6.0, "selector": kubesim.Object{"matchLabels": kubesim.Object{"app": "web"}}},
			})
		})
		a.Edit(func(s *awssim.State) {
			s.EKS.Faults = ekssim.Faults{Update: "PodEvictionFailure: Reached max retries while trying to evict pods from nodes in node group"}
		})
		_, err := run.Open(at("v1.34.0"), enginetest.RollingTarget(a.Process())).Apply(t.Context(), cluster.Options{})
		require.Error(t, err)
		require.Regexp(
			t,
			`nodes in node group \(ip-\d+-\d+-\d+-\d+\.ec2\.internal\): PodDisruptionBudget default/web-budget keeps pod web-\S+ on ip-\S+, .*; change the budget or the number of replicas, or set the annotation clusterawsadm/force-update: "true"`,
			err.Error(),
		)
	})
}
