package lives_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// listings are operations whose answers have pages, and that a plan or a deletion of a cluster calls.
var listings = []string{
	"DescribeInstances", "DescribeNatGateways", "DescribeSubnets", "DescribeVpcs", "DescribeRouteTables", "DescribeSecurityGroups", "DescribeInternetGateways",
	"DescribeNetworkInterfaces", "DescribeLaunchTemplates", "DescribeAutoScalingGroups", "DescribeLoadBalancers", "DescribeTargetGroups", "DescribeListeners",
	"GetParametersByPath", "ListSecrets", "ListNodegroups", "ListAddons", "ListAttachedRolePolicies",
}

// A listing whose pages have no end is an error, which names the operation, and nothing is written
// because of what was read until then.
func TestEndlessListings(t *testing.T) {
	seen := map[string]bool{}
	faults := []awssim.Fault{awssim.Endless, awssim.Circle}
	for i, file := range []string{enginetest.ThreeZones, enginetest.MachinePool, "eks-iam.yaml"} {
		m := enginetest.LoadQuick(t, file)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Prepared(t, m)
			enginetest.MustApply(t, m, a)
			before := len(a.Calls())
			enginetest.MustPlan(t, m, a)
			_, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
			require.NoError(t, err)
			operations := map[string]bool{}
			for _, c := range enginetest.Since(a, before) {
				operations[c.Operation] = true
			}
			state := enginetest.WithoutLock(a)
			for _, op := range slices.Sorted(maps.Keys(operations)) {
				for n, fault := range faults {
					if n != i%2 && !enginetest.Sweeping() {
						continue
					}
					seen[op] = endless(t, m, a, op, fault) || seen[op]
				}
			}
			require.Equal(t, state, enginetest.WithoutLock(a))
		})
	}
	for _, op := range listings {
		require.True(t, seen[op], "%s has not ended with an error", op)
	}
}

// endless plans, and plans a deletion, while the pages of an operation have no end. It reports whether
// that was an error.
func endless(t *testing.T, m *manifest.Cluster, a *awssim.AWS, op string, fault awssim.Fault) (ended bool) {
	t.Helper()
	for what, run := range map[string]func(*run.Cluster) error{
		"plan":   func(c *run.Cluster) error { _, err := c.Plan(t.Context()); return err },
		"delete": func(c *run.Cluster) error { _, err := c.PlanDelete(t.Context(), cluster.Options{}); return err },
	} {
		p := a.Process()
		p.Fault = func(n int, _, name string) awssim.Fault {
			switch {
			case n > 2000: // it has no end
				return awssim.KillBefore
			case name == op:
				return fault
			}
			return awssim.None
		}
		err := run(enginetest.Open(m, p))
		require.NotErrorIs(t, err, context.Canceled, "%s %s: no end", what, op)
		if repeated := new(awshttp.RepeatedPageError); errors.As(err, &repeated) {
			require.Equal(t, op, repeated.Operation)
			ended = true
		}
	}
	return ended
}
