package ssm

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are the standard throughput of Parameter Store: 3 calls of PutParameter a second, and 40 calls that read
// parameters. Sources: "AWS Systems Manager endpoints and quotas", and "How do I prevent ThrottlingException errors when I
// use Parameter Store" in AWS re:Post. AWS publishes neither how many calls it accepts at once nor the limits of other
// operations; these numbers are assumed.
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
