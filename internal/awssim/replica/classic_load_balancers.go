package replica

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	classic "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
)

// classics reads Classic Load Balancers.
func (r *reader) classics(ctx context.Context) error {
	c, found := classic.NewFromConfig(r.Config), map[string]*sim.ClassicLoadBalancer{}
	err := pages(ctx, classic.NewDescribeLoadBalancersPaginator(c, &classic.DescribeLoadBalancersInput{}), func(p *classic.DescribeLoadBalancersOutput) {
		for _, b := range p.LoadBalancerDescriptions {
			found[aws.ToString(b.LoadBalancerName)] = r.classicOf(b)
		}
	})
	if err != nil {
		return err
	}
	if err := classicTags(ctx, c, found); err != nil {
		return err
	}
	for name, b := range found {
		if r.Asked.about(name) || r.ours(b.Tags) {
			if err := classicAttributes(ctx, c, b); err != nil {
				return err
			}
		}
	}
	r.to.ELB.Classic = found
	return nil
}

func classicTags(ctx context.Context, c *classic.Client, found map[string]*sim.ClassicLoadBalancer) error {
	for some := range slices.Chunk(slices.Sorted(maps.Keys(found)), mostDescribed) {
		out, err := c.DescribeTags(ctx, &classic.DescribeTagsInput{LoadBalancerNames: some})
		if err != nil {
			return err
		}
		for _, d := range out.TagDescriptions {
			for _, t := range d.Tags {
				found[aws.ToString(d.LoadBalancerName)].Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
			}
		}
	}
	return nil
}

func (r *reader) classicOf(b types.LoadBalancerDescription) *sim.ClassicLoadBalancer {
	own := &sim.ClassicLoadBalancer{
		Name: aws.ToString(b.LoadBalancerName), Scheme: aws.ToString(b.Scheme), VPC: aws.ToString(b.VPCId), DNSName: aws.ToString(b.DNSName), Subnets: b.Subnets,
		Groups: b.SecurityGroups, Instances: map[string]time.Time{}, Tags: map[string]string{}, Born: r.since(b.CreatedTime), DrainingTimeout: 300, IdleTimeout: 60,
	}
	for _, i := range b.Instances {
		own.Instances[aws.ToString(i.InstanceId)] = own.Born
	}
	for _, d := range b.ListenerDescriptions {
		if l := d.Listener; l != nil {
			own.Listeners = append(own.Listeners, sim.ClassicListener{
				Protocol: aws.ToString(l.Protocol), InstanceProtocol: aws.ToString(l.InstanceProtocol), Port: l.LoadBalancerPort, InstancePort: aws.ToInt32(l.InstancePort),
			})
		}
	}
	if h := b.HealthCheck; h != nil {
		own.Check = sim.ClassicHealthCheck{
			Target: aws.ToString(h.Target), Interval: aws.ToInt32(h.Interval), Timeout: aws.ToInt32(h.Timeout),
			Healthy: aws.ToInt32(h.HealthyThreshold), Unhealthy: aws.ToInt32(h.UnhealthyThreshold),
		}
	}
	return own
}

func classicAttributes(ctx context.Context, c *classic.Client, b *sim.ClassicLoadBalancer) error {
	out, err := c.DescribeLoadBalancerAttributes(ctx, &classic.DescribeLoadBalancerAttributesInput{LoadBalancerName: &b.Name})
	if err != nil || out.LoadBalancerAttributes == nil {
		return err
	}
	a := out.LoadBalancerAttributes
	if a.CrossZoneLoadBalancing != nil {
		b.CrossZone = a.CrossZoneLoadBalancing.Enabled
	}
	if d := a.ConnectionDraining; d != nil {
		b.Draining = d.Enabled
		if d.Timeout != nil {
			b.DrainingTimeout = *d.Timeout
		}
	}
	if s := a.ConnectionSettings; s != nil && s.IdleTimeout != nil {
		b.IdleTimeout = *s.IdleTimeout
	}
	return nil
}
