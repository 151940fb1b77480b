package eventbridge

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/sqs"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// RuleKind is the name of the kind of rules.
const RuleKind = "event-rule"

// Rule sends events of AWS services from the default event bus to a queue.
type Rule struct {
	Name        string
	Sources     []string // "aws.ec2"
	DetailTypes []string // "EC2 Spot Instance Interruption Warning"
	Queue       *graph.Ref[sqs.QueueState]
	Tags        cloud.Tags
	// Role is deleted after the rule: a deletion by name finds the rule by it.
	Role *graph.Ref[iam.RoleState]
}

// RuleState is a rule, as AWS describes it.
type RuleState struct {
	identity.Object // the ID is its ARN
	Name, Status    string
	Pattern         string            // canonical JSON
	Targets         map[string]string // ARNs by ID
	Foreign         bool              // somebody else has made it
}

var _ graph.Managed[RuleState] = (*Rule)(nil)

// targetID is the ID of the queue among the targets of a rule.
const targetID = "karpenter"

// Needs implements graph.Desired.
func (r *Rule) Needs() []graph.Edge { return append(graph.On(r.Queue), graph.Exists(r.Role)...) }

// Find implements graph.Desired.
func (r *Rule) Find(ctx context.Context, c *cloud.Clients) (*RuleState, error) {
	s, err := RuleByName(ctx, c, r.Name)
	if s == nil || err != nil {
		return nil, err
	}
	have := *s
	have.Foreign = !s.IsOwned(c)
	return &have, nil
}

// Diff implements graph.Desired. Targets that others have added stay.
func (r *Rule) Diff(have *RuleState) (d plan.Diff) {
	if have.Foreign {
		d.Fixed("owner", "somebody else", "this cluster")
		d.Advise(kind.RestoreAdvice(have.ID, have.Tags, r.Tags) + "delete the rule " + have.Name + ", or give the cluster another name")
		return d
	}
	d.Set("events", have.Pattern, text.CanonicalJSON(r.pattern()))
	d.Set("state", have.Status, string(types.RuleStateEnabled))
	d.Set("target", have.Targets[targetID], r.Queue.CloudID())
	d.Tags(have.Tags, r.Tags)
	return d
}

func (r *Rule) pattern() string {
	raw, _ := json.Marshal(map[string][]string{"source": r.Sources, "detail-type": r.DetailTypes}) // text only
	return string(raw)
}

// Create implements graph.Creator. The rule gets its target afterwards.
func (r *Rule) Create(ctx context.Context, c *cloud.Clients) (*RuleState, error) {
	return r.put(ctx, c, r.tags())
}

// put creates the rule, or sets its pattern and state. PutRule ignores tags if the rule exists.
func (r *Rule) put(ctx context.Context, c *cloud.Clients, tags []types.Tag) (*RuleState, error) {
	out, err := c.EventBridge.PutRule(ctx, &eventbridge.PutRuleInput{
		Name: &r.Name, EventPattern: aws.String(r.pattern()), State: types.RuleStateEnabled, Tags: tags,
		Description: aws.String("Interruptions of EC2 instances, for Karpenter"),
	})
	if err != nil {
		return nil, err
	}
	return &RuleState{
		Object: identity.Object{
			ID:   aws.ToString(out.RuleArn),
			Tags: r.Tags,
		},
		Name:    r.Name,
		Status:  string(types.RuleStateEnabled),
		Pattern: text.CanonicalJSON(r.pattern()),
	}, nil
}

func (r *Rule) tags() (out []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(r.Tags)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(r.Tags[k])})
	}
	return out
}

// Update implements graph.Updater.
func (r *Rule) Update(ctx context.Context, c *cloud.Clients, have *RuleState, d plan.Diff) (*RuleState, error) {
	after := *have
	if d.Has("events", "state") {
		put, err := r.put(ctx, c, nil)
		if err != nil {
			return nil, err
		}
		after.Status, after.Pattern = put.Status, put.Pattern
	}
	if d.Has("target") {
		arn := r.Queue.CloudID()
		out, err := c.EventBridge.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &r.Name, Targets: []types.Target{{Id: aws.String(targetID), Arn: &arn}}})
		if err != nil {
			return nil, err
		}
		for _, x := range out.FailedEntries { // the call succeeds all the same
			return nil, &smithy.GenericAPIError{Code: aws.ToString(x.ErrorCode), Message: aws.ToString(x.ErrorMessage)}
		}
		after.Targets = maps.Clone(have.Targets)
		if after.Targets == nil {
			after.Targets = map[string]string{}
		}
		after.Targets[targetID] = arn
	}
	var err error
	after.Tags, err = identity.ChangeTags(have.Tags, r.Tags, d, func() error {
		_, err := c.EventBridge.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: &have.ID, Tags: r.tags()})
		return err
	}, func(keys []string) error {
		_, err := c.EventBridge.UntagResource(ctx, &eventbridge.UntagResourceInput{ResourceARN: &have.ID, TagKeys: keys})
		return err
	})
	return &after, err
}

