package elb

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Targets are the machines that are registered with a target group.
type Targets struct {
	Group     *graph.Ref[TargetGroupState]
	Instances []*graph.Ref[ec2.InstanceState]
	// Shared: the target group is an existing resource. Other targets stay registered.
	Shared  bool
	Removed []string // machines to deregister, also from a shared group
	// Living are the machines that are there already. All of them are registered if no target answers, so that the load balancer forwards
	// connections to an API server before other machines join.
	Living []string
	// Healthy: wait until the health checks of all machines succeed.
	Healthy bool
	// Existing is the existing load balancer in front of a shared target group.
	Existing *ExistingBalancer
}

// TargetsState are the registered machines.
type TargetsState struct {
	Group     string
	Instances []string
	Health    map[string]string // by instance: "healthy", "initial", …
}

// CloudID implements graph.State.
func (s TargetsState) CloudID() string { return s.Group }

var _ graph.Managed[TargetsState] = (*Targets)(nil)

// Needs implements graph.Desired. RegisterTargets accepts only running instances.
func (t *Targets) Needs() []graph.Edge {
	needs := graph.Exists(t.Group)
	for _, i := range t.Instances {
		needs = append(needs, graph.On(i)...)
	}
	if x := t.Existing; x != nil {
		needs = append(needs, graph.Reads(x.LoadBalancer, x.VPC)...)
	}
	return needs
}

// Identify implements graph.Identified. Targets are deleted with their group, unless it is not the
// cluster's. Living machines are among the targets that other resources of the graph deregister.
func (t *Targets) Identify(ctx context.Context, c *cloud.Clients, _ *TargetsState) (*TargetsState, error) {
	if !t.Shared || len(t.Living) > 0 {
		return nil, nil
	}
	return t.Find(ctx, c)
}

// Find implements graph.Desired.
func (t *Targets) Find(ctx context.Context, c *cloud.Clients) (*TargetsState, error) {
	group, ok := t.Group.Found()
	if !ok {
		return nil, nil
	}
	s, err := TargetsOf(ctx, c, group.ID)
	if err != nil || t.Shared && !s.containsAny(t.Instances) {
		return nil, err
	}
	return s, nil
}

// TargetsOf returns the targets of a target group.
func TargetsOf(ctx context.Context, c *cloud.Clients, group string) (*TargetsState, error) {
	out, err := cloud.Remember(ctx, c, "targets of "+group, func(ctx context.Context) (*elb.DescribeTargetHealthOutput, error) {
		return c.ELBV2.DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: &group})
	})
	if err != nil {
		return nil, err
	}
	s := &TargetsState{Group: group, Health: map[string]string{}}
	for _, d := range out.TargetHealthDescriptions {
		if d.TargetHealth == nil || d.TargetHealth.State != types.TargetHealthStateEnumDraining {
			s.Instances = append(s.Instances, aws.ToString(d.Target.Id))
			if d.TargetHealth != nil {
				s.Health[aws.ToString(d.Target.Id)] = string(d.TargetHealth.State)
			}
		}
	}
	return s, nil
}

// containsAny reports whether one of the machines is registered, or there are no
// machines.
func (s *TargetsState) containsAny(all []*graph.Ref[ec2.InstanceState]) bool {
	return len(all) == 0 || slices.ContainsFunc(identity.CloudIDs(all), func(id string) bool { return slices.Contains(s.Instances, id) })
}

// answers reports whether a target passes its health checks, or may do so soon. Classic Load Balancers do not say.
func (s *TargetsState) answers(id string) bool {
	health, known := s.Health[id]
	return !known || health == string(types.TargetHealthStateEnumHealthy) || health == string(types.TargetHealthStateEnumInitial)
}

// Diff implements graph.Desired.
func (t *Targets) Diff(have *TargetsState) (d plan.Diff) {
	want, registered := identity.CloudIDs(t.Instances), have.Instances
	if t.Shared {
		registered = slices.DeleteFunc(slices.Clone(registered), func(i string) bool { return !slices.Contains(want, i) && !slices.Contains(t.Removed, i) })
	}
	if len(t.Living) > 0 {
		missing := slices.DeleteFunc(slices.Clone(t.Living), func(id string) bool { return slices.Contains(have.Instances, id) })
		if !slices.ContainsFunc(have.Instances, have.answers) {
			d.Lines("target", nil, missing)
		}
		return d
	}
	d.Lines("target", registered, want)
	if t.Healthy && len(d) == 0 {
		for _, id := range want {
			d.Await("health of "+id, have.Health[id], string(types.TargetHealthStateEnumHealthy))
		}
	}
	return d
}

