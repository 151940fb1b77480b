package ec2_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	simec2 "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/look"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// logged returns the quick start with annotations of the AWSCluster.
func logged(t *testing.T, annotations string) *manifest.Cluster {
	const infra = "kind: AWSCluster\nmetadata:\n"
	return enginetest.Rewritten(t, enginetest.Quickstart, infra, infra+"  annotations: {"+annotations+"}\n")
}

// flowLogs lists the flow logs of an account.
func flowLogs(a *awssim.AWS) (out []simec2.FlowLog) {
	a.Edit(func(s *awssim.State) {
		for _, f := range s.EC2.FlowLogs {
			out = append(out, *f)
		}
	})
	return out
}

// A flow log goes to a bucket or to a log group. It cannot be changed: one with other settings takes
// its place. The value none deletes it.
func TestFlowLog(t *testing.T) {
	const group = "clusterawsadm/flow-logs: /vpc/logs, clusterawsadm/flow-logs-role: 'arn:aws:iam::123456789012:role/logs'"
	synctest.Test(t, func(t *testing.T) {
		m := logged(t, "clusterawsadm/flow-logs: 'arn:aws:s3:::logs/vpc'")
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		first := flowLogs(a)
		require.Len(t, first, 1)
		assert.Equal(t, "ALL", first[0].Traffic)
		assert.Equal(t, "arn:aws:s3:::logs/vpc", first[0].Bucket)
		enginetest.RequireNoChange(t, m, a)

		m = logged(t, group+", clusterawsadm/flow-logs-traffic: REJECT")
		p := enginetest.MustPlan(t, m, a)
		at := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Resource == "flow-log" })
		assert.Equal(t, plan.Update, p.Steps[at].Action)
		enginetest.MustApply(t, m, a)
		second := flowLogs(a)
		require.Len(t, second, 1)
		assert.NotEqual(t, first[0].ID, second[0].ID)
		assert.Equal(t, []string{"REJECT", "/vpc/logs", "", "arn:aws:iam::123456789012:role/logs"},
			[]string{second[0].Traffic, second[0].LogGroup, second[0].Bucket, second[0].Role})
		enginetest.RequireNoChange(t, m, a)

		m = logged(t, "clusterawsadm/flow-logs: none")
		enginetest.MustApply(t, m, a)
		require.Empty(t, flowLogs(a))
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
	})
}

// CreateFlowLogs succeeds, and says in its answer that it has created none. A run fails with the
// reason, and another one continues when that is mended.
func TestFlowLogIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := logged(t, "clusterawsadm/flow-logs: 'arn:aws:s3:::logs'")
		a := enginetest.Account(m, enginetest.Lag)
		a.Edit(func(s *awssim.State) {
			s.EC2.FlowLogRefusal = "400: Access Denied for LogDestination: logs. Please check LogDestination permission"
		})
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "Access Denied for LogDestination: logs")
		require.Empty(t, flowLogs(a))
		a.Edit(func(s *awssim.State) { s.EC2.FlowLogRefusal = "" })
		enginetest.MustApply(t, m, a)
		require.Len(t, flowLogs(a), 1)
		enginetest.MustDelete(t, m, a)
		require.Empty(t, flowLogs(a))
	})
}

// AWS creates a flow log whose records it cannot deliver, and says so minutes later: the status of the
// cluster has the reason.
func TestFlowLogThatDeliversNothing(t *testing.T) {
	for failure, want := range map[string]string{"": "ok to arn:aws:s3:::logs", "Access error": "differs records are not delivered: Access error"} {
		synctest.Test(t, func(t *testing.T) {
			m := logged(t, "clusterawsadm/flow-logs: 'arn:aws:s3:::logs'")
			a := enginetest.Account(m, enginetest.Lag)
			a.Edit(func(s *awssim.State) { s.EC2.FlowLogFailure = failure })
			enginetest.MustApply(t, m, a)
			time.Sleep(2 * simec2.FlowLogDelivers)
			enginetest.RequireNoChange(t, m, a)
			status, err := look.Status(t.Context(), enginetest.Open(m, a.Process()))
			require.NoError(t, err)
			at := slices.IndexFunc(status.Resources, func(r cluster.ResourceStatus) bool { return r.Resource == "flow-log" })
			assert.Equal(t, want, status.Resources[at].State+" "+status.Resources[at].Detail)
		})
	}
}
