package eks_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ofVersions is the example with versions of the control plane and of the nodes.
func ofVersions(t *testing.T, plane, nodes string) *manifest.Cluster {
	t.Helper()
	m := enginetest.Rewritten(t, enginetest.EKSSmall, "  version: v1.34\n", "  version: "+plane+"\n")
	m.Pools[0].Object.Spec.Template.Spec.Version = nodes + ".0"
	return m
}

// upgradeByHand begins an upgrade of the control plane, as in the console. The update before it has ended.
func upgradeByHand(t *testing.T, a *awssim.AWS, version string) {
	t.Helper()
	_, err := eks.NewFromConfig(a.Config()).UpdateClusterVersion(t.Context(), &eks.UpdateClusterVersionInput{Name: aws.String("default_eks"), Version: &version})
	require.NoError(t, err)
}

// If somebody has started an upgrade to another version than that of the manifest, the plan has a conflict at once, and not only after the
// upgrade: EKS does not downgrade.
func TestUpgradeByHandIsAConflictAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ofVersions(t, "v1.33", "v1.33")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		began := time.Now()
		upgradeByHand(t, a, "1.34")
		reason := "somebody changes it to 1.34 now, and EKS does not change it back: set spec.version of the AWSManagedControlPlane to 1.34"
		requireNothingWritten(t, m, a, `version from "1.34" to "1.33"`, reason)
		require.Less(t, time.Since(began), time.Minute)
		status, err := look.Status(t.Context(), enginetest.Open(m, a.Process()))
		require.NoError(t, err)
		require.Contains(t, fmt.Sprintf("%+v", status), "1.33 → 1.34")

		time.Sleep(30 * time.Minute)
		m = ofVersions(t, "v1.34", "v1.33")
		enginetest.MustApply(t, m, a)
		group := &eks.UpdateNodegroupVersionInput{
			ClusterName:   aws.String("default_eks"),
			NodegroupName: aws.String("default_eks-pool-0"),
			Version:       aws.String("1.34"),
		}
		_, err = eks.NewFromConfig(a.Config()).UpdateNodegroupVersion(t.Context(), group)
		require.NoError(t, err)
		began = time.Now()
		requireNothingWritten(t, m, a, "node-group/default_eks-pool-0", "somebody changes it to 1.34 now", "spec.template.spec.version of the MachinePool to 1.34")
		require.Less(t, time.Since(began), time.Minute)
	})
}

// If somebody has started an upgrade to the version of the manifest, the run waits for it. If it is to an earlier version, the run waits for it and
// then upgrades further.
func TestUpgradeByHandIsWaitedFor(t *testing.T) {
	for want, upgrades := range map[string]int{"v1.34": 0, "v1.35": 1} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := ofVersions(t, "v1.33", "v1.33")
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				upgradeByHand(t, a, "1.34")
				m = ofVersions(t, want, "v1.33")
				p := enginetest.MustPlan(t, m, a)
				var changes []string
				for _, s := range p.Steps {
					if s.Resource == "eks-cluster" && s.Diff.Has("version") {
						changes = append(changes, s.Diff[len(s.Diff)-1].String())
					}
				}
				require.Len(t, changes, upgrades)
				calls := len(a.Calls())
				enginetest.MustApply(t, m, a)
				n := 0
				for _, c := range enginetest.Since(a, calls) {
					if c.Operation == "UpdateClusterVersion" {
						n++
					}
				}
				require.Equal(t, upgrades, n)
				enginetest.RequireNoChange(t, m, a)
			})
		})
	}
}

// The same is true for the authentication mode, which EKS does not change back either.
func TestAuthenticationByHandIsAConflictAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := byEntries(t, enginetest.EKSSmall)
		m.EKS.ControlPlane.Spec.AccessConfig.AuthenticationMode = "api_and_config_map"
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		_, err := eks.NewFromConfig(a.Config()).UpdateClusterConfig(t.Context(), &eks.UpdateClusterConfigInput{
			Name: aws.String("default_eks"), AccessConfig: &types.UpdateAccessConfigRequest{AuthenticationMode: types.AuthenticationModeApi},
		})
		require.NoError(t, err)
		requireNothingWritten(t, m, a, "somebody changes it to API now")
	})
}

// Without the permission to list updates, the run finds the conflict only after the upgrade.
func TestUpgradeByHandWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ofVersions(t, "v1.33", "v1.33")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		upgradeByHand(t, a, "1.34")
		p := enginetest.Refusing(a, "EKS", "ListUpdates", awssim.Denied)
		_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
		conflict := new(plan.ConflictError)
		require.ErrorAs(t, err, &conflict)
		require.Contains(t, conflict.Error(), "EKS does not downgrade")
	})
}

// A plan counts the time of an update of nodes that somebody else has started, and that the run waits for, as that of its own.
func TestTimeOfAnUpdateByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ofVersions(t, "v1.34", "v1.33")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		m = ofVersions(t, "v1.34", "v1.34")
		expected := enginetest.MustPlan(t, m, a).Expected
		_, err := eks.NewFromConfig(a.Config()).UpdateNodegroupVersion(t.Context(), &eks.UpdateNodegroupVersionInput{
			ClusterName: aws.String("default_eks"), NodegroupName: aws.String("default_eks-pool-0"), Version: aws.String("1.34"),
		})
		require.NoError(t, err)
		require.Equal(t, expected, enginetest.MustPlan(t, m, a).Expected)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
	})
}
