package replica

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/sqs"
)

// queues reads the queues that the plan asks for, without their messages.
func (r *reader) queues(ctx context.Context) error {
	c := sqs.NewFromConfig(r.Config)
	for _, in := range of[sqs.GetQueueUrlInput](r.Asked) {
		out, err := c.GetQueueUrl(ctx, in)
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		has, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: out.QueueUrl, AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameMessageRetentionPeriod, types.QueueAttributeNamePolicy, types.QueueAttributeNameSqsManagedSseEnabled,
		}})
		if err != nil {
			return err
		}
		tags, err := c.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: out.QueueUrl})
		if err != nil {
			return err
		}
		name := aws.ToString(in.QueueName)
		r.to.SQS.Queues[name] = &sim.Queue{Name: name, Attributes: has.Attributes, Tags: tags.Tags, Born: r.old()}
	}
	return nil
}
