package sqs

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// QueueKind is the name of the kind of queues.
const QueueKind = "queue"

// Queue is a queue that EventBridge sends events to.
type Queue struct {
	Name      string
	ARN       string
	Retention string // of messages, in seconds
	Tags      cloud.Tags
	// Role is deleted after the queue: a deletion by name finds the queue by it.
	Role *graph.Ref[iam.RoleState]
}

// QueueState is a queue, as AWS describes it.
type QueueState struct {
	identity.Object // the ID is its ARN
	URL, Name       string
	Policy          string // canonical JSON
	Retention       string
	Encrypted       bool // with keys of SQS
	Foreign         bool // somebody else has made it
}

var _ graph.Managed[QueueState] = (*Queue)(nil)

// Needs implements graph.Desired.
func (q *Queue) Needs() []graph.Edge { return graph.Exists(q.Role) }

// Takes implements graph.Timed: "the deletion process takes up to 60 seconds" (DeleteQueue, SQS API reference).
func (q *Queue) Takes() (create, remove time.Duration) { return time.Second, time.Minute }

// Find implements graph.Desired.
func (q *Queue) Find(ctx context.Context, c *cloud.Clients) (*QueueState, error) {
	s, err := QueueByName(ctx, c, q.Name)
	if s == nil || err != nil {
		return nil, err
	}
	have := *s
	have.Foreign = !s.IsOwned(c)
	return &have, nil
}

// Diff implements graph.Desired.
func (q *Queue) Diff(have *QueueState) (d plan.Diff) {
	if have.Foreign {
		d.Fixed("owner", "somebody else", "this cluster")
		d.Advise(kind.RestoreAdvice(have.URL, have.Tags, q.Tags) + "delete the queue " + have.Name + ", or give the cluster another name")
		return d
	}
	d.Set("policy", have.Policy, text.CanonicalJSON(q.policy()))
	d.Set("retention", have.Retention, q.Retention)
	d.Set("encrypted", have.Encrypted, true)
	d.Tags(have.Tags, q.Tags)
	return d
}

// policy allows EventBridge to send messages, and denies requests without TLS ("Security best practices", SQS developer guide).
func (q *Queue) policy() string {
	const action = "sqs:SendMessage"
	document, _ := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []map[string]any{ // text only
		{"Sid": "Events", "Effect": "Allow", "Principal": map[string]any{"Service": "events.amazonaws.com"}, "Action": action, "Resource": q.ARN},
		{
			"Sid": "OnlyTLS", "Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": q.ARN,
			"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
		},
	}})
	return string(document)
}

func (q *Queue) attributes() map[string]string {
	return map[string]string{
		string(types.QueueAttributeNameMessageRetentionPeriod): q.Retention,
		string(types.QueueAttributeNamePolicy):                 q.policy(),
		string(types.QueueAttributeNameSqsManagedSseEnabled):   "true",
	}
}

// Create implements graph.Creator. A repeated request with the same attributes is answered with the queue that exists.
func (q *Queue) Create(ctx context.Context, c *cloud.Clients) (*QueueState, error) {
	out, err := c.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &q.Name, Attributes: q.attributes(), Tags: q.Tags})
	if err != nil {
		return nil, err
	}
	return &QueueState{
		Object: identity.Object{
			ID:   q.ARN,
			Tags: q.Tags,
		},
		URL:       aws.ToString(out.QueueUrl),
		Name:      q.Name,
		Policy:    text.CanonicalJSON(q.policy()),
		Retention: q.Retention,
		Encrypted: true,
	}, nil
}

// Update implements graph.Updater.
func (q *Queue) Update(ctx context.Context, c *cloud.Clients, have *QueueState, d plan.Diff) (*QueueState, error) {
	after := *have
	if d.Has("policy", "retention", "encrypted") {
		if _, err := c.SQS.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &have.URL, Attributes: q.attributes()}); err != nil {
			return nil, err
		}
		after.Policy, after.Retention, after.Encrypted = text.CanonicalJSON(q.policy()), q.Retention, true
	}
	var err error
	after.Tags, err = identity.ChangeTags(have.Tags, q.Tags, d, func() error {
		_, err := c.SQS.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: &have.URL, Tags: q.Tags})
		return err
	}, func(keys []string) error {
		_, err := c.SQS.UntagQueue(ctx, &sqs.UntagQueueInput{QueueUrl: &have.URL, TagKeys: keys})
		return err
	})
	return &after, err
}

