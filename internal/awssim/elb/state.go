package elb

import (
	"cmp"
	"time"
)

// State is the state of Elastic Load Balancing.
type State struct {
	LoadBalancers map[string]*LoadBalancer        // network and application load balancers, by ARN
	TargetGroups  map[string]*TargetGroup         // by ARN
	Listeners     map[string]*Listener            // by ARN
	Classic       map[string]*ClassicLoadBalancer // by name
	Limits        Limits

	// Detaches: the network interfaces of a network load balancer are detached when it is
	// deleted, and AWS deletes them only after InterfacesDetached.
	Detaches bool `json:",omitempty"`

	// Failure is why new load balancers fail, and Impaired why they are impaired: the reason of
	// their state (LoadBalancerState in the API reference). "" for none.
	Failure, Impaired string `json:",omitempty"`
}

// Limits are quotas, for each type of load balancer; 0 means the default.
type Limits struct{ Network, Application, Classic int }

// Quotas returns the quotas of the account.
func (svc *Service) Quotas() Limits {
	l := svc.state.Limits
	return Limits{cmp.Or(l.Network, 50), cmp.Or(l.Application, 50), cmp.Or(l.Classic, 20)}
}

// LoadBalancer is a network or an application load balancer.
type LoadBalancer struct {
	ARN, Name, Type, Scheme, VPC, IPType, DNSName string
	Zones                                         []LoadBalancerZone // sorted by zone
	Groups                                        []string           // security groups
	Attributes, Tags                              map[string]string
	Born                                          time.Time
	Ready                                         time.Time // active since
	Failed, Impaired                              string    // why it is not; "" if it is
}

// LoadBalancerZone is a zone of a load balancer.
type LoadBalancerZone struct {
	Zone, Subnet, Interface string
	Allocation              string // of the elastic IP; "" if AWS chose the address
	PublicIP                string // address of the elastic IP
}

// TargetGroup is a target group of instances.
type TargetGroup struct {
	ARN, Name, VPC, Protocol, IPType string
	Port                             int32
	Check                            HealthCheck
	Attributes, Tags                 map[string]string
	Targets                          []*Target
	Born                             time.Time
	Used                             time.Time // since when a listener forwards to it; zero: none does
	Freed                            time.Time // when the last listener was removed
}

// HealthCheck are the health check settings of a target group.
type HealthCheck struct {
	Protocol, Port, Path, Codes           string
	Interval, Timeout, Healthy, Unhealthy int32
}

// Target is an instance in a target group.
type Target struct {
	ID         string
	Port       int32
	Registered time.Time
	Drained    time.Time // end of draining; zero: registered
}

// Listener is a listener that forwards to one target group.
type Listener struct {
	ARN, LoadBalancer, Protocol, TargetGroup string
	Port                                     int32
	Tags                                     map[string]string
	Born                                     time.Time
}

// ClassicLoadBalancer is a Classic Load Balancer in a VPC.
type ClassicLoadBalancer struct {
	Name, Scheme, VPC, DNSName string
	Subnets, Groups            []string
	Listeners                  []ClassicListener
	Check                      ClassicHealthCheck
	CrossZone, Draining        bool
	DrainingTimeout            int32                // seconds
	IdleTimeout                int32                // seconds
	Instances                  map[string]time.Time // registration time by instance ID
	Tags                       map[string]string
	Born                       time.Time
}

// ClassicListener is a listener of a Classic Load Balancer.
type ClassicListener struct {
	Protocol, InstanceProtocol string
	Port, InstancePort         int32
}

// ClassicHealthCheck are the health check settings of a Classic Load Balancer.
type ClassicHealthCheck struct {
	Target                                string
	Interval, Timeout, Healthy, Unhealthy int32
}
