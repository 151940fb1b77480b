package conformance

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queues asks about a queue of SQS. It returns its ARN.
func (s *suite) queues() (arn string) {
	name := aws.String("demo")
	_, err := s.sqs.GetQueueUrl(s.ctx, &sqs.GetQueueUrlInput{QueueName: name})
	s.see("queue: its URL before it exists", err)
	create := func(retention string) (*sqs.CreateQueueOutput, error) {
		return s.sqs.CreateQueue(s.ctx, &sqs.CreateQueueInput{
			QueueName:  name,
			Attributes: map[string]string{"MessageRetentionPeriod": retention, "SqsManagedSseEnabled": "true"},
			Tags:       map[string]string{"owner": "demo"},
		})
	}
	made, err := create("300")
	s.need(err)
	s.settle()
	s.see("queue: create", err, strings.HasSuffix(str(made.QueueUrl), "/demo"))
	_, err = create("300")
	s.see("queue: create again", err)
	_, err = create("600")
	s.see("queue: create with other attributes", err)
	_, err = s.sqs.CreateQueue(s.ctx, &sqs.CreateQueueInput{QueueName: aws.String("no spaces")})
	s.see("queue: create with a wrong name", err)
	at, err := s.sqs.GetQueueUrl(s.ctx, &sqs.GetQueueUrlInput{QueueName: name})
	s.need(err)
	s.see("queue: its URL", err, str(at.QueueUrl) == str(made.QueueUrl))
	attributes := func() map[string]string {
		out, err := s.sqs.GetQueueAttributes(s.ctx, &sqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{
			sqstypes.QueueAttributeNameMessageRetentionPeriod, sqstypes.QueueAttributeNameQueueArn, sqstypes.QueueAttributeNameSqsManagedSseEnabled,
		}})
		s.need(err)
		return out.Attributes
	}
	has := attributes()
	arn = has["QueueArn"]
	s.see("queue: attributes", nil, has["MessageRetentionPeriod"], has["SqsManagedSseEnabled"], strings.HasSuffix(arn, ":demo"), len(has))
	_, err = s.sqs.SetQueueAttributes(s.ctx, &sqs.SetQueueAttributesInput{QueueUrl: made.QueueUrl, Attributes: map[string]string{"MessageRetentionPeriod": "600"}})
	s.see("queue: set an attribute", err, attributes()["MessageRetentionPeriod"])
	_, err = s.sqs.TagQueue(s.ctx, &sqs.TagQueueInput{QueueUrl: made.QueueUrl, Tags: map[string]string{"more": "tags"}})
	s.need(err)
	tags, err := s.sqs.ListQueueTags(s.ctx, &sqs.ListQueueTagsInput{QueueUrl: made.QueueUrl})
	s.need(err)
	s.see("queue: tags", err, tags.Tags["owner"], tags.Tags["more"], len(tags.Tags))
	return arn
}

// rules asks about a rule of EventBridge that sends to a queue, and deletes both.
func (s *suite) rules() {
	queue, name := s.queues(), aws.String("demo")
	_, err := s.events.DescribeRule(s.ctx, &eventbridge.DescribeRuleInput{Name: name})
	s.see("rule: describe one that is not there", err)
	put := func(pattern string) error {
		_, err := s.events.PutRule(s.ctx, &eventbridge.PutRuleInput{
			Name: name, EventPattern: &pattern, State: eventtypes.RuleStateEnabled, Tags: []eventtypes.Tag{{Key: aws.String("owner"), Value: aws.String("demo")}},
		})
		return err
	}
	s.see("rule: put with a wrong pattern", put(`{"source":"aws.ec2"}`))
	s.see("rule: put", put(`{"source":["aws.ec2"]}`))
	s.settle()
	s.see("rule: put again", put(`{"source":["aws.health"]}`))
	got, err := s.events.DescribeRule(s.ctx, &eventbridge.DescribeRuleInput{Name: name})
	s.need(err)
	s.see("rule: describe", err, got.State, str(got.EventPattern), strings.HasSuffix(str(got.Arn), ":rule/demo"))
	all, err := s.events.ListRules(s.ctx, &eventbridge.ListRulesInput{})
	s.need(err)
	s.see("rule: list", err, len(all.Rules), str(all.Rules[0].Name))
	tags, err := s.events.ListTagsForResource(s.ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: got.Arn})
	s.need(err)
	s.see("rule: tags", err, len(tags.Tags), str(tags.Tags[0].Key))
	_, err = s.events.TagResource(
		s.ctx,
		&eventbridge.TagResourceInput{ResourceARN: got.Arn, Tags: []eventtypes.Tag{{Key: aws.String("more"), Value: aws.String("tags")}}},
	)
	s.see("rule: tag", err)
	sent, err := s.events.PutTargets(s.ctx, &eventbridge.PutTargetsInput{Rule: name, Targets: []eventtypes.Target{{Id: aws.String("queue"), Arn: &queue}}})
	s.need(err)
	s.see("rule: put a target", err, sent.FailedEntryCount)
	targets, err := s.events.ListTargetsByRule(s.ctx, &eventbridge.ListTargetsByRuleInput{Rule: name})
	s.need(err)
	s.see("rule: targets", err, len(targets.Targets), str(targets.Targets[0].Id), str(targets.Targets[0].Arn) == queue)
	_, err = s.events.DeleteRule(s.ctx, &eventbridge.DeleteRuleInput{Name: name})
	s.see("rule: delete with a target", err)
	gone, err := s.events.RemoveTargets(s.ctx, &eventbridge.RemoveTargetsInput{Rule: name, Ids: []string{"queue"}})
	s.need(err)
	s.see("rule: remove the target", err, gone.FailedEntryCount)
	_, err = s.events.DeleteRule(s.ctx, &eventbridge.DeleteRuleInput{Name: name})
	s.see("rule: delete", err)
	_, err = s.events.DeleteRule(s.ctx, &eventbridge.DeleteRuleInput{Name: name})
	s.see("rule: delete again", err)
	at, err := s.sqs.GetQueueUrl(s.ctx, &sqs.GetQueueUrlInput{QueueName: name})
	s.need(err)
	_, err = s.sqs.DeleteQueue(s.ctx, &sqs.DeleteQueueInput{QueueUrl: at.QueueUrl})
	s.see("queue: delete", err)
	s.settle()
	_, err = s.sqs.DeleteQueue(s.ctx, &sqs.DeleteQueueInput{QueueUrl: at.QueueUrl})
	s.see("queue: delete again", err)
}
