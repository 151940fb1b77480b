package kms

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are those of "Request quotas" in the AWS KMS developer guide: 2,000 calls of DescribeKey a second, and 10,000
// cryptographic operations in the regions with the lowest quota.
func limits() core.Limits {
	return core.Limits{Code: "ThrottlingException", Of: func(op string, _ any) []core.TokenBucket {
		if op == "DescribeKey" {
			return []core.TokenBucket{{Class: op, Size: 2000, Refill: 2000}}
		}
		return []core.TokenBucket{{Class: "cryptographic operations", Size: 10000, Refill: 10000}}
	}}
}
