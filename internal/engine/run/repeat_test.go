package run_test

import (
	"testing"
	"testing/synctest"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
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
		"InvalidGroup.NotFound":        plan.RepeatContinues,
		"SpotMaxPriceTooLow":           plan.RepeatAfterChange,
		"InvalidSubnetID.Malformed":    plan.RepeatAfterChange,
	} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, enginetest.Quickstart)
				a := enginetest.Prepared(t, m)
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

// What another run helps after errors that are no answers of AWS.
func TestRepeatsOfOtherErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want plan.Repeat
	}{
		{&graph.FailedError{Reason: "CREATE_FAILED: NodeCreationFailure: Unhealthy nodes in the kubernetes cluster"}, plan.RepeatCheck},
		{&graph.FailedError{Reason: "CREATE_FAILED: AsgInstanceLaunchFailures: We currently do not have sufficient m5.large capacity"}, plan.RepeatLater},
		{&kube.UnknownKindError{}, plan.RepeatAfterChange},
		{apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "x", nil), plan.RepeatAfterChange},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "x", nil), plan.RepeatAfterChange},
		{apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "x", nil), plan.RepeatContinues},
		{apierrors.NewServiceUnavailable("x"), plan.RepeatContinues},
	} {
		assert.Equal(t, c.want, run.Repeats(&plan.HalfwayError{Err: &plan.ResourceError{Err: c.err}}), "%v", c.err)
	}
}
