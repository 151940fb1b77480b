package replica

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
)

// mostDescribed is how many load balancers one call for tags takes.
const mostDescribed = 20

// balancers reads network and application load balancers and their target groups. Those
// that the plan asks for are complete; others only take a name and count against quotas.
func (r *reader) balancers(ctx context.Context) error {
	c := elb.NewFromConfig(r.Config)
	found := map[string]*sim.LoadBalancer{}
	err := pages(ctx, elb.NewDescribeLoadBalancersPaginator(c, &elb.DescribeLoadBalancersInput{}), func(p *elb.DescribeLoadBalancersOutput) {
		for _, b := range p.LoadBalancers {
			found[aws.ToString(b.LoadBalancerArn)] = r.balancerOf(b)
		}
	})
	if err != nil {
		return err
	}
	groups := map[string]*sim.TargetGroup{}
	err = pages(ctx, elb.NewDescribeTargetGroupsPaginator(c, &elb.DescribeTargetGroupsInput{}), func(p *elb.DescribeTargetGroupsOutput) {
		for _, g := range p.TargetGroups {
			if g.TargetType == "" || g.TargetType == types.TargetTypeEnumInstance {
				groups[aws.ToString(g.TargetGroupArn)] = r.targetGroupOf(g)
			}
		}
	})
	if err != nil {
		return err
	}
	if err := r.balancerTags(ctx, c, found, groups); err != nil {
		return err
	}
	listeners := map[string]*sim.Listener{}
	for arn, b := range found {
		if r.Asked.about(arn, b.Name) || r.ours(b.Tags) {
			if err := r.completeBalancer(ctx, c, b, listeners); err != nil {
				return err
			}
		}
	}
	for arn, g := range groups {
		if r.Asked.about(arn, g.Name) || r.ours(g.Tags) {
			if err := r.completeGroup(ctx, c, g); err != nil {
				return err
			}
		}
	}
	r.to.ELB.LoadBalancers, r.to.ELB.TargetGroups, r.to.ELB.Listeners = found, groups, listeners
	return nil
}

// ours reports whether the tags name a cluster that the plan asks for.
func (r *reader) ours(tags map[string]string) bool {
	for key := range tags {
		if r.Asked.about("tag:"+key) || r.Asked.about(key) && strings.Contains(key, "/cluster/") {
			return true
		}
	}
	return false
}

func (r *reader) balancerOf(b types.LoadBalancer) *sim.LoadBalancer {
	own := &sim.LoadBalancer{
		ARN: aws.ToString(b.LoadBalancerArn), Name: aws.ToString(b.LoadBalancerName), Type: string(b.Type), Scheme: string(b.Scheme), VPC: aws.ToString(b.VpcId),
		IPType: string(b.IpAddressType), DNSName: aws.ToString(b.DNSName), Groups: slices.Sorted(slices.Values(b.SecurityGroups)),
		Attributes: map[string]string{}, Tags: map[string]string{}, Born: r.since(b.CreatedTime),
	}
	own.Ready = own.Born
	if b.State != nil && b.State.Code == types.LoadBalancerStateEnumProvisioning {
		own.Ready = r.Now.Add(2 * time.Minute)
	}
	for _, z := range b.AvailabilityZones {
		zone := sim.LoadBalancerZone{Zone: aws.ToString(z.ZoneName), Subnet: aws.ToString(z.SubnetId)}
		for _, a := range z.LoadBalancerAddresses {
			if a.AllocationId != nil {
				zone.Allocation, zone.PublicIP = *a.AllocationId, aws.ToString(a.IpAddress)
			}
		}
		zone.Interface = r.balancerInterface(own.ARN + " " + zone.Subnet)
		own.Zones = append(own.Zones, zone)
	}
	slices.SortFunc(own.Zones, func(x, y sim.LoadBalancerZone) int { return cmp.Compare(x.Zone, y.Zone) })
	return own
}

