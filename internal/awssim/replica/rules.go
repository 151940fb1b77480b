package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eventbridge"
)

// rules reads the rules of EventBridge that the plan asks for.
func (r *reader) rules(ctx context.Context) error {
	c := eventbridge.NewFromConfig(r.Config)
	for _, in := range of[eventbridge.DescribeRuleInput](r.Asked) {
		out, err := c.DescribeRule(ctx, in)
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		targets, err := c.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: in.Name})
		if err != nil {
			return err
		}
		tags, err := c.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: out.Arn})
		if err != nil {
			return err
		}
		own := &sim.Rule{
			Name: aws.ToString(out.Name), Description: aws.ToString(out.Description), Pattern: aws.ToString(out.EventPattern), State: string(out.State),
			Targets: map[string]string{}, Tags: map[string]string{}, Born: r.old(),
		}
		for _, t := range targets.Targets {
			own.Targets[aws.ToString(t.Id)] = aws.ToString(t.Arn)
		}
		for _, t := range tags.Tags {
			own.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
		}
		r.to.EventBridge.Rules[own.Name] = own
	}
	return nil
}
