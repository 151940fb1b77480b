package reconcile_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// EKS accepts an update or a creation, and fails later. The run ends at once with the reason
// of EKS, and the next one tries again.
func TestEKSFails(t *testing.T) {
	const file = "../../configs/eks-addons.yaml"
	load := func(t *testing.T, change func(*manifest.Cluster)) *manifest.Cluster {
		t.Helper()
		m := loadQuick(t, file)
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
			"EKS could not create it: NodeCreationFailure: Instances failed to join the kubernetes cluster", 20 * time.Minute,
		},
		{"update of a cluster", ekssim.Faults{Update: "IpNotAvailable: subnet-1 has no free addresses"}, true, func(m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.Logging.Scheduler = !m.EKS.ControlPlane.Spec.Logging.Scheduler
		}, "update failed: IpNotAvailable: subnet-1 has no free addresses", 4 * time.Minute},
		{"update of a node group", ekssim.Faults{Update: "PodEvictionFailure: Reached max retries while trying to evict pods"}, true, func(m *manifest.Cluster) {
			m.Pools[0].Managed.Spec.Labels = map[string]string{"tier": "new"}
		}, "update failed: PodEvictionFailure: Reached max retries while trying to evict pods", 4 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := load(t, same)
			changed := load(t, c.change)
			synctest.Test(t, func(t *testing.T) {
				a := prepared(t, file, m)
				before := a.Inventory()
				if c.made {
					mustApply(t, m, a)
				}
				a.Edit(func(s *awssim.State) { s.EKS.Faults = c.faults })
				began := time.Now()
				_, err := open(changed, a.Process()).Apply(t.Context(), reconcile.Options{})
				require.ErrorContains(t, err, c.want)
				require.Less(t, time.Since(began), c.within)
				a.Edit(func(s *awssim.State) { s.EKS.Faults = ekssim.Faults{} })
				mustApply(t, changed, a)
				requireNoChange(t, changed, a)
				mustDelete(t, changed, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// EKS accepts the deletion of a node group and fails later. The run says why, and the next
// one tries again.
func TestDeletionOfNodeGroupFails(t *testing.T) {
	const file = "../../configs/eks-addons.yaml"
	m := loadQuick(t, file)
	synctest.Test(t, func(t *testing.T) {
		a := prepared(t, file, m)
		before := a.Inventory()
		mustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			s.EKS.Faults.DeleteNodeGroup = "Ec2SecurityGroupDeletionFailure: DependencyViolation for sg-1"
		})
		began := time.Now()
		_, err := open(m, a.Process()).Delete(t.Context(), reconcile.Options{})
		require.ErrorContains(t, err, "delete: Ec2SecurityGroupDeletionFailure: DependencyViolation for sg-1")
		require.Less(t, time.Since(began), 10*time.Minute)
		a.Edit(func(s *awssim.State) { s.EKS.Faults = ekssim.Faults{} })
		mustDelete(t, m, a)
		require.Equal(t, before, a.Inventory())
	})
}

// A run with a version of an add-on that EKS does not offer is refused before the first write.
func TestVersionsOfAddonsAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := load(t, eksAddons, nil)
		addons := *m.EKS.ControlPlane.Spec.Addons
		addons[0].Version = "v1.99.0-eksbuild.1"
		a := prepared(t, eksAddons, m)
		_, err := open(m, a.Process()).Apply(t.Context(), reconcile.Options{})
		require.ErrorAs(t, err, new(*reconcile.RefusedError))
		require.ErrorContains(t, err, "addon/"+addons[0].Name+" (eks-addons.yaml:")
		require.ErrorContains(t, err, "EKS has no version v1.99.0-eksbuild.1 of the add-on "+addons[0].Name+" for Kubernetes 1.34: use one of v")
		require.Empty(t, writes(a.Calls()))
	})
}

// A run with an instance type that does not exist, or that cannot run the images of its node
// group, is refused before the first write.
func TestInstanceTypesOfNodeGroupsAreChecked(t *testing.T) {
	for name, want := range map[string]string{
		"m6g.large":  "the instance type m6g.large is arm64, and the images of amiType AL2023_x86_64_STANDARD are x86_64: change one of them",
		"m99.xlarge": "there is no instance type m99.xlarge in us-east-1",
	} {
		synctest.Test(t, func(t *testing.T) {
			m := load(t, "../../configs/eks.yaml", nil)
			m.Pools[0].Managed.Spec.InstanceType = &name
			a := prepared(t, "../../configs/eks.yaml", m)
			_, err := open(m, a.Process()).Apply(t.Context(), reconcile.Options{})
			require.ErrorAs(t, err, new(*reconcile.RefusedError))
			require.ErrorContains(t, err, want)
			require.Empty(t, writes(a.Calls()))
		})
	}
}
