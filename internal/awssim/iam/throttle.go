package iam

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are assumed: IAM has token buckets, and AWS publishes neither their size nor their rate ("How to monitor and
// query IAM resources at scale", AWS Security Blog). Programs that have met them keep to 5 to 10 calls a second.
func limits() core.Limits {
	return core.Limits{Code: "Throttling", Global: true, Of: core.ReadsAndWrites(core.TokenBucket{Size: 40, Refill: 10}, core.TokenBucket{Size: 20, Refill: 5})}
}
