package cloudformation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Durations in CloudFormation.
const (
	// ResourceAsks is how long a call of IAM takes.
	ResourceAsks = time.Second
	// resourceTakes is the minimum time that a new or changed role, policy, user or group
	// is in progress.
	resourceTakes = 15 * time.Second
	// ResourceTakesMost is the maximum.
	ResourceTakesMost = 20 * time.Second
	// ProfileTakes is how long a new instance profile is in progress. CloudFormation
	// waits two minutes.
	ProfileTakes = 120 * time.Second
	// resourceDeletes is how long a resource is being deleted.
	resourceDeletes = 2 * time.Second
	// ChangeSetTakes is how long a change set takes to create.
	ChangeSetTakes = 4 * time.Second
)

// StackRun is an operation on a stack in progress.
type StackRun struct {
	Steps  []*StackStep
	Failed []string // logical IDs, in the order in which they failed
	// Old is the stack before an update: its resources, template and tags. They are
	// restored if the update fails.
	Old *Stack
	// Removed are the logical IDs that are not in the new template.
	Removed []string
	// Leftovers are physical resources to delete after the update.
	Leftovers []*StackStep
}

// StackStep is one step of one resource.
type StackStep struct {
	Logical, Type string
	Action        string    // create, update, replace, delete
	State         string    // "", asking, working, done, failed, cancelled
	After         []string  // logical IDs of the steps to finish first
	Due           time.Time // when the current state ends
	Physical      string    // physical ID to delete
	Declared      string    // desired properties in JSON
	Applied       string    // the resource to delete
	Needs         []string
}

func (s *StackStep) over() bool {
	return s.State == "done" || s.State == "failed" || s.State == "cancelled"
}

// Settle executes all steps that are due, in order.
func (svc *Service) Settle() {
	for {
		var next *Stack
		var due time.Time
		for _, s := range core.ByKey(svc.state.Stacks) {
			if d, runs := s.due(); runs && (next == nil || d.Before(due)) {
				next, due = s, d
			}
		}
		if next == nil || due.After(svc.Now()) {
			return
		}
		svc.advance(next, due)
	}
}

// due returns the time of the next step.
func (s *Stack) due() (at time.Time, ok bool) {
	if s.Run == nil {
		return at, false
	}
	for _, step := range s.Run.Steps {
		if (step.State == "asking" || step.State == "working") && (!ok || step.Due.Before(at)) {
			at, ok = step.Due, true
		}
	}
	return at, ok
}

// advance executes the steps that are due, starts those that are ready, and ends the
// phase when none is left.
func (svc *Service) advance(s *Stack, at time.Time) {
	for _, step := range s.Run.Steps {
		switch {
		case step.Due.After(at) || step.over() || step.State == "":
		case step.State == "asking":
			svc.perform(s, step, at)
		case step.State == "working":
			step.State = "done"
			s.mark(step, "COMPLETE", "", at)
		}
	}
	if len(s.Run.Failed) > 0 && (s.Status == types.StackStatusCreateInProgress || s.Status == types.StackStatusUpdateInProgress) {
		s.cancel(at)
	}
	svc.begin(s, at)
	if s.Run != nil && !slices.ContainsFunc(s.Run.Steps, func(x *StackStep) bool { return !x.over() }) {
		svc.finish(s, at)
	}
}

// begin starts the steps that are ready.
func (*Service) begin(s *Stack, at time.Time) {
	for changed := true; changed; {
		changed = false
		for _, step := range s.Run.Steps {
			if step.State != "" {
				continue
			}
			waits, hopeless := false, false
			for _, before := range s.Run.Steps {
				if slices.Contains(step.After, before.Logical) && before != step {
					waits = waits || !before.over()
					hopeless = hopeless || before.State == "failed" || before.State == "cancelled"
				}
			}
			switch {
			case waits:
			case hopeless:
				step.State, changed = "cancelled", true
			default:
				step.State, step.Due = "asking", at.Add(ResourceAsks)
				s.mark(step, "IN_PROGRESS", "", at)
			}
		}
	}
}

// mark records the state of a step, in the resource and in the events.
func (s *Stack) mark(step *StackStep, state, reason string, at time.Time) {
	verb := map[string]string{"create": "CREATE", "update": "UPDATE", "replace": "UPDATE", "delete": "DELETE"}[step.Action]
	status := types.ResourceStatus(verb + "_" + state)
	physical := step.Physical
	r := s.Resources[step.Logical]
	if r != nil && step.Action != "delete" {
		physical = r.Physical
	}
	if r != nil && (step.Action != "delete" || r.Physical == step.Physical) {
		r.Status, r.Reason, r.Changed = status, reason, at
	}
	s.note(step.Logical, physical, step.Type, status, reason, at)
}