// Delete implements graph.Deleter.
func (q *Queue) Delete(ctx context.Context, c *cloud.Clients, have *QueueState) error {
	_, err := c.SQS.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &have.URL})
	return cloud.IgnoreNotFound(err)
}

// QueueByName returns a queue, or nil.
func QueueByName(ctx context.Context, c *cloud.Clients, name string) (*QueueState, error) {
	return cloud.Remember(ctx, c, "queue "+name, func(ctx context.Context) (*QueueState, error) {
		s, err := queueByName(ctx, c, name)
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		return s, nil
	})
}

func queueByName(ctx context.Context, c *cloud.Clients, name string) (*QueueState, error) {
	at, err := c.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return nil, err
	}
	has, err := c.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: at.QueueUrl, AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameMessageRetentionPeriod, types.QueueAttributeNamePolicy, types.QueueAttributeNameQueueArn,
		types.QueueAttributeNameSqsManagedSseEnabled,
	}})
	if err != nil {
		return nil, err
	}
	tags, err := c.SQS.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: at.QueueUrl})
	if err != nil {
		return nil, err
	}
	value := func(name types.QueueAttributeName) string { return has.Attributes[string(name)] }
	return &QueueState{
		Object: identity.Object{ID: value(types.QueueAttributeNameQueueArn), Tags: cloud.Tags(maps.Clone(tags.Tags))},
		URL:    aws.ToString(at.QueueUrl), Name: name, Policy: text.CanonicalJSON(value(types.QueueAttributeNamePolicy)),
		Retention: value(types.QueueAttributeNameMessageRetentionPeriod), Encrypted: value(types.QueueAttributeNameSqsManagedSseEnabled) == "true",
	}, nil
}

// queues lists the queues of Karpenter of the cluster. They have the names of EKS clusters, which are in the paths of Karpenter's roles.
func queues(ctx context.Context, c *cloud.Clients) (out []QueueState, err error) {
	names, err := iam.KarpenterClusters(ctx, c)
	for _, name := range names {
		s, err := QueueByName(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if s != nil && (s.IsOwned(c) || s.lostItsTags()) {
			out = append(out, *s)
		}
	}
	return out, err
}

// lostItsTags reports whether a queue has no tags, and otherwise is as a run has made it.
func (s QueueState) lostItsTags() bool {
	made := &Queue{ARN: s.ID}
	return len(s.Tags) == 0 && s.Policy == text.CanonicalJSON(made.policy())
}

// RetireQueue adds the deletion of a queue that is not desired any more, if the cluster owns it.
func RetireQueue(g *graph.Graph, id plan.ID, name string, needs []graph.Edge) {
	kind.Retire(g, id, identity.OwnedByName(QueueByName, name), &Queue{}, needs)
}

// queueKind declares queues.
func queueKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: QueueKind, Rehearsed: true, Area: plan.AreaControlPlane, ByNameOnly: true, Behind: "machine",
		ReadActions: []string{"sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ListQueueTags"}, Statement: kind.Karpenter,
		Actions: []string{"sqs:CreateQueue", "sqs:DeleteQueue", "sqs:SetQueueAttributes", "sqs:TagQueue", "sqs:UntagQueue"},
	}, kind.Functions[QueueState]{
		List: kind.Tagged(queues), Delete: &Queue{},
		ID: func(s QueueState) plan.ID { return plan.ID(QueueKind + "/" + s.Name) },
		Find: func(ctx context.Context, c *cloud.Clients, s QueueState) (*QueueState, error) {
			return QueueByName(ctx, c, s.Name)
		},
		Status: func(s QueueState) (state, detail string) { return "", s.Name },
	})
}
