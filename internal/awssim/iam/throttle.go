package iam

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are assumed: IAM has token buckets, and AWS publishes neither their size nor their rate ("How to monitor and
// query IAM resources at scale", AWS Security Blog). Programs that have met them keep to 5 to 10 calls a second.
func limits() core.Limits {
	return core.Limits{Code: "Throttling", Global: true, Of: func(op string, _ any) []core.TokenBucket {
		if core.Reads(op) {
			return []core.TokenBucket{{Class: "reads", Size: 40, Refill: 10}}
		}
		return []core.TokenBucket{{Class: "writes", Size: 20, Refill: 5}}
	}}
}
