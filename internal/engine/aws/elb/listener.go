package elb

import (
	"context"
	"errors"
	"fmt"

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

// Listener forwards connections to a TCP port of a load balancer to a target group.
type Listener struct {
	LoadBalancer *graph.Ref[LoadBalancerState]
	Target       *graph.Ref[TargetGroupState]
	Port         int32
	Tags         cloud.Tags
}

// ListenerState is a listener, as AWS describes it.
type ListenerState struct {
	identity.Object // the ID is its ARN
	Port            int32
	Protocol        types.ProtocolEnum
	Target          string
}

var (
	_ graph.Desired[ListenerState] = (*Listener)(nil)
	_ graph.Creator[ListenerState] = (*Listener)(nil)
	_ graph.Updater[ListenerState] = (*Listener)(nil)
)

// Check implements graph.Checked: it refuses a listener that no client can reach, because the network ACLs of all subnets of the load
// balancer prevent it. A client of an internal load balancer may be in the same subnet, where network ACLs do not apply.
func (l *Listener) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	lb, ok := l.LoadBalancer.Desired().(*LoadBalancer)
	if !ok || lb.Internal {
		return "", nil
	}
	why := ""
	for _, s := range lb.Subnets {
		if why, err = ec2.ClosedToClients(ctx, c, s, l.Port); why == "" || err != nil {
			return "", err
		}
	}
	if why == "" {
		return "", nil
	}
	return fmt.Sprintf("no client reaches port %d of the load balancer: %s: permit it, or use other subnets", l.Port, why), nil
}

// CheckCreation implements graph.CheckedCreation. It refuses a listener if the name of its load balancer has changed in the manifest. The target
// group of the listener is then still attached to the load balancer with the old name, and a target group can be attached to only one load
// balancer (error TargetGroupAssociationLimit of CreateListener).
func (l *Listener) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	target, ok := l.Target.Found()
	if !ok || len(target.LoadBalancer) == 0 || target.LoadBalancer[0] == l.LoadBalancer.CloudID() {
		return "", nil
	}
	old, err := kind.Listed(LoadBalancers, target.LoadBalancer[0])(ctx, c)
	if old == nil || err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"its target group %s belongs to the load balancer %s, and cannot belong to another: set the name of the load balancer back; "+
			"or remove the load balancer from the manifest, run the command, and add it with the other name",
		target.Name, old.Name,
	), nil
}

// Needs implements graph.Desired.
func (l *Listener) Needs() []graph.Edge {
	return append(graph.Outlives(l.LoadBalancer), graph.Exists(l.Target)...)
}

// Find implements graph.Desired.
func (l *Listener) Find(ctx context.Context, c *cloud.Clients) (*ListenerState, error) {
	s, err := l.Identify(ctx, c, nil)
	if s == nil || err != nil {
		return nil, err
	}
	s.Tags, err = describeTags(ctx, c, s.ID)
	return s, err
}

// Identify implements graph.Identified.
func (l *Listener) Identify(ctx context.Context, c *cloud.Clients, _ *ListenerState) (*ListenerState, error) {
	lb, ok := l.LoadBalancer.Found()
	if !ok {
		return nil, nil
	}
	all, err := Listeners(ctx, c, lb.ID)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.Port == l.Port {
			return &x, nil
		}
	}
	return nil, nil
}

// Diff implements graph.Desired.
func (l *Listener) Diff(have *ListenerState) (d plan.Diff) {
	d.Fixed("port", have.Port, l.Port)
	d.Set("target", have.Target, l.Target.CloudID())
	d.Tags(have.Tags, l.Tags)
	return d
}

func (l *Listener) forward() []types.Action {
	return []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: aws.String(l.Target.CloudID())}}
}

