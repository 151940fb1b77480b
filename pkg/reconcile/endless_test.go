package reconcile_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
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
	for i, file := range []string{threeZones, machinePool, "../../configs/eks-iam.yaml"} {
		m := loadQuick(t, file)
		synctest.Test(t, func(t *testing.T) {
			a := prepared(t, file, m)
			mustApply(t, m, a)
			before := len(a.Calls())
			mustPlan(t, m, a)
			_, err := open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
			require.NoError(t, err)
			operations := map[string]bool{}
			for _, c := range since(a, before) {
				operations[c.Operation] = true
			}
			state := withoutLock(a)
			for _, op := range slices.Sorted(maps.Keys(operations)) {
				for n, fault := range faults {
					if n != i%2 && !sweeping() {
						continue
					}
					seen[op] = endless(t, m, a, op, fault) || seen[op]
				}
			}
			require.Equal(t, state, withoutLock(a))
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
	for what, run := range map[string]func(*reconcile.Cluster) error{
		"plan":   func(c *reconcile.Cluster) error { _, err := c.Plan(t.Context()); return err },
		"delete": func(c *reconcile.Cluster) error { _, err := c.PlanDelete(t.Context(), cluster.Options{}); return err },
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
		err := run(open(m, p))
		require.NotErrorIs(t, err, context.Canceled, "%s %s: no end", what, op)
		if repeated := new(awshttp.RepeatedPageError); errors.As(err, &repeated) {
			require.Equal(t, op, repeated.Operation)
			ended = true
		}
	}
	return ended
}