// lookup resolves references from within the stack.
func (svc *Service) lookup(s *Stack) func(id, attribute string) (string, error) {
	return func(id, attribute string) (string, error) {
		switch {
		case id == "AWS::Partition":
			return svc.Partition(), nil
		case id == "AWS::AccountId":
			return svc.Number(), nil
		case id == "AWS::Region":
			return svc.Region, nil
		case id == "AWS::StackName":
			return s.Name, nil
		case id == "AWS::StackId":
			return s.ID, nil
		case strings.HasPrefix(id, "AWS::"):
			return "", core.NotSimulated("%s", id)
		}
		r := s.Resources[id]
		k := resourceKinds()[r.Type]
		switch {
		case attribute == "":
			return r.Physical, nil
		case attribute == "Arn" && k.iam != "policy":
			path, _ := uncanonical(r.Applied)["Path"].(string)
			return svc.iam.ARN(k.iam, path, r.Physical), nil
		}
		return "", core.NotSimulated("the attribute %s of %s", attribute, r.Type)
	}
}

// perform calls IAM for a step.
func (svc *Service) perform(s *Stack, step *StackStep, at time.Time) {
	if step.Action == "delete" {
		step.Due = at.Add(resourceDeletes)
		if step.Physical != "" {
			svc.settleStep(s, step, svc.remove(step.Physical, step.Type, uncanonical(step.Applied)), at)
			return
		}
		step.State = "working"
		return
	}
	r := s.Resources[step.Logical]
	step.Due = at.Add(core.Between(resourceTakes, ResourceTakesMost, s.ID+step.Logical))
	value, err := resolve(uncanonical(step.Declared), svc.lookup(s))
	want := uncanonical(canonical(value))
	switch {
	case err != nil:
	case step.Action == "update":
		err = svc.change(s, r.Physical, r.Type, uncanonical(r.Applied), want, at)
	case step.Action == "replace" && want[resourceKinds()[r.Type].name] != nil && want[resourceKinds()[r.Type].name] == uncanonical(r.Applied)[resourceKinds()[r.Type].name]:
		const message = "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename %v and update the stack again."
		err = fmt.Errorf(message, want[resourceKinds()[r.Type].name]) //nolint:staticcheck // the message of CloudFormation
		step.State = "failed"
		s.Run.Failed = append(s.Run.Failed, step.Logical)
		s.mark(step, "FAILED", err.Error(), at)
		return
	default:
		old := *r
		var physical string
		if physical, err = svc.create(s, step.Logical, r.Type, want, at); physical != "" {
			if old.Physical != "" {
				s.Run.Leftovers = append(
					s.Run.Leftovers,
					&StackStep{Logical: r.Logical, Type: r.Type, Action: "delete", Physical: old.Physical, Applied: old.Applied, Needs: old.Needs},
				)
			}
			r.Physical = physical
		}
		if r.Type == "AWS::IAM::InstanceProfile" {
			step.Due = at.Add(ProfileTakes)
		}
	}
	if err == nil || step.Action == "update" {
		r.Applied, r.Declared, r.Needs = canonical(want), step.Declared, step.Needs
	} else if r.Physical != "" {
		r.Applied = canonical(want)
	}
	if err == nil && step.Action != "update" {
		s.mark(step, "IN_PROGRESS", "Resource creation Initiated", at)
	}
	svc.settleStep(s, step, err, at)
}

// settleStep records the result of IAM.
func (*Service) settleStep(s *Stack, step *StackStep, err error, at time.Time) {
	if err == nil {
		step.State = "working"
		return
	}
	step.State = "failed"
	s.Run.Failed = append(s.Run.Failed, step.Logical)
	s.mark(step, "FAILED", resourceFailure(err), at)
}

// cancel cancels the steps in progress after a failure.
func (s *Stack) cancel(at time.Time) {
	for _, step := range s.Run.Steps {
		switch step.State {
		case "asking", "working":
			step.State = "cancelled"
			reason := "Resource creation cancelled"
			if step.Action != "create" {
				reason = "Resource update cancelled"
			}
			s.mark(step, "FAILED", reason, at)
		case "":
			step.State = "cancelled"
		}
	}
}

