package eks_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// EKS takes the upgrade policy standard for versions in standard support only: a plan refuses it for others, and an upgrade
// to such a version comes before the policy.
func TestUpgradePolicyInExtendedSupport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks.yaml"
		at := func(version, policy string) *manifest.Cluster {
			m := enginetest.Load(t, file, nil)
			m.Version, m.EKS.ControlPlane.Spec.Version = version, &version
			m.EKS.ControlPlane.Spec.UpgradePolicy = ekscontrolplanev1.UpgradePolicy(policy)
			m.Pools[0].Object.Spec.Template.Spec.Version = version
			return m
		}
		refused := func(m *manifest.Cluster, a *awssim.AWS) {
			t.Helper()
			_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, "needs a version in standard support, and that of Kubernetes 1.33 has ended: set upgradePolicy: extended, or upgrade")
		}
		a := enginetest.Account(at("v1.33.0", "extended"), enginetest.Lag)
		enginetest.Prepare(t, a, at("v1.33.0", "extended"))
		refused(at("v1.33.0", "standard"), a)
		enginetest.MustApply(t, at("v1.33.0", "extended"), a)
		refused(at("v1.33.0", "standard"), a)
		enginetest.MustApply(t, at("v1.34.0", "standard"), a)
		a.Edit(func(s *awssim.State) { assert.Equal(t, "STANDARD", onlyCluster(t, s).Support) })
		enginetest.RequireNoChange(t, at("v1.34.0", "standard"), a)
	})
}

// Settings that EKS takes only when it creates a cluster, and does not return: a run that changes them is refused with the
// reason. A cluster without the note of a run, which another tool has made, is not compared.
func TestSettingsOfCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "eks.yaml"
		load := func(addons, admin bool) *manifest.Cluster {
			m := enginetest.Load(t, file, nil)
			m.EKS.ControlPlane.Spec.BootstrapSelfManagedAddons = addons
			m.EKS.ControlPlane.Spec.AccessConfig = &ekscontrolplanev1.AccessConfig{
				AuthenticationMode: ekscontrolplanev1.EKSAuthenticationModeAPIAndConfigMap, BootstrapClusterCreatorAdminPermissions: &admin,
			}
			return m
		}
		a := enginetest.Account(load(true, true), enginetest.Lag)
		enginetest.Prepare(t, a, load(true, true))
		enginetest.MustApply(t, load(true, true), a)
		enginetest.RequireNoChange(t, load(true, true), a)
		conflict := func(m *manifest.Cluster, want string) {
			t.Helper()
			_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.ConflictError))
			require.ErrorContains(t, err, want)
		}
		conflict(
			load(false, true),
			`cannot change bootstrapSelfManagedAddons from "true" to "false": EKS installs the VPC CNI, CoreDNS and kube-proxy only when it creates a cluster: set bootstrapSelfManagedAddons: true again`,
		)
		conflict(
			load(true, false),
			`cannot change accessConfig.bootstrapClusterCreatorAdminPermissions from "true" to "false": EKS makes the creator an administrator only when it creates a cluster`,
		)
		a.Edit(func(s *awssim.State) { delete(onlyCluster(t, s).Tags, "clusterawsadm/created-with") })
		enginetest.RequireNoChange(t, load(false, true), a)
	})
}
