package cloudformation

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are assumed: AWS does not publish them, and 44 calls of DescribeStacks one after the other exceed them
// (eksctl-io/eksctl issue 2946).
func limits() core.Limits {
	return core.Limits{
		Code: "Throttling",
		Of:   core.ReadsAndWrites(core.TokenBucket{Each: true, Size: 20, Refill: 5}, core.TokenBucket{Each: true, Size: 10, Refill: 2}),
	}
}
