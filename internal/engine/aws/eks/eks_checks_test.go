package eks_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// EKS accepts the association of an identity provider, or its end, and fails later: the provider is not
// there, or stays. The run ends with the reason of the update.
func TestIdentityProvidersThatFail(t *testing.T) {
	const file = "eks-iam.yaml"
	const why = "ConfigurationConflict: the issuer cannot be reached"
	for what, change := range map[string]func(s *awssim.State, m *manifest.Cluster){
		"association": func(s *awssim.State, _ *manifest.Cluster) { clear(enginetest.Plane(s).Providers) },
		"disassociation": func(_ *awssim.State, m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.OIDCIdentityProviderConfig.ClientID = "another"
		},
	} {
		t.Run(what, func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				a.Edit(func(s *awssim.State) {
					change(s, m)
					s.EKS.Faults.Update = why
				})
				for _, n := range []string{"first", "next"} {
					began := time.Now()
					_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
					require.ErrorContains(t, err, "identity-provider/company", n)
					require.ErrorContains(t, err, "AWS reports update failed: "+why, n)
					require.Less(t, time.Since(began), ekssim.ProviderTakes+2*time.Minute, n)
				}
				a.Edit(func(s *awssim.State) { s.EKS.Faults.Update = "" })
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
			})
		})
	}
}

// EKS does not store the end of the last line of a configuration, which a block of YAML has.
func TestConfigurationOfAddonThatEndsWithNewline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.EKSAddons)
		addons := *m.EKS.ControlPlane.Spec.Addons
		addons[0].Configuration += "\n"
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		addons[0].Configuration = `{"env":{"WARM_IP_TARGET":"7"}}` + "\n\n"
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
	})
}

// A run with a version of an add-on that EKS does not offer is refused before the first write.
func TestVersionsOfAddonsAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.EKSAddons, nil)
		addons := *m.EKS.ControlPlane.Spec.Addons
		addons[0].Version = "v1.99.0-eksbuild.1"
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "addon/"+addons[0].Name+" (eks-addons.yaml:")
		require.ErrorContains(t, err, "EKS has no version v1.99.0-eksbuild.1 of the add-on "+addons[0].Name+" for Kubernetes 1.34: use one of v")
		require.Empty(t, enginetest.Writes(a.Calls()))
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
			m := enginetest.Load(t, "eks.yaml", nil)
			m.Pools[0].Managed.Spec.InstanceType = &name
			a := enginetest.Prepared(t, m)
			_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, want)
			require.Empty(t, enginetest.Writes(a.Calls()))
		})
	}
}

// A plan refuses images that do not start on an instance type, and warns of images without a driver for its accelerators.
func TestAcceleratorsOfNodeGroups(t *testing.T) {
	for _, x := range []struct {
		image         expinfrav1.ManagedMachineAMIType
		kind          string
		refused, told string
	}{
		{"BOTTLEROCKET_x86_64_NVIDIA", "t3.large", "nodes do not join: the instance type t3.large has no GPU of NVIDIA", "are for GPUs of NVIDIA"},
		{"BOTTLEROCKET_x86_64_NVIDIA", "g4dn.xlarge", "", ""},
		{"AL2023_x86_64_NVIDIA", "t3.large", "", "the images of amiType AL2023_x86_64_NVIDIA are for GPUs of NVIDIA, and the instance type t3.large has none"},
		{"AL2023_x86_64_NVIDIA", "g4ad.xlarge", "", "the instance type g4ad.xlarge has none"},
		{"AL2023_x86_64_NVIDIA", "g5.xlarge", "", ""},
		{"AL2023_x86_64_STANDARD", "g5.xlarge", "", "the instance type g5.xlarge has GPUs of NVIDIA, and the images of amiType AL2023_x86_64_STANDARD have no driver"},
		{"AL2023_x86_64_NEURON", "t3.large", "", "are for AWS Inferentia and Trainium"},
		{"AL2023_x86_64_NEURON", "inf2.xlarge", "", ""},
		{"AL2023_x86_64_STANDARD", "t3.large", "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Load(t, "eks.yaml", nil)
			m.Pools[0].Managed.Spec.AMIType, m.Pools[0].Managed.Spec.InstanceType = &x.image, &x.kind
			a := enginetest.Prepared(t, m)
			var told []string
			_, err := run.Open(m, cluster.Target{Config: a.Config(), Warn: func(s string) { told = append(told, s) }}).Plan(t.Context())
			if x.refused == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, x.refused)
			}
			told = slices.DeleteFunc(told, func(s string) bool { return !strings.Contains(s, "amiType") })
			if x.told == "" {
				require.Empty(t, told)
				return
			}
			require.Len(t, told, 1)
			require.Contains(t, told[0], x.told)
			require.Contains(t, told[0], "eks.yaml:")
		})
	}
}

