package cloudformation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// State is the state of CloudFormation.
type State struct {
	Stacks map[string]*Stack // by ID, including deleted ones
}

// Stack is a stack.
type Stack struct {
	ID, Name, Description     string
	Template                  string // as received
	Capabilities              []types.Capability
	Tags                      map[string]string
	Created, Updated, Deleted time.Time
	Status                    types.StackStatus
	Reason                    string
	Token                     string                    // of the last write request
	Resources                 map[string]*StackResource // by logical ID
	Events                    []StackEvent              // oldest first
	ChangeSets                map[string]*ChangeSet     // by name
	Run                       *StackRun                 // operation in progress; nil if there is none
	Copied                    bool                      `json:",omitempty"` // of another account: see adopt
	Protected                 bool                      `json:",omitempty"` // termination protection
}

// StackResource is one resource of a stack.
type StackResource struct {
	Logical, Physical, Type string
	Status                  types.ResourceStatus
	Reason                  string
	Changed                 time.Time
	Declared                string   // properties from the template, in JSON
	Applied                 string   // the same with references resolved
	Needs                   []string // logical IDs that it depends on
}

// StackEvent is an event of a stack or of one of its resources.
type StackEvent struct {
	ID, Logical, Physical, Type string
	Status                      types.ResourceStatus
	Reason, Token               string
	At                          time.Time
}

const stackType = "AWS::CloudFormation::Stack"

func (svc *Service) simulate() {
	core.On(svc.Account, svc.createStack, "StackName", "TemplateBody", "Capabilities", "Tags", "ClientRequestToken")
	core.On(svc.Account, svc.updateStack, "StackName", "TemplateBody", "Capabilities", "Tags", "ClientRequestToken")
	core.On(svc.Account, svc.deleteStack, "StackName", "ClientRequestToken")
	core.On(svc.Account, svc.describeStacks, "StackName", "NextToken")
	core.On(svc.Account, svc.describeStackEvents, "StackName", "NextToken")
	core.On(svc.Account, svc.describeStackResources, "StackName", "LogicalResourceId", "PhysicalResourceId")
	core.On(svc.Account, svc.getTemplate, "StackName", "TemplateStage")
	core.On(svc.Account, svc.validateTemplate, "TemplateBody")
	core.On(svc.Account, svc.createChangeSet, "StackName", "ChangeSetName", "ChangeSetType", "TemplateBody", "Capabilities", "Tags", "ClientToken", "Description")
	core.On(svc.Account, svc.describeChangeSet, "StackName", "ChangeSetName", "NextToken")
	core.On(svc.Account, svc.deleteChangeSet, "StackName", "ChangeSetName")
}

func invalid(format string, args ...any) error { return core.Fail("ValidationError", format, args...) }

func noStack(name string) error { return invalid("Stack with id %s does not exist", name) }

func checkStackName(name string) error {
	if !regex.Of(`^[a-zA-Z][-a-zA-Z0-9]{0,127}$`).MatchString(name) {
		return invalid(
			"1 validation error detected: Value '%s' at 'stackName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*",
			name,
		)
	}
	return nil
}

// newStack creates an empty stack. random is the seed of the random part of its ID.
func (svc *Service) newStack(name, random string, at time.Time) *Stack {
	s := &Stack{
		ID: fmt.Sprintf(
			"arn:%s:cloudformation:%s:%s:stack/%s/%s-0000-0000-0000-%s",
			svc.Partition(),
			svc.Region,
			svc.Number(),
			name,
			random[:8],
			(random + "0000")[8:20],
		),
		Name:       name,
		Created:    at,
		Resources:  map[string]*StackResource{},
		ChangeSets: map[string]*ChangeSet{},
	}
	svc.state.Stacks[s.ID] = s
	return s
}

// stack returns a stack by its name, if it is not deleted, or by its ID; nil if it does
// not exist.
func (svc *Service) stack(name string) *Stack {
	if s := svc.state.Stacks[name]; s != nil {
		return s
	}
	for _, s := range core.ByKey(svc.state.Stacks) {
		if s.Name == name && s.Status != types.StackStatusDeleteComplete {
			return s
		}
	}
	return nil
}

