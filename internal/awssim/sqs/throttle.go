package sqs

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are assumed: SQS answers RequestThrottled (SQS API reference, CreateQueue), and publishes rates of messages only.
func limits() core.Limits {
	return core.Limits{
		Code: "RequestThrottled",
		Of:   core.ReadsAndWrites(core.TokenBucket{Each: true, Size: 40, Refill: 10}, core.TokenBucket{Each: true, Size: 20, Refill: 5}),
	}
}