// Create implements graph.Creator.
func (t *Targets) Create(ctx context.Context, c *cloud.Clients) (*TargetsState, error) {
	have := &TargetsState{Group: t.Group.CloudID()}
	if len(t.Instances)+len(t.Living) == 0 {
		return have, nil
	}
	return t.Update(ctx, c, have, t.Diff(have))
}

// Update implements graph.Updater. It deregisters targets last, so that some always receive
// connections.
func (t *Targets) Update(ctx context.Context, c *cloud.Clients, have *TargetsState, d plan.Diff) (*TargetsState, error) {
	if added := d.Added("target"); len(added) > 0 {
		_, err := c.ELBV2.RegisterTargets(ctx, &elb.RegisterTargetsInput{TargetGroupArn: &have.Group, Targets: targetDescriptions(added)})
		if err != nil {
			return nil, err
		}
	}
	if gone := d.Removed("target"); len(gone) > 0 {
		_, err := c.ELBV2.DeregisterTargets(ctx, &elb.DeregisterTargetsInput{TargetGroupArn: &have.Group, Targets: targetDescriptions(gone)})
		if err != nil {
			return nil, err
		}
	}
	if t.Shared {
		return nil, nil // other targets are registered too: find them again
	}
	return &TargetsState{Group: have.Group, Instances: identity.CloudIDs(t.Instances)}, nil
}

// Delete implements graph.Deleter. Targets are deleted with their group, so only those in
// an existing group are deregistered.
func (t *Targets) Delete(ctx context.Context, c *cloud.Clients, have *TargetsState) error {
	gone := slices.DeleteFunc(slices.Clone(have.Instances), func(i string) bool { return !slices.Contains(identity.CloudIDs(t.Instances), i) })
	if !t.Shared || len(gone) == 0 {
		return nil
	}
	_, err := c.ELBV2.DeregisterTargets(ctx, &elb.DeregisterTargetsInput{TargetGroupArn: &have.Group, Targets: targetDescriptions(gone)})
	return err
}

func targetDescriptions(ids []string) (out []types.TargetDescription) {
	for _, id := range ids {
		out = append(out, types.TargetDescription{Id: &id})
	}
	return out
}

// TargetGroupOf looks up the target group of a listener of an existing load balancer.
func TargetGroupOf(lb *graph.Ref[LoadBalancerState], port int32) graph.Lookup[TargetGroupState] {
	return func(ctx context.Context, c *cloud.Clients) (*TargetGroupState, error) {
		all, err := Listeners(ctx, c, lb.CloudID())
		if err != nil {
			return nil, err
		}
		groups, err := TargetGroups(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			for _, g := range groups {
				if l.Port == port && l.Target == g.ID {
					return &g, nil
				}
			}
		}
		return nil, fmt.Errorf("the load balancer has no listener on the port %d that forwards to a target group: add one, or use another load balancer", port)
	}
}

// targetsKind declares targets of load balancers.
func targetsKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        "targets",
		Borrowed:    true,
		Area:        plan.AreaLoadBalancer,
		ReadActions: []string{"elasticloadbalancing:DescribeTargetHealth"},
		Statement:   kind.LoadBalancers,
		Actions:     []string{"elasticloadbalancing:DeregisterTargets", "elasticloadbalancing:RegisterTargets"},
	}, kind.Functions[TargetsState]{})
}

// ClassicTargetsKind is the kind of targets of Classic Load Balancers.
const ClassicTargetsKind = "classic-targets"

// classicTargetsKind declares targets of Classic Load Balancers. Their state is that of other targets.
func classicTargetsKind() *kind.Kind {
	return &kind.Kind{
		Name: ClassicTargetsKind, Borrowed: true, Area: plan.AreaLoadBalancer,
		ReadActions: []string{"elasticloadbalancing:DescribeLoadBalancers"}, Statement: kind.LoadBalancers,
		Actions: []string{"elasticloadbalancing:DeregisterInstancesFromLoadBalancer", "elasticloadbalancing:RegisterInstancesWithLoadBalancer"},
	}
}
