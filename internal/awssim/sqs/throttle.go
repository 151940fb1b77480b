package sqs

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are assumed: SQS answers RequestThrottled (SQS API reference, CreateQueue), and publishes rates of messages only.
func limits() core.Limits {
	return core.Limits{Code: "RequestThrottled", Of: func(op string, _ any) []core.TokenBucket {
		if core.Reads(op) {
			return []core.TokenBucket{{Class: "reads", Each: true, Size: 40, Refill: 10}}
		}
		return []core.TokenBucket{{Class: "writes", Each: true, Size: 20, Refill: 5}}
	}}
}
