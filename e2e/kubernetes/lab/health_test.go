package lab

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The thresholds of a target group count consecutive checks.
func TestHealthThresholds(t *testing.T) {
	check := healthCheck{Healthy: 2, Unhealthy: 3}
	var h health
	for i, step := range []struct{ passed, healthy bool }{
		{true, false},
		{false, false},
		{true, false},
		{true, true},
		{false, true},
		{false, true},
		{true, true},
		{false, true},
		{false, true},
		{false, false},
		{true, false},
	} {
		h.note(check, step.passed)
		assert.Equal(t, step.healthy, h.healthy, "after check %d", i+1)
	}
}

// A load balancer sends connections to all targets if none is healthy.
func TestEligibleTargets(t *testing.T) {
	targets := []string{"a", "b", "c"}
	assert.Equal(t, targets, eligible(targets, map[string]*health{"a": {}}))
	assert.Equal(t, []string{"b"}, eligible(targets, map[string]*health{"a": {}, "b": {healthy: true}, "gone": {healthy: true}}))
	assert.Empty(t, eligible(nil, nil))
}
