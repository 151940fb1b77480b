package autoscaling

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are assumed: AWS throttles Auto Scaling by account and region, and does not publish its limits (kubernetes/kops
// issue 7111 has seen them).
func limits() core.Limits {
	return core.Limits{Code: "Throttling", Of: core.ReadsAndWrites(core.TokenBucket{Size: 40, Refill: 10}, core.TokenBucket{Size: 20, Refill: 5})}
}
