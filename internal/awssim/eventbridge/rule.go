package eventbridge

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	events "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// State is the state of EventBridge.
type State struct {
	Rules map[string]*Rule // of the default event bus, by name
	// MostRules is the quota of rules; 0 for that of a new account.
	MostRules int `json:",omitempty"`
}

// Rule is a rule with an event pattern.
type Rule struct {
	Name, Description, Pattern, State string
	Targets                           map[string]string // ARNs by ID
	Tags                              map[string]string
	Born                              time.Time
}

// Quotas of EventBridge ("Amazon EventBridge quotas", user guide).
const (
	mostRules   = 300
	mostTargets = 5
)

func (svc *Service) simulate() {
	core.On(svc.Account, svc.putRule, "Name", "Description", "EventPattern", "State", "Tags")
	core.On(svc.Account, svc.describeRule, "Name")
	core.On(svc.Account, svc.listRules, "Limit", "NextToken")
	core.On(svc.Account, svc.deleteRule, "Name")
	core.On(svc.Account, svc.putTargets, "Rule", "Targets")
	core.On(svc.Account, svc.listTargets, "Rule", "Limit", "NextToken")
	core.On(svc.Account, svc.removeTargets, "Rule", "Ids")
	core.On(svc.Account, svc.listTags, "ResourceARN")
	core.On(svc.Account, svc.tagResource, "ResourceARN", "Tags")
	core.On(svc.Account, svc.untagResource, "ResourceARN", "TagKeys")
}

// MostRules is the quota of rules for each event bus.
func (svc *Service) MostRules() int { return cmp.Or(svc.state.MostRules, mostRules) }

func noRule(name string) error {
	return &types.ResourceNotFoundException{Message: aws.String("Rule " + name + " does not exist on EventBus default.")}
}

func invalid(why string) error { return core.Fail("ValidationException", "%s", why) }

func (svc *Service) arn(name string) string { return svc.RegionalARN("events", "rule/"+name) }

// rule returns a rule by name. Reads do not show one that was just created.
func (svc *Service) rule(name *string) (*Rule, error) {
	r := svc.state.Rules[aws.ToString(name)]
	if r == nil || !svc.Visible(r.Born) {
		return nil, noRule(aws.ToString(name))
	}
	return r, nil
}

// pattern parses an event pattern of exact values ("Creating Amazon EventBridge event patterns", user guide).
func pattern(text string) (map[string][]string, error) {
	var fields map[string]json.RawMessage
	bad := &types.InvalidEventPatternException{Message: aws.String("Event pattern is not valid.")}
	if json.Unmarshal([]byte(text), &fields) != nil || len(fields) == 0 {
		return nil, bad
	}
	out := map[string][]string{}
	for name, raw := range fields {
		var values []string
		switch {
		case !slices.Contains([]string{"source", "detail-type", "account", "region", "resources"}, name):
			return nil, core.NotSimulated("EventBridge: the field %s of a pattern", name)
		case json.Unmarshal(raw, &values) != nil || len(values) == 0:
			return nil, bad
		}
		out[name] = values
	}
	return out, nil
}

// putRule creates a rule, or replaces its settings: "If you omit arguments in PutRule, the old values for those arguments are not
// kept", and "any tags you specify in the PutRule operation are ignored" for an existing one (PutRule, API reference).
func (svc *Service) putRule(in *events.PutRuleInput) (*events.PutRuleOutput, error) {
	name := aws.ToString(in.Name)
	if !regex.Of(`^[.\-_A-Za-z0-9]{1,64}$`).MatchString(name) {
		return nil, invalid("1 validation error detected: Value '" + name + "' at 'name' failed to satisfy constraint")
	}
	if len(aws.ToString(in.EventPattern)) > 4096 {
		return nil, invalid("Event pattern is too long.")
	}
	if _, err := pattern(aws.ToString(in.EventPattern)); err != nil {
		return nil, err
	}
	if len(aws.ToString(in.Description)) > 512 {
		return nil, invalid("Description is too long.")
	}
	tags, err := readTags(nil, in.Tags)
	if err != nil {
		return nil, err
	}
	r := svc.state.Rules[name]
	if r == nil {
		if len(svc.state.Rules) >= svc.MostRules() {
			return nil, &types.LimitExceededException{Message: aws.String("The requested resource exceeds the maximum number allowed.")}
		}
		r = &Rule{Name: name, Tags: tags, Targets: map[string]string{}, Born: svc.Now()}
		svc.state.Rules[name] = r
	}
	r.Pattern, r.Description, r.State = *in.EventPattern, aws.ToString(in.Description), string(in.State)
	if r.State == "" {
		r.State = string(types.RuleStateEnabled)
	}
	return &events.PutRuleOutput{RuleArn: aws.String(svc.arn(name))}, nil
}