// Delete implements graph.Deleter. AWS deletes no rule that has targets, also those of others.
func (r *Rule) Delete(ctx context.Context, c *cloud.Clients, have *RuleState) error {
	targets, err := ruleTargets(ctx, c, have.Name)
	if err != nil {
		return cloud.IgnoreNotFound(err)
	}
	if len(targets) > 0 {
		_, err := c.EventBridge.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &have.Name, Ids: slices.Sorted(maps.Keys(targets))})
		if err != nil {
			return cloud.IgnoreNotFound(err)
		}
	}
	_, err = c.EventBridge.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &have.Name})
	return cloud.IgnoreNotFound(err)
}

// ruleTargets returns the ARNs of the targets of a rule, by ID. A rule has at most five: one page.
func ruleTargets(ctx context.Context, c *cloud.Clients, name string) (map[string]string, error) {
	out, err := c.EventBridge.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &name})
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, t := range out.Targets {
		all[aws.ToString(t.Id)] = aws.ToString(t.Arn)
	}
	return all, nil
}

// RuleByName returns a rule of the default event bus, or nil.
func RuleByName(ctx context.Context, c *cloud.Clients, name string) (*RuleState, error) {
	return cloud.Remember(ctx, c, "rule "+name, func(ctx context.Context) (*RuleState, error) {
		s, err := ruleByName(ctx, c, name)
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		return s, nil
	})
}

func ruleByName(ctx context.Context, c *cloud.Clients, name string) (*RuleState, error) {
	out, err := c.EventBridge.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &name})
	if err != nil {
		return nil, err
	}
	targets, err := ruleTargets(ctx, c, name)
	if err != nil {
		return nil, err
	}
	tags, err := c.EventBridge.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: out.Arn})
	if err != nil {
		return nil, err
	}
	return &RuleState{
		Object: identity.Object{
			ID:   aws.ToString(out.Arn),
			Tags: cloud.TagsFrom(tags.Tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value }),
		},
		Name:    name,
		Status:  string(out.State),
		Pattern: text.CanonicalJSON(aws.ToString(out.EventPattern)),
		Targets: targets,
	}, nil
}

// countRules returns the number of rules of the default event bus.
func countRules(ctx context.Context, c *cloud.Clients) (map[string]int, error) {
	ctx = cloud.Listing(ctx)
	n, in := 0, &eventbridge.ListRulesInput{}
	for {
		out, err := c.EventBridge.ListRules(ctx, in)
		if err != nil {
			return nil, err
		}
		n += len(out.Rules)
		if aws.ToString(out.NextToken) == "" {
			return map[string]int{"": n}, nil
		}
		in = &eventbridge.ListRulesInput{NextToken: out.NextToken}
	}
}

// KarpenterRuleName is the name of the rule for Karpenter in an EKS cluster. EventBridge permits 64 characters.
func KarpenterRuleName(cluster string) string { return text.Shortened("karpenter-"+cluster, 64) }

// rules lists the rules for Karpenter in the cluster. Their names follow from those of EKS clusters, which are in the paths of
// Karpenter's roles.
func rules(ctx context.Context, c *cloud.Clients) (out []RuleState, err error) {
	clusters, err := iam.KarpenterClusters(ctx, c)
	for _, cluster := range clusters {
		s, err := RuleByName(ctx, c, KarpenterRuleName(cluster))
		if err != nil {
			return nil, err
		}
		if s != nil && (s.IsOwned(c) || s.lostItsTags(cluster)) {
			out = append(out, *s)
		}
	}
	return out, err
}

// lostItsTags reports whether a rule has no tags, and sends to the queue of the cluster as a run has made it.
func (s RuleState) lostItsTags(cluster string) bool {
	return len(s.Tags) == 0 && strings.HasSuffix(s.Targets[targetID], ":"+cluster)
}

// RetireRule adds the deletion of a rule that is not desired any more, if the cluster owns it.
func RetireRule(g *graph.Graph, id plan.ID, name string, needs []graph.Edge) {
	kind.Retire(g, id, identity.OwnedByName(RuleByName, name), &Rule{}, needs)
}

// ruleKind declares rules.
func ruleKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: RuleKind, Rehearsed: true, Area: plan.AreaControlPlane, ByNameOnly: true, Behind: "machine",
		ReadActions: []string{"events:DescribeRule", "events:ListRules", "events:ListTagsForResource", "events:ListTargetsByRule"}, Statement: kind.Karpenter,
		Actions: []string{"events:DeleteRule", "events:PutRule", "events:PutTargets", "events:RemoveTargets", "events:TagResource", "events:UntagResource"},
		Quota:   &kind.Quota{Service: "events", Code: "L-244521F2", Name: "EventBridge rules", Used: countRules},
	}, kind.Functions[RuleState]{
		List: kind.Tagged(rules), Delete: &Rule{},
		ID: func(s RuleState) plan.ID { return plan.ID(RuleKind + "/" + s.Name) },
		Find: func(ctx context.Context, c *cloud.Clients, s RuleState) (*RuleState, error) {
			return RuleByName(ctx, c, s.Name)
		},
		// the queue is deleted after the rule that sends to it
		Refers: func(s RuleState) []string { return slices.Collect(maps.Values(s.Targets)) },
		Status: func(s RuleState) (state, detail string) { return s.Status, "" },
	})
}
