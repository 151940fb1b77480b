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

// inquiry looks for the reason why a machine has not become what it was to be:
// from the outside, and changing nothing. Its checks come in the order in which
// their findings are likely to be the cause; each returns "" where all is well.
type inquiry struct {
	c       *cloud.Clients
	machine ec2.InstanceState // as the run has seen it last
	control bool              // it is to run an API server

	found   []string
	unasked []string // calls that were refused or failed
	ended   bool     // by a finding that leaves the others without meaning

	fetch   *fetching // what its user data has it fetch; nil until that is known, and for nothing
	console []string  // what its console says, scrubbed; nil until it was asked
}

// check is one look at one thing.
type check func(ctx context.Context) (finding string, err error)

// ask makes checks until a finding ends the search.
func (q *inquiry) ask(ctx context.Context, checks ...check) {
	for _, look := range checks {
		if q.ended {
			return
		}
		finding, err := look(ctx)
		if finding != "" {
			q.found = append(q.found, finding)
		}
		if err != nil {
			q.missed(err)
		}
	}
}

// missed notes what could not be looked at: that is no error of its own.
func (q *inquiry) missed(err error) {
	what := err.Error()
	var op *smithy.OperationError
	if errors.As(err, &op) {
		what = op.Service() + " " + op.Operation()
	}
	if cloud.Denied(err) {
		what += " (not allowed)"
	}
	if !slices.Contains(q.unasked, what) {
		q.unasked = append(q.unasked, what)
	}
}

// about is the inquiry into one machine; nil when there is none.
func about(c *cloud.Clients, machine *graph.Ref[ec2.InstanceState], control bool) *inquiry {
	m, ok := machine.Found()
	if !ok {
		return nil
	}
	return &inquiry{c: c, machine: m, control: control}
}

// booting checks what a machine needs to boot, and what it says of it.
func (q *inquiry) booting(ctx context.Context) {
	q.ask(ctx, q.state, q.profile, q.route, q.groups, q.bootData, q.consoleCause)
}

// result ends the inquiry.
func (q *inquiry) result(ctx context.Context) (findings []string, look string) {
	if !q.ended {
		q.ask(ctx, q.lastWords)
		look = fmt.Sprintf("aws ec2 get-console-output --latest --output text --region %s --instance-id %s", q.c.Region, q.machine.ID)
	}
	if len(q.unasked) > 0 {
		q.found = append(q.found, "not looked at, for the calls failed: "+strings.Join(q.unasked, ", "))
	}
	return q.found, look
}

// anew is the advice for a machine that cannot be mended.
func (q *inquiry) anew() string {
	return fmt.Sprintf("terminate it (aws ec2 terminate-instances --region %s --instance-ids %s) and run this again, which launches another one with new data", q.c.Region, q.machine.ID)
}

// reboot is the advice for a machine that tries again when it boots.
func (q *inquiry) reboot() string {
	return fmt.Sprintf("then reboot it: aws ec2 reboot-instances --region %s --instance-ids %s", q.c.Region, q.machine.ID)
}

// state finds a machine that does not run any more.
func (q *inquiry) state(ctx context.Context) (string, error) {
	out, err := q.c.EC2.DescribeInstances(ctx, &awsec2.DescribeInstancesInput{InstanceIds: []string{q.machine.ID}})
	if cloud.NotFound(err) {
		q.ended = true
		return fmt.Sprintf("instance %s is gone, and AWS does not know it any more: run this again, which launches another one", q.machine.ID), nil
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

// stopped says of a machine that does not run why, and what to do.
func (q *inquiry) stopped(x types.Instance) string {
	reason := aws.ToString(x.StateTransitionReason)
	if x.StateReason != nil {
		reason = strings.TrimSuffix(aws.ToString(x.StateReason.Message)+"; "+reason, "; ")
	}
	then := "run this again, which launches another one"
	if x.State.Name == types.InstanceStateNameStopped || x.State.Name == types.InstanceStateNameStopping {
		then = "start it again: aws ec2 start-instances --region " + q.c.Region + " --instance-ids " + q.machine.ID
	}
	return fmt.Sprintf("instance %s is %s (%s): %s", q.machine.ID, x.State.Name, reason, then)
}

// profile finds a machine without permissions.
func (q *inquiry) profile(ctx context.Context) (string, error) {
	name := q.machine.Profile
	if name == "" {
		return "", nil // it may need none; what fetches its data says so
	}
	out, err := ec2.InstanceProfile(ctx, q.c, name)
	switch {
	case cloud.NotFound(err):
		return fmt.Sprintf("the instance profile %s of %s does not exist any more: make it again (`clusterawsadm bootstrap iam create-cloudformation-stack` makes Cluster API's own), and %s", name, q.machine.ID, q.anew()), nil
	case err != nil:
		return "", err
	case len(out.InstanceProfile.Roles) == 0:
		return fmt.Sprintf("the instance profile %s of %s has no role, so the machine may do nothing: add its role to it; %s", name, q.machine.ID, q.reboot()), nil
	}
	return "", nil
}

// groups finds security groups that let nothing through.
func (q *inquiry) groups(ctx context.Context) (string, error) {
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
		return fmt.Sprintf("the security groups of %s (%s) let nothing out: allow outgoing traffic; %s", q.machine.ID, names, q.reboot()), nil
	case q.control && !slices.ContainsFunc(in, serves):
		return fmt.Sprintf("the security groups of %s (%s) let nobody in to the API server, TCP %d: run this again, which adds the rules to the cluster's own groups; add them yourself to groups that you brought", q.machine.ID, names, elb.ClassicTarget), nil
	}
	return "", nil
}

// serves reports whether a rule lets somebody in to the API server.
func serves(p types.IpPermission) bool {
	from, to := p.FromPort, p.ToPort
	return aws.ToString(p.IpProtocol) == "-1" || aws.ToString(p.IpProtocol) == "tcp" && from != nil && to != nil && *from <= elb.ClassicTarget && elb.ClassicTarget <= *to
}
