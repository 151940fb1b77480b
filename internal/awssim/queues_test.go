package awssim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	queueARN    = "arn:aws:sqs:us-east-1:123456789012:q"
	queuePolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` +
		queueARN + `"}]}`
)

// A queue is usable after a second, is the same for the same attributes, and its name is free a minute after its deletion.
func TestQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gone = "AWS.SimpleQueueService.NonExistentQueue"
		c := sqs.NewFromConfig(New(Options{}).Config())
		create := func(attributes map[string]string) (*sqs.CreateQueueOutput, error) {
			return c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q"), Attributes: attributes})
		}
		find := func() error {
			_, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
			return err
		}
		for _, bad := range []map[string]string{
			{"MessageRetentionPeriod": "59"}, {"SqsManagedSseEnabled": "yes"}, {"Policy": "{}"}, {"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow"}]}`},
		} {
			_, err := create(bad)
			hasCode(t, err, "InvalidAttributeValue")
		}
		_, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("a.b")})
		hasCode(t, err, "InvalidParameterValue")
		first, err := create(map[string]string{"MessageRetentionPeriod": "300"})
		require.NoError(t, err)
		hasCode(t, find(), gone)
		time.Sleep(time.Second)
		require.NoError(t, find())
		again, err := create(map[string]string{"MessageRetentionPeriod": "300"})
		require.NoError(t, err)
		assert.Equal(t, first.QueueUrl, again.QueueUrl)
		_, err = create(map[string]string{"MessageRetentionPeriod": "301"})
		hasCode(t, err, "QueueAlreadyExists")

		_, err = c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: first.QueueUrl, Attributes: map[string]string{"Policy": queuePolicy}})
		require.NoError(t, err)
		_, err = c.TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: first.QueueUrl, Tags: map[string]string{"a": "b"}})
		require.NoError(t, err)
		has, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
			QueueUrl: first.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNamePolicy, sqstypes.QueueAttributeNameQueueArn},
		})
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"Policy": queuePolicy, "QueueArn": queueARN}, has.Attributes)
		tags, err := c.ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: first.QueueUrl})
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"a": "b"}, tags.Tags)

		_, err = c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: first.QueueUrl})
		require.NoError(t, err)
		_, err = create(nil)
		hasCode(t, err, "AWS.SimpleQueueService.QueueDeletedRecently")
		time.Sleep(time.Minute)
		hasCode(t, find(), gone)
		_, err = create(nil)
		require.NoError(t, err)
	})
}

// A rule sends the events of its pattern to a queue whose policy allows it. It is deleted after its targets, also over HTTP.
func TestRulesOfEventBridge(t *testing.T) {
	a := New(Options{})
	a.Edit(func(s *State) { s.SQS.Queues["q"] = &Queue{Name: "q", Attributes: map[string]string{}} })
	for name, cfg := range map[string]aws.Config{"in the process": a.Config(), "HTTP": overHTTP(t, a, "us-east-1")} {
		c := eventbridge.NewFromConfig(cfg)
		put := func(pattern string) error {
			_, err := c.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: &pattern})
			return err
		}
		hasCode(t, put(`{"source":"aws.ec2"}`), "InvalidEventPatternException")
		require.NoError(t, put(`{"source":["aws.ec2"],"detail-type":["A"]}`), name)
		target := func(arn string) (*eventbridge.PutTargetsOutput, error) {
			return c.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("r"), Targets: []eventtypes.Target{{Id: aws.String("t"), Arn: &arn}}})
		}
		out, err := target(queueARN + "-other")
		require.NoError(t, err)
		assert.EqualValues(t, 1, out.FailedEntryCount)
		_, err = target(queueARN)
		require.NoError(t, err)
		a.Edit(func(s *State) { s.SQS.Queues["q"].Attributes["Policy"] = "" })
		assert.Zero(t, a.Publish("aws.ec2", "A"), "the queue has no policy")
		a.Edit(func(s *State) { s.SQS.Queues["q"].Attributes["Policy"] = queuePolicy })
		assert.Equal(t, 1, a.Publish("aws.ec2", "A"))
		assert.Zero(t, a.Publish("aws.ec2", "B"))
		assert.Zero(t, a.Publish("aws.health", "A"))
		all, err := c.ListRules(t.Context(), &eventbridge.ListRulesInput{})
		require.NoError(t, err)
		require.Len(t, all.Rules, 1)
		assert.Equal(t, "r", *all.Rules[0].Name)
		a.Edit(func(s *State) { s.EventBridge.MostRules = 1 })
		_, err = c.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("s"), EventPattern: aws.String(`{"source":["aws.ec2"]}`)})
		hasCode(t, err, "LimitExceededException")
		_, err = c.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: aws.String("r")})
		hasCode(t, err, "ValidationException")
		_, err = c.RemoveTargets(t.Context(), &eventbridge.RemoveTargetsInput{Rule: aws.String("r"), Ids: []string{"t"}})
		require.NoError(t, err)
		_, err = c.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: aws.String("r")})
		require.NoError(t, err)
		_, err = c.DescribeRule(t.Context(), &eventbridge.DescribeRuleInput{Name: aws.String("r")})
		hasCode(t, err, "ResourceNotFoundException")
		url, err := sqs.NewFromConfig(cfg).GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
		require.NoError(t, err, name)
		assert.Equal(t, "https://sqs.us-east-1.amazonaws.com/123456789012/q", *url.QueueUrl)
	}
}