// note records an event of a resource.
func (s *Stack) note(logical, physical, kind string, status types.ResourceStatus, reason string, at time.Time) {
	at = at.UTC().Truncate(time.Millisecond)
	id := fmt.Sprintf("%s-%s-%s-%d", logical, status, at.Format("2006-01-02T15:04:05.000Z"), len(s.Events))
	if kind == stackType {
		id = fmt.Sprintf("%08x-0000-0000-0000-%s", len(s.Events), s.ID[len(s.ID)-12:])
	}
	s.Events = append(s.Events, StackEvent{ID: id, Logical: logical, Physical: physical, Type: kind, Status: status, Reason: reason, Token: s.Token, At: at})
}

// enter changes the status of the stack.
func (s *Stack) enter(status types.StackStatus, reason string, at time.Time) {
	s.Status, s.Reason = status, reason
	s.note(s.Name, s.ID, stackType, types.ResourceStatus(status), reason, at)
}

func showStackTags(m map[string]string) []types.Tag {
	return core.Each(core.SortedKeys(m), func(k string) types.Tag { return types.Tag{Key: aws.String(k), Value: aws.String(m[k])} })
}

func stackTags(tags []types.Tag) (map[string]string, error) {
	m := map[string]string{}
	for _, t := range tags {
		key := aws.ToString(t.Key)
		switch {
		case key == "" || len(key) > 128 || len(aws.ToString(t.Value)) > 256:
			return nil, invalid("1 validation error detected: a key or value of 'tags' is too short or too long")
		case strings.HasPrefix(key, "aws:"):
			return nil, invalid("aws: prefixed tag key names are not allowed for external use.")
		}
		m[key] = aws.ToString(t.Value)
	}
	if len(m) != len(tags) {
		return nil, invalid("Template error: Duplicate tag keys found. Please note that Tag keys are case insensitive.")
	}
	if len(m) > 50 {
		return nil, invalid("1 validation error detected: at most 50 'tags'")
	}
	return m, nil
}

