package run_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// EKS accepts an update or a creation, and fails later. The run ends at once with the reason
// of EKS, and the next one tries again.
func TestEKSFails(t *testing.T) {
	const file = "eks-addons.yaml"
	load := func(t *testing.T, change func(*manifest.Cluster)) *manifest.Cluster {
		t.Helper()
		m := enginetest.LoadQuick(t, file)
		change(m)
		return m
	}
	same := func(*manifest.Cluster) {}
	for _, c := range []struct {
		name   string
		faults ekssim.Faults
		made   bool // the cluster exists
		change func(*manifest.Cluster)
		want   string
		within time.Duration
	}{
		{
			"creation of a node group",
			ekssim.Faults{CreateNodeGroup: "NodeCreationFailure: Instances failed to join the kubernetes cluster"},
			false, same,
			"AWS reports CREATE_FAILED: NodeCreationFailure: Instances failed to join the kubernetes cluster", 20 * time.Minute,
		},
		{
			"creation of an add-on",
			ekssim.Faults{CreateAddon: "AccessDenied: the service account may not be changed"},
			false, same,
			"AWS reports CREATE_FAILED: AccessDenied: the service account may not be changed", 20 * time.Minute,
		},
		{
			"creation of a Fargate profile", ekssim.Faults{CreateFargate: "AccessDenied: the role may not be used"}, true, func(m *manifest.Cluster) {
				late := m.EKS.Fargate[0].DeepCopy()
				late.Name, late.Spec.ProfileName = "late", "late"
				m.EKS.Fargate = append(m.EKS.Fargate, late)
			}, "AWS reports CREATE_FAILED: AccessDenied: the role may not be used", 10 * time.Minute,
		},
		{"update of an add-on", ekssim.Faults{Update: "AdmissionRequestDenied: a webhook denied the request"}, true, func(m *manifest.Cluster) {
			(*m.EKS.ControlPlane.Spec.Addons)[0].Configuration = `{"env":{"WARM_IP_TARGET":"7"}}`
		}, "update failed: AdmissionRequestDenied: a webhook denied the request", 4 * time.Minute},
		{"update of a cluster", ekssim.Faults{Update: "IpNotAvailable: subnet-1 has no free addresses"}, true, func(m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.Logging.Scheduler = !m.EKS.ControlPlane.Spec.Logging.Scheduler
		}, "update failed: IpNotAvailable: subnet-1 has no free addresses", 4 * time.Minute},
		{"update of a cluster that EKS cancels", ekssim.Faults{Update: string(types.UpdateStatusCancelled)}, true, func(m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.Logging.Scheduler = !m.EKS.ControlPlane.Spec.Logging.Scheduler
		}, "AWS reports update cancelled", 4 * time.Minute},
		{"update of a node group", ekssim.Faults{Update: "PodEvictionFailure: Reached max retries while trying to evict pods"}, true, func(m *manifest.Cluster) {
			m.Pools[0].Managed.Spec.Labels = map[string]string{"tier": "new"}
		}, "update failed: PodEvictionFailure: Reached max retries while trying to evict pods", 4 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := load(t, same)
			changed := load(t, c.change)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				before := a.Inventory()
				if c.made {
					enginetest.MustApply(t, m, a)
				}
				a.Edit(func(s *awssim.State) { s.EKS.Faults = c.faults })
				began := time.Now()
				_, err := enginetest.Open(changed, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorContains(t, err, c.want)
				require.Less(t, time.Since(began), c.within)
				a.Edit(func(s *awssim.State) { s.EKS.Faults = ekssim.Faults{} })
				enginetest.MustApply(t, changed, a)
				enginetest.RequireNoChange(t, changed, a)
				enginetest.MustDelete(t, changed, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}
