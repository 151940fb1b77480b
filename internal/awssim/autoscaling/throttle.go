package autoscaling

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are assumed: AWS throttles Auto Scaling by account and region, and does not publish its limits (kubernetes/kops
// issue 7111 has seen them).
func limits() core.Limits {
	return core.Limits{Code: "Throttling", Of: func(op string, _ any) []core.TokenBucket {
		if core.Reads(op) {
			return []core.TokenBucket{{Class: "reads", Size: 40, Refill: 10}}
		}
		return []core.TokenBucket{{Class: "writes", Size: 20, Refill: 5}}
	}}
}
