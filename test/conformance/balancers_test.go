package conformance

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	classictypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
)

func (s *suite) balancers() {
	in := &elasticloadbalancingv2.CreateLoadBalancerInput{
		Name: aws.String("demo-api"), Type: types.LoadBalancerTypeEnumNetwork, Scheme: types.LoadBalancerSchemeEnumInternal, Subnets: []string{s.subnet},
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("red")}},
	}
	made, err := s.elb.CreateLoadBalancer(s.ctx, in)
	s.need(err)
	lb := made.LoadBalancers[0]
	s.see("load balancer: create", err, lb.Type, lb.Scheme, lb.State.Code)
	s.see("load balancer: its ARN", nil, arnKind(*lb.LoadBalancerArn))
	_, err = s.elb.CreateLoadBalancer(s.ctx, in)
	s.see("load balancer: create again", err)
	long := *in
	long.Name = aws.String("a-name-that-is-longer-than-32-characters")
	_, err = s.elb.CreateLoadBalancer(s.ctx, &long)
	s.see("load balancer: create with a long name", err)
	s.settle()
	seen, err := s.elb.DescribeLoadBalancers(s.ctx, &elasticloadbalancingv2.DescribeLoadBalancersInput{Names: []string{"demo-api"}})
	s.need(err)
	s.see("load balancer: after a while", err, seen.LoadBalancers[0].State.Code)
	_, err = s.elb.DescribeLoadBalancers(s.ctx, &elasticloadbalancingv2.DescribeLoadBalancersInput{Names: []string{"nobody"}})
	s.see("load balancer: describe one that is not there", err)
	tags, err := s.elb.DescribeTags(s.ctx, &elasticloadbalancingv2.DescribeTagsInput{ResourceArns: []string{*lb.LoadBalancerArn}})
	s.need(err)
	s.see("load balancer: tags", err, len(tags.TagDescriptions[0].Tags))
	_, err = s.elb.ModifyLoadBalancerAttributes(s.ctx, &elasticloadbalancingv2.ModifyLoadBalancerAttributesInput{
		LoadBalancerArn: lb.LoadBalancerArn,
		Attributes:      []types.LoadBalancerAttribute{{Key: aws.String("load_balancing.cross_zone.enabled"), Value: aws.String("true")}},
	})
	s.see("load balancer: balance across zones", err)

	s.targets(lb.LoadBalancerArn)

	_, err = s.elb.DeleteLoadBalancer(s.ctx, &elasticloadbalancingv2.DeleteLoadBalancerInput{LoadBalancerArn: lb.LoadBalancerArn})
	s.see("load balancer: delete", err)
	_, err = s.elb.DeleteLoadBalancer(s.ctx, &elasticloadbalancingv2.DeleteLoadBalancerInput{LoadBalancerArn: lb.LoadBalancerArn})
	s.see("load balancer: delete again", err)
	_, err = s.elb.DescribeLoadBalancers(s.ctx, &elasticloadbalancingv2.DescribeLoadBalancersInput{LoadBalancerArns: []string{*lb.LoadBalancerArn}})
	s.see("load balancer: describe what is gone", err)
	s.settle()
}

func (s *suite) targets(balancer *string) {
	in := &elasticloadbalancingv2.CreateTargetGroupInput{
		Name: aws.String("demo-api"), Protocol: types.ProtocolEnumTcp, Port: aws.Int32(6443), VpcId: &s.vpc, TargetType: types.TargetTypeEnumInstance,
	}
	made, err := s.elb.CreateTargetGroup(s.ctx, in)
	s.need(err)
	group := made.TargetGroups[0]
	s.see("target group: create", err, group.Protocol, *group.Port, group.HealthCheckProtocol, *group.HealthCheckPort)
	_, err = s.elb.CreateTargetGroup(s.ctx, in)
	s.see("target group: create again", err)
	other := *in
	other.Port = aws.Int32(443)
	_, err = s.elb.CreateTargetGroup(s.ctx, &other)
	s.see("target group: create another of the same name", err)
	_, err = s.elb.DescribeTargetGroups(s.ctx, &elasticloadbalancingv2.DescribeTargetGroupsInput{Names: []string{"nobody"}})
	s.see("target group: describe one that is not there", err)
	_, err = s.elb.RegisterTargets(
		s.ctx,
		&elasticloadbalancingv2.RegisterTargetsInput{
			TargetGroupArn: group.TargetGroupArn,
			Targets:        []types.TargetDescription{{Id: aws.String("i-0123456789abcdef0")}},
		},
	)
	s.see("target group: register an instance that is not there", err)
	health, err := s.elb.DescribeTargetHealth(s.ctx, &elasticloadbalancingv2.DescribeTargetHealthInput{TargetGroupArn: group.TargetGroupArn})
	s.need(err)
	s.see("target group: its targets", err, len(health.TargetHealthDescriptions))

	listener, err := s.elb.CreateListener(s.ctx, &elasticloadbalancingv2.CreateListenerInput{
		LoadBalancerArn: balancer, Protocol: types.ProtocolEnumTcp, Port: aws.Int32(6443),
		DefaultActions: []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: group.TargetGroupArn}},
	})
	s.need(err)
	s.see("listener: create", err, listener.Listeners[0].Protocol, *listener.Listeners[0].Port)
	_, err = s.elb.CreateListener(s.ctx, &elasticloadbalancingv2.CreateListenerInput{
		LoadBalancerArn: balancer, Protocol: types.ProtocolEnumTcp, Port: aws.Int32(6443),
		DefaultActions: []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: group.TargetGroupArn}},
	})
	s.see("listener: create again", err)
	_, err = s.elb.DeleteTargetGroup(s.ctx, &elasticloadbalancingv2.DeleteTargetGroupInput{TargetGroupArn: group.TargetGroupArn})
	s.see("target group: delete under a listener", err)
	_, err = s.elb.DeleteListener(s.ctx, &elasticloadbalancingv2.DeleteListenerInput{ListenerArn: listener.Listeners[0].ListenerArn})
	s.see("listener: delete", err)
	_, err = s.elb.DeleteTargetGroup(s.ctx, &elasticloadbalancingv2.DeleteTargetGroupInput{TargetGroupArn: group.TargetGroupArn})
	s.see("target group: delete", err)
	_, err = s.elb.DeleteTargetGroup(s.ctx, &elasticloadbalancingv2.DeleteTargetGroupInput{TargetGroupArn: group.TargetGroupArn})
	s.see("target group: delete again", err)
}

