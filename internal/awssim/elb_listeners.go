package awssim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
)

func (a *AWS) simulateListeners() {
	on(a, a.createListener, "LoadBalancerArn", "Port", "Protocol", "DefaultActions", "Tags")
	on(a, a.describeListeners, "LoadBalancerArn", "ListenerArns", "Marker", "PageSize")
	on(a, a.modifyListener, "ListenerArn", "Port", "Protocol", "DefaultActions")
	on(a, a.deleteListener, "ListenerArn")
}

func noListener(id string) error {
	return &types.ListenerNotFoundException{Message: aws.String("Listener '" + id + "' not found")}
}

// listener returns a listener that a call names by its ARN.
func (a *AWS) listener(arn *string) (*Listener, error) {
	id := aws.ToString(arn)
	if !strings.HasPrefix(id, a.regionalARN("elasticloadbalancing", "listener/")) {
		return nil, fail("ValidationError", "'%s' is not a valid listener ARN", id)
	}
	l, ok := a.state.ELB.Listeners[id]
	if !ok {
		return nil, noListener(id)
	}
	return l, nil
}

func (a *AWS) createListener(in *elb.CreateListenerInput) (*elb.CreateListenerOutput, error) {
	b, err := a.loadBalancer(in.LoadBalancerArn)
	if err != nil {
		return nil, err
	}
	l := &Listener{LoadBalancer: b.ARN, Protocol: string(in.Protocol), Port: aws.ToInt32(in.Port), Born: a.now()}
	if l.TargetGroup, err = a.forward(in.DefaultActions); err != nil {
		return nil, err
	}
	if l.Tags, err = readTags(elbTagRules(), nil, in.Tags, func(t types.Tag) (*string, *string) { return t.Key, t.Value }); err != nil {
		return nil, err
	}
	if err := a.checkListener(b, l); err != nil {
		return nil, err
	}
	if old := a.listenerOn(b, l.Port); old != nil {
		if old.Protocol != l.Protocol || old.TargetGroup != l.TargetGroup || !maps.Equal(old.Tags, l.Tags) {
			return nil, &types.DuplicateListenerException{Message: aws.String("A listener already exists on this port for this load balancer '" + b.ARN + "'")}
		}
		return &elb.CreateListenerOutput{Listeners: []types.Listener{old.show()}}, nil
	}
	if count := a.listenersOf(b); count >= 50 {
		return nil, fail("TooManyListeners", "the maximum number of listeners has been reached")
	}
	l.ARN = a.regionalARN("elasticloadbalancing", "listener/"+b.path()+"/"+a.hash())
	a.state.ELB.Listeners[l.ARN] = l
	a.use(l.TargetGroup)
	return &elb.CreateListenerOutput{Listeners: []types.Listener{l.show()}}, nil
}

func (a *AWS) listenersOf(b *LoadBalancer) (count int) {
	for _, l := range a.state.ELB.Listeners {
		if l.LoadBalancer == b.ARN {
			count++
		}
	}
	return count
}

// listenerOn returns the listener of a load balancer on a port, or nil. Here
// a port has one listener, whatever the protocol.
func (a *AWS) listenerOn(b *LoadBalancer, port int32) *Listener {
	for _, l := range a.state.ELB.Listeners {
		if l.LoadBalancer == b.ARN && l.Port == port {
			return l
		}
	}
	return nil
}

// use marks a target group as used.
func (a *AWS) use(group string) {
	if g := a.state.ELB.TargetGroups[group]; g.Used.IsZero() {
		g.Used = a.now()
	}
}

// unuse marks a target group as free when no listener forwards to it.
func (a *AWS) unuse(group string) {
	if g := a.state.ELB.TargetGroups[group]; g != nil && a.userOf(g) == nil {
		g.Used, g.Freed = time.Time{}, a.now()
	}
}

// forward reads the one action there can be: forward to one target group.
func (a *AWS) forward(actions []types.Action) (group string, err error) {
	if len(actions) != 1 {
		return "", fail("ValidationError", "exactly one default action must be specified")
	}
	action := actions[0]
	if action.Type != types.ActionTypeEnumForward {
		return "", notSimulated("default action %s", action.Type)
	}
	if err := only("default action", &action, "Type", "TargetGroupArn", "ForwardConfig", "Order"); err != nil {
		return "", err
	}
	arn := action.TargetGroupArn
	if c := action.ForwardConfig; c != nil {
		if err := only("ForwardConfig", c, "TargetGroups"); err != nil {
			return "", err
		}
		if len(c.TargetGroups) != 1 || arn != nil && *arn != aws.ToString(c.TargetGroups[0].TargetGroupArn) {
			return "", fail("ValidationError", "you must specify exactly one target group")
		}
		arn = c.TargetGroups[0].TargetGroupArn
	}
	g, err := a.targetGroup(arn)
	if err != nil {
		return "", err
	}
	return g.ARN, nil
}

