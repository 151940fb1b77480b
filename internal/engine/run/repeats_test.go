package run_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// When a call fails and is repeated, the events of the resource report the error and the
// number of attempts. After a successful call, the event from before is sent again.
func TestRepeatsAreEvents(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	m.Infra.Spec.NetworkSpec.VPC.AvailabilityZoneUsageLimit = new(1)
	for op, want := range map[string][]string{
		"CreateNatGateway": {
			"creating", "waiting for AWS: EC2 CreateNatGateway: InternalError, attempt 3 of 8", "waiting for AWS: EC2 CreateNatGateway: InternalError, attempt 4 of 8",
			"waiting for AWS: EC2 CreateNatGateway: InternalError, attempt 5 of 8", "waiting for state to become available, is pending", "done",
		},
		"DescribeNatGateways": {
			"creating", "waiting for state to become available, is pending", "waiting for AWS: EC2 DescribeNatGateways: InternalError, attempt 3 of 8",
			"waiting for AWS: EC2 DescribeNatGateways: InternalError, attempt 4 of 8", "waiting for AWS: EC2 DescribeNatGateways: InternalError, attempt 5 of 8", "done",
		},
	} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, failures := enginetest.Account(m, enginetest.Lag), 0
				p, began := a.Process(), time.Now()
				p.Fault = func(_ int, _, called string) awssim.Fault {
					if called == op && failures < 4 && (op == "CreateNatGateway" || time.Since(began) > time.Minute) {
						failures++
						return awssim.Broken
					}
					return awssim.None
				}
				var told []string
				_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{Observe: func(e plan.Event) {
					if e.Resource.Kind() != "nat-gateway" {
						return
					}
					text := string(e.What)
					if e.Detail != "" {
						text += " for " + e.Detail
					}
					told = append(told, text)
				}})
				require.NoError(t, err)
				require.Equal(t, want, slices.Compact(told))
			})
		})
	}
}

// Before the first event, while the run reads the account, repeated calls are reported as
// warnings.
func TestRepeatsAreWarnings(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	synctest.Test(t, func(t *testing.T) {
		p, failures := enginetest.Account(m, enginetest.Lag).Process(), 0
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "DescribeVpcs" && failures < 3 {
				failures++
				return awssim.Throttled
			}
			return awssim.None
		}
		var warned []string
		target := cluster.Target{Config: p.Config(), Transport: enginetest.Transport(p), Warn: func(text string) { warned = append(warned, text) }}
		_, err := run.Open(m, target).Plan(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"EC2 DescribeVpcs: RequestLimitExceeded, throttled for 1s"}, warned)
	})
}

// A run that AWS throttles for longer than any of its resources may take ends well, and says who has throttled it and
// for how long. Another resource does not give up meanwhile: it waits for the same limits.
func TestThrottledTimeDoesNotCount(t *testing.T) {
	m := enginetest.LoadQuick(t, enginetest.Quickstart)
	synctest.Test(t, func(t *testing.T) {
		p, began := enginetest.Account(m, enginetest.Lag).Process(), time.Now()
		throttled := func() bool {
			since := time.Since(began)
			return since > 30*time.Second && since < 50*time.Minute
		}
		p.Fault = func(_ int, service, op string) awssim.Fault {
			if throttled() && (op == "DescribeNatGateways" || service == "Elastic Load Balancing v2") {
				return awssim.Throttled
			}
			return awssim.None
		}
		res, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.InDelta(t, 50, res.Late.Minutes(), 2)
		require.Subset(t, []string{"EC2", "Elastic Load Balancing v2"}, res.ThrottledBy)
		require.Contains(t, res.ThrottledBy, "EC2")
		require.Positive(t, res.Throttled)
		require.Less(t, res.Took, 56*time.Minute)
	})
}