// arnKind returns the type of load balancer in an ARN.
func arnKind(arn string) string {
	for _, kind := range []string{"net", "app"} {
		if at := len("arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/"); len(arn) > at+3 && arn[at:at+3] == kind {
			return kind
		}
	}
	return arn
}

func (s *suite) classicBalancers() {
	in := &elasticloadbalancing.CreateLoadBalancerInput{
		LoadBalancerName: aws.String("demo-classic"), Subnets: []string{s.subnet}, SecurityGroups: []string{s.group}, Scheme: aws.String("internal"),
		Listeners: []classictypes.Listener{{Protocol: aws.String("TCP"), LoadBalancerPort: 6443, InstanceProtocol: aws.String("TCP"), InstancePort: aws.Int32(6443)}},
	}
	_, err := s.classic.CreateLoadBalancer(s.ctx, in)
	s.see("classic load balancer: create", err)
	s.need(err)
	again := *in
	again.Listeners = []classictypes.Listener{
		{Protocol: aws.String("TCP"), LoadBalancerPort: 443, InstanceProtocol: aws.String("TCP"), InstancePort: aws.Int32(6443)},
	}
	_, err = s.classic.CreateLoadBalancer(s.ctx, &again)
	s.see("classic load balancer: create another of the same name", err)
	_, err = s.classic.ConfigureHealthCheck(
		s.ctx,
		&elasticloadbalancing.ConfigureHealthCheckInput{LoadBalancerName: in.LoadBalancerName, HealthCheck: &classictypes.HealthCheck{
			Target: aws.String("TCP:6443"), Interval: aws.Int32(10), Timeout: aws.Int32(5), HealthyThreshold: aws.Int32(5), UnhealthyThreshold: aws.Int32(3),
		}},
	)
	s.see("classic load balancer: health check", err)
	out, err := s.classic.DescribeLoadBalancers(s.ctx, &elasticloadbalancing.DescribeLoadBalancersInput{LoadBalancerNames: []string{"demo-classic"}})
	s.need(err)
	x := out.LoadBalancerDescriptions[0]
	s.see("classic load balancer: describe", err, *x.Scheme, len(x.ListenerDescriptions), *x.HealthCheck.Target, len(x.SecurityGroups))
	s.deleteGroup("security group: delete under a load balancer")
	_, err = s.classic.DescribeLoadBalancers(s.ctx, &elasticloadbalancing.DescribeLoadBalancersInput{LoadBalancerNames: []string{"nobody"}})
	s.see("classic load balancer: describe one that is not there", err)
	_, err = s.classic.DeleteLoadBalancer(s.ctx, &elasticloadbalancing.DeleteLoadBalancerInput{LoadBalancerName: in.LoadBalancerName})
	s.see("classic load balancer: delete", err)
	_, err = s.classic.DeleteLoadBalancer(s.ctx, &elasticloadbalancing.DeleteLoadBalancerInput{LoadBalancerName: in.LoadBalancerName})
	s.see("classic load balancer: delete again", err)
	s.settle()
}

// teardown deletes the network; an account that deletes parts of it earlier has returned
// the errors before.
func (s *suite) teardown() {
	groups, err := s.ec2.DescribeSecurityGroups(s.ctx, &ec2.DescribeSecurityGroupsInput{Filters: filter("vpc-id", s.vpc)})
	s.need(err)
	for _, g := range groups.SecurityGroups {
		if *g.GroupName != "default" {
			_, err := s.ec2.DeleteSecurityGroup(s.ctx, &ec2.DeleteSecurityGroupInput{GroupId: g.GroupId})
			s.need(err)
		}
	}
	subnets, err := s.ec2.DescribeSubnets(s.ctx, &ec2.DescribeSubnetsInput{Filters: filter("vpc-id", s.vpc)})
	s.need(err)
	for _, x := range subnets.Subnets {
		_, err := s.ec2.DeleteSubnet(s.ctx, &ec2.DeleteSubnetInput{SubnetId: x.SubnetId})
		s.need(err)
	}
	_, err = s.ec2.DeleteVpc(s.ctx, &ec2.DeleteVpcInput{VpcId: &s.vpc})
	s.see("vpc: delete", err)
}
