package elb

import (
	"context"
	"slices"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ClassicTargets are the machines that are registered with a Classic Load Balancer.
type ClassicTargets struct {
	LoadBalancer *graph.Ref[ClassicLoadBalancerState]
	Instances    []*graph.Ref[ec2.InstanceState]
	Shared       bool     // the load balancer is an existing resource: other instances stay registered
	Removed      []string // machines to deregister, also from a shared load balancer
	Living       []string // as in Targets
}

var _ graph.Managed[TargetsState] = (*ClassicTargets)(nil)

// Needs implements graph.Desired.
func (t *ClassicTargets) Needs() []graph.Edge {
	needs := graph.Exists(t.LoadBalancer)
	for _, i := range t.Instances {
		needs = append(needs, graph.On(i)...)
	}
	return needs
}

// Identify implements graph.Identified, as that of Targets.
func (t *ClassicTargets) Identify(ctx context.Context, c *cloud.Clients, _ *TargetsState) (*TargetsState, error) {
	if len(t.Living) > 0 {
		return nil, nil
	}
	return t.Find(ctx, c)
}

// Find implements graph.Desired.
func (t *ClassicTargets) Find(ctx context.Context, c *cloud.Clients) (*TargetsState, error) {
	lb, ok := t.LoadBalancer.Found()
	if !ok {
		return nil, nil
	}
	all, err := ClassicLoadBalancers(ctx, c)
	for _, x := range all {
		s := &TargetsState{Group: x.ID, Instances: x.Instances}
		if x.ID == lb.ID && (!t.Shared || s.containsAny(t.Instances)) {
			return s, err
		}
	}
	return nil, err
}

// Diff implements graph.Desired.
func (t *ClassicTargets) Diff(have *TargetsState) plan.Diff {
	return (&Targets{Instances: t.Instances, Shared: t.Shared, Removed: t.Removed, Living: t.Living}).Diff(have)
}

// Create implements graph.Creator.
func (t *ClassicTargets) Create(ctx context.Context, c *cloud.Clients) (*TargetsState, error) {
	have := &TargetsState{Group: t.LoadBalancer.CloudID()}
	if len(t.Instances)+len(t.Living) == 0 {
		return have, nil
	}
	return t.Update(ctx, c, have, t.Diff(have))
}

// Update implements graph.Updater. It deregisters targets last, so that some always receive
// connections.
func (t *ClassicTargets) Update(ctx context.Context, c *cloud.Clients, have *TargetsState, d plan.Diff) (*TargetsState, error) {
	if added := d.Added("target"); len(added) > 0 {
		_, err := c.ELB.RegisterInstancesWithLoadBalancer(
			ctx,
			&elb.RegisterInstancesWithLoadBalancerInput{LoadBalancerName: &have.Group, Instances: classicInstances(added)},
		)
		if err != nil {
			return nil, err
		}
	}
	if gone := d.Removed("target"); len(gone) > 0 {
		if err := t.deregister(ctx, c, have.Group, gone); err != nil {
			return nil, err
		}
	}
	if t.Shared {
		return nil, nil // other instances are registered too: find them again
	}
	return &TargetsState{Group: have.Group, Instances: identity.CloudIDs(t.Instances)}, nil
}

func (t *ClassicTargets) deregister(ctx context.Context, c *cloud.Clients, name string, gone []string) error {
	_, err := c.ELB.DeregisterInstancesFromLoadBalancer(
		ctx,
		&elb.DeregisterInstancesFromLoadBalancerInput{LoadBalancerName: &name, Instances: classicInstances(gone)},
	)
	return err
}

// Delete implements graph.Deleter.
func (t *ClassicTargets) Delete(ctx context.Context, c *cloud.Clients, have *TargetsState) error {
	gone := slices.DeleteFunc(slices.Clone(have.Instances), func(i string) bool { return !slices.Contains(identity.CloudIDs(t.Instances), i) })
	if !t.Shared || len(gone) == 0 {
		return nil
	}
	return t.deregister(ctx, c, have.Group, gone)
}

func classicInstances(ids []string) (out []types.Instance) {
	for _, id := range ids {
		out = append(out, types.Instance{InstanceId: &id})
	}
	return out
}
