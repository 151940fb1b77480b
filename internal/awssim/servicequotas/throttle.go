package servicequotas

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are those of "Service quotas for Service Quotas" in the Service Quotas user guide: 10 listings a second and 10
// more at once, 5 of the others and 5 more.
func limits() core.Limits {
	return core.Limits{Code: "TooManyRequestsException", Of: func(op string, _ any) []core.TokenBucket {
		if op == "ListServiceQuotas" || op == "ListAWSDefaultServiceQuotas" {
			return []core.TokenBucket{{Class: "ListServiceQuotas, ListAWSDefaultServiceQuotas", Each: true, Size: 20, Refill: 10}}
		}
		return []core.TokenBucket{{Class: "others", Each: true, Size: 10, Refill: 5}}
	}}
}
