package eventbridge

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are those that "Amazon EventBridge quotas" has named for all operations but PutEvents: 50 requests a second.
func limits() core.Limits {
	return core.Limits{Code: "ThrottlingException", Of: func(string, any) []core.TokenBucket {
		return []core.TokenBucket{{Class: "all", Each: true, Size: 50, Refill: 50}}
	}}
}
