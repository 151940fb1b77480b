package pricing

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are those of "Using the AWS Price List Query API" in the AWS Billing user guide: 10 tokens, and 5 a second.
func limits() core.Limits {
	return core.Limits{Code: "ThrottlingException", Of: func(string, any) []core.TokenBucket {
		return []core.TokenBucket{{Class: "all", Each: true, Size: 10, Refill: 5}}
	}}
}
