package eks_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// If a run ends after it has deleted a node group, and before it has deleted the role of its nodes, the next one deletes the role. It finds the
// role by the access entry that EKS has made for it. An entry of somebody else, of the standard type, stays with its role.
func TestRoleOfNodesAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := enginetest.LoadQuick(t, "eks-iam.yaml"), enginetest.LoadQuick(t, "eks-iam.yaml")
		for i := range before.Pools {
			before.Pools[i].Managed.Spec.RoleName = "old-nodes"
			after.Pools[i].Managed.Spec.RoleName = "new-nodes"
			after.Pools[i].Managed.Spec.EKSNodegroupName = fmt.Sprintf("new-%d", i)
		}
		a := enginetest.Prepared(t, before)
		enginetest.MustApply(t, before, a)
		const ops = "arn:aws:iam::123456789012:role/ops"
		a.Edit(func(s *awssim.State) {
			s.IAM.Roles["ops"] = &awssim.Role{Name: "ops"}
			enginetest.Plane(s).Access[ops] = &ekssim.Access{Principal: ops, Type: "STANDARD"}
		})
		_, err := enginetest.Open(after, enginetest.Refusing(a, "IAM", "DeleteRole", awssim.Denied)).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "old-nodes")
		a.Edit(func(s *awssim.State) { require.NotNil(t, s.IAM.Roles["old-nodes"]) })
		p := enginetest.MustPlan(t, after, a)
		require.Contains(t, enginetest.Done(p), "delete role/old-nodes")
		require.NotContains(t, fmt.Sprint(enginetest.Done(p)), "ops")
		enginetest.MustApply(t, after, a)
		a.Edit(func(s *awssim.State) {
			require.Nil(t, s.IAM.Roles["old-nodes"])
			require.NotNil(t, s.IAM.Roles["ops"])
			require.NotNil(t, enginetest.Plane(s).Access[ops])
		})
		enginetest.RequireNoChange(t, after, a)
	})
}

// The node groups of a stopped cluster are empty, and have their size again when it starts. A number of nodes that an autoscaler has chosen since
// then is no difference.
func TestStopAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.EKSSmall)
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		size := func() (out string) {
			a.Inventory() // it lets time take effect
			a.Edit(func(s *awssim.State) {
				for _, g := range enginetest.Plane(s).NodeGroups {
					out = fmt.Sprintf("%d to %d, %d of %d", g.Least, g.Most, len(g.Instances), g.Desired)
				}
			})
			return out
		}
		power := func() *run.Cluster {
			p := a.Process()
			return run.OpenByName(m.Name, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Cost: true})
		}
		before := size()
		planned, err := power().PlanStop(t.Context())
		require.NoError(t, err)
		assert.Less(t, planned.Cost.After, planned.Cost.Before)
		_, err = power().Stop(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Regexp(t, `^0 to \d, 0 of 0$`, size())
		again, err := power().Stop(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.True(t, again.Plan.Empty(), "%v", enginetest.Steps(again.Plan))
		started, err := power().Start(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, before, size())
		assert.Greater(t, started.Plan.Cost.After, started.Plan.Cost.Before)
		a.Edit(func(s *awssim.State) {
			for _, g := range enginetest.Plane(s).NodeGroups {
				g.Desired++
			}
		})
		time.Sleep(10 * time.Minute)
		again, err = power().Start(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.True(t, again.Plan.Empty(), "%v", enginetest.Steps(again.Plan))
	})
}