func (r *reader) targetGroupOf(g types.TargetGroup) *sim.TargetGroup {
	own := &sim.TargetGroup{
		ARN: aws.ToString(g.TargetGroupArn), Name: aws.ToString(g.TargetGroupName), VPC: aws.ToString(g.VpcId), Protocol: string(g.Protocol),
		IPType: string(g.IpAddressType), Port: aws.ToInt32(g.Port), Attributes: map[string]string{}, Tags: map[string]string{}, Born: r.old(),
		Check: sim.HealthCheck{
			Protocol: string(g.HealthCheckProtocol), Port: aws.ToString(g.HealthCheckPort), Path: aws.ToString(g.HealthCheckPath),
			Interval: aws.ToInt32(g.HealthCheckIntervalSeconds), Timeout: aws.ToInt32(g.HealthCheckTimeoutSeconds),
			Healthy: aws.ToInt32(g.HealthyThresholdCount), Unhealthy: aws.ToInt32(g.UnhealthyThresholdCount),
		},
	}
	if g.Matcher != nil {
		own.Check.Codes = aws.ToString(g.Matcher.HttpCode)
	}
	if len(g.LoadBalancerArns) > 0 {
		own.Used = own.Born
	}
	return own
}

// balancerTags reads the tags of load balancers and target groups.
func (r *reader) balancerTags(ctx context.Context, c *elb.Client, found map[string]*sim.LoadBalancer, groups map[string]*sim.TargetGroup) error {
	var arns []string
	for arn := range found {
		arns = append(arns, arn)
	}
	for arn := range groups {
		arns = append(arns, arn)
	}
	slices.Sort(arns)
	for some := range slices.Chunk(arns, mostDescribed) {
		out, err := c.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: some})
		if err != nil {
			return err
		}
		for _, d := range out.TagDescriptions {
			tags := map[string]string{}
			for _, t := range d.Tags {
				tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
			}
			if b := found[aws.ToString(d.ResourceArn)]; b != nil {
				b.Tags = tags
			} else if g := groups[aws.ToString(d.ResourceArn)]; g != nil {
				g.Tags = tags
			}
		}
	}
	return nil
}

// completeBalancer reads the attributes and the listeners of a load balancer.
func (r *reader) completeBalancer(ctx context.Context, c *elb.Client, b *sim.LoadBalancer, listeners map[string]*sim.Listener) error {
	attributes, err := c.DescribeLoadBalancerAttributes(ctx, &elb.DescribeLoadBalancerAttributesInput{LoadBalancerArn: &b.ARN})
	if err != nil {
		return err
	}
	for _, a := range attributes.Attributes {
		b.Attributes[aws.ToString(a.Key)] = aws.ToString(a.Value)
	}
	var arns []string
	err = pages(ctx, elb.NewDescribeListenersPaginator(c, &elb.DescribeListenersInput{LoadBalancerArn: &b.ARN}), func(p *elb.DescribeListenersOutput) {
		for _, l := range p.Listeners {
			own := &sim.Listener{ARN: aws.ToString(l.ListenerArn), LoadBalancer: b.ARN, Protocol: string(l.Protocol), Port: aws.ToInt32(l.Port), Tags: map[string]string{}, Born: b.Born}
			for _, a := range l.DefaultActions {
				own.TargetGroup = cmp.Or(own.TargetGroup, aws.ToString(a.TargetGroupArn))
			}
			listeners[own.ARN], arns = own, append(arns, own.ARN)
		}
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(arns, mostDescribed) {
		out, err := c.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: some})
		if err != nil {
			return err
		}
		for _, d := range out.TagDescriptions {
			for _, t := range d.Tags {
				listeners[aws.ToString(d.ResourceArn)].Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
			}
		}
	}
	return nil
}

// completeGroup reads the attributes and the targets of a target group.
func (r *reader) completeGroup(ctx context.Context, c *elb.Client, g *sim.TargetGroup) error {
	attributes, err := c.DescribeTargetGroupAttributes(ctx, &elb.DescribeTargetGroupAttributesInput{TargetGroupArn: &g.ARN})
	if err != nil {
		return err
	}
	for _, a := range attributes.Attributes {
		g.Attributes[aws.ToString(a.Key)] = aws.ToString(a.Value)
	}
	health, err := c.DescribeTargetHealth(ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: &g.ARN})
	if err != nil {
		return err
	}
	for _, h := range health.TargetHealthDescriptions {
		t := &sim.Target{ID: aws.ToString(h.Target.Id), Port: aws.ToInt32(h.Target.Port), Registered: g.Born}
		if h.TargetHealth != nil && h.TargetHealth.State == types.TargetHealthStateEnumDraining {
			t.Drained = r.Now.Add(time.Minute)
		}
		g.Targets = append(g.Targets, t)
	}
	return nil
}
