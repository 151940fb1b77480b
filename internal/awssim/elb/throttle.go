package elb

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// limits are the rate limits of one version of the API. The classes of operations are those of "Request throttling for
// the Elastic Load Balancing API" in the Elastic Load Balancing user guide. So are the numbers, but those of writes are
// not verified. The limit of all operations together is the one that the AWS Load Balancer Controller keeps to
// (pkg/aws/throttle/defaults.go).
func limits() core.Limits {
	return core.Limits{Code: "ThrottlingException", Of: func(op string, _ any) []core.TokenBucket {
		all := core.TokenBucket{Class: "all", Size: 40, Refill: 10}
		switch {
		case core.Reads(op):
			return []core.TokenBucket{all}
		case slices.Contains([]string{"RegisterTargets", "DeregisterTargets", "RegisterInstancesWithLoadBalancer", "DeregisterInstancesFromLoadBalancer"}, op):
			return []core.TokenBucket{all, {Class: "registrations", Size: 20, Refill: 4}}
		case slices.Contains([]string{"CreateLoadBalancer", "SetSubnets", "AttachLoadBalancerToSubnets", "DetachLoadBalancerFromSubnets"}, op):
			return []core.TokenBucket{all, {Class: "new load balancers and subnets", Size: 10, Refill: 0.2}}
		}
		return []core.TokenBucket{all, {Class: "other writes", Size: 20, Refill: 3}}
	}}
}
