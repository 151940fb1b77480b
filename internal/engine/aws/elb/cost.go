package elb

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

var (
	_ cost.Desired  = (*LoadBalancer)(nil)
	_ cost.Existing = LoadBalancerState{}
	_ cost.Desired  = (*ClassicLoadBalancer)(nil)
	_ cost.Existing = ClassicLoadBalancerState{}
)

// Costs implements cost.Desired.
func (l *LoadBalancer) Costs(ctx context.Context, c *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	if s, ok := have.(*LoadBalancerState); ok && s != nil {
		now, err = s.Costs(ctx, c)
	}
	return now, balancerCosts(types.LoadBalancerTypeEnumNetwork, l.Internal, len(l.Subnets)), err
}

// Costs implements cost.Existing.
func (s LoadBalancerState) Costs(context.Context, *cloud.Clients) ([]cost.Item, error) {
	return balancerCosts(s.Type, s.Internal, len(s.Subnets)), nil
}

// balancerCosts returns what a load balancer costs. One that faces the internet has a public
// address in each subnet.
func balancerCosts(kind types.LoadBalancerTypeEnum, internal bool, subnets int) []cost.Item {
	name, family, operation := "Network Load Balancer", "Load Balancer-Network", "LoadBalancing:Network"
	if kind == types.LoadBalancerTypeEnumApplication {
		name, family, operation = "Application Load Balancer", "Load Balancer-Application", "LoadBalancing:Application"
	}
	return hourly(name, family, operation, internal, subnets)
}

func hourly(name, family, operation string, internal bool, subnets int) []cost.Item {
	all := []cost.Item{cost.Hourly(name+"s", name, cost.Product{
		Service: "AWSELB", Usage: "LoadBalancerUsage", Attributes: "productFamily=" + family + "\noperation=" + operation,
	}, 1)}
	if !internal {
		all = append(all, cost.PublicAddresses(subnets))
	}
	return all
}

// Costs implements cost.Desired.
func (l *ClassicLoadBalancer) Costs(ctx context.Context, c *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	if s, ok := have.(*ClassicLoadBalancerState); ok && s != nil {
		now, err = s.Costs(ctx, c)
	}
	return now, classicCosts(l.Internal, len(l.Subnets)), err
}

// Costs implements cost.Existing. AWS adds addresses when there is much traffic.
func (s ClassicLoadBalancerState) Costs(context.Context, *cloud.Clients) ([]cost.Item, error) {
	return classicCosts(s.Internal, len(s.Subnets)), nil
}

func classicCosts(internal bool, subnets int) []cost.Item {
	return hourly("Classic Load Balancer", "Load Balancer", "LoadBalancing", internal, subnets)
}