// finish ends a phase, and starts the next one.
func (svc *Service) finish(s *Stack, at time.Time) {
	run, failed := s.Run, ""
	if len(run.Failed) > 0 {
		failed = "[" + strings.Join(run.Failed, ", ") + "]"
	}
	s.Run = nil
	switch s.Status { //nolint:exhaustive // no operation in other states
	case types.StackStatusCreateInProgress:
		if failed == "" {
			s.enter(types.StackStatusCreateComplete, "", at)
			return
		}
		s.enter(types.StackStatusRollbackInProgress, "The following resource(s) failed to create: "+failed+". Rollback requested by user.", at)
		svc.startRun(s, &StackRun{Steps: s.deletions()}, at)
	case types.StackStatusRollbackInProgress:
		if failed != "" {
			s.enter(types.StackStatusRollbackFailed, "The following resource(s) failed to delete: "+failed+".", at)
			return
		}
		s.enter(types.StackStatusRollbackComplete, "", at)
	case types.StackStatusDeleteInProgress:
		if failed != "" {
			s.enter(types.StackStatusDeleteFailed, "The following resource(s) failed to delete: "+failed+". ", at)
			return
		}
		s.Deleted = at
		s.enter(types.StackStatusDeleteComplete, "", at)
	case types.StackStatusUpdateInProgress:
		svc.finishUpdate(s, run, failed, at)
	case types.StackStatusUpdateRollbackInProgress:
		if failed != "" {
			s.enter(types.StackStatusUpdateRollbackFailed, "The following resource(s) failed to update: "+failed+".", at)
			return
		}
		s.enter(types.StackStatusUpdateRollbackCompleteCleanupInProgress, "", at)
		svc.startRun(s, &StackRun{Steps: run.Leftovers}, at)
	// A resource that cannot be deleted during cleanup stays, without a stack.
	case types.StackStatusUpdateCompleteCleanupInProgress:
		s.enter(types.StackStatusUpdateComplete, "", at)
	case types.StackStatusUpdateRollbackCompleteCleanupInProgress:
		s.enter(types.StackStatusUpdateRollbackComplete, "", at)
	default:
		panic("awssim: nothing goes on with a stack in " + string(s.Status))
	}
}

// finishUpdate starts the cleanup or the rollback of an update.
func (svc *Service) finishUpdate(s *Stack, run *StackRun, failed string, at time.Time) {
	if failed == "" {
		for _, id := range run.Removed {
			run.Leftovers = append(run.Leftovers, deletion(s.Resources[id]))
		}
		order(run.Leftovers)
		s.enter(types.StackStatusUpdateCompleteCleanupInProgress, "", at)
		svc.startRun(s, &StackRun{Steps: run.Leftovers}, at)
		for _, step := range run.Leftovers {
			if r := s.Resources[step.Logical]; r != nil && r.Physical == step.Physical {
				delete(s.Resources, step.Logical)
			}
		}
		return
	}
	s.enter(types.StackStatusUpdateRollbackInProgress, "The following resource(s) failed to update: "+failed+". ", at)
	back := &StackRun{}
	for _, step := range run.Steps {
		r, old := s.Resources[step.Logical], run.Old.Resources[step.Logical]
		switch {
		case step.State == "cancelled" && step.Due.IsZero(): // the step was not started
			if old == nil {
				delete(s.Resources, step.Logical)
			}
		case old == nil:
			if r.Physical != "" {
				back.Leftovers = append(back.Leftovers, deletion(r))
			}
			delete(s.Resources, step.Logical)
		case old.Physical != r.Physical:
			back.Leftovers = append(back.Leftovers, deletion(r))
			*r = *old
		default:
			back.Steps = append(back.Steps, &StackStep{Logical: step.Logical, Type: step.Type, Action: "update", Declared: old.Declared, Needs: old.Needs})
		}
	}
	order(back.Leftovers)
	s.Template, s.Tags, s.Description = run.Old.Template, run.Old.Tags, run.Old.Description
	svc.startRun(s, back, at)
}

// startRun starts a phase, which may end immediately.
func (svc *Service) startRun(s *Stack, run *StackRun, at time.Time) {
	s.Run = run
	svc.begin(s, at)
	if len(run.Steps) == 0 {
		svc.finish(s, at)
	}
}

func deletion(r *StackResource) *StackStep {
	return &StackStep{Logical: r.Logical, Type: r.Type, Action: "delete", Physical: r.Physical, Applied: r.Applied, Needs: r.Needs}
}

// deletions returns the steps that delete all resources.
func (s *Stack) deletions() (steps []*StackStep) {
	for _, r := range core.ByKey(s.Resources) {
		if r.Physical != "" && r.Status != types.ResourceStatusDeleteComplete {
			steps = append(steps, deletion(r))
		}
	}
	order(steps)
	return steps
}

// order orders steps by their dependencies, for deletion.
func order(steps []*StackStep) {
	for _, step := range steps {
		for _, other := range steps {
			if slices.Contains(other.Needs, step.Logical) {
				step.After = append(step.After, other.Logical)
			}
		}
	}
}
