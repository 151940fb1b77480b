package sqs

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// State is the state of SQS.
type State struct {
	Queues map[string]*Queue // by name
}

// Queue is a standard queue.
type Queue struct {
	Name       string
	Attributes map[string]string // that were set
	Tags       map[string]string
	Messages   []string // bodies

	Before  map[string]string // attributes before the last change
	Changed time.Time
	Born    time.Time
	Deleted time.Time // zero: it exists
}

// deletionTakes is how long requests to a deleted queue may succeed, and how long no queue may be created with its name
// (DeleteQueue and CreateQueue, SQS API reference).
const deletionTakes = time.Minute

// usableAfter is how long a queue has to exist before it can be used (CreateQueue: "at least one second").
const usableAfter = time.Second

func (svc *Service) simulate() {
	core.On(svc.Account, svc.createQueue, "QueueName", "Attributes", "Tags")
	core.On(svc.Account, svc.getQueueURL, "QueueName")
	core.On(svc.Account, svc.getQueueAttributes, "QueueUrl", "AttributeNames")
	core.On(svc.Account, svc.setQueueAttributes, "QueueUrl", "Attributes")
	core.On(svc.Account, svc.deleteQueue, "QueueUrl")
	core.On(svc.Account, svc.listQueueTags, "QueueUrl")
	core.On(svc.Account, svc.tagQueue, "QueueUrl", "Tags")
	core.On(svc.Account, svc.untagQueue, "QueueUrl", "TagKeys")
}

// The error codes are those of the query protocol, which the service still sends beside the names of the exceptions
// (awsQueryCompatible in its API model).
func noQueue() error {
	return &types.QueueDoesNotExist{
		Message:           aws.String("The specified queue does not exist."),
		ErrorCodeOverride: aws.String("AWS.SimpleQueueService.NonExistentQueue"),
	}
}

func invalidAttribute(name string) error {
	return &types.InvalidAttributeValue{Message: aws.String("Invalid value for the parameter " + name + ".")}
}

// ARN returns the ARN of a queue.
func (svc *Service) ARN(name string) string { return svc.RegionalARN("sqs", name) }

func (svc *Service) url(name string) *string {
	return aws.String("https://sqs." + svc.Region + "." + core.DNSSuffix(svc.Region) + "/" + svc.Number() + "/" + name)
}

// settle removes the queues whose deletion has ended.
func (svc *Service) settle() {
	maps.DeleteFunc(svc.state.Queues, func(_ string, q *Queue) bool { return !q.Deleted.IsZero() && svc.Now().Sub(q.Deleted) >= deletionTakes })
}

// queue returns a queue by its URL. One that was just created cannot be used yet.
func (svc *Service) queue(url *string) (*Queue, error) {
	svc.settle()
	name := aws.ToString(url)[strings.LastIndex(aws.ToString(url), "/")+1:]
	q := svc.state.Queues[name]
	if q == nil || aws.ToString(svc.url(name)) != aws.ToString(url) || svc.Now().Sub(q.Born) < usableAfter || !svc.Visible(q.Born) {
		return nil, noQueue()
	}
	return q, nil
}

// checkAttributes checks the attributes that are simulated: CreateQueue, SQS API reference.
func (svc *Service) checkAttributes(all map[string]string) error {
	for name, value := range all {
		switch types.QueueAttributeName(name) { //nolint:exhaustive // all others are not simulated
		case types.QueueAttributeNameMessageRetentionPeriod:
			if n, err := strconv.Atoi(value); err != nil || n < 60 || n > 1209600 {
				return invalidAttribute(name)
			}
		case types.QueueAttributeNameSqsManagedSseEnabled:
			if value != "true" && value != "false" {
				return invalidAttribute(name)
			}
		case types.QueueAttributeNamePolicy:
			if !svc.validPolicy(value) {
				return invalidAttribute(name)
			}
		default:
			return core.NotSimulated("SQS: the attribute %s", name)
		}
	}
	return nil
}

// statement is one statement of the access policy of a queue.
type statement struct {
	Sid       string `json:",omitempty"`
	Effect    string
	Principal json.RawMessage
	Action    core.OneOrMore[string]
	Resource  core.OneOrMore[string]
	Condition map[string]map[string]json.RawMessage `json:",omitempty"`
}

