package sts

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are 600 requests a second for all operations together ("IAM and AWS STS quotas" in the IAM user guide).
func limits() core.Limits {
	return core.Limits{Code: "Throttling", Of: func(string, any) []core.TokenBucket {
		return []core.TokenBucket{{Class: "all", Size: 600, Refill: 600}}
	}}
}
