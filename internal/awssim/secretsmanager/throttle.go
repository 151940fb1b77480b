package secretsmanager

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are those of "AWS Secrets Manager quotas" in the Secrets Manager user guide.
func limits() core.Limits {
	return core.Limits{Code: "ThrottlingException", Of: func(op string, _ any) []core.TokenBucket {
		switch op {
		case "GetSecretValue":
			return []core.TokenBucket{{Class: op, Size: 10000, Refill: 10000}}
		case "DescribeSecret":
			return []core.TokenBucket{{Class: op, Size: 40000, Refill: 40000}}
		case "ListSecrets":
			return []core.TokenBucket{{Class: op, Size: 100, Refill: 100}}
		case "PutSecretValue", "UpdateSecret":
			return []core.TokenBucket{{Class: "PutSecretValue, UpdateSecret", Size: 50, Refill: 50}}
		case "TagResource", "UntagResource":
			return []core.TokenBucket{{Class: "TagResource, UntagResource", Size: 50, Refill: 50}}
		}
		return []core.TokenBucket{{Class: "others", Each: true, Size: 50, Refill: 50}}
	}}
}
