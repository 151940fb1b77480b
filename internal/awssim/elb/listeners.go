package elb

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

func (svc *Service) simulateListeners() {
	core.On(svc.Account, svc.createListener, "LoadBalancerArn", "Port", "Protocol", "DefaultActions", "Tags")
	core.On(svc.Account, svc.describeListeners, "LoadBalancerArn", "ListenerArns", "Marker", "PageSize")
	core.On(svc.Account, svc.modifyListener, "ListenerArn", "Port", "Protocol", "DefaultActions")
	core.On(svc.Account, svc.deleteListener, "ListenerArn")
}

func noListener(id string) error {
	return &types.ListenerNotFoundException{Message: aws.String("Listener '" + id + "' not found")}
}

// listener returns a listener by its ARN.
func (svc *Service) listener(arn *string) (*Listener, error) {
	return byARN(svc, svc.state.Listeners, "listener", arn, noListener)
}

func (svc *Service) createListener(in *elb.CreateListenerInput) (*elb.CreateListenerOutput, error) {
	b, err := svc.loadBalancer(in.LoadBalancerArn)
	if err != nil {
		return nil, err
	}
	l := &Listener{LoadBalancer: b.ARN, Protocol: string(in.Protocol), Port: aws.ToInt32(in.Port), Born: svc.Now()}
	if l.TargetGroup, err = svc.forward(in.DefaultActions); err != nil {
		return nil, err
	}
	if l.Tags, err = readTags(nil, in.Tags); err != nil {
		return nil, err
	}
	if err := svc.checkListener(b, l); err != nil {
		return nil, err
	}
	if old := svc.listenerOn(b, l.Port); old != nil {
		if old.Protocol != l.Protocol || old.TargetGroup != l.TargetGroup || !maps.Equal(old.Tags, l.Tags) {
			return nil, &types.DuplicateListenerException{Message: aws.String("A listener already exists on this port for this load balancer '" + b.ARN + "'")}
		}
		return &elb.CreateListenerOutput{Listeners: []types.Listener{old.show()}}, nil
	}
	if count := svc.listenersOf(b); count >= 50 {
		return nil, core.Fail("TooManyListeners", "the maximum number of listeners has been reached")
	}
	l.ARN = svc.RegionalARN("elasticloadbalancing", "listener/"+b.path()+"/"+svc.Hash())
	svc.state.Listeners[l.ARN] = l
	svc.use(l.TargetGroup)
	return &elb.CreateListenerOutput{Listeners: []types.Listener{l.show()}}, nil
}

func (svc *Service) listenersOf(b *LoadBalancer) (count int) {
	for _, l := range svc.state.Listeners {
		if l.LoadBalancer == b.ARN {
			count++
		}
	}
	return count
}

// listenerOn returns the listener of a load balancer on a port, or nil. Here a port has
// one listener, whatever the protocol.
func (svc *Service) listenerOn(b *LoadBalancer, port int32) *Listener {
	for _, l := range svc.state.Listeners {
		if l.LoadBalancer == b.ARN && l.Port == port {
			return l
		}
	}
	return nil
}

// use marks a target group as used.
func (svc *Service) use(group string) {
	if g := svc.state.TargetGroups[group]; g.Used.IsZero() {
		g.Used = svc.Now()
	}
}

// unuse marks a target group as unused if no listener forwards to it.
func (svc *Service) unuse(group string) {
	if g := svc.state.TargetGroups[group]; g != nil && svc.userOf(g) == nil {
		g.Used, g.Freed = time.Time{}, svc.Now()
	}
}

// forward parses the only simulated action: forward to one target group.
func (svc *Service) forward(actions []types.Action) (group string, err error) {
	if len(actions) != 1 {
		return "", core.Fail("ValidationError", "exactly one default action must be specified")
	}
	action := actions[0]
	if action.Type != types.ActionTypeEnumForward {
		return "", core.NotSimulated("default action %s", action.Type)
	}
	if err := core.Only("default action", &action, "Type", "TargetGroupArn", "ForwardConfig", "Order"); err != nil {
		return "", err
	}
	arn := action.TargetGroupArn
	if c := action.ForwardConfig; c != nil {
		if err := core.Only("ForwardConfig", c, "TargetGroups"); err != nil {
			return "", err
		}
		if len(c.TargetGroups) != 1 || arn != nil && *arn != aws.ToString(c.TargetGroups[0].TargetGroupArn) {
			return "", core.Fail("ValidationError", "you must specify exactly one target group")
		}
		arn = c.TargetGroups[0].TargetGroupArn
	}
	g, err := svc.targetGroup(arn)
	if err != nil {
		return "", err
	}
	return g.ARN, nil
}

