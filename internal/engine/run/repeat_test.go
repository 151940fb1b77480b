package run_test

import (
	"testing"
	"testing/synctest"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A call that AWS refuses until the run gives up: the error says whether another run helps.
func TestRepeats(t *testing.T) {
	for code, want := range map[string]plan.Repeat{
		"InsufficientInstanceCapacity": plan.RepeatLater,
		"Unsupported":                  plan.RepeatAfterChange,
		"InvalidBlockDeviceMapping":    plan.RepeatAfterChange,
		"VcpuLimitExceeded":            plan.RepeatAfterChange,
		"UnauthorizedOperation":        plan.RepeatAfterChange,
		"InternalError":                plan.RepeatContinues,
	} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, enginetest.Quickstart)
				a := enginetest.Prepared(t, enginetest.Quickstart, m)
				p := a.Process()
				p.Refuse = func(_, op string) error {
					if op != "RunInstances" {
						return nil
					}
					return &smithy.GenericAPIError{Code: code, Message: "refused"}
				}
				_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.HalfwayError))
				assert.Equal(t, want, run.Repeats(err), "%v", err)
				enginetest.MustApply(t, m, a)
			})
		})
	}
}