// In IPv6 clusters, pods have addresses on instances of the Nitro System only.
func TestInstanceTypesOfIPv6Clusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "eks-ipv6.yaml", nil)
		kind := "t2.large"
		m.Pools[0].Managed.Spec.InstanceType = &kind
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "which t2.large is not")
		require.Empty(t, enginetest.Writes(a.Calls()))
	})
}

// A self-managed installation conflicts with an add-on that may not overwrite it. Each run says
// so as soon as EKS does, and does not wait for the driver of volumes, whose nodes need the pod network;
// with conflictResolution: overwrite, the next one mends the add-on.
func TestConflictOfAddonIsReported(t *testing.T) {
	for _, resolution := range []ekscontrolplanev1.AddonResolution{ekscontrolplanev1.AddonResolutionNone, ekscontrolplanev1.AddonResolutionPreserve} {
		t.Run(string(resolution), func(t *testing.T) {
			m, mended := enginetest.Load(t, enginetest.EKSAddons, nil), enginetest.Load(t, enginetest.EKSAddons, nil)
			for i := range *m.EKS.ControlPlane.Spec.Addons {
				(*m.EKS.ControlPlane.Spec.Addons)[i].ConflictResolution = &resolution
			}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				const reason = "ConfigurationConflict: Conflicts found when trying to apply. Will not continue due to resolve conflicts mode. (conflictResolution: overwrite replaces the objects that conflict)"
				for i, limit := range []time.Duration{20 * time.Minute, 3 * time.Minute} {
					began := time.Now()
					_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
					require.ErrorContains(t, err, reason)
					require.Less(t, time.Since(began), limit, "run %d", i)
				}
				enginetest.MustApply(t, mended, a)
				enginetest.RequireNoChange(t, mended, a)
			})
		})
	}
}

// EKS keeps the role of an add-on that an update does not name, so that removing it from the
// manifest is a conflict before the first write.
func TestRoleOfAddonCannotBeRemoved(t *testing.T) {
	with, without := enginetest.Load(t, enginetest.EKSAddons, nil), enginetest.Load(t, enginetest.EKSAddons, nil)
	synctest.Test(t, func(t *testing.T) {
		role := "arn:aws:iam::123456789012:role/cni"
		(*with.EKS.ControlPlane.Spec.Addons)[0].ServiceAccountRoleArn = &role
		a := enginetest.Prepared(t, with)
		enginetest.MustApply(t, with, a)
		began := time.Now()
		_, err := enginetest.Open(without, a.Process()).Apply(t.Context(), cluster.Options{})
		var refused *plan.RefusedError
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "EKS keeps the role of an add-on when an update names none: set it again, or name another role")
		require.Less(t, time.Since(began), time.Minute)
		enginetest.MustApply(t, with, a)
	})
}

// An add-on that is DEGRADED takes the update that cures it, instead of a wait until it is ACTIVE.
func TestDegradedAddonIsUpdated(t *testing.T) {
	const file = "eks-fargate.yaml"
	broken, m := enginetest.LoadQuick(t, file), enginetest.LoadQuick(t, file)
	for i := range *broken.EKS.ControlPlane.Spec.Addons {
		(*broken.EKS.ControlPlane.Spec.Addons)[i].Configuration = ""
	}
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		_, err := enginetest.Open(broken, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "DEGRADED: InsufficientNumberOfReplicas")
		began := time.Now()
		enginetest.MustApply(t, m, a)
		require.Less(t, time.Since(began), 5*time.Minute)
		enginetest.RequireNoChange(t, m, a)
	})
}

// EKS gives up on a node group whose nodes do not become ready, and does not say why. The error of the run says why one of them is not ready.
func TestNodesOfNodeGroupsAreDiagnosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, "eks.yaml")
		m.EKS.ControlPlane.Spec.VpcCni.Disable = true
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
		var failed *graph.FailedError
		require.ErrorAs(t, err, &failed)
		require.Contains(t, failed.Reason, "Unhealthy nodes in the kubernetes cluster")
		require.Len(t, failed.Findings, 1)
		assert.Contains(t, failed.Findings[0], "cni plugin not initialized")
		assert.Contains(t, failed.Findings[0], "The cluster has no pod network")
		assert.Contains(t, failed.Command, "kubectl describe node ip-")
	})
}