// checkListener validates a new or changed listener of a load balancer.
func (svc *Service) checkListener(b *LoadBalancer, l *Listener) error {
	if l.Port < 1 || l.Port > 65535 {
		return core.Fail("ValidationError", "port '%d' must be between 1 and 65535", l.Port)
	}
	fits := map[string][]string{ // protocols of target groups by protocol of the listener
		"TCP": {"TCP"}, "UDP": {"UDP"}, "TCP_UDP": {"TCP_UDP"}, "TLS": {"TCP", "TLS"},
	}
	if b.Type == typeApplication {
		fits = map[string][]string{"HTTP": {"HTTP", "HTTPS"}, "HTTPS": {"HTTP", "HTTPS"}}
	}
	groups, ok := fits[l.Protocol]
	if !ok {
		return core.Fail("ValidationError", "listener protocol '%s' is not supported for load balancers of type '%s'", l.Protocol, b.Type)
	}
	if l.Protocol == "TLS" || l.Protocol == "HTTPS" {
		return core.Fail("ValidationError", "a certificate must be specified for %s listeners", l.Protocol)
	}
	if strings.Contains(l.Protocol, "UDP") && b.IPType == "dualstack" {
		return core.Fail("InvalidConfigurationRequest", "protocol '%s' is not supported for load balancers of IP address type 'dualstack'", l.Protocol)
	}
	g := svc.state.TargetGroups[l.TargetGroup]
	switch user := svc.userOf(g); {
	case !slices.Contains(groups, g.Protocol):
		return core.Fail("IncompatibleProtocols", "protocol '%s' of target group '%s' does not fit the listener protocol '%s'", g.Protocol, g.ARN, l.Protocol)
	case g.VPC != b.VPC:
		return core.Fail("InvalidConfigurationRequest", "the load balancer '%s' and the target group '%s' are in different VPCs", b.ARN, g.ARN)
	case g.IPType == "ipv6" && b.IPType != "dualstack":
		return core.Fail("InvalidConfigurationRequest", "an IPv6 target group needs a load balancer of IP address type 'dualstack'")
	case user != nil && user != b:
		return core.Fail("TargetGroupAssociationLimit", "target group '%s' cannot be associated with more than one load balancer", g.ARN)
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

func (svc *Service) describeListeners(in *elb.DescribeListenersInput) (*elb.DescribeListenersOutput, error) {
	if (in.LoadBalancerArn == nil) == (len(in.ListenerArns) == 0) {
		return nil, core.Fail("ValidationError", "either a load balancer ARN or listener ARNs must be specified")
	}
	if in.LoadBalancerArn != nil {
		if _, err := svc.loadBalancer(in.LoadBalancerArn); err != nil {
			return nil, err
		}
	}
	var list []types.Listener
	for _, l := range core.ByKey(svc.state.Listeners) {
		if svc.Visible(l.Born) && (l.LoadBalancer == aws.ToString(in.LoadBalancerArn) || slices.Contains(in.ListenerArns, l.ARN)) {
			list = append(list, l.show())
		}
	}
	for _, arn := range in.ListenerArns {
		if !slices.ContainsFunc(list, func(l types.Listener) bool { return *l.ListenerArn == arn }) {
			return nil, noListener(arn)
		}
	}
	part, next, err := core.Page(svc.Account, list, in.Marker, in.PageSize, 400)
	return &elb.DescribeListenersOutput{Listeners: part, NextMarker: next}, err
}

func (svc *Service) modifyListener(in *elb.ModifyListenerInput) (*elb.ModifyListenerOutput, error) {
	l, err := svc.listener(in.ListenerArn)
	if err != nil {
		return nil, err
	}
	b, changed := svc.state.LoadBalancers[l.LoadBalancer], *l
	core.Set(&changed.Port, in.Port)
	if in.Protocol != "" {
		changed.Protocol = string(in.Protocol)
	}
	if len(in.DefaultActions) > 0 {
		if changed.TargetGroup, err = svc.forward(in.DefaultActions); err != nil {
			return nil, err
		}
	}
	if err := svc.checkListener(b, &changed); err != nil {
		return nil, err
	}
	if other := svc.listenerOn(b, changed.Port); other != nil && other != l {
		return nil, &types.DuplicateListenerException{Message: aws.String("A listener already exists on this port for this load balancer '" + b.ARN + "'")}
	}
	old := l.TargetGroup
	*l = changed
	svc.use(l.TargetGroup)
	svc.unuse(old)
	return &elb.ModifyListenerOutput{Listeners: []types.Listener{l.show()}}, nil
}

func (svc *Service) deleteListener(in *elb.DeleteListenerInput) (*elb.DeleteListenerOutput, error) {
	l, err := svc.listener(in.ListenerArn)
	if err != nil {
		return nil, err
	}
	svc.removeListener(l)
	return &elb.DeleteListenerOutput{}, nil
}

// removeListener removes a listener.
func (svc *Service) removeListener(l *Listener) {
	delete(svc.state.Listeners, l.ARN)
	svc.unuse(l.TargetGroup)
}
