package teardown_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
)

// CAPA has one task for load balancers of all types, for which there are two kinds.
func TestCollectsLoadBalancers(t *testing.T) {
	for _, kind := range []string{elb.LoadBalancerKind, elb.ClassicLoadBalancerKind} {
		assert.True(t, teardown.Collects(nil, kind), kind)
		assert.True(t, teardown.Collects(map[string]string{teardown.CollectTasksAnnotation: "security-group,load-balancer"}, kind), kind)
		assert.False(t, teardown.Collects(map[string]string{teardown.CollectTasksAnnotation: "security-group"}, kind), kind)
		assert.False(t, teardown.Collects(map[string]string{teardown.CollectAnnotation: "false"}, kind), kind)
	}
	assert.True(t, teardown.Collects(map[string]string{teardown.CollectAnnotation: "false"}, ec2.VolumeKind))
}
