package cloudformation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// createStack returns the same answer for a client token that was used.
func (svc *Service) createStack(in *cfn.CreateStackInput) (*cfn.CreateStackOutput, error) {
	name, token := aws.ToString(in.StackName), aws.ToString(in.ClientRequestToken)
	if err := checkStackName(name); err != nil {
		return nil, err
	}
	t, err := parseTemplate(aws.ToString(in.TemplateBody))
	if err != nil {
		return nil, err
	}
	tags, err := stackTags(in.Tags)
	if err != nil {
		return nil, err
	}
	if err := t.acknowledged(in.Capabilities); err != nil {
		return nil, err
	}
	if s := svc.stack(name); s != nil {
		if token != "" && s.Token == token && s.Updated.IsZero() {
			return &cfn.CreateStackOutput{StackId: aws.String(s.ID)}, nil
		}
		return nil, &types.AlreadyExistsException{Message: aws.String("Stack [" + name + "] already exists")}
	}
	s := svc.newStack(name, svc.Hash()+svc.Hash(), svc.Now())
	s.Template, s.Tags, s.Capabilities, s.Token = *in.TemplateBody, tags, in.Capabilities, token
	svc.startCreate(s, t, svc.Now())
	return &cfn.CreateStackOutput{StackId: aws.String(s.ID)}, nil
}

// startCreate starts the creation of a stack's resources.
func (svc *Service) startCreate(s *Stack, t *template, at time.Time) {
	s.Description = t.description
	s.enter(types.StackStatusCreateInProgress, "User Initiated", at)
	run := &StackRun{}
	for _, id := range core.SortedKeys(t.resources) {
		run.Steps = append(run.Steps, s.addition(id, t.resources[id]))
	}
	svc.startRun(s, run, at)
}

// addition returns the step that creates a resource of a template.
func (s *Stack) addition(id string, d *declaration) *StackStep {
	s.Resources[id] = &StackResource{Logical: id, Type: d.kind}
	return &StackStep{Logical: id, Type: d.kind, Action: "create", After: d.needs, Declared: canonical(d.properties), Needs: d.needs}
}

// checkUpdate validates a request for an update or a change set.
func (svc *Service) checkUpdate(name, body string, capabilities []types.Capability) (*Stack, *template, error) {
	t, err := parseTemplate(body)
	if err != nil {
		return nil, nil, err
	}
	s := svc.stack(name)
	if s == nil || s.Status == types.StackStatusDeleteComplete {
		return nil, nil, invalid("Stack [%s] does not exist", name)
	}
	if !slices.Contains([]types.StackStatus{types.StackStatusCreateComplete, types.StackStatusUpdateComplete, types.StackStatusUpdateRollbackComplete}, s.Status) {
		return nil, nil, invalid("Stack:%s is in %s state and can not be updated.", s.ID, s.Status)
	}
	for id, d := range t.resources {
		if old := s.Resources[id]; old != nil && old.Type != d.kind {
			return nil, nil, invalid("Update of resource type is not permitted. The new template modifies resource type of the following resources: [%s]", id)
		}
	}
	return s, t, t.acknowledged(capabilities)
}

func (svc *Service) updateStack(in *cfn.UpdateStackInput) (*cfn.UpdateStackOutput, error) {
	name, token := aws.ToString(in.StackName), aws.ToString(in.ClientRequestToken)
	if s := svc.stack(name); s != nil && token != "" && s.Token == token {
		return &cfn.UpdateStackOutput{StackId: aws.String(s.ID)}, nil
	}
	s, t, err := svc.checkUpdate(name, aws.ToString(in.TemplateBody), in.Capabilities)
	if err != nil {
		return nil, err
	}
	tags := s.Tags
	if in.Tags != nil {
		if tags, err = stackTags(in.Tags); err != nil {
			return nil, err
		}
	}
	run := s.update(t, !maps.Equal(tags, s.Tags))
	if len(run.Steps)+len(run.Removed) == 0 && maps.Equal(tags, s.Tags) {
		return nil, invalid("No updates are to be performed.")
	}
	old := *s
	old.Events, old.ChangeSets, old.Resources = nil, nil, map[string]*StackResource{}
	for id, r := range s.Resources {
		kept := *r
		old.Resources[id] = &kept
	}
	run.Old = &old
	for _, step := range run.Steps {
		if step.Action == "create" {
			s.Resources[step.Logical] = &StackResource{Logical: step.Logical, Type: step.Type}
		}
	}
	s.Template, s.Tags, s.Capabilities, s.Token, s.Description, s.Updated = *in.TemplateBody, tags, in.Capabilities, token, t.description, svc.Now()
	s.ChangeSets = map[string]*ChangeSet{} // change sets are invalid after a change
	s.enter(types.StackStatusUpdateInProgress, "User Initiated", svc.Now())
	svc.startRun(s, run, svc.Now())
	return &cfn.UpdateStackOutput{StackId: aws.String(s.ID)}, nil
}

