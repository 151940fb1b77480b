package elb

import "time"

// Durations in Elastic Load Balancing.
const (
	// NLBTakes is how long a network load balancer is provisioning.
	NLBTakes = 150 * time.Second
	// ALBTakes is how long an application load balancer is provisioning.
	ALBTakes = 120 * time.Second
	// LoadBalancerFails is how long a load balancer takes to fail.
	LoadBalancerFails = 30 * time.Second
	// TargetTakes is how long the first health checks of a target take.
	TargetTakes = 20 * time.Second
	// BalancerInterfacesLinger is how long the network interfaces exist after the
	// deletion of their load balancer.
	BalancerInterfacesLinger = 75 * time.Second
	// InterfacesDetached is how long they may remain, detached: "up to an hour"
	// (cluster-api-provider-aws issue 6067). Users can delete them then (PR 6073).
	InterfacesDetached = time.Hour
)
