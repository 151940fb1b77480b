package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	engineiam "github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Permissions says what IAM allows the caller of what a plan needs.
type Permissions struct {
	// Principal is the ARN of the user or the role whose policies were simulated; "" if none
	// could be.
	Principal string `json:"principal,omitempty"`
	// Unknown says why IAM did not answer; "" if it did.
	Unknown string `json:"unknown,omitempty"`
	// Actions is the number of actions that the plan needs.
	Actions int    `json:"actions"`
	Lacking []Lack `json:"lacking"`
	// Policy allows what no policy of the caller allows; nil: nothing is lacking, or other
	// policies prevent it.
	Policy *PolicyDocument `json:"policy,omitempty"`
}

// NotAllowed is Lack.Why if no policy of the caller allows an action: one that does is the
// remedy.
const NotAllowed = string(permission.NotAllowed)

// Lack is an action that the caller lacks.
type Lack struct {
	Action   string `json:"action"` // "ec2:CreateVpc"
	On       string `json:"on"`     // ARN of what it acts on, or an example of one; "*": any
	Resource ID     `json:"resource"`
	Origin   string `json:"origin,omitempty"` // the part of the manifest that the resource comes from
	Why      string `json:"why"`              // "no policy allows it"
	// Maybe says that the run may not need the action, or that the policies have conditions
	// which the simulation does not know the values of.
	Maybe bool `json:"maybe,omitempty"`
}

// String describes the action and what needs it: "ec2:CreateVpc for vpc (demo.yaml:39): no
// policy allows it".
func (l Lack) String() string {
	at, _, _ := strings.Cut(l.Origin, " ")
	if at != "" {
		at = " (" + at + ")"
	}
	return fmt.Sprintf("%s for %s%s: %s", l.Action, l.Resource, at, l.Why)
}

// PermissionError says that the caller lacks permissions that a run needs.
type PermissionError struct{ Permissions Permissions }

func (e *PermissionError) Error() string {
	what := fmt.Sprintf("%s lacks %s that this plan needs:", e.Permissions.Principal, text.Count(len(e.Permissions.Lacking), "permission"))
	for _, l := range e.Permissions.Lacking {
		what += "\n  " + l.String()
		if l.Maybe {
			what += " (the run may not need it)"
		}
	}
	return what
}

// prevents reports whether the run fails without the lacking actions.
func (p Permissions) prevents() bool {
	return slices.ContainsFunc(p.Lacking, func(l Lack) bool { return !l.Maybe })
}

// permissions asks IAM what the caller lacks of what the plan needs. The identity of a manifest
// is the caller, if there is one.
func (r *run) permissions(ctx context.Context) Permissions {
	if r.plan.Count(graph.Create, graph.Update, graph.Remove) == 0 { // it only reads, and has done so
		return Permissions{}
	}
	ctx = cloud.Optional(ctx)
	document := permission.Policy(permission.Of(r.c.manifest))
	in := permission.Place{Partition: r.c.manifest.Partition(), Parameters: r.cloud.ParameterPath("")}
	unknown := func(err error) Permissions { return Permissions{Unknown: notSimulated(err)} }
	who, err := r.caller(ctx)
	if err != nil {
		return unknown(err)
	}
	in.Account = who.Account
	needs := append(permission.Needs(r.built.Graph, r.plan, document, in), r.passedRoles(ctx)...)
	principal, none, err := engineiam.Principal(ctx, r.cloud, who.ARN)
	if err != nil {
		return unknown(err)
	}
	p := Permissions{Principal: principal, Unknown: none, Actions: len(needs)}
	if none != "" {
		return p
	}
	lacking, err := permission.Check(ctx, r.cloud, principal, in, needs)
	if err != nil {
		return unknown(err)
	}
	for _, l := range lacking {
		why := string(l.Why)
		if len(l.Missing) > 0 {
			why += ", unless " + text.Several(l.Missing) + " has the value that a policy asks for"
		}
		p.Lacking = append(p.Lacking, Lack{Action: l.Action, On: l.Resource, Resource: ID(l.Step.Resource), Origin: l.Step.Origin, Why: why, Maybe: l.Maybe})
	}
	if d := documentOf(document.Only(lacking)); len(d.Statement) > 0 {
		p.Policy = &d
	}
	return p
}

// notSimulated says why a simulation has failed, without what the SDK adds.
func notSimulated(err error) string {
	switch code := cloud.Code(err); {
	case cloud.Denied(err):
		return "that needs " + deniedActions(err)
	case code != "":
		return "IAM answers " + code
	}
	return err.Error()
}

// passedRoles lists the roles that the plan gives to machines and to EKS.
func (r *run) passedRoles(ctx context.Context) (needs []permission.Need) {
	gives := func(kinds ...string) (first graph.Step, found bool) {
		at := slices.IndexFunc(r.plan.Steps, func(s graph.Step) bool {
			return s.Action == graph.Create && slices.Contains(kinds, s.Resource.Kind())
		})
		if at < 0 {
			return first, false
		}
		return r.plan.Steps[at], true
	}
	machine, launches := gives(ec2.MachineKind, "bastion", "launch-template")
	managed, isManaged := gives("eks-cluster", "node-group", "fargate-profile")
	for _, n := range r.built.Resources() {
		need := permission.Need{Action: "iam:PassRole"}
		switch have := n.Observed().(type) {
		case *ec2.Named:
			if !launches || n.ID().Kind() != ec2.InstanceProfileKind {
				continue
			}
			need.Resource, _ = ec2.RoleOfProfile(ctx, r.cloud, string(*have))
			need.PassedTo, need.Sid, need.Step = "ec2.amazonaws.com", "MachineRoles", machine
			if r.c.manifest.Partition() == "aws-cn" {
				need.PassedTo += ".cn"
			}
		case *engineiam.RoleState:
			if !isManaged || have == nil {
				continue
			}
			need.Resource, need.PassedTo, need.Sid, need.Step = have.ID, "eks.amazonaws.com", "EKSRoles", managed
			need.Maybe = managed.Resource.Kind() != "eks-cluster"
		default:
			continue
		}
		if need.Resource != "" {
			needs = append(needs, need)
		}
	}
	return needs
}

// checkPermissions starts to ask IAM about the plan. The returned function waits for the answer,
// and returns why the run is refused. A run is refused if it fails without a lacking action, and
// warns of actions that it may need. A plan that checks permissions is refused for both.
func (r *run) checkPermissions(ctx context.Context) func() []error {
	if r.only && !r.c.target.CheckPermissions || !r.only && r.c.target.IgnorePermissions || r.cloud.Stats().Writes.Load() > 0 { // a second plan of a run
		return func() []error { return nil }
	}
	answer := make(chan Permissions, 1)
	go func() {
		defer close(answer)
		_ = crash.Catch(func() error {
			answer <- r.permissions(ctx)
			return nil
		})
	}()
	return func() []error {
		p, answered := <-answer
		if !answered {
			return nil
		}
		if r.c.target.CheckPermissions {
			r.allowed = &p
		}
		if p.prevents() || r.only && len(p.Lacking) > 0 {
			return []error{&PermissionError{p}}
		}
		for _, l := range p.Lacking {
			r.warn("%s may need %s", p.Principal, l)
		}
		return nil
	}
}
