package replica

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
)

// balancers reads network and application load balancers with their listeners. Those that the
// plan asks for are complete; others only take a name and count against quotas.
func (r *reader) balancers(ctx context.Context) error {
	c, found, listeners := elb.NewFromConfig(r.Config), map[string]*sim.LoadBalancer{}, map[string]*sim.Listener{}
	err := pages(ctx, elb.NewDescribeLoadBalancersPaginator(c, &elb.DescribeLoadBalancersInput{}), func(p *elb.DescribeLoadBalancersOutput) {
		for _, b := range p.LoadBalancers {
			found[aws.ToString(b.LoadBalancerArn)] = r.balancerOf(b)
		}
	})
	if err != nil {
		return err
	}
	tags, err := balancerTags(ctx, c, slices.Collect(maps.Keys(found)))
	if err != nil {
		return err
	}
	for arn, b := range found {
		maps.Copy(b.Tags, tags[arn])
		if !r.Asked.about(arn, b.Name) && !r.ours(b.Tags) {
			continue
		}
		if err := balancerAttributes(ctx, c, b); err != nil {
			return err
		}
		if err := readListeners(ctx, c, b, listeners); err != nil {
			return err
		}
	}
	r.to.ELB.LoadBalancers, r.to.ELB.Listeners = found, listeners
	return nil
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

// balancerTags reads the tags of load balancers, listeners or target groups, by their ARNs.
func balancerTags(ctx context.Context, c *elb.Client, arns []string) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for some := range slices.Chunk(slices.Sorted(slices.Values(arns)), mostDescribed) {
		out, err := c.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: some})
		if err != nil {
			return nil, err
		}
		for _, d := range out.TagDescriptions {
			tags := map[string]string{}
			for _, t := range d.Tags {
				tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
			}
			all[aws.ToString(d.ResourceArn)] = tags
		}
	}
	return all, nil
}

func balancerAttributes(ctx context.Context, c *elb.Client, b *sim.LoadBalancer) error {
	out, err := c.DescribeLoadBalancerAttributes(ctx, &elb.DescribeLoadBalancerAttributesInput{LoadBalancerArn: &b.ARN})
	if err != nil {
		return err
	}
	for _, a := range out.Attributes {
		b.Attributes[aws.ToString(a.Key)] = aws.ToString(a.Value)
	}
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

// mostDescribed is how many load balancers one call for tags takes.
const mostDescribed = 20

// balancerInterface returns the interface of a load balancer in a subnet; "" for none.
func (r *reader) balancerInterface(owner string) string {
	var all []string
	for id, n := range r.to.EC2.Interfaces {
		if n.Owner == owner {
			all = append(all, id)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}
