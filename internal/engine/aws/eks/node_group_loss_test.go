package eks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// terminateNodes terminates instances of the node groups, as somebody in the console does. It returns their IDs.
func terminateNodes(t *testing.T, a *awssim.AWS, n int) []string {
	t.Helper()
	var ids []string
	a.Edit(func(s *awssim.State) {
		for _, g := range enginetest.Plane(s).NodeGroups {
			ids = append(ids, g.Instances...)
		}
	})
	ids = ids[:n]
	_, err := ec2.NewFromConfig(a.Config()).TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids})
	require.NoError(t, err)
	return ids
}

// nodesOf returns the number of Nodes now.
func nodesOf(a *awssim.AWS) int {
	a.Inventory()
	return len(enginetest.NodeNames(a))
}

// A node of a node group that somebody has terminated is replaced by its Auto Scaling group. A run that waits for Nodes waits for the new one;
// another one has nothing to do.
func TestNodeGroupReplacesANode(t *testing.T) {
	for _, wait := range []plan.Wait{plan.Infrastructure, plan.APIServer, plan.NodesJoined, plan.NodesReady} {
		t.Run(string(wait), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, enginetest.EKSAddons, nil)
				a := enginetest.Prepared(t, m)
				_, err := enginetest.Waiting(m, a.Process(), wait).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				time.Sleep(10 * time.Minute)
				before := nodesOf(a)
				terminateNodes(t, a, 1)
				p, err := enginetest.Waiting(m, a.Process(), wait).Plan(t.Context())
				require.NoError(t, err)
				for _, s := range p.Steps { // only Nodes are missing
					require.True(t, !s.Does() || s.Resource.Kind() == "nodes" && s.Action == plan.Await, "%v", s)
				}
				require.Equal(t, wait != plan.NodesJoined && wait != plan.NodesReady, p.Empty())
				began := time.Now()
				_, err = enginetest.Waiting(m, a.Process(), wait).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.NoError(t, err)
				require.Less(t, time.Since(began), 5*time.Minute)
				time.Sleep(10 * time.Minute)
				require.Equal(t, before, nodesOf(a))
				p, err = enginetest.Waiting(m, a.Process(), wait).Plan(t.Context())
				require.NoError(t, err)
				require.True(t, p.Empty(), "%v", p.Steps)
			})
		})
	}
}
