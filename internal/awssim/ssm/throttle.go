package ssm

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are the standard throughput of Parameter Store: 3 writes a second, and 40 reads of all kinds together ("AWS
// Systems Manager endpoints and quotas"; "How do I prevent ThrottlingException errors when I use Parameter Store", AWS
// re:Post). AWS does not publish how many calls it accepts at once, nor the limits of other operations: those are assumed.
func limits() core.Limits {
	return core.Limits{Code: "ThrottlingException", Of: func(op string, _ any) []core.TokenBucket {
		switch op {
		case "PutParameter":
			return []core.TokenBucket{{Class: op, Size: 10, Refill: 3}}
		case "GetParameter", "GetParameters", "GetParametersByPath":
			return []core.TokenBucket{{Class: "GetParameter, GetParameters, GetParametersByPath", Size: 40, Refill: 40}}
		}
		return []core.TokenBucket{{Class: "others", Each: true, Size: 40, Refill: 10}}
	}}
}