// listRules lists the rules of the default event bus, in order of name.
func (svc *Service) listRules(in *events.ListRulesInput) (*events.ListRulesOutput, error) {
	var seen []*Rule
	for _, r := range core.ByKey(svc.state.Rules) {
		if svc.Visible(r.Born) {
			seen = append(seen, r)
		}
	}
	part, next, err := core.Page(svc.Account, seen, in.NextToken, in.Limit, 100)
	if err != nil {
		return nil, err
	}
	return &events.ListRulesOutput{NextToken: next, Rules: core.Each(part, func(r *Rule) types.Rule {
		return types.Rule{
			Name:         &r.Name,
			Arn:          aws.String(svc.arn(r.Name)),
			State:        types.RuleState(r.State),
			EventPattern: &r.Pattern,
			Description:  core.Text(r.Description),
		}
	})}, nil
}

func readTags(old map[string]string, tags []types.Tag) (map[string]string, error) {
	const code = "ValidationException"
	return core.ReadTags(core.TagRules{TooMany: code, Duplicate: code, Invalid: code}, old, tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
}

func (svc *Service) describeRule(in *events.DescribeRuleInput) (*events.DescribeRuleOutput, error) {
	r, err := svc.rule(in.Name)
	if err != nil {
		return nil, err
	}
	return &events.DescribeRuleOutput{
		Name: &r.Name, Arn: aws.String(svc.arn(r.Name)), EventBusName: aws.String("default"), EventPattern: aws.String(r.Pattern), State: types.RuleState(r.State),
		Description: core.Text(r.Description),
	}, nil
}

// deleteRule refuses a rule with targets: "Before you can delete the rule, you must remove all targets" (DeleteRule, API reference).
func (svc *Service) deleteRule(in *events.DeleteRuleInput) (*events.DeleteRuleOutput, error) {
	r := svc.state.Rules[aws.ToString(in.Name)]
	switch {
	case r == nil:
		return nil, noRule(aws.ToString(in.Name))
	case len(r.Targets) > 0:
		return nil, invalid("Rule can't be deleted since it has targets.")
	}
	delete(svc.state.Rules, r.Name)
	return &events.DeleteRuleOutput{}, nil
}

// putTargets adds targets or replaces those with the same ID. It succeeds also if some of them failed: "If that happens,
// FailedEntryCount is non-zero in the response" (PutTargets, API reference).
func (svc *Service) putTargets(in *events.PutTargetsInput) (*events.PutTargetsOutput, error) {
	r, err := svc.rule(in.Rule)
	if err != nil {
		return nil, err
	}
	if len(in.Targets) == 0 {
		return nil, invalid("At least one target is needed.")
	}
	out := &events.PutTargetsOutput{}
	for _, t := range in.Targets {
		if err := core.Only("PutTargets", &t, "Id", "Arn"); err != nil {
			return nil, err
		}
		id, arn := aws.ToString(t.Id), aws.ToString(t.Arn)
		_, again := r.Targets[id]
		switch {
		case !regex.Of(`^[.\-_A-Za-z0-9]{1,64}$`).MatchString(id):
			return nil, invalid("The ID of a target is not valid.")
		case !strings.HasPrefix(arn, "arn:"+svc.Partition()+":sqs:"+svc.Region+":"+svc.Number()+":"):
			return nil, core.NotSimulated("EventBridge: the target %s", arn)
		case !again && len(r.Targets) >= mostTargets:
			return nil, &types.LimitExceededException{Message: aws.String("The requested resource exceeds the maximum number allowed.")}
		case !svc.sqs.Exists(arn[strings.LastIndex(arn, ":")+1:]): // stricter than AWS, which sends to nobody then
			out.FailedEntryCount++
			out.FailedEntries = append(out.FailedEntries, types.PutTargetsResultEntry{
				TargetId: &id, ErrorCode: aws.String("ResourceNotFoundException"), ErrorMessage: aws.String("the queue " + arn + " does not exist"),
			})
		default:
			r.Targets[id] = arn
		}
	}
	return out, nil
}

func (svc *Service) listTargets(in *events.ListTargetsByRuleInput) (*events.ListTargetsByRuleOutput, error) {
	r, err := svc.rule(in.Rule)
	if err != nil {
		return nil, err
	}
	part, next, err := core.Page(svc.Account, core.SortedKeys(r.Targets), in.NextToken, in.Limit, 100)
	if err != nil {
		return nil, err
	}
	return &events.ListTargetsByRuleOutput{NextToken: next, Targets: core.Each(part, func(id string) types.Target {
		return types.Target{Id: &id, Arn: aws.String(r.Targets[id])}
	})}, nil
}

// removeTargets removes targets. One that the rule does not have is no error of the call (FailedEntries, API reference).
func (svc *Service) removeTargets(in *events.RemoveTargetsInput) (*events.RemoveTargetsOutput, error) {
	r, err := svc.rule(in.Rule)
	if err != nil {
		return nil, err
	}
	if len(in.Ids) == 0 {
		return nil, invalid("At least one ID is needed.")
	}
	out := &events.RemoveTargetsOutput{}
	for _, id := range in.Ids {
		if _, known := r.Targets[id]; !known {
			out.FailedEntryCount++
			out.FailedEntries = append(out.FailedEntries, types.RemoveTargetsResultEntry{
				TargetId: &id, ErrorCode: aws.String("ResourceNotFoundException"), ErrorMessage: aws.String("the rule has no target " + id),
			})
		}
		delete(r.Targets, id)
	}
	return out, nil
}

func (svc *Service) ruleOf(arn *string) (*Rule, error) {
	name := aws.ToString(arn)[strings.LastIndex(aws.ToString(arn), "/")+1:]
	if svc.arn(name) != aws.ToString(arn) {
		return nil, noRule(name)
	}
	return svc.rule(&name)
}

func (svc *Service) listTags(in *events.ListTagsForResourceInput) (*events.ListTagsForResourceOutput, error) {
	r, err := svc.ruleOf(in.ResourceARN)
	if err != nil {
		return nil, err
	}
	return &events.ListTagsForResourceOutput{
		Tags: core.WriteTags(r.Tags, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }),
	}, nil
}

