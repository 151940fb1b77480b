package replica

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
)

// targetGroups reads target groups of instances. Those that the plan asks for are complete.
func (r *reader) targetGroups(ctx context.Context) error {
	c, found := elb.NewFromConfig(r.Config), map[string]*sim.TargetGroup{}
	err := pages(ctx, elb.NewDescribeTargetGroupsPaginator(c, &elb.DescribeTargetGroupsInput{}), func(p *elb.DescribeTargetGroupsOutput) {
		for _, g := range p.TargetGroups {
			if g.TargetType == "" || g.TargetType == types.TargetTypeEnumInstance {
				found[aws.ToString(g.TargetGroupArn)] = r.targetGroupOf(g)
			}
		}
	})
	if err != nil {
		return err
	}
	tags, err := balancerTags(ctx, c, slices.Collect(maps.Keys(found)))
	if err != nil {
		return err
	}
	for arn, g := range found {
		maps.Copy(g.Tags, tags[arn])
		if !r.Asked.about(arn, g.Name) && !r.ours(g.Tags) {
			continue
		}
		if err := groupAttributes(ctx, c, g); err != nil {
			return err
		}
		if err := r.readTargets(ctx, c, g); err != nil {
			return err
		}
	}
	r.to.ELB.TargetGroups = found
	return nil
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

func groupAttributes(ctx context.Context, c *elb.Client, g *sim.TargetGroup) error {
	out, err := c.DescribeTargetGroupAttributes(ctx, &elb.DescribeTargetGroupAttributesInput{TargetGroupArn: &g.ARN})
	if err != nil {
		return err
	}
	for _, a := range out.Attributes {
		g.Attributes[aws.ToString(a.Key)] = aws.ToString(a.Value)
	}
	return nil
}

// readTargets reads the targets of a target group.
func (r *reader) readTargets(ctx context.Context, c *elb.Client, g *sim.TargetGroup) error {
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