// statements returns the statements of the access policy of a queue; nil if the document is not valid.
func statements(document string) []statement {
	var d struct {
		Version   string
		ID        string `json:"Id"`
		Statement []statement
	}
	r := json.NewDecoder(strings.NewReader(document))
	r.DisallowUnknownFields()
	if r.Decode(&d) != nil || d.Version != "2012-10-17" && d.Version != "2008-10-17" {
		return nil
	}
	return d.Statement
}

// principals returns the AWS services that the Principal element of a statement names, and whether it names everyone.
func principals(raw json.RawMessage) (services []string, everyone bool) {
	var of map[string]core.OneOrMore[string]
	if json.Unmarshal(raw, &of) == nil {
		return of["Service"], slices.Equal(of["AWS"], []string{"*"})
	}
	var all core.OneOrMore[string]
	return nil, json.Unmarshal(raw, &all) == nil && slices.Equal(all, []string{"*"})
}

// validPolicy reports whether SQS accepts an access policy. Each statement needs a principal, actions of SQS, and a queue as the
// resource ("Custom policies", SQS developer guide).
func (svc *Service) validPolicy(document string) bool {
	all := statements(document)
	sids := map[string]bool{}
	for _, s := range all {
		services, everyone := principals(s.Principal)
		switch {
		case s.Effect != "Allow" && s.Effect != "Deny", len(services) == 0 && !everyone, len(s.Action) == 0, len(s.Resource) == 0:
			return false
		case s.Sid != "" && sids[s.Sid]:
			return false
		case slices.ContainsFunc(services, func(x string) bool { return !regex.Of(`^[a-z0-9.-]+\.amazonaws\.com(\.cn)?$`).MatchString(x) }):
			return false
		case slices.ContainsFunc(s.Action, func(x string) bool { return !regex.Of(`^(?i)sqs:(\*|[A-Za-z]+)$`).MatchString(x) }):
			return false
		case slices.ContainsFunc(s.Resource, func(x string) bool { return !strings.HasPrefix(x, "arn:"+svc.Partition()+":sqs:") }):
			return false
		}
		sids[s.Sid] = true
	}
	return len(all) > 0
}

