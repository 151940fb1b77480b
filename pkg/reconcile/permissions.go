package reconcile

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	engineiam "github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// permissions asks IAM what the caller lacks of what the plan needs. The identity of a manifest
// is the caller, if there is one.
func (r *run) permissions(ctx context.Context) plan.Permissions {
	if r.plan.Count(plan.Create, plan.Update, plan.Remove) == 0 { // it only reads, and has done so
		return plan.Permissions{}
	}
	ctx = cloud.Optional(ctx)
	document := permission.Policy(permission.Of(r.c.manifest))
	in := permission.Place{Partition: r.c.manifest.Partition(), Parameters: r.cloud.ParameterPath("")}
	unknown := func(err error) plan.Permissions { return plan.Permissions{Unknown: notSimulated(err)} }
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
	p := plan.Permissions{Principal: principal, Unknown: none, Actions: len(needs)}
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
		p.Lacking = append(p.Lacking, plan.Lack{Action: l.Action, On: l.Resource, Resource: l.Step.Resource, Origin: l.Step.Origin, Why: why, Maybe: l.Maybe})
	}
	if d := plan.PolicyDocument(document.Only(lacking)); len(d.Statement) > 0 {
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
	gives := func(kinds ...string) (first plan.Step, found bool) {
		at := slices.IndexFunc(r.plan.Steps, func(s plan.Step) bool {
			return s.Action == plan.Create && slices.Contains(kinds, s.Resource.Kind())
		})
		if at < 0 {
			return first, false
		}
		return r.plan.Steps[at], true
	}
	machine, launches := gives(ec2.MachineKind, ec2.BastionKind, ec2.LaunchTemplateKind)
	managed, isManaged := gives(eks.ClusterKind, eks.NodeGroupKind, eks.FargateProfileKind)
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
			need.Maybe = managed.Resource.Kind() != eks.ClusterKind
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
	answer := make(chan plan.Permissions, 1)
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
		if p.Prevents() || r.only && len(p.Lacking) > 0 {
			return []error{&plan.PermissionError{Permissions: p}}
		}
		for _, l := range p.Lacking {
			r.warn("%s may need %s", p.Principal, l)
		}
		return nil
	}
}
