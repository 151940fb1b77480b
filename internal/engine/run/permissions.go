package run

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	engineiam "github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// permissions asks IAM what the caller lacks of what the plan needs. The identity of a manifest
// is the caller, if there is one.
func (p *planning) permissions(ctx context.Context) plan.Permissions {
	if p.Plan.Count(plan.Create, plan.Update, plan.Remove) == 0 { // it only reads, and has done so
		return plan.Permissions{}
	}
	ctx = cloud.Optional(ctx)
	document := permission.Policy(permission.Of(p.Cluster.Manifest))
	in := permission.Place{Partition: p.Cluster.Manifest.Partition(), Parameters: p.Cloud.ParameterPath("")}
	unknown := func(err error) plan.Permissions { return plan.Permissions{Unknown: notSimulated(err)} }
	who, err := p.Caller(ctx)
	if err != nil {
		return unknown(err)
	}
	in.Account = who.Account
	needs := append(permission.Needs(p.Built.Graph, p.Plan, document, in), p.passedRoles(ctx)...)
	principal, none, err := engineiam.Principal(ctx, p.Cloud, who.ARN)
	if err != nil {
		return unknown(err)
	}
	out := plan.Permissions{Principal: principal, Unknown: none, Actions: len(needs)}
	if none != "" {
		return out
	}
	lacking, err := permission.Check(ctx, p.Cloud, principal, in, needs)
	if err != nil {
		return unknown(err)
	}
	for _, l := range lacking {
		why := string(l.Why)
		if len(l.Missing) > 0 {
			why += ", unless " + text.Several(l.Missing) + " has the value that a policy asks for"
		}
		out.Lacking = append(out.Lacking, plan.Lack{Action: l.Action, On: l.Resource, Resource: l.Step.Resource, Origin: l.Step.Origin, Why: why, Maybe: l.Maybe})
	}
	if d := plan.PolicyDocument(document.Only(lacking)); len(d.Statement) > 0 {
		out.Policy = &d
	}
	return out
}

// notSimulated says why a simulation has failed, without what the SDK adds.
func notSimulated(err error) string {
	switch code := cloud.Code(err); {
	case cloud.Denied(err):
		return "that needs " + DeniedActions(err)
	case code != "":
		return "IAM answers " + code
	}
	return err.Error()
}

// passedRoles lists the roles that the plan gives to machines, to EKS and to the flow log.
func (p *planning) passedRoles(ctx context.Context) (needs []permission.Need) {
	gives := func(kinds ...string) (first plan.Step, found bool) {
		at := slices.IndexFunc(p.Plan.Steps, func(s plan.Step) bool {
			return s.Action == plan.Create && slices.Contains(kinds, s.Resource.Kind())
		})
		if at < 0 {
			return first, false
		}
		return p.Plan.Steps[at], true
	}
	machine, launches := gives(ec2.MachineKind, ec2.BastionKind, ec2.LaunchTemplateKind)
	managed, isManaged := gives(eks.ClusterKind, eks.NodeGroupKind, eks.FargateProfileKind)
	if flowLog, isNew := gives(ec2.FlowLogKind); isNew {
		if role := p.Cluster.Manifest.FlowLogs.Role; role != "" {
			needs = append(needs, permission.Need{ //nolint:gosec // the name of a service
				Action: "iam:PassRole", Resource: role, PassedTo: "vpc-flow-logs.amazonaws.com", Sid: "FlowLogRoles", Step: flowLog,
			})
		}
	}
	for _, n := range p.Built.Resources() {
		need := permission.Need{Action: "iam:PassRole"}
		switch have := n.Observed().(type) {
		case *ec2.Named:
			if !launches || n.ID().Kind() != ec2.InstanceProfileKind {
				continue
			}
			need.Resource, _ = ec2.RoleOfProfile(ctx, p.Cloud, have.Name)
			need.PassedTo, need.Sid, need.Step = "ec2.amazonaws.com", "MachineRoles", machine
			if p.Cluster.Manifest.Partition() == "aws-cn" {
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
func (p *planning) checkPermissions(ctx context.Context) func() []error {
	if p.only && !p.Cluster.Target.CheckPermissions || !p.only && p.Cluster.Target.IgnorePermissions ||
		p.Cloud.Stats().Writes.Load() > 0 { // a second plan of a run
		return func() []error { return nil }
	}
	answer := make(chan plan.Permissions, 1)
	go func() {
		defer close(answer)
		_ = crash.Catch(func() error {
			answer <- p.permissions(ctx)
			return nil
		})
	}()
	return func() []error {
		found, answered := <-answer
		if !answered {
			return nil
		}
		if p.Cluster.Target.CheckPermissions {
			p.allowed = &found
		}
		if found.Prevents() || p.only && len(found.Lacking) > 0 {
			return []error{&plan.PermissionError{Permissions: found}}
		}
		for _, l := range found.Lacking {
			p.Warn("%s may need %s", found.Principal, l)
		}
		return nil
	}
}