// checkListener checks that a load balancer can have a listener, or change one
// to be like that.
func (a *AWS) checkListener(b *LoadBalancer, l *Listener) error {
	if l.Port < 1 || l.Port > 65535 {
		return fail("ValidationError", "port '%d' must be between 1 and 65535", l.Port)
	}
	fits := map[string][]string{ // protocols of target groups by those of listeners
		"TCP": {"TCP"}, "UDP": {"UDP"}, "TCP_UDP": {"TCP_UDP"}, "TLS": {"TCP", "TLS"},
	}
	if b.Type == typeApplication {
		fits = map[string][]string{"HTTP": {"HTTP", "HTTPS"}, "HTTPS": {"HTTP", "HTTPS"}}
	}
	groups, ok := fits[l.Protocol]
	if !ok {
		return fail("ValidationError", "listener protocol '%s' is not supported for load balancers of type '%s'", l.Protocol, b.Type)
	}
	if l.Protocol == "TLS" || l.Protocol == "HTTPS" {
		return fail("ValidationError", "a certificate must be specified for %s listeners", l.Protocol)
	}
	if strings.Contains(l.Protocol, "UDP") && b.IPType == "dualstack" {
		return fail("InvalidConfigurationRequest", "protocol '%s' is not supported for load balancers of IP address type 'dualstack'", l.Protocol)
	}
	g := a.state.ELB.TargetGroups[l.TargetGroup]
	switch user := a.userOf(g); {
	case !slices.Contains(groups, g.Protocol):
		return fail("IncompatibleProtocols", "protocol '%s' of target group '%s' does not fit the listener protocol '%s'", g.Protocol, g.ARN, l.Protocol)
	case g.VPC != b.VPC:
		return fail("InvalidConfigurationRequest", "the load balancer '%s' and the target group '%s' are in different VPCs", b.ARN, g.ARN)
	case g.IPType == "ipv6" && b.IPType != "dualstack":
		return fail("InvalidConfigurationRequest", "an IPv6 target group needs a load balancer of IP address type 'dualstack'")
	case user != nil && user != b:
		return fail("TargetGroupAssociationLimit", "target group '%s' cannot be associated with more than one load balancer", g.ARN)
	}
	return nil
}

func (l *Listener) show() types.Listener {
	return types.Listener{
		ListenerArn: aws.String(l.ARN), LoadBalancerArn: aws.String(l.LoadBalancer), Port: aws.Int32(l.Port), Protocol: types.ProtocolEnum(l.Protocol),
		DefaultActions: []types.Action{{
			Type: types.ActionTypeEnumForward, Order: aws.Int32(1), TargetGroupArn: aws.String(l.TargetGroup),
			ForwardConfig: &types.ForwardActionConfig{TargetGroups: []types.TargetGroupTuple{{TargetGroupArn: aws.String(l.TargetGroup), Weight: aws.Int32(1)}}},
		}},
	}
}

func (a *AWS) describeListeners(in *elb.DescribeListenersInput) (*elb.DescribeListenersOutput, error) {
	if (in.LoadBalancerArn == nil) == (len(in.ListenerArns) == 0) {
		return nil, fail("ValidationError", "either a load balancer ARN or listener ARNs must be specified")
	}
	if in.LoadBalancerArn != nil {
		if _, err := a.loadBalancer(in.LoadBalancerArn); err != nil {
			return nil, err
		}
	}
	var list []types.Listener
	for _, l := range byKey(a.state.ELB.Listeners) {
		if a.visible(l.Born) && (l.LoadBalancer == aws.ToString(in.LoadBalancerArn) || slices.Contains(in.ListenerArns, l.ARN)) {
			list = append(list, l.show())
		}
	}
	for _, arn := range in.ListenerArns {
		if !slices.ContainsFunc(list, func(l types.Listener) bool { return *l.ListenerArn == arn }) {
			return nil, noListener(arn)
		}
	}
	part, next, err := page(a, list, in.Marker, in.PageSize, 400)
	return &elb.DescribeListenersOutput{Listeners: part, NextMarker: next}, err
}

func (a *AWS) modifyListener(in *elb.ModifyListenerInput) (*elb.ModifyListenerOutput, error) {
	l, err := a.listener(in.ListenerArn)
	if err != nil {
		return nil, err
	}
	b, changed := a.state.ELB.LoadBalancers[l.LoadBalancer], *l
	set(&changed.Port, in.Port)
	if in.Protocol != "" {
		changed.Protocol = string(in.Protocol)
	}
	if len(in.DefaultActions) > 0 {
		if changed.TargetGroup, err = a.forward(in.DefaultActions); err != nil {
			return nil, err
		}
	}
	if err := a.checkListener(b, &changed); err != nil {
		return nil, err
	}
	if other := a.listenerOn(b, changed.Port); other != nil && other != l {
		return nil, &types.DuplicateListenerException{Message: aws.String("A listener already exists on this port for this load balancer '" + b.ARN + "'")}
	}
	old := l.TargetGroup
	*l = changed
	a.use(l.TargetGroup)
	a.unuse(old)
	return &elb.ModifyListenerOutput{Listeners: []types.Listener{l.show()}}, nil
}

func (a *AWS) deleteListener(in *elb.DeleteListenerInput) (*elb.DeleteListenerOutput, error) {
	l, err := a.listener(in.ListenerArn)
	if err != nil {
		return nil, err
	}
	a.removeListener(l)
	return &elb.DeleteListenerOutput{}, nil
}

// removeListener removes a listener, which frees its target group.
func (a *AWS) removeListener(l *Listener) {
	delete(a.state.ELB.Listeners, l.ARN)
	a.unuse(l.TargetGroup)
}
