package elb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// What AWS does not change is a conflict also while it provisions a load balancer.
func TestConflictWhileProvisioning(t *testing.T) {
	have := &elb.LoadBalancerState{Name: "a", Status: "provisioning"}
	require.Equal(t, plan.Settle, (&elb.LoadBalancer{Name: "a"}).Diff(have).Action())
	require.Equal(t, plan.Conflict, (&elb.LoadBalancer{Name: "a", Internal: true}).Diff(have).Action())
}