func some(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func someTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (svc *Service) describeStacks(in *cfn.DescribeStacksInput) (*cfn.DescribeStacksOutput, error) {
	var list []types.Stack
	for _, s := range core.ByKey(svc.state.Stacks) {
		wanted := s.Status != types.StackStatusDeleteComplete
		if in.StackName != nil {
			wanted = s == svc.stack(*in.StackName)
		}
		if wanted {
			list = append(list, types.Stack{
				StackName: aws.String(s.Name), StackId: aws.String(s.ID), Description: some(s.Description), StackStatus: s.Status, StackStatusReason: some(s.Reason),
				CreationTime: aws.Time(s.Created), LastUpdatedTime: someTime(s.Updated), DeletionTime: someTime(s.Deleted),
				Capabilities: s.Capabilities, Tags: showStackTags(s.Tags), DisableRollback: aws.Bool(false), EnableTerminationProtection: &s.Protected,
			})
		}
	}
	if in.StackName != nil && len(list) == 0 {
		return nil, noStack(*in.StackName)
	}
	part, next, err := core.Page(svc.Account, list, in.NextToken, nil, 100)
	return &cfn.DescribeStacksOutput{Stacks: part, NextToken: next}, err
}

// describeStackEvents lists the latest event first. Pages are counted from there: if more
// events happen, items move to the next page.
func (svc *Service) describeStackEvents(in *cfn.DescribeStackEventsInput) (*cfn.DescribeStackEventsOutput, error) {
	s := svc.stack(aws.ToString(in.StackName))
	if s == nil {
		return nil, invalid("Stack [%s] does not exist", aws.ToString(in.StackName))
	}
	var list []types.StackEvent
	for _, e := range slices.Backward(s.Events) {
		list = append(list, types.StackEvent{
			StackId: aws.String(
				s.ID,
			),
			StackName:          aws.String(s.Name),
			EventId:            aws.String(e.ID),
			LogicalResourceId:  aws.String(e.Logical),
			PhysicalResourceId: aws.String(e.Physical),
			ResourceType: aws.String(
				e.Type,
			),
			ResourceStatus:       e.Status,
			ResourceStatusReason: some(e.Reason),
			ClientRequestToken:   some(e.Token),
			Timestamp:            aws.Time(e.At),
		})
	}
	part, next, err := core.Page(svc.Account, list, in.NextToken, nil, 100)
	return &cfn.DescribeStackEventsOutput{StackEvents: part, NextToken: next}, err
}

func (svc *Service) describeStackResources(in *cfn.DescribeStackResourcesInput) (*cfn.DescribeStackResourcesOutput, error) {
	name := aws.ToString(in.StackName)
	s := svc.stack(name)
	if in.PhysicalResourceId != nil {
		if in.StackName != nil {
			return nil, invalid("You cannot specify both StackName and PhysicalResourceId")
		}
		name = *in.PhysicalResourceId
		s = svc.stackOf(name)
	}
	if s == nil {
		return nil, noStack(name)
	}
	out := &cfn.DescribeStackResourcesOutput{}
	for _, r := range core.ByKey(s.Resources) {
		if in.LogicalResourceId != nil && *in.LogicalResourceId != r.Logical {
			continue
		}
		out.StackResources = append(out.StackResources, types.StackResource{
			StackId: aws.String(s.ID), StackName: aws.String(s.Name), LogicalResourceId: aws.String(r.Logical), PhysicalResourceId: some(r.Physical),
			ResourceType: aws.String(r.Type), ResourceStatus: r.Status, ResourceStatusReason: some(r.Reason), Timestamp: aws.Time(r.Changed),
		})
	}
	return out, nil
}

// stackOf returns the stack of the resource with that physical ID.
func (svc *Service) stackOf(physical string) *Stack {
	for _, s := range core.ByKey(svc.state.Stacks) {
		for _, r := range s.Resources {
			if r.Physical == physical && s.Status != types.StackStatusDeleteComplete && r.Status != types.ResourceStatusDeleteComplete {
				return s
			}
		}
	}
	return nil
}

func (svc *Service) getTemplate(in *cfn.GetTemplateInput) (*cfn.GetTemplateOutput, error) {
	s := svc.stack(aws.ToString(in.StackName))
	if s == nil {
		return nil, noStack(aws.ToString(in.StackName))
	}
	return &cfn.GetTemplateOutput{
		TemplateBody:    aws.String(s.Template),
		StagesAvailable: []types.TemplateStage{types.TemplateStageOriginal, types.TemplateStageProcessed},
	}, nil
}

func (svc *Service) validateTemplate(in *cfn.ValidateTemplateInput) (*cfn.ValidateTemplateOutput, error) {
	t, err := parseTemplate(aws.ToString(in.TemplateBody))
	if err != nil {
		return nil, err
	}
	out := &cfn.ValidateTemplateOutput{Description: some(t.description)}
	if need := t.capability(); need != "" {
		out.Capabilities = []types.Capability{need}
		out.CapabilitiesReason = aws.String("The following resource(s) require capabilities: [AWS::IAM]")
	}
	return out, nil
}

// Inventory lists the stacks except for the bootstrap stack.
func (svc *Service) Inventory() (lines []string) {
	for _, s := range core.ByKey(svc.state.Stacks) {
		if s.Status != types.StackStatusDeleteComplete && !svc.pristine(s) {
			lines = append(lines, "Stack "+s.Name)
		}
	}
	return lines
}

// Detailed is Inventory with the attributes of the stacks.
func (svc *Service) Detailed() (lines []string) {
	for _, s := range core.ByKey(svc.state.Stacks) {
		if s.Status != types.StackStatusDeleteComplete && !svc.pristine(s) {
			lines = append(
				lines,
				core.LineOf("Stack "+s.Name, "status", string(s.Status), "resources", strings.Join(core.SortedKeys(s.Resources), ","), "tags", core.Pairs(s.Tags)),
			)
		}
	}
	return lines
}