func (svc *Service) createQueue(in *sqs.CreateQueueInput) (*sqs.CreateQueueOutput, error) {
	svc.settle()
	name := aws.ToString(in.QueueName)
	if !regex.Of(`^[A-Za-z0-9_-]{1,80}$`).MatchString(name) {
		return nil, core.Fail("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	if err := svc.checkAttributes(in.Attributes); err != nil {
		return nil, err
	}
	tags, err := readTags(nil, in.Tags)
	if err != nil {
		return nil, err
	}
	switch q := svc.state.Queues[name]; {
	case q != nil && !q.Deleted.IsZero():
		return nil, &types.QueueDeletedRecently{
			Message:           aws.String("You must wait 60 seconds after deleting a queue before you can create another with the same name."),
			ErrorCodeOverride: aws.String("AWS.SimpleQueueService.QueueDeletedRecently"),
		}
	case q != nil && (!maps.Equal(q.Attributes, in.Attributes) || !maps.Equal(q.Tags, tags)): // whether AWS compares tags, it does not say
		return nil, &types.QueueNameExists{
			Message: aws.String("A queue already exists with the same name and a different value for an attribute"), ErrorCodeOverride: aws.String("QueueAlreadyExists"),
		}
	case q == nil:
		svc.state.Queues[name] = &Queue{Name: name, Attributes: maps.Clone(in.Attributes), Tags: tags, Born: svc.Now()}
	}
	return &sqs.CreateQueueOutput{QueueUrl: svc.url(name)}, nil
}

func readTags(old, tags map[string]string) (map[string]string, error) {
	const code = "InvalidParameterValue"
	return core.ReadTags(core.TagRules{TooMany: code, Duplicate: code, Invalid: code}, old, core.SortedKeys(tags), func(k string) (key, value *string) {
		return &k, aws.String(tags[k])
	})
}

func (svc *Service) getQueueURL(in *sqs.GetQueueUrlInput) (*sqs.GetQueueUrlOutput, error) {
	url := svc.url(aws.ToString(in.QueueName))
	if _, err := svc.queue(url); err != nil {
		return nil, err
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: url}, nil
}

// getQueueAttributes returns the attributes. "It can take up to 60 seconds for the attributes to propagate throughout the SQS system"
// (SetQueueAttributes, SQS API reference).
func (svc *Service) getQueueAttributes(in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
	q, err := svc.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	have := maps.Clone(q.Attributes)
	if q.Before != nil && !svc.Visible(q.Changed) {
		have = maps.Clone(q.Before)
	}
	all := map[string]string{"QueueArn": svc.ARN(q.Name), "MessageRetentionPeriod": "345600", "SqsManagedSseEnabled": "true"}
	maps.Copy(all, have)
	all["ApproximateNumberOfMessages"] = strconv.Itoa(len(q.Messages))
	maps.DeleteFunc(all, func(name, value string) bool {
		asked := slices.ContainsFunc(in.AttributeNames, func(n types.QueueAttributeName) bool { return n == types.QueueAttributeNameAll || string(n) == name })
		return !asked || value == ""
	})
	return &sqs.GetQueueAttributesOutput{Attributes: all}, nil
}

func (svc *Service) setQueueAttributes(in *sqs.SetQueueAttributesInput) (*sqs.SetQueueAttributesOutput, error) {
	q, err := svc.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if len(in.Attributes) == 0 {
		return nil, core.Fail("MissingParameter", "The request must contain the parameter Attribute.Name.")
	}
	if err := svc.checkAttributes(in.Attributes); err != nil {
		return nil, err
	}
	q.Before, q.Changed = maps.Clone(q.Attributes), svc.Now()
	if q.Attributes == nil {
		q.Attributes = map[string]string{}
	}
	maps.Copy(q.Attributes, in.Attributes)
	return &sqs.SetQueueAttributesOutput{}, nil
}

func (svc *Service) deleteQueue(in *sqs.DeleteQueueInput) (*sqs.DeleteQueueOutput, error) {
	q, err := svc.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if !q.Deleted.IsZero() {
		return nil, noQueue()
	}
	q.Deleted = svc.Now()
	return &sqs.DeleteQueueOutput{}, nil
}

func (svc *Service) listQueueTags(in *sqs.ListQueueTagsInput) (*sqs.ListQueueTagsOutput, error) {
	q, err := svc.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return &sqs.ListQueueTagsOutput{Tags: maps.Clone(q.Tags)}, nil
}

func (svc *Service) tagQueue(in *sqs.TagQueueInput) (*sqs.TagQueueOutput, error) {
	q, err := svc.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if q.Tags, err = readTags(q.Tags, in.Tags); err != nil {
		return nil, err
	}
	return &sqs.TagQueueOutput{}, nil
}

func (svc *Service) untagQueue(in *sqs.UntagQueueInput) (*sqs.UntagQueueOutput, error) {
	q, err := svc.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(q.Tags, k)
	}
	return &sqs.UntagQueueOutput{}, nil
}

// Send puts a message of another service into a queue, if the policy of the queue allows it, and reports whether it did.
func (svc *Service) Send(arn, service, message string) bool {
	svc.settle()
	q := svc.state.Queues[arn[strings.LastIndex(arn, ":")+1:]]
	if q == nil || !q.Deleted.IsZero() || svc.ARN(q.Name) != arn {
		return false
	}
	allowed := slices.ContainsFunc(statements(q.Attributes["Policy"]), func(s statement) bool {
		services, everyone := principals(s.Principal)
		sends := slices.ContainsFunc(s.Action, func(a string) bool { return strings.EqualFold(a, "sqs:SendMessage") || strings.EqualFold(a, "sqs:*") })
		return s.Effect == "Allow" && (everyone || slices.Contains(services, service)) && sends && slices.Contains(s.Resource, arn) && len(s.Condition) == 0
	})
	if allowed {
		q.Messages = append(q.Messages, message)
	}
	return allowed
}

// Exists reports whether a queue exists.
func (svc *Service) Exists(name string) bool {
	svc.settle()
	q := svc.state.Queues[name]
	return q != nil && q.Deleted.IsZero()
}

// Inventory lists the queues.
func (svc *Service) Inventory() (lines []string) {
	for _, q := range svc.existing() {
		lines = append(lines, "Queue "+q.Name)
	}
	return lines
}

// Detailed is Inventory with attributes and tags.
func (svc *Service) Detailed() (lines []string) {
	for _, q := range svc.existing() {
		lines = append(lines, core.LineOf("Queue "+q.Name, "attributes", core.Flat(q.Attributes), "tags", core.Flat(q.Tags)))
	}
	return lines
}

func (svc *Service) existing() []*Queue {
	svc.settle()
	all := core.ByKey(svc.state.Queues)
	all = slices.DeleteFunc(all, func(q *Queue) bool { return !q.Deleted.IsZero() })
	slices.SortFunc(all, func(a, b *Queue) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