func (svc *Service) tagResource(in *events.TagResourceInput) (*events.TagResourceOutput, error) {
	r, err := svc.ruleOf(in.ResourceARN)
	if err != nil {
		return nil, err
	}
	if r.Tags, err = readTags(r.Tags, in.Tags); err != nil {
		return nil, err
	}
	return &events.TagResourceOutput{}, nil
}

func (svc *Service) untagResource(in *events.UntagResourceInput) (*events.UntagResourceOutput, error) {
	r, err := svc.ruleOf(in.ResourceARN)
	if err != nil {
		return nil, err
	}
	for _, k := range in.TagKeys {
		delete(r.Tags, k)
	}
	return &events.UntagResourceOutput{}, nil
}

// Publish sends an event of an AWS service to the targets of the rules that match it, and returns how many have received it.
func (svc *Service) Publish(source, detailType string) (sent int) {
	event, _ := json.Marshal(map[string]string{"source": source, "detail-type": detailType}) // text
	for _, r := range core.ByKey(svc.state.Rules) {
		fields, err := pattern(r.Pattern)
		matches := func(name, value string) bool { return fields[name] == nil || slices.Contains(fields[name], value) }
		if err != nil || r.State != string(types.RuleStateEnabled) || !matches("source", source) || !matches("detail-type", detailType) {
			continue
		}
		for _, arn := range core.ByKey(r.Targets) {
			if svc.sqs.Send(arn, "events.amazonaws.com", string(event)) {
				sent++
			}
		}
	}
	return sent
}

// Inventory lists the rules.
func (svc *Service) Inventory() (lines []string) {
	for _, name := range core.SortedKeys(svc.state.Rules) {
		lines = append(lines, "EventRule "+name)
	}
	return lines
}

// Detailed is Inventory with attributes and tags.
func (svc *Service) Detailed() (lines []string) {
	for _, r := range core.ByKey(svc.state.Rules) {
		lines = append(lines, core.LineOf("EventRule "+r.Name, "state", r.State, "pattern", r.Pattern, "targets", core.Flat(r.Targets), "tags", core.Flat(r.Tags)))
	}
	return lines
}
