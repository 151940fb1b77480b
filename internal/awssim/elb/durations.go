package elb

import "time"

// How long Elastic Load Balancing takes.
const (
	// NLBTakes is how long a network load balancer is provisioned.
	NLBTakes = 150 * time.Second
	// ALBTakes is how long an application load balancer is provisioned.
	ALBTakes = 120 * time.Second
	// TargetTakes is how long the first health checks of a target take.
	TargetTakes = 20 * time.Second
	// BalancerInterfacesLinger is how long the network interfaces of a load
	// balancer outlive it.
	BalancerInterfacesLinger = 75 * time.Second
)