// Create implements graph.Creator.
func (l *Listener) Create(ctx context.Context, c *cloud.Clients) (*ListenerState, error) {
	out, err := c.ELBV2.CreateListener(ctx, &elb.CreateListenerInput{
		LoadBalancerArn: aws.String(l.LoadBalancer.CloudID()), Port: &l.Port, Protocol: types.ProtocolEnumTcp,
		DefaultActions: l.forward(), Tags: sdkTags(l.Tags),
	})
	if err != nil || len(out.Listeners) == 0 {
		return nil, err
	}
	s := listenerState(out.Listeners[0])
	s.Tags = l.Tags
	return &s, nil
}

// Update implements graph.Updater.
func (l *Listener) Update(ctx context.Context, c *cloud.Clients, have *ListenerState, d plan.Diff) (*ListenerState, error) {
	after := *have
	if d.Has("target") {
		lb, _ := l.LoadBalancer.Found()
		if to, _ := l.Target.Found(); to.IPType == string(types.TargetGroupIpAddressTypeEnumIpv6) && lb.IPType != string(types.IpAddressTypeDualstack) {
			return nil, graph.NotYet(errors.New("the load balancer to become dual-stack"))
		}
		if _, err := c.ELBV2.ModifyListener(ctx, &elb.ModifyListenerInput{ListenerArn: &have.ID, DefaultActions: l.forward()}); err != nil {
			return nil, err
		}
		after.Target = l.Target.CloudID()
	}
	if d.HasTags() {
		var err error
		if after.Tags, err = changeTags(ctx, c, have.ID, have.Tags, l.Tags, d); err != nil {
			return nil, err
		}
	}
	return &after, nil
}

// RetireListener adds the deletion of the listener of a load balancer that forwards to a target group. Both are ARNs.
func RetireListener(g *graph.Graph, id plan.ID, balancer, target string) graph.Resource {
	find := func(ctx context.Context, c *cloud.Clients) (*ListenerState, error) {
		all, err := Listeners(ctx, c, balancer)
		for _, x := range all {
			if x.Target == target {
				return &x, err
			}
		}
		return nil, cloud.IgnoreNotFound(err)
	}
	return kind.Retire(g, id, find, retiredListener{}, nil)
}

// retiredListener deletes a listener whose load balancer stays. AWS deletes all others with their load balancers.
type retiredListener struct{}

// Delete implements graph.Deleter.
func (retiredListener) Delete(ctx context.Context, c *cloud.Clients, have *ListenerState) error {
	_, err := c.ELBV2.DeleteListener(ctx, &elb.DeleteListenerInput{ListenerArn: &have.ID})
	return cloud.IgnoreNotFound(err)
}

// Listeners lists the listeners of a load balancer.
func Listeners(ctx context.Context, c *cloud.Clients, lb string) ([]ListenerState, error) {
	return cloud.Remember(ctx, c, "listeners of "+lb, func(ctx context.Context) ([]ListenerState, error) {
		p := elb.NewDescribeListenersPaginator(c.ELBV2, &elb.DescribeListenersInput{LoadBalancerArn: &lb})
		return cloud.Pages(ctx, p, func(o *elb.DescribeListenersOutput) (out []ListenerState) {
			for _, x := range o.Listeners {
				out = append(out, listenerState(x))
			}
			return out
		})
	})
}

func listenerState(x types.Listener) ListenerState {
	s := ListenerState{Object: identity.Object{ID: aws.ToString(x.ListenerArn)}, Port: aws.ToInt32(x.Port), Protocol: x.Protocol}
	for _, a := range x.DefaultActions {
		s.Target = aws.ToString(a.TargetGroupArn)
	}
	return s
}

// listenerKind declares listeners.
func listenerKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:        "listener",
		Rehearsed:   true,
		Area:        plan.AreaLoadBalancer,
		ReadActions: []string{"elasticloadbalancing:DescribeListeners"},
		Statement:   kind.LoadBalancers,
		Actions: []string{
			"elasticloadbalancing:AddTags",
			"elasticloadbalancing:CreateListener",
			"elasticloadbalancing:DeleteListener",
			"elasticloadbalancing:ModifyListener",
			"elasticloadbalancing:RemoveTags",
		},
	}, kind.Functions[ListenerState]{})
}
