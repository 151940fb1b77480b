package tagging

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are those of "AWS Resource Groups and Tagging endpoints and quotas" in the AWS General Reference: 15 calls of
// GetResources a second.
func limits() core.Limits {
	return core.Limits{Code: "ThrottledException", Of: func(string, any) []core.TokenBucket {
		return []core.TokenBucket{{Class: "GetResources", Size: 15, Refill: 15}}
	}}
}