// update returns the steps from the current stack to a template.
func (s *Stack) update(t *template, retag bool) *StackRun {
	run := &StackRun{}
	actions := map[string]string{}
	for changed := true; changed; { // dependents of a replaced resource change too
		changed = false
		for id, d := range t.resources {
			action := s.action(id, d, retag)
			for _, n := range d.needs {
				if action == "" && actions[n] == "replace" {
					action = "update"
				}
			}
			changed = changed || actions[id] != action
			actions[id] = action
		}
	}
	for _, id := range core.SortedKeys(t.resources) {
		if d := t.resources[id]; actions[id] != "" {
			run.Steps = append(run.Steps, &StackStep{Logical: id, Type: d.kind, Action: actions[id], After: d.needs, Declared: canonical(d.properties), Needs: d.needs})
		}
	}
	for _, id := range core.SortedKeys(s.Resources) {
		if t.resources[id] == nil {
			run.Removed = append(run.Removed, id)
		}
	}
	return run
}

// action returns the action for a resource, "" for none.
func (s *Stack) action(id string, d *declaration, retag bool) string {
	r := s.Resources[id]
	if r == nil {
		return "create"
	}
	if _, tagged := d.properties["Tags"]; r.Declared == canonical(d.properties) {
		k := resourceKinds()[d.kind]
		if retag && (tagged || k.has("Tags")) {
			return "update"
		}
		return ""
	}
	if len(s.fixedChanges(id, d)) > 0 {
		return "replace"
	}
	return "update"
}

// fixedChanges lists the immutable properties that differ.
func (s *Stack) fixedChanges(id string, d *declaration) []string {
	k := resourceKinds()[d.kind]
	return slices.DeleteFunc(s.changes(id, d), func(p string) bool { return p != k.name && !slices.Contains(k.fixed, p) })
}

// changes lists the properties that differ.
func (s *Stack) changes(id string, d *declaration) (names []string) {
	old, want := uncanonical(s.Resources[id].Declared), uncanonical(canonical(d.properties))
	for _, p := range slices.Sorted(maps.Keys(resourceProperties(old, want))) {
		if canonical(old[p]) != canonical(want[p]) {
			names = append(names, p)
		}
	}
	return names
}

func resourceProperties(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func (svc *Service) deleteStack(in *cfn.DeleteStackInput) (*cfn.DeleteStackOutput, error) {
	s := svc.stack(aws.ToString(in.StackName))
	switch {
	case s == nil, s.Status == types.StackStatusDeleteComplete, s.Status == types.StackStatusDeleteInProgress:
		return &cfn.DeleteStackOutput{}, nil // a stack that does not exist counts as deleted
	case s.Status == types.StackStatusCreateInProgress:
		return nil, core.NotSimulated("the deletion of a stack while it is being created")
	case strings.HasSuffix(string(s.Status), "_IN_PROGRESS") && s.Status != types.StackStatusReviewInProgress:
		return nil, invalid("Stack [%s] cannot be deleted while in status %s", s.ID, s.Status)
	case s.Protected: // "If a user attempts to delete a stack with termination protection enabled, the deletion fails" (CloudFormation user guide)
		return nil, invalid("Stack [%s] cannot be deleted while TerminationProtection is enabled", s.Name)
	}
	s.Token, s.ChangeSets = aws.ToString(in.ClientRequestToken), map[string]*ChangeSet{}
	s.enter(types.StackStatusDeleteInProgress, "User Initiated", svc.Now())
	svc.startRun(s, &StackRun{Steps: s.deletions()}, svc.Now())
	return &cfn.DeleteStackOutput{}, nil
}
