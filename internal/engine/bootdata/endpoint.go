package bootdata

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Endpoint is the address of the API server: that of one of the load balancers, or
// a name that the manifest gives.
type Endpoint struct {
	Network *graph.Ref[elb.LoadBalancerState]
	Classic *graph.Ref[elb.ClassicLoadBalancerState]
	EKS     *graph.Ref[eks.ClusterState]
	Host    string // wins over the load balancers' names
	Port    int32
}

func (e Endpoint) Needs() []graph.Edge {
	return slices.Concat(graph.Reads(e.Network), graph.Reads(e.Classic), graph.On(e.EKS))
}

// String returns host and port, or graph.Unknown.
func (e Endpoint) String() string {
	host := e.Name()
	if host == "" {
		return plan.Unknown
	}
	return fmt.Sprintf("%s:%d", host, e.Port)
}

// Name returns the host; "" while it is not known.
func (e Endpoint) Name() string {
	if e.Host != "" {
		return e.Host
	}
	if cluster, ok := e.EKS.Found(); ok {
		return strings.TrimPrefix(cluster.Endpoint, "https://")
	}
	return e.BalancerName()
}

// HasBalancer reports whether the API server has a load balancer of the manifest.
func (e Endpoint) HasBalancer() bool { return e.Network != nil || e.Classic != nil }

// BalancerName returns the name in DNS of the load balancer; "" while it is not known.
func (e Endpoint) BalancerName() string {
	if lb, ok := e.Network.Found(); ok {
		return lb.DNS
	}
	if lb, ok := e.Classic.Found(); ok {
		return lb.DNS
	}
	return ""
}
