package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// machineCheck looks for the reason why a machine has not become a Node. It only reads.
// The checks run in order of likelihood; each returns "" if it finds nothing.
type machineCheck struct {
	c       *cloud.Clients
	machine ec2.InstanceState // as the run last observed it
	control bool              // it runs an API server

	found  []string
	failed []string // calls that failed
	ended  bool     // a finding makes the other checks useless

	fetch   *fetchedData // what its user data fetches; nil for nothing, or while it is not known
	console []string     // its console output, without secrets; nil until it is read
}

// check looks for one cause.
type check func(ctx context.Context) (finding string, err error)

// run runs checks until a finding makes the others useless.
func (q *machineCheck) run(ctx context.Context, checks ...check) {
	for _, look := range checks {
		if q.ended {
			return
		}
		finding, err := look(ctx)
		if finding != "" {
			q.found = append(q.found, finding)
		}
		if err != nil {
			q.fail(err)
		}
	}
}

// fail records a check that failed. The diagnosis continues.
func (q *machineCheck) fail(err error) {
	what := err.Error()
	var op *smithy.OperationError
	if errors.As(err, &op) {
		what = op.Service() + " " + op.Operation()
	}
	if cloud.Denied(err) {
		what += " (not allowed)"
	}
	if !slices.Contains(q.failed, what) {
		q.failed = append(q.failed, what)
	}
}

// newMachineCheck returns the checks of one machine; nil if it does not exist.
func newMachineCheck(c *cloud.Clients, machine *graph.Ref[ec2.InstanceState], control bool) *machineCheck {
	m, ok := machine.Found()
	if !ok {
		return nil
	}
	return &machineCheck{c: c, machine: m, control: control}
}

// checkBoot checks what a machine needs to boot, and its console output.
func (q *machineCheck) checkBoot(ctx context.Context) {
	q.run(ctx, q.state, q.profile, q.route, q.groups, q.bootData, q.consoleCause)
}

// result returns the result of the diagnosis.
func (q *machineCheck) result(ctx context.Context) (findings []string, look string) {
	if !q.ended {
		q.run(ctx, q.consoleTail)
		look = fmt.Sprintf("aws ec2 get-console-output --latest --output text --region %s --instance-id %s", q.c.Region, q.machine.ID)
	}
	if len(q.failed) > 0 {
		q.found = append(q.found, "not checked, because these calls failed: "+strings.Join(q.failed, ", "))
	}
	return q.found, look
}

// replaceIt is the advice for a machine that has to be replaced.
func (q *machineCheck) replaceIt() string {
	if q.machine.Tags[ec2.GroupTag] != "" {
		return fmt.Sprintf(
			"terminate it (aws ec2 terminate-instances --region %s --instance-ids %s): its Auto Scaling group launches another one",
			q.c.Region,
			q.machine.ID,
		)
	}
	return fmt.Sprintf(
		"terminate it (aws ec2 terminate-instances --region %s --instance-ids %s) and run this again, which launches another one with new data",
		q.c.Region,
		q.machine.ID,
	)
}

// rebootIt is the advice for a machine that tries again when it boots.
func (q *machineCheck) rebootIt() string {
	return fmt.Sprintf("then reboot it: aws ec2 reboot-instances --region %s --instance-ids %s", q.c.Region, q.machine.ID)
}

// state finds a machine that is not running any more.
func (q *machineCheck) state(ctx context.Context) (string, error) {
	out, err := q.c.EC2.DescribeInstances(ctx, &awsec2.DescribeInstancesInput{InstanceIds: []string{q.machine.ID}})
	if cloud.NotFound(err) {
		q.ended = true
		return fmt.Sprintf("instance %s does not exist any more: run this again, which launches another one", q.machine.ID), nil
	}
	if err != nil {
		return "", err
	}
	for _, r := range out.Reservations {
		for _, x := range r.Instances {
			if x.State != nil && x.State.Name != types.InstanceStateNameRunning {
				q.ended = true
				return q.stopped(x), nil
			}
		}
	}
	return "", nil
}

// stopped returns why a machine is not running, and what to do.
func (q *machineCheck) stopped(x types.Instance) string {
	reason := aws.ToString(x.StateTransitionReason)
	if x.StateReason != nil {
		reason = strings.TrimSuffix(aws.ToString(x.StateReason.Message)+"; "+reason, "; ")
	}
	then := "run this again, which launches another one"
	switch x.State.Name { //nolint:exhaustive // the others are those of machines that end
	case types.InstanceStateNameStopped, types.InstanceStateNameStopping:
		m := q.machine
		m.Status = string(x.State.Name)
		then = "start it again: " + ec2.StartCommand(q.c.Region, m)
	case types.InstanceStateNamePending:
		then = "EC2 has not started it yet: run this again"
	}
	return fmt.Sprintf("instance %s is %s (%s): %s", q.machine.ID, x.State.Name, reason, then)
}

// profile finds a machine without permissions.
func (q *machineCheck) profile(ctx context.Context) (string, error) {
	name := q.machine.Profile
	if name == "" {
		return "", nil // it may need none; checkBoot finds out if it does
	}
	out, err := ec2.InstanceProfile(ctx, q.c, name)
	switch {
	case cloud.NotFound(err):
		return fmt.Sprintf(
			"the instance profile %s of %s does not exist any more: create it again (`clusterawsadm bootstrap iam create-cloudformation-stack` creates those of Cluster API), and %s",
			name,
			q.machine.ID,
			q.replaceIt(),
		), nil
	case err != nil:
		return "", err
	case len(out.InstanceProfile.Roles) == 0:
		return fmt.Sprintf("the instance profile %s of %s has no role, so the machine may do nothing: add its role to it; %s", name, q.machine.ID, q.rebootIt()), nil
	}
	return "", nil
}

// groups finds security groups that allow no traffic.
func (q *machineCheck) groups(ctx context.Context) (string, error) {
	all, err := ec2.SecurityGroups(ctx, q.c, q.machine.VPC)
	if err != nil {
		return "", err
	}
	var in, out []types.IpPermission
	for _, g := range all {
		if slices.Contains(q.machine.Groups, g.ID) {
			in, out = append(in, g.Ingress...), append(out, g.Egress...)
		}
	}
	names := strings.Join(q.machine.Groups, ", ")
	switch {
	case len(out) == 0:
		return fmt.Sprintf("the security groups of %s (%s) permit no outgoing traffic: allow it; %s", q.machine.ID, names, q.rebootIt()), nil
	case q.control && !slices.ContainsFunc(in, allowsAPI):
		return fmt.Sprintf(
			"the security groups of %s (%s) permit no connection to the API server, TCP %d: run this again, which adds the rules to the cluster's own groups; add them yourself to existing groups",
			q.machine.ID,
			names,
			elb.ClassicTarget,
		), nil
	}
	return "", nil
}

// allowsAPI reports whether a rule allows connections to the API server.
func allowsAPI(p types.IpPermission) bool {
	from, to := p.FromPort, p.ToPort
	return aws.ToString(p.IpProtocol) == "-1" ||
		aws.ToString(p.IpProtocol) == "tcp" && from != nil && to != nil && *from <= elb.ClassicTarget && elb.ClassicTarget <= *to
}
